#include "content/tiny_decode.h"

#include <vector>

#include "content/tiny_tables.h"
#include "m9_decode_oracle.h"

namespace moe::content {
namespace {

// The first slot of a token has the largest logit.
oracle::LayerProblem m9_problem() {
  oracle::LayerProblem p;
  p.num_tokens = kTokens;
  p.num_experts = kExperts;
  p.top_k = kTopK;
  p.logits.assign(size_t(kTokens * kExperts), 0.0f);
  for (int id = 0; id < kIds; ++id) {
    const int place = id / kTopK * kExperts + kTopKIds[size_t(id)];
    p.logits[size_t(place)] = float(kTopK - id % kTopK);
  }
  return p;
}

// "1101": token 3 chose the expert, 2 did, 1 did not, 0 did.
std::string mask_of(const oracle::DecodeRun& run) {
  std::string mask(size_t(kTokens), '0');
  for (const int id : run.flat_ids) mask[size_t(kTokens - 1 - id / kTopK)] = '1';
  return mask;
}

std::string m9_runs() {
  const std::vector<oracle::DecodeRun> runs = oracle::decode_runs(m9_problem());
  const auto of_run = [&](auto value) {
    return cells(int(runs.size()), [&](int i) { return value(runs[size_t(i)]); });
  };
  Grid grid(26, 9);
  grid.row("run", cells(int(runs.size()), [](int i) { return number(i); }));
  grid.row("expert", of_run([](const auto& run) { return number(run.expert); }));
  grid.row("mask, token 3 first", of_run([](const auto& run) { return mask_of(run); }));
  grid.row("first", cells(int(runs.size()), [&](int i) {
             int first = 0;
             for (int j = 0; j < i; ++j) first += int(runs[size_t(j)].flat_ids.size());
             return number(first);
           }));
  grid.row("flat_ids", of_run([](const auto& run) { return joined(run.flat_ids); }));
  grid.row("tokens", of_run([](const auto& run) {
             std::vector<int> tokens;
             for (const int id : run.flat_ids) tokens.push_back(id / kTopK);
             return joined(tokens);
           }));
  return grid.text();
}

// Which columns of a step of 32 stand where in the two mmas, and which columns PTX numbers so.
std::string m9_fragments() {
  constexpr int kQuads = 4;
  constexpr int kChunk = 8;
  const auto pair = [](int column) { return number(column) + " " + number(column + 1); };
  Grid grid(28, 9);
  grid.row("quad", cells(kQuads, [](int quad) { return number(quad); }));
  grid.row("PTX: a[0], a[1], b[0]", cells(kQuads, [&](int quad) { return pair(2 * quad); }),
           "  of 16 columns");
  grid.row("PTX: a[2], a[3], b[1]", cells(kQuads, [&](int quad) { return pair(2 * quad + 8); }));
  for (int mma = 0; mma < 2; ++mma) {
    for (int half = 0; half < 2; ++half) {
      const std::string which = half == 0 ? "a[0], a[1], b[0]" : "a[2], a[3], b[1]";
      grid.row((mma == 0 ? "first mma: " : "second mma: ") + which,
               cells(kQuads, [&](int quad) { return pair(kChunk * quad + 4 * mma + 2 * half); }),
               mma + half == 0 ? "  of 32" : "");
    }
  }
  return grid.text();
}

}  // namespace

std::string m9_example() {
  return fenced(m9_runs()) +
         "\nColumns in the fragments of a step of 32, T > 4. A lane has 16 bytes of a row, and "
         "feeds two\nmmas with them:\n\n" +
         fenced(m9_fragments());
}

}  // namespace moe::content
