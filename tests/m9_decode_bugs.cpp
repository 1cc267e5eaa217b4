#include "m9_decode_bugs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "judge/models.h"
#include "layer_cases.h"
#include "m9_decode_oracle.h"

namespace moe::bugs {
namespace {

using judge::Matrix;
using judge::Mistake;
using judge::Verdict;
using oracle::DecodeRun;
using oracle::LayerProblem;
using Model = judge::MatrixModel<LayerProblem>;

constexpr int kMaxGemvTokens = 4;
constexpr int kWord = 2;       // columns
constexpr int kChunk = 8;      // columns of a lane
constexpr int kWarps = 8;      // of a block
constexpr int kStep = 256;     // columns of a warp, T <= 4
constexpr int kColumns = 128;  // of a step of the ring, T > 4

const Mistake kShared = {
    "M9-SHARED", "m9.place", "place",
    "Only tokens that share an expert with another token are wrong. A run must have all tokens "
    "that "
    "chose its expert, each once: is the bit added to the mask (m9.mask) and is the place first + "
    "the number of tokens before?"};
const Mistake kPlaces = {
    "M9-PLACE", "m9.place", "place",
    "An id of a run is no flat id, or a row lies outside its array: every id is placed once, at "
    "first + the number of tokens before it in the mask, whose 64 bits stand for 64 tokens."};
const Mistake kLower = {"M9-LOWER", "m9.y", "y",
                        "Only columns 8 to 15 of every 16 are wrong: they are rows g + 8 of the "
                        "piece, sums[2 + i]."};
const Mistake kUpper = {
    "M9-UPPER", "m9.y", "y",
    "Only columns 0 to 7 of every 16 are wrong: they are rows g of the piece, sums[i]."};
const Mistake kRows = {
    "M9-ROWS", "m9.order", "order",
    "Only some of every four columns are wrong: a block has rows column + 0 to 3 of W2."};
const Mistake kAllGemv = {
    "M9-GEMV", "m9.stream", "stream",
    "T <= 4: every token is wrong. Are all columns multiplied once (m9.stream in GEMM1, m9.share "
    "in "
    "GEMM2), h stored for both columns (m9.h), the warps' parts added up (m9.order), and both "
    "kernels launched?"};
const Mistake kAllPieces = {
    "M9-PIECES", "m9.fragments", "fragments",
    "T > 4: every token is wrong. Do a and b of both mmas have the same columns (m9.fragments), "
    "are "
    "the rows gate and up of the same columns (m9.pair), are all splits written and added up "
    "(m9.split, m9.y), all slots added up (m9.combine), and all three kernels launched?"};
const Mistake kRing = {
    "M9-RING", "m9.ring", "ring",
    "NaN where inputs are numbers: a stage of the ring was used that nobody had asked for, or "
    "before "
    "the copies of the other lanes had arrived (m9.ring: wait, meet, ask), or weights of an expert "
    "that nobody chose (m9.pair)."};
const Mistake kSplits = {"M9-SPLIT", "m9.split", "split",
                         "The sums over I are incomplete or count some columns twice: every column "
                         "belongs to one split, "
                         "and split s ends where split s + 1 begins."};

// ---- Models: the layer with other weights.

// `change` gets each value's expert, row and column.
using Change =
    std::function<judge::Bf16(const std::vector<judge::Bf16>&, size_t at, int expert, int column)>;

std::vector<judge::Bf16> changed(const std::vector<judge::Bf16>& w,
                                 int rows_of_expert,
                                 int columns,
                                 const Change& change) {
  std::vector<judge::Bf16> other(w.size());
  for (size_t i = 0; i < w.size(); ++i) {
    const size_t row = i / static_cast<size_t>(columns);
    other[i] = change(w, i, static_cast<int>(row / static_cast<size_t>(rows_of_expert)),
                      static_cast<int>(i % static_cast<size_t>(columns)));
  }
  return other;
}

Matrix with_w2(const LayerProblem& p, const Change& change) {
  LayerProblem other = p;
  other.w2 = changed(p.w2, p.hidden_size, p.intermediate_size, change);
  return oracle::moe_layer(other);
}

Matrix with_both(const LayerProblem& p, const Change& change) {
  LayerProblem other = p;
  other.w2 = changed(p.w2, p.hidden_size, p.intermediate_size, change);
  other.w13 = changed(p.w13, 2 * p.intermediate_size, p.hidden_size, change);
  return oracle::moe_layer(other);
}

// GEMM2 without columns for which is_missing(expert, column).
template <class Missing>
Matrix without(const LayerProblem& p, Missing is_missing) {
  return with_w2(p, [&](const auto& w, size_t at, int expert, int column) {
    return is_missing(expert, column) ? judge::Bf16{0} : w[at];
  });
}

// Columns of W taken from elsewhere in the same row.
template <class Source>
Matrix permuted(const LayerProblem& p, Source source) {
  return with_both(p, [&](const auto& w, size_t at, int, int column) {
    return w[at + static_cast<size_t>(source(column)) - static_cast<size_t>(column)];
  });
}

int run_of(const std::vector<DecodeRun>& runs, int expert) {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const DecodeRun& run) { return run.expert == expert; });
  return static_cast<int>(found - runs.begin());
}

