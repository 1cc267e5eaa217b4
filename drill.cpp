// The command: its verbs and their options. Each verb is one file in driver/.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "driver/course.h"
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
  moe::driver::BenchOptions bench;
  moe::driver::TuneOptions tune;
  moe::driver::PaddingOptions padding;
  std::string idea;
  moe::driver::ReadOptions read;
  bool long_selftest = false;
  std::vector<std::string> grade;  // parsed by the grader itself
  double fuzz_seconds = 60;
};

struct Verb {
  const char* name;
  const char* summary;  // "" hides it
  void (*add_options)(CLI::App& verb, Options& options);
  int (*run)(const Course& course, const Options& options);
};

// Help in the words of this command, within 80 columns.
class HelpText : public CLI::Formatter {
 public:
  HelpText() { column_width(18); }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_parent() == nullptr) return "usage: drill [VERB] [OPTIONS]\n";
    std::string text = "usage: " + name;
    for (const CLI::Option* option : app->get_options()) {
      if (!option->get_positional()) continue;
      const std::string type = option->get_type_name();
      text += " " + (type == "TEXT" ? kStageVerb : type);
    }
    return text + " [OPTIONS]\n";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }

  std::string make_positionals(const CLI::App*) const override { return ""; }
};

void add_nothing(CLI::App&, Options&) {}

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

void add_bench_options(CLI::App& verb, Options& options) {
  verb.add_option("stage", options.bench.stage)->required();
  verb.add_option("--shape", options.bench.shape, "A (default), B, B16384, B1024, B256, C, C1024")
      ->type_name("NAME");
  verb.add_flag("--solution", options.bench.solution, "only the reference, not your file");
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
      "ROUTING is uniform (the default), zipf, hot (every token names experts 0 .. K-1),\n"
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
      {"fuzz", "random shapes against the oracle; prints what repeats a failure", add_fuzz_options,
       [](const Course& course, const Options& options) {
         moe::driver::RunOptions run = options.run;
         run.fuzz_seconds = options.fuzz_seconds;
         return moe::driver::run_fuzz(course, run);
       }},
      {"reset", "make a file of yours blank again; the old one is kept", add_reset_options,
       [](const Course& course, const Options& options) {
         return moe::driver::reset_stage(course, options.reset);
       }},
      {"layer", "the whole layer, of any mix of your stages and ours", add_layer_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_layer(course, options.layer);
       }},
      {"bench", "times and TFLOPS beside the reference and cuBLAS; needs a GPU", add_bench_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_bench(course, options.bench);
       }},
      {"tune", "measure m4's tiles on this GPU and write the best into its table", add_tune_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_tune(course, options.tune);
       }},
      {"read", "the notes beside the code, as a site in build/site", add_read_options,
       [](const Course& course, const Options& options) {
         return moe::driver::run_read(course, options.read);
       }},
      {"try", "the small kernels of content/start.md, one for each idea of CUDA", add_try_options,
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

// `before` is the verb that wanted a stage, with a blank, or "" where verbs are meant too.
int say_unknown(const std::string& word, const char* kind, const std::string& before) {
  const bool verbs_too = before.empty();
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
    text += " Did you mean: drill " + before + near;
  } else {
    text += " See: drill -h";
  }
  std::fprintf(stderr, "%s\n", text.c_str());
  return kUsage;
}

int run_verb(const CLI::App& app, const Course& course, const Options& options) {
  for (const Verb& verb : verbs()) {
    if (!app.got_subcommand(verb.name)) continue;
    const std::string name = verb.name;
    const std::string& stage = name == "reset"  ? options.reset.stage
                               : name == "read" ? options.read.stage
                                                : options.run.stage;
    if (!stage.empty() && moe::driver::find_stage(stage) == nullptr) {
      return say_unknown(stage, "stage", name + " ");
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
  app.formatter(std::make_shared<HelpText>());  // the verbs inherit it
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
