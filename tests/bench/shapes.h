// shapes.h: the sizes that are timed: those of the published figures, those of known models, any
// others, and how tokens are spread over experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moe::bench {

enum class Spread {
  kUniform,    // as independent random logits give it
  kZipf,       // expert r is about 1 / (r + 1) times as often first choice as expert 0
  kOneHot,     // expert 0 is the first choice of every token
  kHalfEmpty,  // every second expert gets nothing
};

struct Shape {
  const char* name;
  int num_tokens;
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
  Spread spread = Spread::kUniform;
};

// A is Qwen3-30B-A3B with 64 experts, B with its 128; C Mixtral 8x7B. Sizes of models are those of
// their public configurations, one layer without shared experts.
inline constexpr Shape kShapes[] = {
    {"A", 4096, 64, 8, 2048, 768},
    {"B", 4096, 128, 8, 2048, 768},
    {"B16384", 16384, 128, 8, 2048, 768},
    {"B1024", 1024, 128, 8, 2048, 768},
    {"B256", 256, 128, 8, 2048, 768},
    {"B64", 64, 128, 8, 2048, 768},
    {"B16", 16, 128, 8, 2048, 768},
    {"B1", 1, 128, 8, 2048, 768},
    {"C", 4096, 8, 2, 4096, 14336},
    {"C1024", 1024, 8, 2, 4096, 14336},
    {"C16", 16, 8, 2, 4096, 14336},
    {"C1", 1, 8, 2, 4096, 14336},
    {"D", 4096, 256, 8, 7168, 2048},
    {"A8", 4096, 64, 8, 2048, 768},  // A, for the stages on 8-bit codes
    {"D4096", 4096, 256, 8, 7168, 2048},
    {"D1024", 1024, 256, 8, 7168, 2048},
    {"D64", 64, 256, 8, 7168, 2048},
    {"qwen3-30b", 4096, 128, 8, 2048, 768},
    {"qwen3-235b", 4096, 128, 8, 4096, 1536},
    {"mixtral-8x7b", 4096, 8, 2, 4096, 14336},
    {"mixtral-8x22b", 4096, 8, 2, 6144, 16384},
    {"deepseek-v3", 4096, 256, 8, 7168, 2048},
    {"olmoe", 4096, 64, 8, 2048, 1024},
};

// By name, or "T,E,K,H,I". `tokens` above 0 replaces T. False (and a message) where that is no
// shape.
bool find_shape(const std::string& text, int tokens, Shape& shape);

// "uniform", "zipf", "one-hot", "half-empty". False (and a message) for others.
bool find_spread(const std::string& text, Spread& spread);
const char* name_of(Spread spread);

// [T, E] router logits of that spread, the same in every run.
std::vector<float> logits_of(const Shape& shape);

// How many (token, slot) pairs each expert got.
std::vector<int> counts_of(const std::vector<int32_t>& topk_ids, int num_experts);

}  // namespace moe::bench
