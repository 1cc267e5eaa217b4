// Measures every tile that m4's grouped_gemm is compiled for, in several GROUP_M, on this GPU and
// one layer; prints JSON lines, at the end the line for kTunedTiles in drills/m4_group_m.tiles.h.
//
//   m4_group_m.tune [T [E [K [H [I]]]]]        default: 4096 64 8 2048 768
//
// Each time is the median of kRepeats, events around one call, the L2 cache emptied before. Random
// data, uniform routing. All tiles add in the same order, so outputs must be equal bit for bit:
// checked.
#include <drills/m1_align.h>
#include <drills/m4_group_m.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace moe {
namespace {

constexpr int kRepeats = 15;
constexpr int kGroups[] = {1, 2, 4, 8, 16, 32};
constexpr size_t kFlushBytes = size_t{256} << 20;

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "m4_group_m.tune: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(70);
}

struct Layer {
  int num_tokens = 4096;
  int num_experts = 64;
  int top_k = 8;
  int hidden_size = 2048;
  int intermediate_size = 768;
  size_t ids() const { return static_cast<size_t>(num_tokens) * static_cast<size_t>(top_k); }
  double flops_of_gemm1() const {
    return 4.0 * static_cast<double>(ids()) * hidden_size * intermediate_size;
  }
  double flops_of_gemm2() const { return flops_of_gemm1() / 2; }
};

template <class T>
T* device_array(size_t count) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, count * sizeof(T) + 256), "cudaMalloc");
  check(cudaMemset(memory, 0, count * sizeof(T)), "cudaMemset");
  return static_cast<T*>(memory);
}

// Roughly normal: the sum of four uniform numbers from a hash, times `scale`.
__device__ float random_value(uint64_t index, uint64_t seed) {
  uint64_t x = index * 0x9e3779b97f4a7c15u + seed;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i) sum += static_cast<float>(x >> (16 * i) & 0xffff) / 65536.0f - 0.5f;
  return sum * 1.7320508f;
}

template <class T>
__global__ void fill_kernel(T* values, size_t count, float scale, uint64_t seed) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < count;
       i += stride) {
    values[i] = static_cast<T>(random_value(i, seed) * scale);
  }
}

template <class T>
T* random_array(size_t count, float scale, uint64_t seed) {
  T* values = device_array<T>(count);
  fill_kernel<<<1024, 256>>>(values, count, scale, seed);
  check(cudaDeviceSynchronize(), "fill");
  return values;
}

__global__ void count_differences_kernel(int* differences,
                                         const uint32_t* a,
                                         const uint32_t* b,
                                         size_t words) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  int mine = 0;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < words;
       i += stride) {
    mine += a[i] != b[i] ? 1 : 0;
  }
  if (mine != 0) atomicAdd(differences, mine);
}

// Median of one call in microseconds; negative where the device refuses the launch.
template <class Call>
double median_us(Call call) {
  static unsigned char* const flush = device_array<unsigned char>(kFlushBytes);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<float> times;
  for (int i = 0; i <= kRepeats; ++i) {
    check(cudaMemsetAsync(flush, i, kFlushBytes, nullptr), "flush");
    check(cudaEventRecord(begin, nullptr), "event");
    if (call() != cudaSuccess) {
      (void)cudaGetLastError();
      return -1.0;
    }
    check(cudaEventRecord(end, nullptr), "event");
    check(cudaEventSynchronize(end), "run");
    float ms = 0.0f;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    if (i > 0) times.push_back(ms * 1000.0f);  // the first run warms up
  }
  std::sort(times.begin(), times.end());
  check(cudaEventDestroy(begin), "event");
  check(cudaEventDestroy(end), "event");
  return times[times.size() / 2];
}

// What one layer is measured with.
struct Arrays {
  explicit Arrays(const Layer& layer)
      : logits(random_array<float>(
            static_cast<size_t>(layer.num_tokens) * layer.num_experts, 1.0f, 1)),
        x(random_array<__nv_bfloat16>(
            static_cast<size_t>(layer.num_tokens) * layer.hidden_size, 1.0f, 2)),
        w13(random_array<__nv_bfloat16>(weights(layer) * 2, 0.03f, 3)),
        w2(random_array<__nv_bfloat16>(weights(layer), 0.03f, 4)),
        h(random_array<__nv_bfloat16>(layer.ids() * layer.intermediate_size, 1.0f, 5)),
        out(device_array<__nv_bfloat16>(layer.ids() * widest(layer))),
        first_out{device_array<__nv_bfloat16>(layer.ids() * layer.intermediate_size),
                  device_array<__nv_bfloat16>(layer.ids() * layer.hidden_size)},
        topk_ids(device_array<int32_t>(layer.ids())),
        topk_weights(device_array<float>(layer.ids())) {}
  static size_t weights(const Layer& l) {
    return static_cast<size_t>(l.num_experts) * l.hidden_size * l.intermediate_size;
  }
  static size_t widest(const Layer& l) {
    return static_cast<size_t>(std::max(l.hidden_size, l.intermediate_size));
  }
  float* logits;
  __nv_bfloat16 *x, *w13, *w2, *h, *out;
  __nv_bfloat16* first_out[2];  // what the first candidate of each GEMM gave
  int32_t* topk_ids;
  float* topk_weights;
};

