// The command: its verbs and their options. Each verb is one file in driver/.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "driver/completion.h"
#include "driver/course.h"
#include "driver/help_text.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace {

using moe::driver::Course;
using moe::driver::Verdict;

constexpr int kUsage = static_cast<int>(Verdict::kUsage);
constexpr int kFault = static_cast<int>(Verdict::kFault);
constexpr const char* kStageVerb = "mN";  // stands for m1, m2, ...

struct Options {
  moe::driver::RunOptions run;
  moe::driver::ResetOptions reset;
  moe::driver::SkeletonsOptions skeletons;
  moe::driver::LayerOptions layer;
  moe::driver::CostOptions cost;
  moe::driver::BenchOptions bench;
  moe::driver::SweepOptions sweep;
  moe::driver::TuneOptions tune;
  moe::driver::PaddingOptions padding;
  std::string idea;
  moe::driver::ReadOptions read;
  bool long_selftest = false;
  std::vector<std::string> grade;  // parsed by the grader itself
  double fuzz_seconds = 60;
  moe::driver::HintOptions hint;
  moe::driver::NotesOptions notes;
  moe::driver::DiffOptions diff;
  moe::driver::SolutionOptions solution;
  moe::driver::WatchOptions watch;
  moe::driver::DebugOptions debug;
  moe::driver::CheckOptions check;
  moe::driver::WorklogOptions worklog;
  moe::driver::ExportOptions exported;
  std::string code;
  std::string shell;

  // What was given as a stage to any verb.
  std::vector<std::string> stages() const {
    return {run.stage,  reset.stage,    bench.stage, hint.stage,  notes.stage,
            diff.stage, solution.stage, watch.stage, debug.stage, worklog.stage,
            read.stage, check.stage,    cost.stage};
  }
};

struct Verb {
  const char* name;
  const char* summary;  // "" hides it
  void (*add_options)(CLI::App& verb, Options& options);
  int (*run)(const Course& course, const Options& options);
};

void add_nothing(CLI::App&, Options&) {}

// For CLI11: what is wrong with the text of --print, or "".
std::string is_place(const std::string& text) {
  const std::size_t comma = text.find(',');
  const bool good = comma != 0 && comma != std::string::npos && comma + 1 < text.size() &&
                    text.find_first_not_of("0123456789,") == std::string::npos &&
                    text.find(',', comma + 1) == std::string::npos;
  return good ? "" : "--print takes a row and a column, as in --print 3,0";
}

void add_run_options(CLI::App& verb, Options& options) {
  moe::driver::RunOptions& run = options.run;
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
  moe::driver::RunOptions& run = options.run;
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
  moe::driver::DebugOptions& debug = options.debug;
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
  moe::driver::CheckOptions& check = options.check;
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

int say_completion(const Course& course, const Options& options);

void add_reset_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.reset.stage)->required();
  verb.add_flag("--yes", options.reset.yes, "do not ask");
}

void add_layer_options(CLI::App& verb, Options& options) {
  moe::driver::LayerOptions& layer = options.layer;
  verb.add_option("--with", layer.with, "whose stages: m1=solution,m2=mine")->type_name("LIST");
  verb.add_option("--last", layer.last, "whose moe_layer: m3 or m4 (default)")->type_name("STAGE");
  CLI::Option* cpu = verb.add_flag("--cpu", layer.cpu, "on the emulator, even where a GPU is");
  verb.add_flag("--gpu", layer.gpu, "on the GPU, or not at all")->excludes(cpu);
  verb.add_flag("--full", layer.full, "every case in every way, not only the quick set");
  verb.add_option("--case", layer.case_name, "only this case, as group/name")->type_name("CASE");
}

void add_cost_options(CLI::App& verb, Options& options) {
  moe::driver::CostOptions& cost = options.cost;
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
}