std::vector<Model> gemv_models() {
  return {
      {{"M9-PAIRS", "m9.dot", "dot",
        "The columns of a word are exchanged: the lower half of a word is the first of its two."},
       [](const LayerProblem& p) { return permuted(p, [](int column) { return column ^ 1; }); }},
      {{"M9-PARTS", "m9.order", "order",
        "Only the part of warp 0 counts: the parts of all warps are added up, in their order."},
       [](const LayerProblem& p) {
         const auto runs = oracle::decode_runs(p);
         const int steps = (p.intermediate_size + kStep - 1) / kStep;
         return without(p, [&](int expert, int column) {
           return (run_of(runs, expert) * steps + column / kStep) % kWarps != 0;
         });
       }},
      {{"M9-BATCH", "m9.share", "share",
        "Only a warp's first step of every two counts: its steps are kWarps apart, and each is "
        "both "
        "loaded and multiplied."},
       [](const LayerProblem& p) {
         const auto runs = oracle::decode_runs(p);
         const int steps = (p.intermediate_size + kStep - 1) / kStep;
         return without(p, [&](int expert, int column) {
           return (run_of(runs, expert) * steps + column / kStep) / kWarps % 2 != 0;
         });
       }},
  };
}

std::vector<Model> piece_models() {
  return {
      {{"M9-WORDS", "m9.fragments", "fragments",
        "a and b of an mma have different columns: the second and third word of a lane's chunk are "
        "exchanged in one of them."},
       [](const LayerProblem& p) {
         return permuted(p, [](int column) {
           const int word = column % kChunk / kWord;
           return word == 1 ? column + kWord : word == 2 ? column - kWord : column;
         });
       }},
      {{"M9-ONESPLIT", "m9.combine", "combine",
        "Only the first split counts: a slot's value is the sum of all its splits."},
       [](const LayerProblem& p) {
         const int splits = std::max(1, oracle::decode_splits(p));
         const int steps = (p.intermediate_size + kColumns - 1) / kColumns;
         const int end = steps / splits * kColumns;
         return without(p, [&](int, int column) { return splits > 1 && column >= end; });
       }},
      {{"M9-LASTSTEP", "m9.split", "split",
        "The last columns of I are missing: the number of steps of 128 columns is rounded up."},
       [](const LayerProblem& p) {
         const int whole = p.intermediate_size / kColumns * kColumns;
         return without(p, [&](int, int column) { return column >= whole; });
       }},
  };
}

// ---- What is wrong, and only that.

struct Wrong {
  std::set<int> tokens;
  std::set<int> columns;
};

Wrong wrong_parts(const LayerProblem& p, const std::vector<judge::Bf16>& out) {
  const auto want = oracle::moe_layer(p);
  const auto columns = static_cast<size_t>(p.hidden_size);
  Wrong wrong;
  for (size_t first = 0; first < out.size(); first += columns) {
    double squares = 0.0;
    for (size_t i = first; i < first + columns; ++i) squares += want.values[i] * want.values[i];
    const double allowed = 0.08 * std::sqrt(squares / static_cast<double>(columns));
    for (size_t i = first; i < first + columns; ++i) {
      const double error = static_cast<double>(judge::to_float(out[i])) - want.values[i];
      if (std::fabs(error) <= allowed) continue;  // NaN is wrong
      wrong.tokens.insert(static_cast<int>(first / columns));
      wrong.columns.insert(static_cast<int>(i - first));
    }
  }
  return wrong;
}

