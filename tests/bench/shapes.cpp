#include "shapes.h"

#include <cmath>
#include <cstdio>

#include "../runner/generated.h"

namespace moe::bench {
namespace {

constexpr uint64_t kSeedLogits = 12;

struct SpreadName {
  const char* name;
  Spread spread;
};
constexpr SpreadName kSpreads[] = {{"uniform", Spread::kUniform},
                                   {"zipf", Spread::kZipf},
                                   {"one-hot", Spread::kOneHot},
                                   {"half-empty", Spread::kHalfEmpty}};

// What the spread adds to the logit of an expert. The generated values are those of a narrow
// distribution, so a few units decide.
float bias_of(Spread spread, int expert) {
  switch (spread) {
    case Spread::kUniform:
      return 0.0f;
    case Spread::kZipf:
      return -std::log(static_cast<float>(expert + 1));
    case Spread::kOneHot:
      return expert == 0 ? 50.0f : 0.0f;
    case Spread::kHalfEmpty:
      return expert % 2 == 0 ? 0.0f : -50.0f;
  }
  return 0.0f;
}

}  // namespace

bool find_shape(const std::string& text, int tokens, Shape& shape) {
  bool found = false;
  for (const Shape& known : kShapes) {
    if (text != known.name) continue;
    shape = known;
    found = true;
  }
  Shape own = {"own", 0, 0, 0, 0, 0};
  int used = 0;
  const int fields =
      std::sscanf(text.c_str(), "%d,%d,%d,%d,%d%n", &own.num_tokens, &own.num_experts, &own.top_k,
                  &own.hidden_size, &own.intermediate_size, &used);
  if (!found && fields == 5 && static_cast<size_t>(used) == text.size()) {
    shape = own;
    found = true;
  }
  if (!found) {
    std::fprintf(stderr, "bench: no shape is called %s; give T,E,K,H,I or one of", text.c_str());
    for (const Shape& known : kShapes) std::fprintf(stderr, " %s", known.name);
    std::fprintf(stderr, "\n");
    return false;
  }
  if (tokens > 0) shape.num_tokens = tokens;
  const bool legal = shape.num_tokens > 0 && shape.num_experts > 0 && shape.num_experts <= 1024 &&
                     shape.top_k > 0 && shape.top_k <= shape.num_experts && shape.top_k <= 32 &&
                     shape.hidden_size >= 8 && shape.hidden_size % 8 == 0 &&
                     shape.intermediate_size >= 8 && shape.intermediate_size % 8 == 0;
  if (!legal) {
    std::fprintf(stderr,
                 "bench: T,E,K,H,I must be above 0, E at most 1024, K at most 32 and E, H and I "
                 "multiples of 8\n");
  }
  return legal;
}

bool find_spread(const std::string& text, Spread& spread) {
  for (const SpreadName& one : kSpreads) {
    if (text != one.name) continue;
    spread = one.spread;
    return true;
  }
  std::fprintf(stderr,
               "bench: no routing is called %s; there are uniform, zipf, one-hot and "
               "half-empty\n",
               text.c_str());
  return false;
}

const char* name_of(Spread spread) {
  for (const SpreadName& one : kSpreads) {
    if (one.spread == spread) return one.name;
  }
  return "";
}

std::vector<float> logits_of(const Shape& s) {
  std::vector<float> logits;
  for (int token = 0; token < s.num_tokens; ++token) {
    for (int expert = 0; expert < s.num_experts; ++expert) {
      const auto i = static_cast<uint64_t>(token) * static_cast<uint64_t>(s.num_experts) +
                     static_cast<uint64_t>(expert);
      logits.push_back(generated_value(kSeedLogits, i, 1.0f) + bias_of(s.spread, expert));
    }
  }
  return logits;
}

std::vector<int> counts_of(const std::vector<int32_t>& topk_ids, int num_experts) {
  std::vector<int> counts(static_cast<size_t>(num_experts), 0);
  for (const int32_t expert : topk_ids) ++counts[static_cast<size_t>(expert)];
  return counts;
}

}  // namespace moe::bench
