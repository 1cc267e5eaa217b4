#include "cheat.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "driver/skeleton.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCallOfM1 = R"(
struct Call {
  int32_t* sorted_token_ids;
  int32_t* expert_ids;
  int32_t* num_tokens_post_padded;
  const int32_t* topk_ids;
  int num_tokens, top_k, num_experts, block_m;
  void* workspace;
  size_t workspace_bytes;
  cudaStream_t stream;
};
)";

constexpr const char* kHonestOfM1 = R"(
static cudaError_t honest(const Call& c) {
  return moe::DRILL_SIDE::honest_align(c.sorted_token_ids, c.expert_ids, c.num_tokens_post_padded,
                                       c.topk_ids, c.num_tokens, c.top_k, c.num_experts, c.block_m,
                                       c.workspace, c.workspace_bytes, c.stream);
}
)";

constexpr const char* kNothingElseOfM1 = R"(
namespace moe::DRILL_SIDE {
cudaError_t route(int32_t*, float*, const float*, int, int, int, bool, cudaStream_t) {
  return cudaSuccess;
}
size_t align_workspace_bytes(int, int, int, int) { return 0; }
}  // namespace moe::DRILL_SIDE
)";

constexpr const char* kStageOfM1 = R"(
namespace moe::DRILL_SIDE {
cudaError_t align(int32_t* a, int32_t* b, int32_t* c, const int32_t* d, int e, int f, int g, int h,
                  void* i, size_t j, cudaStream_t k) {
  if (refuse_align(a, b, c, d, e, f, g, h, i, j, k) != nullptr) return cudaErrorInvalidValue;
  return cheat(Call{a, b, c, d, e, f, g, h, i, j, k});
}
}  // namespace moe::DRILL_SIDE
)";

constexpr const char* kCallOfM2 = R"(
struct Call {
  __nv_bfloat16* out;
  const __nv_bfloat16* a;
  const __nv_bfloat16* w;
  const int32_t* sorted_token_ids;
  const int32_t* expert_ids;
  const int32_t* num_tokens_post_padded;
  int num_tokens, top_k, num_experts, n, depth, block_m;
  moe::Rows rows;
  cudaStream_t stream;
  size_t out_elements() const {
    return static_cast<size_t>(num_tokens) * static_cast<size_t>(top_k) * static_cast<size_t>(n);
  }
  Call with_tokens(int tokens) const {
    Call other = *this;
    other.num_tokens = tokens;
    return other;
  }
};
)";

constexpr const char* kHonestOfM2 = R"(
static cudaError_t honest(const Call& c) {
  return moe::DRILL_SIDE::honest_grouped_gemm(
      c.out, c.a, c.w, c.sorted_token_ids, c.expert_ids, c.num_tokens_post_padded, c.num_tokens,
      c.top_k, c.num_experts, c.n, c.depth, c.block_m, c.rows, c.stream);
}
)";

constexpr const char* kStageOfM2 = R"(
namespace moe::DRILL_SIDE {
cudaError_t grouped_gemm(__nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* c,
                         const int32_t* d, const int32_t* e, const int32_t* f, int g, int h, int i,
                         int j, int k, int l, Rows m, cudaStream_t n) {
  if (refuse_grouped_gemm(a, b, c, d, e, f, g, h, i, j, k, l, m, n) != nullptr) {
    return cudaErrorInvalidValue;
  }
  return cheat(Call{a, b, c, d, e, f, g, h, i, j, k, l, m, n});
}
}  // namespace moe::DRILL_SIDE
)";

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

void read_head(Cheat& cheat) {
  for (const std::string& line : driver::split_lines(cheat.text)) {
    if (line.rfind("// ", 0) != 0) break;
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string key = line.substr(3, colon - 3);
    const std::string value = line.substr(colon + 2);
    if (key == "stage") cheat.stem = value;
    if (key == "base") cheat.base = value;
    if (key == "expect") cheat.expect = value;
    if (key == "says") cheat.says = value;
    if (key == "code") cheat.code = value;
    if (key == "quick") cheat.quick = value;
    if (key == "also") cheat.also = words_of(value);
    if (key == "gpu") cheat.on_gpu = words_of(value);
  }
  const bool known = cheat.stem == "m1_align" || cheat.stem == "m2_grouped_gemm";
  if (!known || cheat.base.empty() || cheat.expect.empty()) {
    throw std::runtime_error("tests/cheats/" + cheat.name + ".cu has no complete head");
  }
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace

bool Cheat::may_get(const std::string& verdict, bool gpu) const {
  return verdict == expect || (gpu && std::count(on_gpu.begin(), on_gpu.end(), verdict) > 0);
}

std::vector<Cheat> read_cheats(const fs::path& folder) {
  std::vector<Cheat> cheats;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".cu") continue;
    Cheat cheat;
    cheat.name = entry.path().stem();
    cheat.text = driver::read_file(entry.path());
    read_head(cheat);
    cheats.push_back(std::move(cheat));
  }
  std::sort(cheats.begin(), cheats.end(),
            [](const Cheat& a, const Cheat& b) { return a.name < b.name; });
  return cheats;
}

std::string source_of(const Cheat& cheat, const std::string& solution) {
  if (cheat.base == "file") return solution;
  if (cheat.base == "skeleton") {
    return driver::make_skeleton(solution, cheat.stem, cheat.stem.substr(0, cheat.stem.find('_')));
  }
  const bool m1 = cheat.stem == "m1_align";
  const std::string function = m1 ? "align" : "grouped_gemm";
  const std::string call = m1 ? kCallOfM1 : kCallOfM2;
  const std::string stage = m1 ? kStageOfM1 : kStageOfM2;
  if (cheat.base == "solution") {
    return "#define " + function + " honest_" + function + "\n" + solution + "#undef " + function +
           "\n" + call + (m1 ? kHonestOfM1 : kHonestOfM2) + cheat.text + stage;
  }
  return "#include <drills/" + cheat.stem + ".h>\n#include <drills/launch.h>\n" + call +
         cheat.text + (m1 ? kNothingElseOfM1 : "") + stage;
}

void hand_in(const Cheat& cheat, const fs::path& course, const fs::path& folder) {
  const std::string solution = driver::read_file(course / "solutions" / (cheat.stem + ".cu"));
  write(folder / "mine" / (cheat.stem + ".cu"), source_of(cheat, solution));
  for (const std::string& file : cheat.also) write(folder / file, "#error this must not be used\n");
}

}  // namespace moe::grade