struct Table {
  int32_t *sorted_token_ids, *expert_ids, *num_tokens_post_padded;
};

Table make_table(const Layer& l, const Arrays& arrays, int block_m) {
  const size_t capacity = align_capacity(l.num_tokens, l.top_k, l.num_experts, block_m);
  const Table table = {device_array<int32_t>(capacity), device_array<int32_t>(capacity / block_m),
                       device_array<int32_t>(1)};
  const size_t bytes =
      solution::align_workspace_bytes(l.num_tokens, l.top_k, l.num_experts, block_m);
  auto* workspace = device_array<unsigned char>(bytes);
  check(solution::align(table.sorted_token_ids, table.expert_ids, table.num_tokens_post_padded,
                        arrays.topk_ids, l.num_tokens, l.top_k, l.num_experts, block_m, workspace,
                        bytes, nullptr),
        "align");
  check(cudaDeviceSynchronize(), "align");
  check(cudaFree(workspace), "cudaFree");
  return table;
}

GroupedGemm make_gemm(const Layer& l, const Arrays& arrays, const Table& table, int which) {
  GroupedGemm gemm = {};
  gemm.out = arrays.out;
  gemm.a = which == 1 ? arrays.x : arrays.h;
  gemm.w = which == 1 ? arrays.w13 : arrays.w2;
  gemm.topk_weights = which == 1 ? nullptr : arrays.topk_weights;
  gemm.sorted_token_ids = table.sorted_token_ids;
  gemm.expert_ids = table.expert_ids;
  gemm.num_tokens_post_padded = table.num_tokens_post_padded;
  gemm.num_tokens = l.num_tokens;
  gemm.top_k = l.top_k;
  gemm.num_experts = l.num_experts;
  gemm.n = which == 1 ? l.intermediate_size : l.hidden_size;
  gemm.depth = which == 1 ? l.hidden_size : l.intermediate_size;
  gemm.rows = which == 1 ? Rows::kTokens : Rows::kSlots;
  gemm.swiglu = which == 1;
  return gemm;
}

struct Best {
  double us = 1e30;
  GemmTile tile = {};
};

// All groups of one compiled tile; remembers the fastest.
void measure(const Layer& l, const Arrays& arrays, GroupedGemm gemm, int which, Best& best) {
  static bool have_first[2] = {};
  const size_t words = l.ids() * static_cast<size_t>(gemm.n) / 2;
  static int* const differences = device_array<int>(1);
  for (const int group_m : kGroups) {
    gemm.tile.group_m = group_m;
    const double us = median_us([&] { return solution::m4::grouped_gemm(gemm, nullptr); });
    if (us < 0) return;
    if (!have_first[which - 1]) {
      check(
          cudaMemcpy(arrays.first_out[which - 1], arrays.out, words * 4, cudaMemcpyDeviceToDevice),
          "copy");
      have_first[which - 1] = true;
    }
    int wrong = 0;
    check(cudaMemset(differences, 0, sizeof wrong), "cudaMemset");
    count_differences_kernel<<<1024, 256>>>(
        differences, reinterpret_cast<const uint32_t*>(arrays.out),
        reinterpret_cast<const uint32_t*>(arrays.first_out[which - 1]), words);
    check(cudaMemcpy(&wrong, differences, sizeof wrong, cudaMemcpyDeviceToHost), "copy");
    const double flops = which == 1 ? l.flops_of_gemm1() : l.flops_of_gemm2();
    std::printf(
        "{\"type\":\"candidate\",\"gemm\":%d,\"block_m\":%d,\"block_n\":%d,\"block_k\":%d,"
        "\"group_m\":%d,\"us\":%.1f,\"tflops\":%.1f,\"differences\":%d}\n",
        which, gemm.block_m, gemm.tile.block_n, gemm.tile.block_k, group_m, us, flops / us * 1e-6,
        wrong);
    std::fflush(stdout);
    if (wrong == 0 && us < best.us) best = {us, gemm.tile};
  }
}

