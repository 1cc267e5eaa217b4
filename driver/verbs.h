// The verbs of the command, one file each. They return the exit code; drill.cpp fills the options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "driver/backend.h"
#include "driver/course.h"
#include "driver/terminal.h"

namespace moe::driver {

struct RunOptions {
  std::string stage;
  bool solution = false;
  bool cpu = false;
  bool gpu = false;
  bool full = false;
  std::string case_name;
  std::optional<std::uint64_t> seed;
  double fuzz_seconds = 0;  // random cases for so long, instead of the stage's own
};

struct ResetOptions {
  std::string stage;
  bool yes = false;
};

struct SkeletonsOptions {
  bool check = false;
  bool write = false;
};

struct LayerOptions {
  std::string with;         // "m1=solution,m2=mine"; the others: yours where it passes, else ours
  std::string last = "m4";  // whose moe_layer: m3 or m4
  bool cpu = false;
  bool gpu = false;
  bool full = false;
  std::string case_name;
};

struct BenchOptions {
  std::string stage;
  std::string shape = "A";
  bool solution = false;
};

int show_where(const Course& course);  // driver/where.cpp
int run_stage(const Course& course, const RunOptions& options);
int run_fuzz(const Course& course, const RunOptions& options);  // all stages without a name
int list_stages(const Course& course);
int reset_stage(const Course& course, const ResetOptions& options);
int run_layer(const Course& course, const LayerOptions& options);
int run_bench(const Course& course, const BenchOptions& options);
int run_tune(const Course& course, const std::vector<int>& sizes);
int run_doctor(const Course& course);
int run_selftest(const Course& course, bool long_set);
int run_skeletons(const Course& course, const SkeletonsOptions& options);

// Where a stage stands, from its file and .drill/state alone; used by `drill` and `drill list`.
struct Standing {
  std::string word;    // "PASS", "WRONG", "edited", "new", ...
  std::string detail;  // "edge/top2_mixed, 5 minutes ago"
  bool passed = false;
  bool full = false;  // passed every case, not only the quick set
  std::size_t open = 0;
  std::size_t blanks = 0;
};

Standing standing_of(const Course& course, const Stage& stage);  // driver/where.cpp

// "m2   grouped GEMM with gathered rows   WRONG  edge/top2_mixed, 5 minutes ago"
std::string standing_line(const Stage& stage, const Standing& standing, const Paint& paint);

// The one command that comes next: about the first stage that does not pass, looked for behind
// `after` first. driver/where.cpp
std::string next_command(const Course& course, const Stage* after = nullptr);

}  // namespace moe::driver
