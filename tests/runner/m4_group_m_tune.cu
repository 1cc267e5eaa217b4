// Finds the tiles of m4 for one layer on this GPU; `drill tune` writes them into the table.
//
//   m4_group_m.tune [--report FILE] [--rounds N] [--replays N] [--rest-ms N] [T E K H I]
//
// 1. Each GEMM of the layer on every tile that it is compiled for, in several GROUP_M.
// 2. The whole layer on the best combinations, beside the tile that pick_tile gives now: what is
//    chosen is what makes the layer fast, not what is fast alone.
// Times are taken as by bench: replays of a captured graph, L2 emptied before each, random data.
// All candidates take turns, with a rest before each, every second round in the opposite order:
// else a GPU that gets warm, or lowers its clock, judges by the order. All tiles add in the same
// order, so outputs must be equal bit for bit: checked.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "device_buffers.h"
#include "m4_group_m_tune_layer.h"
#include "replay_timing.h"

namespace moe::tune {
namespace {

using runner::check;

constexpr int kGroups[] = {1, 2, 4, 8, 16, 32};
constexpr double kHopeless = 1.5;   // times the best of its GEMM: not measured again
constexpr double kFinalist = 1.25;  // times the least sum of two GEMMs
constexpr size_t kMostFinalists = 8;
constexpr double kWorthwhile = 0.995;  // of the time of the present choice, else it stays

struct Options {
  LayerSizes sizes;
  std::string report;
  int rounds = 3;
  int replays = 20;
  int rest_ms = 50;
};

// Something that is timed: a captured graph and all its times.
struct Timed {
  cudaGraphExec_t graph = nullptr;
  std::vector<float> us;

  double median() const {
    if (us.empty()) return 1e30;
    std::vector<float> sorted = us;
    std::sort(sorted.begin(), sorted.end());
    return static_cast<double>(sorted[sorted.size() / 2]);
  }
};

struct Candidate {
  int which;  // GEMM 1 or 2
  int block_m;
  GemmTile tile;
  Timed timed;
};

struct Finalist {
  Tile tile;
  Timed timed;
};

bool equal(const GemmTile& a, const GemmTile& b) {
  return a.block_n == b.block_n && a.block_k == b.block_k && a.group_m == b.group_m;
}
bool equal(const Tile& a, const Tile& b) {
  return a.block_m == b.block_m && equal(a.gemm1, b.gemm1) && equal(a.gemm2, b.gemm2);
}

std::string text_of(int block_m, const GemmTile& tile) {
  char text[48];
  std::snprintf(text, sizeof text, "%dx%dx%d group_m %d", block_m, tile.block_n, tile.block_k,
                tile.group_m);
  return text;
}

class Tuner {
 public:
  Tuner(const Options& options, cudaStream_t stream)
      : options_(options), stream_(stream), layer_(options.sizes, stream) {}

  int run();

 private:
  template <class Call>
  bool prepare(Call call, int which, Timed& timed);
  void time_once(Timed& timed);
  std::vector<Candidate> candidates();
  void measure(std::vector<Candidate>& all);
  std::vector<Finalist> finalists(const std::vector<Candidate>& all);
  void print(const std::vector<Candidate>& all) const;
  bool conclude(std::vector<Finalist>& all);

