// Hostile submissions: tests/cheats/NN_name.cu, NN being the number in the list of known attacks.
// The head of a file says what it is and which verdict it must get:
//   // stage: m1_align
//   // base: none          the code stands alone: it does no work beside the attack
//   //       solution      our solution stands before it, to be called as honest(call)
//   //       file, skeleton   our solution as it is; the blank file
//   // expect: WRONG       the stage's mark
//   // quick: WRONG        with the quick set; optional, else it is not tried
//   // gpu: WRONG CRASH     what a GPU may give in place of that; optional
//   // says: words         of the stage's sentence; optional
//   // code: OOB           of the diagnosis; optional
//   // also: CMakeLists.txt ...   files of the submission beside mine/*.cu; optional
// The code defines `static cudaError_t cheat(const Call& call)`, which is called in place of the
// stage's function (align of m1, grouped_gemm of m2).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace moe::grade {

struct Cheat {
  std::string name;
  std::string stem;
  std::string base;
  std::string expect;
  std::string quick;
  std::vector<std::string> on_gpu;
  std::string says;
  std::string code;
  std::vector<std::string> also;
  std::string text;

  bool may_get(const std::string& verdict, bool gpu) const;
};

// All of them, by name. Throws std::runtime_error for a head that is not as above.
std::vector<Cheat> read_cheats(const std::filesystem::path& folder);

// The text of mine/STEM.cu; `solution` is that of solutions/STEM.cu.
std::string source_of(const Cheat& cheat, const std::string& solution);

// Writes FOLDER/mine/STEM.cu and the files that the cheat hands in beside it.
void hand_in(const Cheat& cheat,
             const std::filesystem::path& course,
             const std::filesystem::path& folder);

}  // namespace moe::grade
