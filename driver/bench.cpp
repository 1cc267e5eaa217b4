// `drill bench`: what only a GPU can say.
#include "driver/build.h"
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

int run_and_show(const std::vector<std::string>& arguments) {
  Command command;
  command.arguments = arguments;
  Watcher watcher;
  watcher.on_output = [](std::string_view text) { say(text); };
  return run_process(command, watcher).exit_code;
}

int run_bench(const Course& course, const BenchOptions& options) {
  const Stage* stage = find_stage(options.stage);
  if (stage == nullptr) {
    say("drill bench: there is no stage " + options.stage + "\n");
    return static_cast<int>(Verdict::kUsage);
  }
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
  targets.emplace_back("cublas_baseline");
  if (const int code = prepare_measurement(course, backend, {"bench_stage"}, targets)) return code;
  std::vector<std::string> arguments = {course.tree("host") / "tests" / "bench_stage",
                                        "--stage",
                                        stem,
                                        "--shape",
                                        options.shape,
                                        "--cublas",
                                        course.tree("cuda") / "tests" / "cublas_baseline",
                                        "--solution",
                                        runner_path(course, "cuda", *stage, "solution")};
  if (!options.solution) {
    arguments.emplace_back("--mine");
    arguments.push_back(runner_path(course, "cuda", *stage, "mine"));
  }
  return run_and_show(arguments);
}

}  // namespace moe::driver