bool within(const std::set<int>& part, const std::set<int>& all) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

// Tokens of runs for which is_meant.
template <class Meant>
std::set<int> tokens_of_runs(const LayerProblem& p, Meant is_meant) {
  std::set<int> tokens;
  for (const DecodeRun& run : oracle::decode_runs(p)) {
    if (!is_meant(run)) continue;
    for (const int id : run.flat_ids) tokens.insert(id / p.top_k);
  }
  return tokens;
}

// By columns; nullptr: they tell nothing.
const Mistake* by_columns(const LayerProblem& p, const Wrong& wrong) {
  const auto all_of = [&](int period, int first, int end) {
    return std::all_of(wrong.columns.begin(), wrong.columns.end(), [=](int column) {
      return column % period >= first && column % period < end;
    });
  };
  if (p.num_tokens <= kMaxGemvTokens) {
    const bool pattern = all_of(4, 0, 2) || all_of(4, 2, 4) || all_of(4, 1, 4) || all_of(4, 0, 3);
    return pattern && wrong.columns.size() > 1 ? &kRows : nullptr;
  }
  if (p.hidden_size <= 8) return nullptr;
  if (all_of(16, 8, 16)) return &kLower;
  return all_of(16, 0, 8) ? &kUpper : nullptr;
}

// By tokens: what explains the case, what is likelier first. Where all tokens share experts and all
// are wrong, only other cases can tell what is the matter.
std::vector<Mistake> by_tokens(const LayerProblem& p, const Wrong& wrong) {
  const bool all = wrong.tokens.size() == static_cast<size_t>(p.num_tokens);
  std::vector<Mistake> mistakes;
  if (oracle::decode_splits(p) > 1) mistakes.push_back(kSplits);
  if (all) mistakes.push_back(p.num_tokens <= kMaxGemvTokens ? kAllGemv : kAllPieces);
  const auto shared =
      tokens_of_runs(p, [](const DecodeRun& run) { return run.flat_ids.size() > 1; });
  if (within(wrong.tokens, shared)) mistakes.push_back(kShared);
  return mistakes;
}

}  // namespace

std::vector<Model> decode_models(bool is_gemv) {
  return is_gemv ? gemv_models() : piece_models();
}

Verdict explain_decode(const LayerProblem& p,
                       const std::vector<judge::Bf16>& out,
                       Verdict verdict) {
  constexpr judge::ValueRules<judge::Bf16> kRules = {0x7fa5, false, kLayerGates, kLayerSlack};
  const bool is_gemv = p.num_tokens <= kMaxGemvTokens;
  const std::vector<uint8_t> judged(static_cast<size_t>(p.num_tokens), 1);
  const auto want = oracle::moe_layer(p);
  const auto difference = judge::compare(out, want, judged, kRules.poison, false, kLayerGates);
  // NaN and anything is NaN: no model of a sum that has it explains it.
  const int64_t nan = difference.nan - difference.untouched;
  if (!is_gemv && nan > 0 && nan == difference.wrong_elements) {
    return judge::wrong(kRing, verdict.evidence);
  }
  if (!verdict.code.empty()) return verdict;
  const auto mistakes =
      judge::explaining(decode_models(is_gemv), p, out, want, difference, judged, kRules);
  if (!mistakes.empty()) return judge::wrong(mistakes, verdict.evidence);
  const Wrong wrong = wrong_parts(p, out);
  if (wrong.tokens.empty()) return verdict;
  if (const Mistake* mistake = by_columns(p, wrong)) {
    return judge::wrong(*mistake, verdict.evidence);
  }
  const std::vector<Mistake> likely = by_tokens(p, wrong);
  return likely.empty() ? verdict : judge::wrong(likely, verdict.evidence);
}

Verdict explain_decode_fault(Verdict verdict) {
  if (verdict.state != judge::State::kCrash || !verdict.code.empty()) return verdict;
  Verdict named = judge::wrong(kPlaces, {verdict.sentence});
  named.state = verdict.state;
  named.fault = verdict.fault;
  return named;
}

}  // namespace moe::bugs
