// What each verb of the command takes (CLI11), and where what was given is kept.
#pragma once

#include <string>
#include <vector>

#include "driver/verbs.h"

namespace CLI {
class App;
}

namespace moe::driver {

struct Options {
  RunOptions run;
  ResetOptions reset;
  SkeletonsOptions skeletons;
  LayerOptions layer;
  CostOptions cost;
  BenchOptions bench;
  SweepOptions sweep;
  TuneOptions tune;
  PaddingOptions padding;
  std::string idea;
  ReadOptions read;
  bool long_selftest = false;
  std::vector<std::string> grade;  // parsed by the grader itself
  double fuzz_seconds = 60;
  HintOptions hint;
  NotesOptions notes;
  DiffOptions diff;
  SolutionOptions solution;
  WatchOptions watch;
  DebugOptions debug;
  CheckOptions check;
  WorklogOptions worklog;
  ExportOptions exported;
  std::string code;
  std::string shell;

  // What was given as a stage to any verb.
  std::vector<std::string> stages() const {
    return {run.stage,  reset.stage,    bench.stage, hint.stage,  notes.stage,
            diff.stage, solution.stage, watch.stage, debug.stage, worklog.stage,
            read.stage, check.stage,    cost.stage};
  }
};

void add_nothing(CLI::App& verb, Options& options);
void add_run_options(CLI::App& verb, Options& options);
void add_fuzz_options(CLI::App& verb, Options& options);
void add_hint_options(CLI::App& verb, Options& options);
void add_notes_options(CLI::App& verb, Options& options);
void add_diff_options(CLI::App& verb, Options& options);
void add_solution_options(CLI::App& verb, Options& options);
void add_watch_options(CLI::App& verb, Options& options);
void add_debug_options(CLI::App& verb, Options& options);
void add_check_options(CLI::App& verb, Options& options);
void add_worklog_options(CLI::App& verb, Options& options);
void add_export_options(CLI::App& verb, Options& options);
void add_code_argument(CLI::App& verb, Options& options);
void add_shell_argument(CLI::App& verb, Options& options);
void add_reset_options(CLI::App& verb, Options& options);
void add_layer_options(CLI::App& verb, Options& options);
void add_cost_options(CLI::App& verb, Options& options);
void add_bench_options(CLI::App& verb, Options& options);
void add_sweep_options(CLI::App& verb, Options& options);
void add_tune_options(CLI::App& verb, Options& options);
void add_read_options(CLI::App& verb, Options& options);
void add_try_options(CLI::App& verb, Options& options);
void add_padding_options(CLI::App& verb, Options& options);
void add_selftest_options(CLI::App& verb, Options& options);
void add_grade_options(CLI::App& verb, Options& options);
void add_skeletons_options(CLI::App& verb, Options& options);

}  // namespace moe::driver
