// What is known about a graded submission: the one record that every report is written from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "driver/report.h"

namespace moe::grade {

// Where several hold, the stage gets the one that explains it best; see examine.cpp.
enum class Mark {
  kPass,
  kWrong,
  kTodo,
  kBuild,
  kRule,
  kCrash,
  kHang,
  kMemory,
  kMissing,  // not handed in
  kFault,    // of the grader or the machine: never the student's
};

const char* word_of(Mark mark);  // "PASS"
Mark mark_of(driver::Verdict verdict);

struct CaseResult {
  std::string name;  // "edge/top2_tokens"
  driver::CaseState state = driver::CaseState::kNotRun;
  std::string code;
  std::string sentence;
  std::string region;
  std::string note;
  std::string step;
  std::string shape;
  std::string fault;
  std::vector<std::string> evidence;
  double seconds = 0;

  std::string group() const { return name.substr(0, name.find('/')); }
  bool hidden() const { return group() == "hidden"; }
};

// A measurement on a GPU: microseconds of the student's and of the reference's calls, summed.
struct Timing {
  double mine_us = 0;
  double reference_us = 0;
  std::string problem;  // why there is none
};

// What a cost card sums up to (driver/cost/card.h).
struct CostFigures {
  bool taken = false;
  double sectors_per_request = 0;
  double bank_conflicts = 0;
  double bytes_ratio = 0;  // in DRAM, to the least
  std::string problem;     // why there are none, where they were wanted
};

struct StageResult {
  std::string key;  // of everything that the result depends on
  Mark mark = Mark::kFault;
  std::string code;
  std::string sentence;  // what is wrong, in one sentence; "" for a pass
  std::string text;      // what the compiler said, shortened
  std::string output;    // what the submission printed, shortened
  std::vector<CaseResult> cases;
  int attempts = 1;
  bool flaky = false;  // passed only after a first try that hung
  Timing timing;
  CostFigures cost;
  CostFigures reference_cost;
  double build_seconds = 0;
  double test_seconds = 0;

  const CaseResult* diagnosed() const;  // the case to show first, or nullptr
};

struct StudentResult {
  std::string student;
  std::string commit;
  std::map<std::string, StageResult> stages;  // by stem
};

// As text of a file, and back. Throws std::exception for a file that is not one.
std::string to_text(const StageResult& result);
StageResult stage_from_text(const std::string& text);

// Written so that a power cut leaves the old file or the new one, never half of one.
bool write_durably(const std::filesystem::path& path, const std::string& text);

const char* word_of(driver::CaseState state);  // "pass"

}  // namespace moe::grade
