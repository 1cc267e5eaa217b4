// ladder.h: the whole layer, rung by rung: what `drill bench layer` timed beside what is published,
// the results file content/results/ladder.tsv, and the drawing of it. Nothing here needs a GPU.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace moe::driver {

struct Rung {
  std::string name;  // "m8"
  std::string what;  // "persistent kernels that overlap"; of a published one, where it is from
  double us = 0.0;
  double dense_us = 0.0;  // cuBLAS, both GEMMs dense, in the same run (R); 0: not known
  std::string gpu;        // "NVIDIA H200"
  std::string date;
  std::string kind;     // "yours", "ours", "cublas", "prototype" or "published"
  std::string refusal;  // why the time counts for nothing, or ""
};

struct LayerSizes {
  int num_tokens = 0;
  int num_experts = 0;
  int top_k = 0;
  int hidden_size = 0;
  int intermediate_size = 0;

  double flops() const {
    return 6.0 * num_tokens * top_k * static_cast<double>(hidden_size) * intermediate_size;
  }
};

// ---- content/results/peers.tsv: published kernels, by shape

struct Peer {
  std::string shape;  // as shape_key says
  Rung rung;
};

// Throws std::runtime_error with the number of the line that is not as it should be.
std::vector<Peer> parse_peers(const std::string& text);

// How the shapes of the published figures are called: "A", "B4096", "C1024"; with Zipf routing
// "Az".
// "" where there are none.
std::string shape_key(const LayerSizes& sizes, const std::string& routing);

// ---- what was timed

struct Ladder {
  std::string title;  // "A: T4096 E64 K8 H2048 I768, routing uniform, NVIDIA H200"
  LayerSizes sizes;
  std::vector<Rung> rungs;                                    // the fastest first
  std::vector<std::pair<std::string, std::string>> left_out;  // name, why
  std::vector<std::string> notes;                             // busy, throttled
};

// From the JSON of bench_stage and the published ones of that shape. Throws std::exception where it
// is none.
Ladder ladder_of_bench(const std::string& bench_json, const std::vector<Peer>& peers);

// The published ones alone, one ladder a shape, of all shapes when `shape` is "".
std::vector<Ladder> ladders_of_peers(const std::vector<Peer>& peers, const std::string& shape);

// A table, what was left out, and the sources of what is published.
std::string table_of(const Ladder& ladder);

// The same rows for programs; the JSON of bench_stage stands in it as "bench".
std::string json_of(const Ladder& ladder, const std::string& bench_json);

// ---- content/results/ladder.tsv

// "# title", the names of the columns, a line for each rung: rung, what, us, R_us, gpu, date, kind.
// Throws std::runtime_error with the number of the line that is none.
Ladder parse_ladder(const std::string& text);

// Bars, in times of cuBLAS dense of the same run, the fastest first. Holds for light and dark.
std::string svg_of(const Ladder& ladder);

}  // namespace moe::driver
