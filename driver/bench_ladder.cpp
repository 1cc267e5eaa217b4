// `drill bench layer`: the whole layer of every rung in turns, beside cuBLAS and what is published.
#include <exception>

#include "driver/build.h"
#include "driver/ladder.h"
#include "driver/measure.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = static_cast<int>(Verdict::kUsage);
constexpr int kFault = static_cast<int>(Verdict::kFault);
constexpr const char* kPeers = "content/results/peers.tsv";
// The stages that have a moe_layer in bf16, from the first rung to the last.
constexpr const char* kLayers[] = {"m3", "m4", "m8", "m9"};
constexpr const char* kMine = "layer.m4.mmmm";  // the learner's m1 to m4
constexpr int kMostDecodeTokens = 64;           // m9 takes no more

// Writes the drawing beside a results file; measures nothing.
int draw(const fs::path& file) {
  fs::path drawing = file;
  drawing.replace_extension(".svg");
  try {
    const Ladder ladder = parse_ladder(read_file(file));
    if (drawing == file || !write_file(drawing, svg_of(ladder))) {
      say("drill bench: " + drawing.string() + " cannot be written\n");
      return kFault;
    }
  } catch (const std::exception& error) {
    say("drill bench: " + file.string() + ": " + error.what() + "\n");
    return kUsage;
  }
  say("wrote  " + drawing.string() + "\n");
  return 0;
}

int show_peers(const std::vector<Peer>& peers, const std::string& wanted) {
  const bool short_name = wanted == "B" || wanted == "C";  // those of bench_stage
  const std::string shape = wanted + (short_name ? "4096" : "");
  const std::vector<Ladder> ladders = ladders_of_peers(peers, shape);
  if (ladders.empty()) {
    std::string known;
    for (const Ladder& one : ladders_of_peers(peers, "")) known += " " + one.title;
    say(wrapped("drill bench: ",
                "nothing is published for shape " + shape + "; there is:" + known));
    return kUsage;
  }
  for (const Ladder& ladder : ladders) say(table_of(ladder));
  return 0;
}

// Why the learner's layer can't be timed, or "": its first stage with a blank.
std::string open_blanks(const Course& course) {
  for (const Stage& stage : kStages) {
    std::size_t open = 0;
    for (const Blank& blank : blanks_of(course, stage)) open += blank.written ? 0 : 1;
    if (open > 0) {
      return counted(open, "region") + " of " + stage.id + " to write (drill " + stage.id + ")";
    }
    if (std::string(stage.id) == "m4") break;
  }
  return {};
}

class LadderRun {
 public:
  LadderRun(const Course& course, const BenchOptions& options, Backend backend)
      : course_(course), options_(options), backend_(std::move(backend)) {}

  int run(const std::vector<Peer>& peers);

 private:
  int build();
  void build_mine();
  int time(const fs::path& json);

  const Course& course_;
  const BenchOptions& options_;
  Backend backend_;
  std::vector<std::string> runners_;                           // arguments of bench_stage
  std::vector<std::pair<std::string, std::string>> left_out_;  // name, why
};

// The references that run on this GPU.
int LadderRun::build() {
  std::vector<std::string> targets = {"cublas_baseline"};
  for (const char* id : kLayers) {
    const Stage& stage = *find_stage(id);
    const std::string refusal =
        refuse_backend(backend_, stage.capability, "drill " + std::string(id));
    if (!refusal.empty()) {
      left_out_.emplace_back(id, refusal.substr(0, refusal.find(" Instead:")));
      continue;
    }
    targets.push_back(std::string(stage.stem) + ".solution");
    runners_.insert(runners_.end(), {"--alternative",
                                     std::string(id) + "=" +
                                         runner_path(course_, "cuda", stage, "solution").string()});
  }
  return prepare_measurement(course_, backend_, {"bench_stage"}, targets);
}

// A learner's file that does not compile costs its own rung only.
void LadderRun::build_mine() {
  std::string why = open_blanks(course_);
  if (why.empty() && !build_targets(course_, "cuda", {kMine}, "layer.log").done) {
    why = "it does not compile; see drill m1 to drill m4";
  }
  if (!why.empty()) {
    left_out_.emplace_back("yours", why);
    return;
  }
  runners_.insert(runners_.end(), {"--mine", (course_.tree("cuda") / "runners" / kMine).string()});
}

int LadderRun::time(const fs::path& json) {
  std::error_code ignored;
  fs::remove(json, ignored);
  std::vector<std::string> arguments = {course_.tree("host") / "tests" / "bench_stage",
                                        "--stage",
                                        "layer",
                                        "--shape",
                                        options_.shape.empty() ? "A" : options_.shape,
                                        "--routing",
                                        options_.routing,
                                        "--cublas",
                                        course_.tree("cuda") / "tests" / "cublas_baseline",
                                        "--most-tokens",
                                        "m9=" + std::to_string(kMostDecodeTokens),
                                        "--text",
                                        "0",
                                        "--json",
                                        json};
  arguments.insert(arguments.end(), runners_.begin(), runners_.end());
  if (options_.tokens > 0) {
    arguments.insert(arguments.end(), {"--tokens", std::to_string(options_.tokens)});
  }
  return run_and_show(arguments);
}

int LadderRun::run(const std::vector<Peer>& peers) {
  if (const int code = build()) return code;
  build_mine();
  const fs::path json = course_.tree("cuda") / "ladder.json";
  const int code = time(json);
  const std::string bench = read_file(json);
  if (bench.empty()) return code == 0 ? kFault : code;
  Ladder ladder = ladder_of_bench(bench, peers);
  ladder.left_out = left_out_;
  if (ladder.sizes.num_tokens > kMostDecodeTokens) {
    ladder.left_out.emplace_back("m9",
                                 "takes " + std::to_string(kMostDecodeTokens) + " tokens at most");
  }
  say(table_of(ladder));
  if (!options_.json.empty() && !write_file(options_.json, json_of(ladder, bench))) {
    say("drill bench: " + options_.json + " cannot be written\n");
    return kFault;
  }
  return code;
}

}  // namespace

int run_ladder(const Course& course, const BenchOptions& options) {
  if (!options.plot.empty()) return draw(options.plot);
  if (!options.alternatives.empty()) {
    say(wrapped("drill bench: ", "the ladder has no alternatives; a stage has (bench m8)"));
    return kUsage;
  }
  std::vector<Peer> peers;
  try {
    peers = parse_peers(read_file(course.root / kPeers));
  } catch (const std::exception& error) {
    say("drill bench: " + std::string(kPeers) + ": " + error.what() + "\n");
    return kFault;
  }
  if (options.peers) return show_peers(peers, options.shape);
  const Backend backend = choose_backend(Wish::kGpu);
  const std::string refusal = refuse_backend(backend, "", "drill layer");
  if (!refusal.empty()) {
    say(wrapped("SKIP   ", "bench layer: " + refusal));
    return static_cast<int>(Verdict::kSkip);
  }
  return LadderRun(course, options, backend).run(peers);
}

}  // namespace moe::driver
