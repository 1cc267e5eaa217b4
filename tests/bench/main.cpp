// bench_stage: times a stage on a GPU. Each side is a child of its own; they take turns on the same
// data, and what was timed is judged.
//   bench_stage --stage STEM --shape A [--solution RUNNER] [--mine RUNNER] [--rounds N] [--report
//   FILE]
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "driver/capability.h"
#include "timed_call.h"

namespace moe::bench {
namespace {

constexpr int kReplaysPerRound = 20;

struct Side {
  std::string name;
  std::unique_ptr<judge::Child> child;
  std::map<std::string, std::vector<float>> us;  // by TimedCall::what
};

struct Options {
  std::string stage, shape = "A", report, cublas;
  std::vector<std::pair<std::string, std::string>> runners;  // side, path
  int rounds = 3;
};

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    const std::string value = argv[i + 1];
    if (option == "--stage") {
      options.stage = value;
    } else if (option == "--shape") {
      options.shape = value;
    } else if (option == "--report") {
      options.report = value;
    } else if (option == "--cublas") {
      options.cublas = value;
    } else if (option == "--rounds") {
      options.rounds = std::atoi(value.c_str());
    } else if (option == "--solution" || option == "--mine") {
      options.runners.emplace_back(option.substr(2), value);
    } else {
      std::fprintf(stderr, "bench: unknown option %s\n", option.c_str());
      return false;
    }
  }
  return !options.stage.empty() && !options.runners.empty() && argc % 2 == 1;
}

const Shape* shape_named(const std::string& name) {
  for (const Shape& shape : kShapes) {
    if (name == shape.name) return &shape;
  }
  std::fprintf(stderr, "bench: no shape is called %s; there are", name.c_str());
  for (const Shape& shape : kShapes) std::fprintf(stderr, " %s", shape.name);
  std::fprintf(stderr, "\n");
  return nullptr;
}

int64_t ask(judge::Child& child, uint32_t operation, const std::vector<int64_t>& integers) {
  protocol::Request request = {};
  request.kind = protocol::Kind::kValue;
  request.operation = operation;
  std::copy(integers.begin(), integers.end(), request.integers);
  return child.ask(request, nullptr, nullptr, 30'000).reply.value;
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

void print(const TimedCall& call, const Side& side, const std::string& verdict, std::FILE* report) {
  std::vector<float> us =
      side.us.count(call.what) != 0 ? side.us.at(call.what) : std::vector<float>{};
  std::sort(us.begin(), us.end());
  const double middle = static_cast<double>(median(us));
  const double low = us.empty() ? 0.0 : static_cast<double>(us[us.size() / 10]);
  const double high = us.empty() ? 0.0 : static_cast<double>(us[us.size() - 1 - us.size() / 10]);
  std::printf("  %-8s %-9s %9.1f us  (%.1f to %.1f, %zu runs)", call.what.c_str(),
              side.name.c_str(), middle, low, high, us.size());
  if (call.flops > 0.0 && middle > 0.0) std::printf("  %6.1f TFLOPS", call.flops / middle * 1e-6);
  if (middle > 0.0) std::printf("  %7.1f GB/s", call.bytes / middle * 1e-3);
  std::printf("  %s\n", verdict.c_str());
  if (report == nullptr) return;
  const nlohmann::ordered_json line = {
      {"what", call.what},   {"side", side.name},   {"median_us", middle},
      {"p10_us", low},       {"p90_us", high},      {"runs", us.size()},
      {"flops", call.flops}, {"bytes", call.bytes}, {"verdict", verdict}};
  std::fprintf(report, "%s\n", line.dump().c_str());
}

int run(const Options& options) {
  const Shape* shape = shape_named(options.shape);
  if (shape == nullptr) return 2;
  std::vector<Side> sides;
  for (const auto& [name, path] : options.runners) {
    if (access(path.c_str(), X_OK) != 0) {
      std::fprintf(stderr, "bench: no runner at %s\n", path.c_str());
      return 70;
    }
    Side side;
    side.name = name;
    side.child = std::make_unique<judge::Child>(path);
    sides.push_back(std::move(side));
  }
  const std::string refusal = refusal_of_device(options, *sides[0].child);
  if (!refusal.empty()) {
    std::printf("SKIP   %s: %s\n", options.stage.c_str(), refusal.c_str());
    return 77;
  }
  std::FILE* report = options.report.empty() ? nullptr : std::fopen(options.report.c_str(), "ae");
  std::printf("bench  %s  shape %s: T%d E%d K%d H%d I%d\n", options.stage.c_str(), shape->name,
              shape->num_tokens, shape->num_experts, shape->top_k, shape->hidden_size,
              shape->intermediate_size);
  std::fflush(stdout);
  if (!options.cublas.empty()) {  // the roof, in the same run
    std::string command = "'" + options.cublas + "'";
    for (const int size :
         {shape->num_tokens, shape->top_k, shape->hidden_size, shape->intermediate_size}) {
      command += " " + std::to_string(size);
    }
    if (std::system(command.c_str()) != 0) std::printf("  cuBLAS   could not be timed\n");
  }
  bool right = true;
  const auto calls =
      timed_calls(options.stage, *shape, [&](uint32_t operation, const auto& integers) {
        return ask(*sides[0].child, operation, integers);
      });
  for (const TimedCall& call : calls) {
    std::map<std::string, std::string> verdicts;
    for (int round = 0; round < options.rounds; ++round) {
      for (Side& side : sides) {  // taking turns: a slow moment of the GPU hits both
        const Times times = time_once(*side.child, call, kReplaysPerRound);
        auto& all = side.us[call.what];
        all.insert(all.end(), times.us.begin(), times.us.end());
        std::string& verdict = verdicts[side.name];
        if (verdict.empty() || verdict == "right") {
          verdict = times.verdict.pass() ? "right" : "WRONG: " + times.verdict.sentence;
          for (const std::string& line : times.verdict.evidence) verdict += "; " + line;
        }
        right = right && times.verdict.pass();
      }
    }
    for (const Side& side : sides) print(call, side, verdicts[side.name], report);
    std::fflush(stdout);
  }
  if (report != nullptr) std::fclose(report);
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
  return moe::bench::run(options);
}
