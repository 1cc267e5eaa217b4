// bench_stage: times a stage on a GPU. Each side is a child of its own; they take turns on the same
// data, and what was timed is judged.
//   bench_stage --stage STEM [--shape A] [--tokens T] [--routing uniform] [--solution RUNNER]
//     [--mine RUNNER] [--cublas PROGRAM] [--rounds N] [--json FILE] [--limits TB/S,TFLOPS[,FP8]]
//     [--brief 1] [--alternative NAME=RUNNER]... [--most-tokens NAME=T]... [--text 0]
// --most-tokens leaves out an alternative where the shape has more tokens; --text 0: the JSON
// alone. Lines that start with "@ " are progress: "@ 3/12 GEMM1 mine".
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "../m1_align_oracle.h"
#include "driver/capability.h"
#include "gpu_watch.h"
#include "results.h"

namespace moe::bench {
namespace {

constexpr int kReplaysPerRound = 20;

struct Side {
  std::string name;
  std::unique_ptr<judge::Child> child;
};

struct Options {
  std::string stage, shape = "A", routing = "uniform", json, cublas, limits;
  std::vector<std::pair<std::string, std::string>> runners;  // side, path
  std::map<std::string, int> most_tokens;                    // by side
  int tokens = 0;
  int rounds = 3;
  bool brief = false;  // the headline alone, in 3 s
  bool text = true;
};

bool parse(int argc, char** argv, Options& options) {
  const std::map<std::string, std::string*> texts = {
      {"--stage", &options.stage}, {"--shape", &options.shape},   {"--routing", &options.routing},
      {"--json", &options.json},   {"--cublas", &options.cublas}, {"--limits", &options.limits}};
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const std::string value = argv[i + 1];
    if (const auto text = texts.find(option); text != texts.end()) {
      *text->second = value;
    } else if (option == "--tokens") {
      options.tokens = std::atoi(value.c_str());
    } else if (option == "--rounds") {
      options.rounds = std::atoi(value.c_str());
    } else if (option == "--brief") {
      options.brief = std::atoi(value.c_str()) != 0;
    } else if (option == "--text") {
      options.text = std::atoi(value.c_str()) != 0;
    } else if (option == "--most-tokens" && value.find('=') != std::string::npos) {
      const size_t end = value.find('=');
      options.most_tokens[value.substr(0, end)] = std::atoi(value.substr(end + 1).c_str());
    } else if (option == "--solution" || option == "--mine") {
      options.runners.emplace_back(option.substr(2), value);
    } else if (option == "--alternative" && value.find('=') != std::string::npos) {
      const size_t end = value.find('=');
      options.runners.emplace_back(value.substr(0, end), value.substr(end + 1));
    } else {
      std::fprintf(stderr, "bench: unknown option %s\n", option.c_str());
      return false;
    }
  }
  return !options.stage.empty() && !options.runners.empty() && argc % 2 == 1;
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {}

  int run();

 private:
  bool start_sides();
  void time_cublas();
  std::vector<TimedCall> chosen_calls();
  void time_call(const TimedCall& call);
  void progress(const std::string& what);
  int64_t ask(uint32_t operation, const std::vector<int64_t>& integers);

