// timed_call.h: one call of a stage at a real size, how it is timed, and what its outputs must be.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../judge/child.h"
#include "../judge/verdict.h"
#include "shapes.h"

namespace moe::bench {

inline constexpr uint32_t kLayerOperation = 100;  // moe_layer; tests/runner/layer_operation.h

struct TimedBuffer {
  protocol::Fill fill = protocol::Fill::kPoison;
  uint64_t bytes = 0;
  uint64_t seed = 0;
  float scale = 0.0f;
  judge::Bytes image;  // kImage
};

TimedBuffer generated(protocol::Fill fill, uint64_t elements, uint64_t seed, float scale);
TimedBuffer uninitialised(uint64_t bytes);
template <class T>
TimedBuffer image(const std::vector<T>& values) {
  TimedBuffer buffer;
  buffer.fill = protocol::Fill::kImage;
  buffer.image = judge::bytes_of(values);
  buffer.bytes = buffer.image.size();
  return buffer;
}

// Part of an output that is judged after timing.
struct TimedSample {
  size_t buffer = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct TimedCall {
  std::string what;    // "GEMM1"
  double flops = 0.0;  // on real rows
  double bytes = 0.0;  // at least
  bool fp8 = false;
  int64_t rows = 0;         // real rows of a grouped GEMM, and with the padding of its tables;
  int64_t padded_rows = 0;  // 0: no such thing
  uint32_t operation = 0;
  std::vector<int64_t> integers;
  std::vector<TimedBuffer> buffers;
  std::vector<TimedSample> samples;
  // Judges the samples, one byte string for each.
  std::function<judge::Verdict(const std::vector<judge::Bytes>&)> judge;
};

struct Times {
  judge::Verdict verdict;
  std::vector<float> us;
  std::vector<protocol::KernelUse> kernels;
};

// Times `count` replays in the child.
Times time_once(judge::Child& child, const TimedCall& call, int count);

float median(std::vector<float> values);

// What is timed for a stage. `workspace_bytes(operation, integers)` asks the runner.
using AskValue = std::function<int64_t(uint32_t, const std::vector<int64_t>&)>;
std::vector<TimedCall> timed_calls(const std::string& stem,
                                   const Shape& shape,
                                   const AskValue& ask);

}  // namespace moe::bench
