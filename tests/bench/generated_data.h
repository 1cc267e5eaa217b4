// generated_data.h: the data that stages are timed on, on the host: values of the generated inputs
// one by one, a routing, and how rows of an output are judged from them in double.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../judge/bf16.h"
#include "../judge/compare.h"
#include "../m1_align_oracle.h"
#include "timed_call.h"

namespace moe::bench {

inline constexpr uint64_t kSeedX = 11, kSeedW13 = 13, kSeedW2 = 14, kSeedH = 15;

// Standard deviations of x (and h), and of weights that are summed over `depth`.
float x_scale();
float w_scale(int depth);

double bf16_of(uint64_t seed, uint64_t index, float scale);
std::vector<double> generated_row(uint64_t seed, uint64_t row, int width, float scale);
// a * w[expert]^T for one row of A.
std::vector<double> times_expert(const std::vector<double>& a, uint64_t seed, int expert, int n);

struct Routed {
  oracle::Routing routing;
  oracle::Alignment table;
  int experts_hit = 0;
};
const Routed& routed(const Shape& shape, int block_m);

// A few of the rows 0 .. count - 1, the last one among them.
std::vector<int64_t> sampled_rows(int64_t count);
// Sends those rows of a bf16 output back.
void sample_rows(TimedCall& call, size_t buffer, const std::vector<int64_t>& rows, int columns);
// And judges them by the gates of the stage.
std::function<judge::Verdict(const std::vector<judge::Bytes>&)> judge_rows(
    const std::vector<int64_t>& rows,
    int columns,
    judge::Gates gates,
    const std::function<std::vector<double>(int64_t)>& want);

// The stages with files of their own.
std::vector<TimedCall> calls_of_m7(const Shape& shape);
std::vector<TimedCall> calls_of_m10(const Shape& shape, const AskValue& ask);

}  // namespace moe::bench
