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
#include "driver/options.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace {

using moe::driver::Course;
using moe::driver::Options;
using moe::driver::Verdict;

constexpr int kUsage = static_cast<int>(Verdict::kUsage);
constexpr int kFault = static_cast<int>(Verdict::kFault);
constexpr const char* kStageVerb = "mN";  // stands for m1, m2, ...

struct Verb {
  const char* name;
  const char* summary;  // "" hides it
  void (*add_options)(CLI::App& verb, Options& options);
  int (*run)(const Course& course, const Options& options);
};

int say_completion(const Course& course, const Options& options);

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> kVerbs{
      {kStageVerb, "test your file of a stage: drill m1, drill m2, ...",
       moe::driver::add_run_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_stage(course, options.run);
       }},
      {"list", "the stages, their files and last results; runs nothing", moe::driver::add_nothing,
       [](const Course& course, const Options&) { return moe::driver::list_stages(course); }},
      {"fuzz", "random shapes against the oracle; says how to repeat a failure",
       moe::driver::add_fuzz_options,
       [](const Course& course, const Options& options) {
         moe::driver::RunOptions run = options.run;
         run.fuzz_seconds = options.fuzz_seconds;
         return moe::driver::run_fuzz(course, run);
       }},
      {"reset", "make a file of yours blank again; the old one is kept",
       moe::driver::add_reset_options,
       [](const Course& course, const Options& options) {
         return moe::driver::reset_stage(course, options.reset);
       }},
      {"watch", "test a stage again whenever you save its file", moe::driver::add_watch_options,
       [](const Course& course, const Options& options) {
         return moe::driver::watch_stage(course, options.watch);
       }},
      {"hint", "one step of help at a time, about what was diagnosed first",
       moe::driver::add_hint_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_hint(course, options.hint);
       }},
      {"notes", "the note of a stage, or a section of it", moe::driver::add_notes_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_notes(course, options.notes);
       }},
      {"explain", "what a diagnosis means: drill explain M2-FLATROW",
       moe::driver::add_code_argument,
       [](const Course& course, const Options& options) {
         return moe::driver::explain_code(course, options.code);
       }},
      {"diff", "your file beside the blank one; after a pass, the reference",
       moe::driver::add_diff_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_diff(course, options.diff);
       }},
      {"solution", "the reference; asks once before you have passed",
       moe::driver::add_solution_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_solution(course, options.solution);
       }},
      {"debug", "gdb in one case, stopped where a region begins", moe::driver::add_debug_options,
       [](const Course& course, const Options& options) {
         return moe::driver::debug_stage(course, options.debug);
       }},
      {"check", "races, stray and unwritten memory, waits that are missing",
       moe::driver::add_check_options,
       [](const Course& course, const Options& options) {
         return moe::driver::check_stage(course, options.check);
       }},
      {"worklog", "what was tried and when; --note TEXT adds to it",
       moe::driver::add_worklog_options,
       [](const Course& course, const Options& options) {
         return moe::driver::show_worklog(course, options.worklog);
       }},
      {"layer", "the whole layer, of any mix of your stages and ours",
       moe::driver::add_layer_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_layer(course, options.layer);
       }},
      {"bench", "times and TFLOPS beside the reference and cuBLAS; needs a GPU",
       moe::driver::add_bench_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_bench(course, options.bench);
       }},
      {"sweep", "the layer at 1 to 16384 tokens: times, cliffs, drawing (GPU)",
       moe::driver::add_sweep_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_sweep(course, options.sweep);
       }},
      {"cost", "bytes, sectors, bank conflicts by line: no GPU, no clock",
       moe::driver::add_cost_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_cost(course, options.cost);
       }},
      {"tune", "measure m4's tiles on this GPU; the best go into its table",
       moe::driver::add_tune_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_tune(course, options.tune);
       }},
      {"read", "the notes beside the code, as a site in build/site", moe::driver::add_read_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_read(course, options.read);
       }},
      {"try", "small kernels of content/start.md, one for each idea of CUDA",
       moe::driver::add_try_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_try(course, options.idea);
       }},
      {"padding", "dropped tokens and wasted FLOPs of a routing", moe::driver::add_padding_options,
       [](const Course&, const Options& options) {
         return moe::driver::run_padding(options.padding);
       }},
      {"grade", "grade a class of submissions; see drill grade -h", moe::driver::add_grade_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_grade(course, options.grade);
       }},
      {"doctor", "what runs on this machine, and what to install", moe::driver::add_nothing,
       [](const Course& course, const Options&) { return moe::driver::run_doctor(course); }},
      {"selftest", "test the course itself: emulator, solutions, skeletons",
       moe::driver::add_selftest_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_selftest(course, options.long_selftest);
       }},
      {"export", "a copy for a class, without the solutions", moe::driver::add_export_options,
       [](const Course& course, const Options& options) {
         return moe::driver::export_course(course, options.exported);
       }},
      {"completion", "a script that completes drill in bash or zsh",
       moe::driver::add_shell_argument, say_completion},
      {"skeletons", "", moe::driver::add_skeletons_options,
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