  Options options_;
  cudaStream_t stream_;
  Layer layer_;
  bool kept_[3] = {};
};

// Runs the call once, compares its output with that of the first such call, captures it. False
// where the device can't launch it or the output differs.
template <class Call>
bool Tuner::prepare(Call call, int which, Timed& timed) {
  if (call() != cudaSuccess) {
    (void)cudaGetLastError();
    return false;
  }
  check(cudaStreamSynchronize(stream_), "run");
  if (!kept_[which]) layer_.keep(which);
  kept_[which] = true;
  if (layer_.differences(which) != 0) return false;
  cudaError_t status = cudaSuccess;
  check(runner::capture(call, stream_, &timed.graph, &status), "capture");
  return status == cudaSuccess;
}

void Tuner::time_once(Timed& timed) {
  std::this_thread::sleep_for(std::chrono::milliseconds(options_.rest_ms));
  std::vector<float> times(static_cast<size_t>(options_.replays));
  check(runner::time_replays(timed.graph, options_.replays, stream_, times.data()), "time");
  timed.us.insert(timed.us.end(), times.begin(), times.end());
}

std::vector<Candidate> Tuner::candidates() {
  std::vector<Candidate> all;
  for (const int which : {1, 2}) {
    for (const TileShape& shape : kTileShapes) {
      for (const int group_m : kGroups) {
        Candidate one = {which, shape.block_m, {shape.block_n, shape.block_k, group_m}, {}};
        check(layer_.align(one.block_m), "align");
        const auto call = [&] { return layer_.gemm(which, one.block_m, one.tile); };
        if (prepare(call, which, one.timed)) {
          all.push_back(one);
        } else {
          std::printf("  left out: GEMM%d %s\n", which, text_of(one.block_m, one.tile).c_str());
        }
      }
    }
  }
  return all;
}

void Tuner::measure(std::vector<Candidate>& all) {
  for (int round = 0; round < options_.rounds; ++round) {
    double best[3] = {1e30, 1e30, 1e30};
    for (const Candidate& one : all) {
      best[one.which] = std::min(best[one.which], one.timed.median());
    }
    std::printf("  round %d of %d\n", round + 1, options_.rounds);
    std::fflush(stdout);
    int block_m = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      Candidate& one = all[round % 2 == 0 ? i : all.size() - 1 - i];
      if (round > 0 && one.timed.median() > kHopeless * best[one.which]) continue;
      if (one.block_m != block_m) check(layer_.align(one.block_m), "align");
      block_m = one.block_m;
      time_once(one.timed);
    }
  }
}

// The best group_m of each tile shape; all pairs of these with one block_m whose sum is near the
// least; and the tile that is used now, which stands first.
std::vector<Finalist> Tuner::finalists(const std::vector<Candidate>& all) {
  std::vector<Candidate> best;
  for (const Candidate& one : all) {
    const auto same = std::find_if(best.begin(), best.end(), [&](const Candidate& other) {
      return other.which == one.which && other.block_m == one.block_m &&
             other.tile.block_n == one.tile.block_n && other.tile.block_k == one.tile.block_k;
    });
    if (same == best.end()) {
      best.push_back(one);
    } else if (one.timed.median() < same->timed.median()) {
      *same = one;
    }
  }
  std::vector<std::pair<double, Tile>> pairs;
  for (const Candidate& first : best) {
    for (const Candidate& second : best) {
      if (first.which != 1 || second.which != 2 || first.block_m != second.block_m) continue;
      pairs.push_back(
          {first.timed.median() + second.timed.median(), {first.block_m, first.tile, second.tile}});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const LayerSizes& l = options_.sizes;
  std::vector<Finalist> chosen = {{solution::m4::pick_tile(l.num_tokens, l.num_experts, l.top_k,
                                                           l.hidden_size, l.intermediate_size),
                                   {}}};
  for (const auto& [sum, tile] : pairs) {
    if (sum > kFinalist * pairs.front().first || chosen.size() > kMostFinalists) break;
    if (!equal(tile, chosen.front().tile)) chosen.push_back({tile, {}});
  }
  return chosen;
}

void Tuner::print(const std::vector<Candidate>& all) const {
  for (const int which : {1, 2}) {
    std::printf("  GEMM%d%s, us for group_m", which, which == 1 ? " with SwiGLU" : "");
    for (const int group_m : kGroups) std::printf("%s%d", group_m == 1 ? " " : ", ", group_m);
    std::printf("\n");
    for (const TileShape& shape : kTileShapes) {
      std::printf("    %3dx%3dx%2d ", shape.block_m, shape.block_n, shape.block_k);
      for (const int group_m : kGroups) {
        const auto found = std::find_if(all.begin(), all.end(), [&](const Candidate& one) {
          return one.which == which && one.block_m == shape.block_m &&
                 equal(one.tile, {shape.block_n, shape.block_k, group_m});
        });
        if (found == all.end()) {
          std::printf("        -");
        } else {
          std::printf(" %8.1f", found->timed.median());
        }
      }
      std::printf("\n");
    }
  }
}

// Prints the layers; says in the report what should stand in the table. False where the layer is
// not what moe_layer computes.
bool Tuner::conclude(std::vector<Finalist>& all) {
  const LayerSizes& l = options_.sizes;
  const double flops = l.flops(1) + l.flops(2);
  std::printf("  whole layer, us\n");
  for (const Finalist& one : all) {
    const double us = one.timed.median();
    std::printf("    GEMM1 %-24s GEMM2 %-24s %8.1f  %6.1f TFLOPS%s\n",
                text_of(one.tile.block_m, one.tile.gemm1).c_str(),
                text_of(one.tile.block_m, one.tile.gemm2).c_str(), us, flops / us * 1e-6,
                &one == all.data() ? "  (now)" : "");
  }
  const auto best = std::min_element(
      all.begin(), all.end(),
      [](const Finalist& a, const Finalist& b) { return a.timed.median() < b.timed.median(); });
  const double now_us = all.front().timed.median();
  const bool keep = best->timed.median() > kWorthwhile * now_us;
  const Tile& tile = keep ? all.front().tile : best->tile;
  cudaDeviceProp device = {};
  check(cudaGetDeviceProperties(&device, 0), "device");
  if (options_.report.empty()) return true;
  std::FILE* file = std::fopen(options_.report.c_str(), "we");
  if (file == nullptr) return false;
  std::fprintf(file,
               "{\"gpu\":\"%s\",\"num_experts\":%d,\"top_k\":%d,\"hidden_size\":%d,"
               "\"intermediate_size\":%d,\"num_tokens\":%d,\"block_m\":%d,\"gemm1\":[%d,%d,%d],"
               "\"gemm2\":[%d,%d,%d],\"us\":%.1f,\"us_before\":%.1f}\n",
               device.name, l.num_experts, l.top_k, l.hidden_size, l.intermediate_size,
               l.num_tokens, tile.block_m, tile.gemm1.block_n, tile.gemm1.block_k,
               tile.gemm1.group_m, tile.gemm2.block_n, tile.gemm2.block_k, tile.gemm2.group_m,
               keep ? now_us : best->timed.median(), now_us);
  return std::fclose(file) == 0;
}

int Tuner::run() {
  std::vector<Candidate> all = candidates();
  measure(all);
  print(all);
  std::vector<Finalist> layers = finalists(all);
  check(layer_.run_moe_layer(), "moe_layer");
  layer_.keep(0);
  kept_[0] = true;
  for (Finalist& one : layers) {
    if (prepare([&] { return layer_.run(one.tile); }, 0, one.timed)) continue;
    std::fprintf(stderr, "m4_group_m.tune: the layer on %s is not what moe_layer computes\n",
                 text_of(one.tile.block_m, one.tile.gemm1).c_str());
    return 70;
  }
  for (int round = 0; round < options_.rounds; ++round) {
    for (size_t i = 0; i < layers.size(); ++i) {
      time_once(layers[round % 2 == 0 ? i : layers.size() - 1 - i].timed);
    }
  }
  return conclude(layers) ? 0 : 70;
}

bool parse(int argc, char** argv, Options& options) {
  int* const sizes[] = {&options.sizes.num_tokens, &options.sizes.num_experts, &options.sizes.top_k,
                        &options.sizes.hidden_size, &options.sizes.intermediate_size};
  int num_sizes = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    int* const number = word == "--rounds"    ? &options.rounds
                        : word == "--replays" ? &options.replays
                        : word == "--rest-ms" ? &options.rest_ms
                                              : nullptr;
    const bool option = number != nullptr || word == "--report";
    if (option && ++i == argc) return false;
    if (number != nullptr) {
      *number = std::atoi(argv[i]);
    } else if (word == "--report") {
      options.report = argv[i];
    } else if (num_sizes < 5) {
      *sizes[num_sizes++] = std::atoi(argv[i]);
    } else {
      return false;
    }
  }
  return (num_sizes == 0 || num_sizes == 5) && options.rounds > 0 && options.replays > 0;
}

int main_of(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: %s [--report FILE] [--rounds N] [--replays N] [T E K H I]\n",
                 argv[0]);
    return 2;
  }
  const LayerSizes& l = options.sizes;
  // Any aligned workspace will do to ask for the other rules.
  const char* rule = refuse_sizes(l.num_tokens, l.num_experts, l.top_k);
  if (rule == nullptr && l.num_tokens <= l.num_experts) {
    rule = "for num_tokens <= num_experts pick_tile takes kFewTokensTile, whatever the table says";
  }
  if (rule == nullptr) {
    rule = solution::m4::refuse_moe_layer(nullptr, nullptr, nullptr, nullptr, nullptr, l.num_tokens,
                                          l.num_experts, l.top_k, l.hidden_size,
                                          l.intermediate_size, true, nullptr, SIZE_MAX, nullptr);
  }
  if (rule != nullptr) {
    std::fprintf(stderr, "m4_group_m.tune: %s\n", rule);
    return 2;
  }
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");
  std::printf("tune   m4 for T%d E%d K%d H%d I%d, bf16\n", l.num_tokens, l.num_experts, l.top_k,
              l.hidden_size, l.intermediate_size);
  return Tuner(options, stream).run();
}

}  // namespace
}  // namespace moe::tune

int main(int argc, char** argv) {
  return moe::tune::main_of(argc, argv);
}
