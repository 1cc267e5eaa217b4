// `drill bench`: what only a GPU can say.
#include <algorithm>
#include <cstdio>

#include "driver/build.h"
#include "driver/headline.h"
#include "driver/measure.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {

int prepare_measurement(const Course& course,
                        const Backend& backend,
                        const std::vector<std::string>& host,
                        const std::vector<std::string>& cuda) {
  if (!backend.cuda) {
    say(wrapped("SKIP   ", "Times are taken on a GPU only: " + backend.refusal + "."));
    return static_cast<int>(Verdict::kSkip);
  }
  Build build = configure_tree(course, "cuda", backend);
  if (build.done) build = build_targets(course, "cuda", cuda, "bench.log");
  if (build.done && !host.empty()) build = build_targets(course, "host", host, "bench.log");
  if (build.done) return 0;
  say(build.compiler_text + "BUILD  see " + build.log.string() + "\n");
  return static_cast<int>(Verdict::kBuild);
}

namespace {

// "@ 3/12 GEMM1 mine" as a bar.
std::string progress_bar(const std::string& line) {
  int done = 0;
  int all = 0;
  int used = 0;
  if (std::sscanf(line.c_str(), "@ %d/%d %n", &done, &all, &used) < 2 || all <= 0) return {};
  constexpr int kWidth = 24;
  const auto filled = static_cast<std::size_t>(kWidth * std::min(done, all) / all);
  return "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "] " +
         std::to_string(done) + "/" + std::to_string(all) + "  " +
         line.substr(static_cast<std::size_t>(used));
}

}  // namespace

// Passes on what the program prints, line by line; its lines of progress become a bar.
int run_and_show(const std::vector<std::string>& arguments) {
  Command command;
  command.arguments = arguments;
  StatusLine status;
  std::string rest;
  Watcher watcher;
  watcher.on_output = [&](std::string_view text) {
    rest += text;
    for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) {
      const std::string line = rest.substr(0, end);
      if (line.rfind("@ ", 0) == 0) {
        status.show(progress_bar(line));
      } else {
        status.clear();
        say(line + "\n");
      }
    }
  };
  const int code = run_process(command, watcher).exit_code;
  status.clear();
  if (!rest.empty()) say(rest + "\n");
  return code;
}

namespace {

// What `drill bench layer --solution` times: the layer of libmoe_drills, which chooses among our
// stages. Without --solution it is the ladder.
constexpr Stage kChosenLayer = {"layer", "layer", "the layer that the library chooses", ""};

// m9 takes 64 tokens at most.
std::string shape_of(const Stage& stage, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  return std::string(stage.id) == "m9" ? "B16" : "A";
}

std::vector<std::string> bench_arguments(const Course& course,
                                         const Stage& stage,
                                         bool with_mine,
                                         const std::string& shape) {
  std::vector<std::string> arguments = {
      course.tree("host") / "tests" / "bench_stage",
      "--stage",
      stage.stem,
      "--shape",
      shape,
      "--cublas",
      course.tree("cuda") / "tests" / "cublas_baseline",
      "--solution",
      runner_path(course, "cuda", stage, "solution"),
  };
  if (with_mine) {
    arguments.emplace_back("--mine");
    arguments.push_back(runner_path(course, "cuda", stage, "mine"));
  }
  return arguments;
}

// The names in tests/alternative/mN_topic.txt: kernels that differ from the solution by one idea.
std::vector<std::string> known_alternatives(const Course& course, const Stage& stage) {
  constexpr std::string_view kKey = "name: ";
  const auto file = course.root / "tests" / "alternative" / (std::string(stage.stem) + ".txt");
  std::vector<std::string> names;
  for (const std::string& line : split_lines(read_file(file))) {
    if (line.rfind(kKey, 0) == 0) names.push_back(line.substr(kKey.size()));
  }
  return names;
}

std::string kernel_of(const std::string& stem, const std::string& alternative) {
  return stem + "." + alternative;
}

// Replaces "all"; says what is wrong with a name that there isn't.
bool choose_alternatives(const Course& course,
                         const Stage& stage,
                         std::vector<std::string>& wanted) {
  const std::vector<std::string> known = known_alternatives(course, stage);
  if (wanted == std::vector<std::string>{"all"}) wanted = known;
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string all;
    for (const std::string& one : known) all += (all.empty() ? "" : ", ") + one;
    say(wrapped("drill bench: ", "there is no alternative " + name + " of " +
                                     std::string(stage.id) +
                                     "; there is: " + (all.empty() ? "none" : all)));
    return false;
  }
  return true;
}

}  // namespace

