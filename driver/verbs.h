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

struct CaseRecord;
struct Scene;

struct RunOptions {
  std::string stage;
  bool solution = false;
  bool cpu = false;
  bool gpu = false;
  bool full = false;
  std::string case_name;
  std::optional<std::uint64_t> seed;
  double fuzz_seconds = 0;  // random cases for so long, instead of the stage's own
  bool map = false;         // a picture of which values are wrong
  std::string print;        // "row,column": how that value is formed
  bool no_time = false;     // no timed line after a PASS on a GPU
  double gate = 0;          // SLOW beyond this many times the reference's time; 0: never
};

struct HintOptions {
  std::string stage;
  std::string region;
  bool all = false;
};

struct NotesOptions {
  std::string stage;
  std::string section;
  bool answers = false;
};

struct DiffOptions {
  std::string stage;
  bool skeleton = false;
  bool solution = false;
};

struct SolutionOptions {
  std::string stage;
  std::string region;
  bool yes = false;
};

struct WatchOptions {
  std::string stage;
  bool cpu = false;
  bool gpu = false;
};

struct DebugOptions {
  std::string stage;
  std::string case_name;
  std::string region;
  bool show = false;  // print the command instead of starting it
  bool solution = false;
  bool gpu = false;
};

struct CheckOptions {
  std::string stage;
  std::string case_name;  // "": the tests' quick set, on a GPU its smallest cases
  bool solution = false;
  bool cpu = false;
  bool gpu = false;
};

struct WorklogOptions {
  std::string stage;
  std::string note;
};

struct ExportOptions {
  std::string folder;
  bool without_solutions = false;
  bool cpu = false;  // leave the GPU side out
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
  bool solution = false;    // the others: ours
  std::string last = "m4";  // whose moe_layer: m3 or m4
  bool cpu = false;
  bool gpu = false;
  bool full = false;
  std::string case_name;
};

struct CostOptions {
  std::string stage;
  bool solution = false;
  std::string versus;     // "solution": show the reference's figures beside
  std::string case_name;  // empty: the stage's representative one
  std::string gpu_name = "H200";
  bool json = false;
};

struct BenchOptions {
  std::string stage;
  std::string shape;  // empty: A, or what the stage is for
  std::string routing = "uniform";
  std::string json;  // a file
  int tokens = 0;    // 0: those of the shape
  bool solution = false;
  std::vector<std::string> alternatives;  // names in tests/alternative, or "all"
  bool peers = false;                     // layer: what is published alone
  std::string plot;                       // layer: a results file to draw; empty: measure
};

struct SweepOptions {
  std::string shape = "B";
  std::string out = "build/sweep.tsv";  // and .svg beside it
  std::string plot;                     // a file to draw again; empty: measure
  int most = 16384;
};

struct TuneOptions {
  std::vector<int> sizes;   // T E K H I; none: shape A
  bool only_print = false;  // measure, change nothing
};

struct ReadOptions {
  std::string stage;   // whose page is opened; empty: the contents
  bool quiet = false;  // opens no browser
};

struct PaddingOptions {
  std::string routing = "uniform";  // or zipf, hot, or a file of ids
  int num_tokens = 4096;
  int num_experts = 0;  // 0: 64, or as many as the file names
  int top_k = 8;
  double skew = 1.0;
  std::uint64_t seed = 1;
};

int show_where(const Course& course);  // driver/where.cpp
int show_hint(const Course& course, const HintOptions& options);
int show_notes(const Course& course, const NotesOptions& options);
int explain_code(const Course& course, const std::string& code);
int show_diff(const Course& course, const DiffOptions& options);
int show_solution(const Course& course, const SolutionOptions& options);
int watch_stage(const Course& course, const WatchOptions& options);
int debug_stage(const Course& course, const DebugOptions& options);
int check_stage(const Course& course, const CheckOptions& options);
// What `drill check` finds in a case that crashed or hung, run once more and alone, where the
// builds for that are there; else the command.
std::string replay_text(const Course& course,
                        const Scene& scene,
                        const Backend& backend,
                        const CaseRecord& failed);
int show_worklog(const Course& course, const WorklogOptions& options);
int export_course(const Course& course, const ExportOptions& options);
int run_stage(const Course& course, const RunOptions& options);
int run_fuzz(const Course& course, const RunOptions& options);  // all stages without a name
int list_stages(const Course& course);
int reset_stage(const Course& course, const ResetOptions& options);
int run_layer(const Course& course, const LayerOptions& options);
int run_cost(const Course& course, const CostOptions& options);
int run_bench(const Course& course, const BenchOptions& options);
int run_ladder(const Course& course, const BenchOptions& options);  // driver/bench_ladder.cpp
int run_sweep(const Course& course, const SweepOptions& options);   // driver/sweep.cpp
int run_tune(const Course& course, const TuneOptions& options);
// The part of it that needs no GPU: from the report of the measurement to the table.
int write_tuned_line(const Course& course, const std::string& report, bool only_print);
int run_read(const Course& course, const ReadOptions& options);
int run_try(const Course& course, const std::string& idea);
int run_padding(const PaddingOptions& options);
int run_grade(const Course& course, const std::vector<std::string>& arguments);
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
