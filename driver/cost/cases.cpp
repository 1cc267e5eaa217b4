#include "driver/cost/cases.h"

#include <algorithm>
#include <cctype>

namespace moe::driver {
namespace {

constexpr double kBf16 = 2;
constexpr double kWord = 4;  // fp32 and int32

// A grouped GEMM: rows of A, as many rows out, [n, depth] weights of each expert. The cases route
// to every expert.
struct Gemm {
  double tokens, top_k, experts, n, depth;
};

constexpr double flops_of(const Gemm& g) {
  return 2 * g.tokens * g.top_k * g.n * g.depth;
}
// bf16, `a_rows` rows of A and the flat ids
constexpr double read_of(const Gemm& g, double a_rows) {
  return kBf16 * (a_rows * g.depth + g.experts * g.n * g.depth) + kWord * g.tokens * g.top_k;
}
constexpr double written_of(const Gemm& g) {
  return kBf16 * g.tokens * g.top_k * g.n;
}

constexpr Gemm kM2{33, 2, 8, 128, 128};
constexpr Gemm kM2Slots{33, 2, 8, 136, 200};
constexpr Gemm kM3{30, 4, 8, 64, 96};
constexpr Gemm kM4{150, 2, 3, 512, 16};
constexpr Gemm kM5{33, 2, 8, 128, 512};
constexpr Gemm kM6{50, 2, 4, 128, 128};
// GEMM1 of m7: H = I = 136, gate and up rows
constexpr Gemm kM7{33, 2, 4, 272, 136};
// the layer of m8: T = 20, K = E = 9, H = 136, I = 72
constexpr double kM8Rows = 20 * 9;

// A layer in which `hit` experts get tokens; x and out are bf16.
struct Layer {
  double tokens, experts, top_k, hidden, inner, hit;
};

constexpr double flops_of(const Layer& l) {
  return 6 * l.tokens * l.top_k * l.hidden * l.inner;
}
constexpr double weights_of(const Layer& l) {
  return 3 * l.hit * l.hidden * l.inner;
}
// x and logits; weights come on top
constexpr double read_of(const Layer& l) {
  return kBf16 * l.tokens * l.hidden + kWord * l.tokens * l.experts;
}
constexpr double written_of(const Layer& l) {
  return kBf16 * l.tokens * l.hidden;
}
// fp32, one for 128 x 128 codes
constexpr double scales_of(const Layer& l) {
  return kWord * weights_of(l) / (128 * 128);
}

constexpr Layer kM9{6, 4, 2, 136, 248, 4};
constexpr Layer kM9Gemv{1, 4, 2, 264, 248, 2};
constexpr Layer kM10{33, 8, 2, 256, 384, 8};

// align of m1: T = 130, K = 8, E = 128, block_m = 64; 142 blocks at most
constexpr int kM1Blocks = (130 * 8 + 128 * 63) / 64;

// What m4's test of the order gives the cache: 10 panels, of which one of W has 64 rows of 16 bf16.
constexpr std::size_t kM4Cache = std::size_t{10} * 64 * 16 * 2;

const CostCase kCases[] = {
    {"m1", "random/qwen3_like", 0, kWord * 130 * 8, kWord*(kM1Blocks * 65 + 1), 0, false},
    {"m1", "random/route_qwen3", 0, kWord * 37 * 128, 2 * kWord * 37 * 8, 0, false},
    {"m2", "random/tokens", flops_of(kM2), read_of(kM2, 33), written_of(kM2), 0, false},
    {"m2", "random/slots", flops_of(kM2Slots), read_of(kM2Slots, 66), written_of(kM2Slots), 0,
     false},
    // and a weight for each row
    {"m3", "random/weighted_k4", flops_of(kM3), read_of(kM3, 120) + kWord * 120, written_of(kM3), 0,
     false},
    {"m4", "edge/weights_exceed_cache", flops_of(kM4), read_of(kM4, 150), written_of(kM4), kM4Cache,
     false},
    // codes of one byte, a scale for 128 of A and for 128 x 128 of W, fp32 out
    {"m5", "random/tokens", flops_of(kM5), 33 * 512 + 8 * 128 * 512 + kWord*(33 * 4 + 8 * 4 + 66),
     kWord * 66 * 128, 0, true},
    {"m6", "random/tokens", flops_of(kM6), read_of(kM6, 50), written_of(kM6), 0, false},
    {"m7", "random/gemm1", flops_of(kM7), read_of(kM7, 33), kBf16 * 66 * 136, 0, false},
    // x, logits, both weights; out. What stays inside the layer costs nothing at best.
    {"m8", "tiles/tiles_9_and_18", 6 * kM8Rows * 136 * 72,
     kBf16*(20 * 136 + 9 * 3 * 72 * 136) + kWord * 20 * 9, kBf16 * 20 * 136, 0, false},
    // above 4 tokens by mma, below by multiply-adds
    {"m9", "tiles/pieces_136_248", flops_of(kM9), read_of(kM9) + kBf16* weights_of(kM9),
     written_of(kM9), 0, false},
    {"m9", "tiles/gemv_264_248", flops_of(kM9Gemv), read_of(kM9Gemv) + kBf16* weights_of(kM9Gemv),
     written_of(kM9Gemv), 0, false},
    // codes of one byte and their scales
    {"m10", "random/twice_mixtral_like", flops_of(kM10),
     read_of(kM10) + weights_of(kM10) + scales_of(kM10), written_of(kM10), 0, true},
};

constexpr GpuSheet kSheets[] = {
    {"H200", 4.8, 989, 1979, std::size_t{50} * 1000 * 1000},
    {"A100", 2.039, 312, 0, std::size_t{40} * 1000 * 1000},
    {"RTX 4090", 1.008, 165, 330, std::size_t{72} * 1000 * 1000},
};

// Without blanks, in capitals: "rtx4090" is "RTX 4090".
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == ' ' || c == '-') continue;
    result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

}  // namespace

const CostCase* find_cost_case(std::string_view stage, std::string_view name) {
  const auto found = std::find_if(std::begin(kCases), std::end(kCases), [&](const CostCase& one) {
    return stage == one.stage && (name.empty() || name == one.name);
  });
  return found == std::end(kCases) ? nullptr : found;
}

std::vector<std::string> cost_case_names(std::string_view stage) {
  std::vector<std::string> names;
  for (const CostCase& one : kCases) {
    if (stage == one.stage) names.emplace_back(one.name);
  }
  return names;
}

const GpuSheet* find_gpu_sheet(std::string_view name) {
  const auto found = std::find_if(std::begin(kSheets), std::end(kSheets), [&](const GpuSheet& one) {
    return plain(one.name) == plain(name);
  });
  return found == std::end(kSheets) ? nullptr : found;
}

std::string gpu_sheet_names() {
  std::string names;
  for (const GpuSheet& sheet : kSheets)
    names += (names.empty() ? "" : ", ") + std::string(sheet.name);
  return names;
}

}  // namespace moe::driver