int run_bench(const Course& course, const BenchOptions& options) {
  const bool chosen = options.stage == kChosenLayer.id;
  const Stage* stage = chosen ? &kChosenLayer : find_stage(options.stage);
  if (stage == nullptr) {
    say("drill bench: there is no stage " + options.stage + "\n");
    return static_cast<int>(Verdict::kUsage);
  }
  if (chosen && (!options.solution || options.peers || !options.plot.empty())) {
    return run_ladder(course, options);
  }
  if (options.peers || !options.plot.empty()) {
    say("drill bench: --peers and --plot are of drill bench layer\n");
    return static_cast<int>(Verdict::kUsage);
  }
  std::vector<std::string> alternatives = options.alternatives;
  if (!choose_alternatives(course, *stage, alternatives)) return static_cast<int>(Verdict::kUsage);
  const Backend backend = choose_backend(Wish::kGpu);
  const std::string stem = stage->stem;
  const std::string refusal =
      refuse_backend(backend, stage->capability, "drill " + std::string(stage->id));
  if (!refusal.empty()) {
    say(wrapped("SKIP   ", "bench " + std::string(stage->id) + ": " + refusal));
    return static_cast<int>(Verdict::kSkip);
  }
  std::vector<std::string> runners = {stem + ".solution"};
  if (!options.solution) runners.push_back(stem + ".mine");
  std::vector<std::string> targets = runners;
  for (const std::string& name : alternatives) targets.push_back(kernel_of(stem, name));
  targets.emplace_back("cublas_baseline");
  if (const int code = prepare_measurement(course, backend, {"bench_stage"}, targets)) return code;
  std::vector<std::string> arguments =
      bench_arguments(course, *stage, !options.solution, shape_of(*stage, options.shape));
  arguments.insert(arguments.end(), {"--routing", options.routing});
  for (const std::string& name : alternatives) {
    const auto runner = course.tree("cuda") / "wrong" / kernel_of(stem, name);
    arguments.insert(arguments.end(), {"--alternative", name + "=" + runner.string()});
  }
  if (options.tokens > 0) {
    arguments.insert(arguments.end(), {"--tokens", std::to_string(options.tokens)});
  }
  if (!options.json.empty()) {
    arguments.insert(arguments.end(), {"--json", std::filesystem::absolute(options.json)});
  }
  return run_and_show(arguments);
}

HeadlineRun run_headline(const Course& course, const Stage& stage, bool solution) {
  constexpr double kLimitSeconds = 20;  // it takes about 3; a broken GPU must not hold anyone up
  const Backend backend = choose_backend(Wish::kGpu);
  const std::string stem = stage.stem;
  HeadlineRun run;
  const bool built = std::filesystem::exists(course.tree("host") / "tests" / "bench_stage") &&
                     std::filesystem::exists(course.tree("cuda") / "tests" / "cublas_baseline") &&
                     std::filesystem::exists(runner_path(course, "cuda", stage, "solution"));
  if (!built) say("building what times it (once; --no-time leaves it out) ...\n");
  Build build = build_targets(course, "cuda", {stem + ".solution", "cublas_baseline"}, "bench.log");
  if (build.done) build = build_targets(course, "host", {"bench_stage"}, "bench.log");
  if (!build.done || !backend.cuda) {
    run.trouble = "what times it could not be built; see " + build.log.string();
    return run;
  }
  const std::filesystem::path json = course.tree("cuda") / (stem + ".headline.json");
  std::error_code ignored;
  std::filesystem::remove(json, ignored);
  Command command;
  command.arguments = bench_arguments(course, stage, !solution, shape_of(stage, ""));
  command.arguments.insert(command.arguments.end(), {"--brief", "1", "--json", json});
  command.limit_s = kLimitSeconds;
  const Outcome outcome = run_process(command);
  run.headline = parse_headline(read_file(json), solution ? "solution" : "mine");
  run.headline.side_is_reference = solution;
  if (!run.headline.known) {
    const std::vector<std::string> lines = split_lines(outcome.output);
    run.trouble = outcome.timed_out ? "timing took too long"
                  : lines.empty()   ? "nothing was timed"
                                    : lines.back();
  }
  return run;
}

}  // namespace moe::driver
