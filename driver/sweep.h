// sweep.h: the times of one layer over many numbers of tokens: the file they are kept in, where one
// falls off a cliff, and the drawing of it.
#pragma once

#include <string>
#include <vector>

namespace moe::driver {

struct SweepPoint {
  int num_tokens = 0;
  double floor_us = 0.0;  // by FLOPs or bytes of the data sheet
  double dense_us = 0.0;  // cuBLAS, both GEMMs dense; 0: not timed
  double layer_us = 0.0;
};

struct Sweep {
  std::string title;               // "one NVIDIA H200, 2026-11-29, shape B: E128 K8 H2048 I768"
  std::vector<SweepPoint> points;  // num_tokens ascending
};

// 1, 2, 3, 4, 5, 7, 8, 9, ...: powers of two up to `most` and their neighbours.
std::vector<int> sweep_tokens(int most);

// The point in the text that bench_stage wrote as JSON. Throws std::runtime_error where it was not
// right.
SweepPoint point_of_bench(const std::string& text);

// "# title", a line of names, a line for each point; columns with tabs between them.
std::string text_of(const Sweep& sweep);
// Throws std::runtime_error with the number of the line that is not as text_of writes it.
Sweep parse_sweep(const std::string& text);

// A sentence for each point whose layer takes more than 5 % longer than its larger neighbour's.
std::vector<std::string> cliffs_of(const Sweep& sweep);

// Time over tokens, both logarithmic: floor, cuBLAS dense, layer. One that holds for light and
// dark.
std::string svg_of(const Sweep& sweep);

}  // namespace moe::driver