void measure_layer(const Layer& l, const Arrays& arrays) {
  const size_t bytes = solution::m4::moe_layer_workspace_bytes(l.num_tokens, l.num_experts, l.top_k,
                                                               l.hidden_size, l.intermediate_size);
  auto* workspace = device_array<unsigned char>(bytes);
  const double us = median_us([&] {
    return solution::m4::moe_layer(arrays.out, arrays.x, arrays.logits, arrays.w13, arrays.w2,
                                   l.num_tokens, l.num_experts, l.top_k, l.hidden_size,
                                   l.intermediate_size, true, workspace, bytes, nullptr);
  });
  const double routing_us = median_us([&] {
    return solution::route(arrays.topk_ids, arrays.topk_weights, arrays.logits, l.num_tokens,
                           l.num_experts, l.top_k, true, nullptr);
  });
  const Tile tile = solution::m4::pick_tile(l.num_tokens, l.num_experts, l.top_k, l.hidden_size,
                                            l.intermediate_size);
  std::printf(
      "{\"type\":\"layer\",\"us\":%.1f,\"tflops\":%.1f,\"route_us\":%.1f,\"block_m\":%d,"
      "\"gemm1\":[%d,%d,%d],\"gemm2\":[%d,%d,%d]}\n",
      us, (l.flops_of_gemm1() + l.flops_of_gemm2()) / us * 1e-6, routing_us, tile.block_m,
      tile.gemm1.block_n, tile.gemm1.block_k, tile.gemm1.group_m, tile.gemm2.block_n,
      tile.gemm2.block_k, tile.gemm2.group_m);
  check(cudaFree(workspace), "cudaFree");
}

int run(const Layer& l) {
  cudaDeviceProp device = {};
  check(cudaGetDeviceProperties(&device, 0), "device");
  std::printf("{\"type\":\"device\",\"name\":\"%s\",\"multiprocessors\":%d,\"l2_bytes\":%d}\n",
              device.name, device.multiProcessorCount, device.l2CacheSize);
  const Arrays arrays(l);
  check(solution::route(arrays.topk_ids, arrays.topk_weights, arrays.logits, l.num_tokens,
                        l.num_experts, l.top_k, true, nullptr),
        "route");
  double best_us = 1e30;
  std::string best_line;
  Best best[2];
  int block_m = 0;
  const auto close = [&] {  // all tiles of one block_m are measured
    if (best[0].us + best[1].us >= best_us) return;
    best_us = best[0].us + best[1].us;
    char line[160];
    std::snprintf(line, sizeof line, "{%d, %d, %d, %d, %d, {%d, {%d, %d, %d}, {%d, %d, %d}}},",
                  l.num_experts, l.top_k, l.hidden_size, l.intermediate_size, l.num_tokens, block_m,
                  best[0].tile.block_n, best[0].tile.block_k, best[0].tile.group_m,
                  best[1].tile.block_n, best[1].tile.block_k, best[1].tile.group_m);
    best_line = line;
  };
  for (const TileShape& shape : kTileShapes) {
    if (shape.block_m != block_m) {
      close();
      block_m = shape.block_m;
      best[0] = best[1] = {};
    }
    const Table table = make_table(l, arrays, shape.block_m);
    for (const int which : {1, 2}) {
      GroupedGemm gemm = make_gemm(l, arrays, table, which);
      gemm.block_m = shape.block_m;
      gemm.tile = {shape.block_n, shape.block_k, 1};
      measure(l, arrays, gemm, which, best[which - 1]);
    }
    check(cudaFree(table.sorted_token_ids), "cudaFree");
    check(cudaFree(table.expert_ids), "cudaFree");
    check(cudaFree(table.num_tokens_post_padded), "cudaFree");
  }
  close();
  std::printf("{\"type\":\"best\",\"us\":%.1f,\"line\":\"%s\"}\n", best_us, best_line.c_str());
  measure_layer(l, arrays);
  return 0;
}

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  moe::Layer layer;
  int* const fields[] = {&layer.num_tokens, &layer.num_experts, &layer.top_k, &layer.hidden_size,
                         &layer.intermediate_size};
  for (int i = 1; i < argc && i <= 5; ++i) *fields[i - 1] = std::atoi(argv[i]);
  return moe::run(layer);
}