void add_sweep_options(CLI::App& verb, Options& options) {
  moe::driver::SweepOptions& sweep = options.sweep;
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
  moe::driver::PaddingOptions& padding = options.padding;
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

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs{
      {kStageVerb, "test your file of a stage: drill m1, drill m2, ...", add_run_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_stage(course, options.run);
       }},
      {"list", "the stages, their files and last results; runs nothing", add_nothing,
       [](const Course& course, const Options&) { return moe::driver::list_stages(course); }},
      {"fuzz", "random shapes against the oracle; says how to repeat a failure", add_fuzz_options,
       [](const Course& course, const Options& options) {
         moe::driver::RunOptions run = options.run;
         run.fuzz_seconds = options.fuzz_seconds;
         return moe::driver::run_fuzz(course, run);
       }},
      {"reset", "make a file of yours blank again; the old one is kept", add_reset_options,
       [](const Course& course, const Options& options) {
         return moe::driver::reset_stage(course, options.reset);
       }},
      {"watch", "test a stage again whenever you save its file", add_watch_options,
       [](const Course& course, const Options& options) {
         return moe::driver::watch_stage(course, options.watch);
       }},
      {"hint", "one step of help at a time, about what was diagnosed first", add_hint_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_hint(course, options.hint);
       }},
      {"notes", "the note of a stage, or a section of it", add_notes_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_notes(course, options.notes);
       }},
      {"explain", "what a diagnosis means: drill explain M2-FLATROW", add_code_argument,
       [](const Course& course, const Options& options) {
         return moe::driver::explain_code(course, options.code);
       }},
      {"diff", "your file beside the blank one; after a pass, the reference", add_diff_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_diff(course, options.diff);
       }},
      {"solution", "the reference; asks once before you have passed", add_solution_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_solution(course, options.solution);
       }},
      {"debug", "gdb in one case, stopped where a region begins", add_debug_options,
       [](const Course& course, const Options& options) {
         return moe::driver::debug_stage(course, options.debug);
       }},
      {"check", "races, stray and unwritten memory, waits that are missing", add_check_options,
       [](const Course& course, const Options& options) {
         return moe::driver::check_stage(course, options.check);
       }},
      {"worklog", "what was tried and when; --note TEXT adds to it", add_worklog_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_worklog(course, options.worklog);
       }},
      {"layer", "the whole layer, of any mix of your stages and ours", add_layer_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_layer(course, options.layer);
       }},
      {"bench", "times and TFLOPS beside the reference and cuBLAS; needs a GPU", add_bench_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_bench(course, options.bench);
       }},
      {"sweep", "the layer at 1 to 16384 tokens: times, cliffs, drawing (GPU)", add_sweep_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_sweep(course, options.sweep);
       }},
      {"cost", "bytes, sectors, bank conflicts by line: no GPU, no clock", add_cost_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_cost(course, options.cost);
       }},
      {"tune", "measure m4's tiles on this GPU; the best go into its table", add_tune_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_tune(course, options.tune);
       }},
      {"read", "the notes beside the code, as a site in build/site", add_read_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_read(course, options.read);
       }},
      {"try", "small kernels of content/start.md, one for each idea of CUDA", add_try_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_try(course, options.idea);
       }},
      {"padding", "dropped tokens and wasted FLOPs of a routing", add_padding_options,
       [](const Course&, const Options& options) {
         return moe::driver::run_padding(options.padding);
       }},
      {"grade", "grade a class of submissions; see drill grade -h", add_grade_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_grade(course, options.grade);
       }},
      {"doctor", "what runs on this machine, and what to install", add_nothing,
       [](const Course& course, const Options&) { return moe::driver::run_doctor(course); }},
      {"selftest", "test the course itself: emulator, solutions, skeletons", add_selftest_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_selftest(course, options.long_selftest);
       }},
      {"export", "a copy for a class, without the solutions", add_export_options,
       [](const Course& course, const Options& options) {
         return moe::driver::export_course(course, options.exported);
       }},
      {"completion", "a script that completes drill in bash or zsh", add_shell_argument,
       say_completion},
      {"skeletons", "", add_skeletons_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_skeletons(course, options.skeletons);
       }},
  };
  return kVerbs;
}

bool is_verb(const std::string& word) {
  for (const Verb& verb : verbs()) {
    if (word == verb.name) return true;
  }
  return false;
}

