// What a test binary says: one JSON record a line, read as far as it got.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

enum class CaseState { kPass, kWrong, kTodo, kCrash, kHang, kSkip, kNotRun };

// Which values of an output are wrong.
struct WrongMap {
  std::string name;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::string cells;  // [rows, columns]: '0' right, '1' wrong, '2' not judged
};

// The record of a runner that ended before the first case: no case that anybody can ask for.
inline constexpr std::string_view kBeforeFirstCase = "start";

struct CaseRecord {
  std::string name;  // "edge/top2_mixed"
  CaseState state = CaseState::kNotRun;
  double seconds = 0;
  std::string shape;
  std::optional<std::uint64_t> seed;
  std::uint64_t digest = 0;           // of the outputs of a passed case
  std::string step;                   // in which run of the case: "reversed thread order"
  std::string sentence;               // the diagnosis
  std::vector<std::string> or_else;   // other mistakes that the run can't tell from it
  std::string code;                   // its name, "M2-FLATROW"
  std::string region;                 // where to look, "m2.gather"
  std::string note;                   // heading in the stage's note
  std::vector<std::string> evidence;  // what was found, most telling first
  std::string fault;                  // text of a crash or hang
  std::vector<std::string> todo;      // blanks that the case reached
  std::vector<std::string> trace;     // of --print: how one value is formed
  WrongMap map;                       // of --map
};

struct Report {
  bool started = false;
  bool ended = false;  // without it the test binary died
  std::string device;
  std::string set;  // "quick" or "full"
  std::uint64_t seed = 0;
  std::vector<CaseRecord> cases;
  std::string diagnosed;  // the case that shows best what is wrong; empty: none
  std::string output;     // printed by the learner's code
  bool output_truncated = false;
  std::string usage;      // why nothing was run: no such case, for example
  int damaged_lines = 0;  // no JSON, or not of the agreed form

  std::size_t count(CaseState state) const;
  const CaseRecord* first(CaseState state) const;  // nullptr when there is none
};

// Exit codes of the command and of test binaries; the names are its states.
enum class Verdict {
  kPass = 0,
  kWrong = 1,
  kUsage = 2,
  kTodo = 3,
  kBuild = 4,
  kCrash = 5,
  kHang = 6,
  kSlow = 7,    // right, but slower than --gate allows
  kFault = 70,  // ours
  kSkip = 77,
};

Report parse_report(std::string_view text);

// Of the cases: where several states occur, the first of HANG, CRASH, WRONG, TODO counts.
// kFault when there is nothing to judge.
Verdict verdict_of(const Report& report);

const char* word_of(Verdict verdict);  // "PASS"

}  // namespace moe::driver
