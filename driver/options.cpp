#include "driver/options.h"

#include <CLI/CLI.hpp>

namespace moe::driver {
namespace {

// For CLI11: what is wrong with the text of --print, or "".
std::string is_place(const std::string& text) {
  const std::size_t comma = text.find(',');
  const bool good = comma != 0 && comma != std::string::npos && comma + 1 < text.size() &&
                    text.find_first_not_of("0123456789,") == std::string::npos &&
                    text.find(',', comma + 1) == std::string::npos;
  return good ? "" : "--print takes a row and a column, as in --print 3,0";
}

}  // namespace

void add_nothing(CLI::App&, Options&) {}

void add_run_options(CLI::App& verb, Options& options) {
  RunOptions& run = options.run;
  // Written as the verb itself; see run_command.
  verb.add_option("--stage", run.stage)->required()->group("");
  verb.add_flag("--solution", run.solution, "test the reference instead of your file");
  CLI::Option* cpu = verb.add_flag("--cpu", run.cpu, "on the emulator, even where a GPU is");
  verb.add_flag("--gpu", run.gpu, "on the GPU, or not at all")->excludes(cpu);
  verb.add_flag("--full", run.full, "every case in every way, not only the quick set");
  verb.add_option("--case", run.case_name, "only this case, as group/name")->type_name("CASE");
  verb.add_option("--seed", run.seed, "of the random data; every run prints its own")
      ->type_name("N");
  verb.add_flag("--map", run.map, "a picture of which values are wrong");
  verb.add_option("--print", run.print, "how the value at ROW,COL is formed, term by term")
      ->check(CLI::Validator(is_place, "ROW,COL"))
      ->type_name("R,C");
  verb.add_flag("--no-time", run.no_time, "no timed line after a PASS on a GPU");
  verb.add_option("--gate", run.gate, "SLOW beyond X times the reference's time (GPU)")
      ->check(CLI::PositiveNumber)
      ->type_name("X");
}

void add_fuzz_options(CLI::App& verb, Options& options) {
  RunOptions& run = options.run;
  verb.add_option("stage", run.stage, "m1, m2, ...; without it all, one after another");
  verb.add_option("--seconds", options.fuzz_seconds, "how long; 60 without it")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  verb.add_flag("--solution", run.solution, "the reference instead of your file");
  CLI::Option* cpu = verb.add_flag("--cpu", run.cpu, "on the emulator, even where a GPU is");
  verb.add_flag("--gpu", run.gpu, "on the GPU, or not at all")->excludes(cpu);
  verb.add_option("--seed", run.seed, "of the random cases; every run prints its own")
      ->type_name("N");
}

void add_hint_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.hint.stage)->required();
  verb.add_option("region", options.hint.region);
  verb.add_flag("--all", options.hint.all, "the hints that were taken, again");
}

void add_notes_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.notes.stage)->required();
  verb.add_option("section", options.notes.section);
  verb.add_flag("--answers", options.notes.answers, "unfold the answers of questions");
}

void add_diff_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.diff.stage)->required();
  CLI::Option* skeleton = verb.add_flag("--skeleton", options.diff.skeleton,
                                        "against the blank file, after a pass too");
  verb.add_flag("--solution", options.diff.solution, "against the reference, before a pass too")
      ->excludes(skeleton);
}

void add_solution_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.solution.stage)->required();
  verb.add_option("region", options.solution.region);
  verb.add_flag("--yes", options.solution.yes, "do not ask");
}

void add_watch_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.watch.stage);
  CLI::Option* cpu = verb.add_flag("--cpu", options.watch.cpu, "on the emulator");
  verb.add_flag("--gpu", options.watch.gpu, "on the GPU, or not at all")->excludes(cpu);
}

void add_debug_options(CLI::App& verb, Options& options) {
  DebugOptions& debug = options.debug;
  verb.add_option("stage", debug.stage)->required();
  verb.add_option("--case", debug.case_name, "which case; default: the one that failed last")
      ->type_name("CASE");
  verb.add_option("--region", debug.region, "where to stop; default: what was diagnosed")
      ->type_name("NAME");
  verb.add_flag("--solution", debug.solution, "the reference instead of your file");
  verb.add_flag("--gpu", debug.gpu, "on the GPU, with cuda-gdb");
  verb.add_flag("--show", debug.show, "print the debugger's command, start nothing");
}

void add_check_options(CLI::App& verb, Options& options) {
  CheckOptions& check = options.check;
  verb.add_option("stage", check.stage)->required();
  verb.add_flag("--solution", check.solution, "the reference instead of your file");
  verb.add_option("--case", check.case_name, "only this case, as group/name")->type_name("CASE");
  CLI::Option* cpu = verb.add_flag("--cpu", check.cpu, "on the emulator, even where a GPU is");
  verb.add_flag("--gpu", check.gpu, "on the GPU with compute-sanitizer, or not at all")
      ->excludes(cpu);
}

void add_worklog_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.worklog.stage);
  verb.add_option("--note", options.worklog.note, "write this down instead")->type_name("TEXT");
}

void add_export_options(CLI::App& verb, Options& options) {
  verb.add_option("folder", options.exported.folder)->required();
  verb.add_flag("--without-solutions", options.exported.without_solutions, "for a class");
  verb.add_flag("--cpu", options.exported.cpu, "references for the emulator only");
}

void add_code_argument(CLI::App& verb, Options& options) {
  verb.add_option("code", options.code)->required();
}

void add_shell_argument(CLI::App& verb, Options& options) {
  verb.add_option("shell", options.shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
}

void add_reset_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.reset.stage)->required();
  verb.add_flag("--yes", options.reset.yes, "do not ask");
}