// `verb` stands before the stage that was meant; "" where a verb may have been.
int say_unknown(const std::string& word, const char* kind, const std::string& verb_before) {
  const bool verbs_too = verb_before.empty();
  std::vector<std::string> candidates;
  for (const moe::Stage& stage : moe::kStages) {
    candidates.insert(candidates.end(), {stage.id, stage.stem});
  }
  for (const Verb& verb : verbs()) {
    if (verbs_too && verb.summary[0] != '\0' && verb.name != kStageVerb)
      candidates.push_back(verb.name);
  }
  const std::size_t limit = word.size() < 4 ? 1 : 3;
  const std::string near = moe::driver::nearest(word, candidates, limit);
  std::string text =
      "drill: there is no " + std::string(kind) + " " + moe::driver::shell_quoted(word) + ".";
  if (!near.empty()) {
    text += " Did you mean: drill " + verb_before + near;
  } else {
    text += " See: drill -h";
  }
  std::fprintf(stderr, "%s\n", text.c_str());
  return kUsage;
}

int say_completion(const Course& /*course*/, const Options& options) {
  Options unused;
  moe::driver::VerbWords stages;
  std::vector<moe::driver::VerbWords> words;
  for (const Verb& verb : verbs()) {
    if (verb.summary[0] == '\0') continue;
    CLI::App app;
    verb.add_options(app, unused);
    moe::driver::VerbWords one{verb.name, verb.summary, false, {"--help"}};
    for (const CLI::Option* option : app.get_options()) {
      one.takes_stage =
          one.takes_stage || (option->get_positional() && option->get_name() == "stage");
      if (!option->get_positional() && option->get_name() != "--stage" &&
          option->get_name() != "--help" && !option->get_name().empty()) {
        one.options.push_back(option->get_name());
      }
    }
    if (std::string(verb.name) == kStageVerb) {
      stages = one;
    } else {
      words.push_back(one);
    }
  }
  moe::driver::say(moe::driver::completion_script(options.shell, words, stages));
  return 0;
}

int run_verb(const CLI::App& app, const Course& course, const Options& options) {
  for (const Verb& verb : verbs()) {
    if (!app.got_subcommand(verb.name)) continue;
    for (const std::string& stage : options.stages()) {
      const bool chosen_layer = stage == "layer" && std::string_view(verb.name) == "bench";
      if (stage.empty() || chosen_layer || moe::driver::find_stage(stage) != nullptr) continue;
      return say_unknown(stage, "stage", std::string(verb.name) + " ");
    }
    return verb.run(course, options);
  }
  return moe::driver::show_where(course);
}

int run_command(std::vector<std::string> words) {
  const std::string first = words.empty() ? "" : words.front();
  const bool is_stage = moe::driver::find_stage(first) != nullptr;
  const bool is_option = words.empty() || first.starts_with('-');
  if (!is_stage && !is_option && (first == kStageVerb || !is_verb(first))) {
    return say_unknown(first, "verb or stage", "");
  }
  // Stages are written like verbs: "m2 --full" is parsed as "mN --stage m2 --full".
  if (is_stage) words.insert(words.begin(), {kStageVerb, "--stage"});
  Options options;
  CLI::App app{
      "Write the kernels of a fused Mixture-of-Experts layer, one idea a stage.\n"
      "Without a verb: where you are and what is next.",
      "drill"};
  app.require_subcommand(0, 1);
  app.formatter(std::make_shared<moe::driver::HelpText>());  // the verbs inherit it
  for (const Verb& verb : verbs()) {
    CLI::App* sub = app.add_subcommand(verb.name, verb.summary);
    if (verb.summary[0] == '\0') sub->group("");
    verb.add_options(*sub, options);
  }
  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  return run_verb(app, moe::driver::find_course(), options);
}

}  // namespace

int main(int argc, char** argv) {
  moe::driver::install_interrupt_handlers();
  try {
    return run_command({argv + 1, argv + argc});
  } catch (const moe::driver::Interrupted& interrupted) {
    moe::driver::say("\nstopped\n");
    return 128 + interrupted.signal;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "drill: %s. This is a fault of the course.\n", error.what());
    return kFault;
  }
}