  const Options& options_;
  Run run_;
  std::vector<Side> sides_;
  int steps_ = 0;
  int done_ = 0;
  bool skipped_ = false;
};

// The first side decides; a layer's workspace is what the largest of ours needs.
int64_t Bench::ask(uint32_t operation, const std::vector<int64_t>& integers) {
  protocol::Request request = {};
  request.kind = protocol::Kind::kValue;
  request.operation = operation;
  std::copy(integers.begin(), integers.end(), request.integers);
  int64_t most = 0;
  for (size_t i = 0; i < sides_.size(); ++i) {
    if (i > 0 && (operation != kLayerOperation || sides_[i].name == "mine")) continue;
    most = std::max(most, sides_[i].child->ask(request, nullptr, nullptr, 30'000).reply.value);
  }
  return most;
}

// As Suite::check_device says it; "" where the device runs the stage.
std::string refusal_of_device(const Options& options, judge::Child& child) {
  protocol::Request request = {};
  request.kind = protocol::Kind::kHello;
  const judge::Answer answer = child.ask(request, nullptr, nullptr, 30'000);
  if (answer.kind != judge::Answer::Kind::kReplied) return {};  // timing it will say so
  const std::string capability = std::to_string(answer.reply.capability_major) + "." +
                                 std::to_string(answer.reply.capability_minor);
  for (const Stage& stage : kStages) {
    if (options.stage != stage.stem) continue;
    const std::string command = "drill " + std::string(stage.id);
    return refuse_device(stage.capability, answer.reply.device, capability, command);
  }
  return {};
}

void Bench::progress(const std::string& what) {
  std::printf("@ %d/%d %s\n", done_++, steps_, what.c_str());
  std::fflush(stdout);
}

bool Bench::start_sides() {
  for (const auto& [name, path] : options_.runners) {
    const auto limit = options_.most_tokens.find(name);
    if (limit != options_.most_tokens.end() && run_.shape.num_tokens > limit->second) continue;
    if (access(path.c_str(), X_OK) != 0) {
      std::fprintf(stderr, "bench: no runner at %s\n", path.c_str());
      return false;
    }
    Side side;
    side.name = name;
    side.child = std::make_unique<judge::Child>(path);
    sides_.push_back(std::move(side));
  }
  if (sides_.empty()) {
    std::fprintf(stderr, "bench: no runner takes so many tokens\n");
    return false;
  }
  const std::string refusal = refusal_of_device(options_, *sides_[0].child);
  if (!refusal.empty()) {
    std::printf("SKIP   %s: %s\n", options_.stage.c_str(), refusal.c_str());
    skipped_ = true;
    return false;
  }
  protocol::Request hello = {};
  hello.kind = protocol::Kind::kHello;
  const judge::Answer answer = sides_[0].child->ask(hello, nullptr, nullptr, 30'000);
  const char* device = answer.reply.device;
  run_.device.assign(device, strnlen(device, sizeof answer.reply.device));
  return true;
}

// The roof, in the same run.
void Bench::time_cublas() {
  const Shape& s = run_.shape;
  const auto routing = oracle::route(logits_of(s), s.num_tokens, s.num_experts, s.top_k, true);
  const std::vector<int> counts = counts_of(routing.topk_ids, s.num_experts);
  run_.capacity = capacity_of(counts);
  if (options_.cublas.empty()) return;
  progress("cuBLAS");
  run_.cublas = run_cublas(options_.cublas, s, counts, options_.brief);
  if (run_.cublas.empty()) run_.notes.emplace_back("cuBLAS could not be timed");
}

// For the headline: the layer where there is one, else its two GEMMs, else everything.
std::vector<TimedCall> Bench::chosen_calls() {
  std::vector<TimedCall> calls = timed_calls(
      options_.stage, run_.shape,
      [this](uint32_t operation, const auto& integers) { return ask(operation, integers); });
  if (!options_.brief) return calls;
  std::vector<TimedCall> chosen;
  for (const char* what : {"layer", "GEMM1", "GEMM2"}) {
    const auto found = std::find_if(calls.begin(), calls.end(), [&](const TimedCall& call) {
      return call.what.rfind(what, 0) == 0;
    });
    if (found != calls.end()) chosen.push_back(*found);
    if (!chosen.empty() && std::strcmp(what, "layer") == 0) break;
  }
  return chosen.empty() ? calls : chosen;
}

void Bench::time_call(const TimedCall& call) {
  std::map<std::string, std::vector<float>> us;
  std::map<std::string, Result> results;
  const int rounds = options_.brief ? 1 : options_.rounds;
  for (int round = 0; round < rounds; ++round) {
    for (const Side& side : sides_) {  // taking turns: a slow moment of the GPU hits both
      progress(call.what + " " + side.name);
      const Times times = time_once(*side.child, call, kReplaysPerRound);
      us[side.name].insert(us[side.name].end(), times.us.begin(), times.us.end());
      Result& result = results[side.name];
      if (!times.kernels.empty()) result.kernels = times.kernels;
      if (!result.verdict.empty() && !result.right()) continue;
      result.verdict = times.verdict.pass() ? "right" : "WRONG: " + times.verdict.sentence;
      for (const std::string& line : times.verdict.evidence) result.verdict += "; " + line;
    }
  }
  double outputs = 0.0;  // and workspaces: what was not filled
  for (const TimedBuffer& buffer : call.buffers) {
    if (buffer.fill == protocol::Fill::kPoison) outputs += static_cast<double>(buffer.bytes);
  }
  for (const Side& side : sides_) {
    Result result = result_of(call, side.name, us[side.name]);
    result.verdict = results[side.name].verdict;
    result.kernels = results[side.name].kernels;
    if (result.right()) refuse_if_too_fast(run_.sheet, outputs, result);
    run_.results.push_back(std::move(result));
  }
}

int Bench::run() {
  run_.stage = options_.stage;
  if (!find_shape(options_.shape, options_.tokens, run_.shape) ||
      !find_spread(options_.routing, run_.shape.spread)) {
    return 2;
  }
  GpuWatch watch;
  if (const std::string busy = watch.busy(); !busy.empty()) run_.notes.push_back(busy);
  if (!start_sides()) return skipped_ ? 77 : 70;
  run_.sheet = data_sheet_of(run_.device);
  if (!options_.limits.empty()) run_.sheet = parse_data_sheet(options_.limits);
  const std::vector<TimedCall> calls = chosen_calls();
  const int rounds = options_.brief ? 1 : options_.rounds;
  steps_ =
      static_cast<int>(calls.size() * sides_.size()) * rounds + (options_.cublas.empty() ? 0 : 1);
  watch.start();
  time_cublas();
  for (const TimedCall& call : calls) time_call(call);
  for (const std::string& note : watch.stop()) run_.notes.push_back(note);
  std::printf("@ %d/%d done\n", steps_, steps_);
  if (options_.text && !options_.brief) std::printf("%s", text_of(run_).c_str());
  if (!options_.json.empty()) {
    std::FILE* file = std::fopen(options_.json.c_str(), "we");
    const std::string json = json_of(run_);
    const bool written =
        file != nullptr && std::fwrite(json.data(), 1, json.size(), file) == json.size();
    if (file == nullptr || std::fclose(file) != 0 || !written) {
      std::fprintf(stderr, "bench: %s cannot be written\n", options_.json.c_str());
      return 70;
    }
  }
  const bool right = std::all_of(run_.results.begin(), run_.results.end(),
                                 [](const Result& result) { return result.right(); });
  return right ? 0 : 1;
}

}  // namespace
}  // namespace moe::bench

int main(int argc, char** argv) {
  moe::bench::Options options;
  if (!moe::bench::parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: %s --stage STEM --shape A [--solution RUNNER] [--mine RUNNER]\n",
                 argv[0]);
    return 2;
  }
  return moe::bench::Bench(options).run();
}