void add_layer_options(CLI::App& verb, Options& options) {
  LayerOptions& layer = options.layer;
  verb.add_option("--with", layer.with, "whose stages: m1=solution,m2=mine")->type_name("LIST");
  verb.add_flag("--solution", layer.solution, "ours of every stage that --with does not name");
  verb.add_option("--last", layer.last, "whose moe_layer: m3 or m4 (default)")->type_name("STAGE");
  CLI::Option* cpu = verb.add_flag("--cpu", layer.cpu, "on the emulator, even where a GPU is");
  verb.add_flag("--gpu", layer.gpu, "on the GPU, or not at all")->excludes(cpu);
  verb.add_flag("--full", layer.full, "every case in every way, not only the quick set");
  verb.add_option("--case", layer.case_name, "only this case, as group/name")->type_name("CASE");
}

void add_cost_options(CLI::App& verb, Options& options) {
  CostOptions& cost = options.cost;
  verb.add_option("stage", cost.stage)->required();
  verb.add_flag("--solution", cost.solution, "of the reference instead of your file");
  verb.add_option("--vs", cost.versus, "show the reference's figures beside yours")
      ->check(CLI::IsMember({"solution"}))
      ->type_name("solution");
  verb.add_option("--case", cost.case_name, "another case than the stage's own")->type_name("CASE");
  verb.add_option("--gpu-name", cost.gpu_name, "H200 (default), A100 or RTX 4090: whose limits")
      ->type_name("NAME");
  verb.add_flag("--json", cost.json, "everything, for programs");
}

void add_bench_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.bench.stage)->required();
  verb.add_option("--shape", options.bench.shape,
                  "A (default; m9: B16), B, C, D, a model, or T,E,K,H,I")
      ->type_name("NAME");
  verb.add_option("--tokens", options.bench.tokens, "T of that shape")
      ->check(CLI::PositiveNumber)
      ->type_name("T");
  verb.add_option("--routing", options.bench.routing,
                  "uniform (default), zipf, one-hot, half-empty")
      ->check(CLI::IsMember({"uniform", "zipf", "one-hot", "half-empty"}))
      ->type_name("KIND");
  verb.add_option("--json", options.bench.json, "write the result there too")->type_name("FILE");
  verb.add_flag("--solution", options.bench.solution, "only the reference, not your file");
  verb.add_option("--alternative", options.bench.alternatives,
                  "also these kernels of tests/alternative, or all")
      ->delimiter(',')
      ->type_name("NAME,...");
  verb.add_flag("--peers", options.bench.peers, "layer: only what is published; needs no GPU");
  verb.add_option("--plot", options.bench.plot, "layer: draw this file of results; needs no GPU")
      ->type_name("FILE");
}

void add_sweep_options(CLI::App& verb, Options& options) {
  SweepOptions& sweep = options.sweep;
  verb.add_option("--shape", sweep.shape, "B (default), or another, whatever its T")
      ->type_name("NAME");
  verb.add_option("--most", sweep.most, "the largest T, 16384 (default)")
      ->check(CLI::PositiveNumber)
      ->type_name("T");
  verb.add_option("--out", sweep.out, "the results, build/sweep.tsv (default); .svg beside it")
      ->type_name("FILE");
  verb.add_option("--plot", sweep.plot, "draw this file again, measure nothing; needs no GPU")
      ->type_name("FILE");
}

void add_tune_options(CLI::App& verb, Options& options) {
  verb.add_option("sizes", options.tune.sizes, "T E K H I; without them shape A")
      ->expected(0, 5)
      ->type_name("[T E K H I]");
  verb.add_flag("--print", options.tune.only_print, "print the line for the table, write nothing");
}

void add_read_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.read.stage)->type_name("[mN]");
  verb.add_flag("--no-browser", options.read.quiet, "only write build/site");
}

void add_try_options(CLI::App& verb, Options& options) {
  verb.add_option("idea", options.idea)->type_name("[IDEA]");
}

void add_padding_options(CLI::App& verb, Options& options) {
  PaddingOptions& padding = options.padding;
  verb.add_option("routing", padding.routing)->type_name("[ROUTING]");
  verb.footer(
      "ROUTING is uniform (the default), zipf, hot (all tokens name experts 0 .. K-1),\n"
      "or a file: one token a line, its expert ids separated by blanks or commas.");
  verb.add_option("-T", padding.num_tokens, "tokens; 4096")->type_name("N");
  verb.add_option("-E", padding.num_experts, "experts; 64, or those that the file names")
      ->type_name("N");
  verb.add_option("-K", padding.top_k, "experts of a token; 8")->type_name("N");
  verb.add_option("--skew", padding.skew, "exponent of zipf; 1")->type_name("X");
  verb.add_option("--seed", padding.seed, "of the routing; 1")->type_name("N");
}

void add_selftest_options(CLI::App& verb, Options& options) {
  verb.add_flag("--long", options.long_selftest,
                "repeat the full sets too, not only the quick ones");
}

void add_grade_options(CLI::App& verb, Options& options) {
  verb.prefix_command();
  verb.set_help_flag("");
  verb.callback([&verb, &options] { options.grade = verb.remaining(); });
}

void add_skeletons_options(CLI::App& verb, Options& options) {
  CLI::Option* write = verb.add_flag("--write", options.skeletons.write, "write what differs");
  verb.add_flag("--check", options.skeletons.check, "compare only (the default)")->excludes(write);
}

}  // namespace moe::driver
