#include "m3_weighted_epilogue_bugs.h"

#include <cmath>
#include <limits>

namespace moe::bugs {

using judge::kUntouched;
using judge::Matrix;
using judge::MatrixModel;
using oracle::CombineProblem;
using oracle::SiluProblem;
using oracle::WeightedProblem;

const judge::Mistake kSiluOverflow = {
    "M3-OVERFLOW", "m3.swiglu", "swiglu",
    "NaN or infinity for a large gate: e^g / (1 + e^g) becomes inf / inf. Write g / (1 + e^-g)."};
const judge::Mistake kSiluNothing = {"M3-HNOTHING", "m3.swiglu", "swiglu", "h was never written."};
const judge::Mistake kCombineNothing = {"M3-OUTNOTHING", "m3.combine", "combine",
                                        "out was never written."};
const judge::Mistake kWeightedSpill = {"M3-NSPILL", "m3.weight", "weight",
                                       "Columns at or behind N are stored and spill into the next "
                                       "row: mask the store with column < N."};

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double rounded(double value) {
  return static_cast<double>(judge::to_float(judge::to_bf16(value)));
}

// ---- silu_and_mul

template <class Value>
Matrix silu_matrix(const SiluProblem& p, Value value) {
  Matrix h = {p.num_ids, p.intermediate_size, {}};
  for (int row = 0; row < p.num_ids; ++row) {
    for (int column = 0; column < p.intermediate_size; ++column) {
      h.values.push_back(value(row, column));
    }
  }
  return h;
}

// A model made of gate and up of the right place.
template <class Formula>
auto with_formula(Formula formula) {
  return [formula](const SiluProblem& p) {
    return silu_matrix(p, [&](int row, int column) {
      return formula(p.value(row, column), p.value(row, column + p.intermediate_size));
    });
  };
}

Matrix interleaved(const SiluProblem& p) {
  return silu_matrix(p, [&](int row, int column) {
    return oracle::silu(p.value(row, 2 * column)) * p.value(row, 2 * column + 1);
  });
}

// Row r read from element r * I on.
Matrix short_rows(const SiluProblem& p) {
  return silu_matrix(p, [&](int row, int column) {
    const int64_t place = static_cast<int64_t>(row) * p.intermediate_size + column;
    return oracle::silu(p.value(0, place)) * p.value(0, place + p.intermediate_size);
  });
}

// Columns from `width` on are left as they were.
Matrix first_columns(Matrix out, int width) {
  for (size_t i = 0; i < out.values.size(); ++i) {
    if (static_cast<int>(i % static_cast<size_t>(out.columns)) >= width) out.values[i] = kUntouched;
  }
  return out;
}

std::vector<MatrixModel<SiluProblem>> make_silu_models() {
  std::vector<MatrixModel<SiluProblem>> models;
  const auto add = [&](const char* code, const char* sentence,
                       std::function<Matrix(const SiluProblem&)> output) {
    models.push_back({{code, "m3.swiglu", "swiglu", sentence}, std::move(output)});
  };
  add("M3-SILUONUP",
      "SiLU is applied to the last I columns. The first I columns are gate and get SiLU; the last "
      "I "
      "are up.",
      with_formula([](double gate, double up) { return gate * oracle::silu(up); }));
  add("M3-INTERLEAVED",
      "gate and up are taken from alternating columns; they are halves: columns 0 .. I-1 and I .. "
      "2I-1.",
      interleaved);
  add("M3-NOSILU", "gate is multiplied without SiLU.",
      with_formula([](double gate, double up) { return gate * up; }));
  add("M3-SIGMOID", "That is sigmoid(gate) * up; SiLU is gate * sigmoid(gate).",
      with_formula([](double gate, double up) { return up / (1.0 + std::exp(-gate)); }));
  add("M3-SILUROUNDED",
      "silu(gate) is rounded to bf16 before it is multiplied by up. Multiply in fp32, round once.",
      with_formula([](double gate, double up) { return rounded(oracle::silu(gate)) * up; }));
  add("M3-NOUP", "silu(gate) is not multiplied by up.",
      with_formula([](double gate, double) { return oracle::silu(gate); }));
  add("M3-SHORTROWS", "Rows of gate_up are 2 * I long; you step by I from row to row.", short_rows);
  add("M3-HZERO", "h is 0 everywhere.", with_formula([](double, double) { return 0.0; }));
  models.push_back({kSiluNothing, with_formula([](double, double) { return kUntouched; })});
  for (const int width : {256, 512, 1024, 2048}) {
    add("M3-HCOLUMNS",
        "Only the first columns of h are written: each thread must go on to the next chunk.",
        [width](const SiluProblem& p) { return first_columns(oracle::silu_and_mul(p), width); });
  }
  return models;
}

// ---- grouped_gemm_weighted

// The sum of row flat_id, without any weight, as a function of weight(flat_id, table row).
template <class Value>
Matrix weighted_matrix(const WeightedProblem& p, Value value) {
  Matrix out = oracle::grouped_gemm(p.gemm);
  for (int row = 0; row < p.gemm.num_tokens_post_padded; ++row) {
    const int flat_id = p.gemm.sorted_token_ids[static_cast<size_t>(row)];
    if (flat_id >= p.gemm.num_ids()) continue;
    const auto first = static_cast<size_t>(flat_id) * static_cast<size_t>(p.gemm.n);
    for (size_t i = first; i < first + static_cast<size_t>(p.gemm.n); ++i) {
      out.values[i] = value(out.values[i], flat_id, row);
    }
  }
  return out;
}

// Entry `index` of topk_weights, NaN behind its end.
double weight_at(const WeightedProblem& p, int index) {
  return index < p.gemm.num_ids() ? static_cast<double>(p.topk_weights[static_cast<size_t>(index)])
                                  : kNan;
}

// A model that multiplies by the weight at another index.
template <class Index>
auto with_weight_of(Index index) {
  return [index](const WeightedProblem& p) {
    return weighted_matrix(p, [&](double sum, int flat_id, int row) {
      return sum * weight_at(p, index(p.gemm, flat_id, row));
    });
  };
}

// A model that makes something else of the right sum and weight.
template <class Formula>
auto with_weight(Formula formula) {
  return [formula](const WeightedProblem& p) {
    return weighted_matrix(
        p, [&](double sum, int flat_id, int) { return formula(sum, weight_at(p, flat_id)); });
  };
}

// The weight of row g of each 16 rows, for row g + 8 too.
int row_of_first_half(const oracle::GemmProblem& p, int, int row) {
  return p.sorted_token_ids[static_cast<size_t>(row / 16 * 16 + row % 8)];
}

std::vector<MatrixModel<WeightedProblem>> make_weighted_models() {
  using oracle::GemmProblem;
  std::vector<MatrixModel<WeightedProblem>> models;
  const auto add = [&](const char* code, const char* sentence,
                       std::function<Matrix(const WeightedProblem&)> output) {
    models.push_back({{code, "m3.weight", "weight", sentence}, std::move(output)});
  };
  add("M3-NOWEIGHT", "The routing weight is never applied.",
      with_weight([](double sum, double) { return sum; }));
  add("M3-TWICE", "The routing weight is applied twice.",
      with_weight([](double sum, double weight) { return sum * weight * weight; }));
  add("M3-SLOT0WEIGHT", "All slots of a token use the weight of its slot 0; index with flat_id.",
      with_weight_of([](const GemmProblem& g, int id, int) { return id / g.top_k * g.top_k; }));
  add("M3-SORTEDWEIGHT",
      "The weight is taken by the row of the sorted table. topk_weights is in (token, slot) order: "
      "index with flat_id.",
      with_weight_of([](const GemmProblem&, int, int row) { return row; }));
  add("M3-NEXTTOKEN", "Weights are shifted by one token.",
      with_weight_of([](const GemmProblem& g, int id, int) { return id + g.top_k; }));
  add("M3-NEXTSLOT", "Weights are shifted by one slot.",
      with_weight_of([](const GemmProblem&, int id, int) { return id + 1; }));
  add("M3-TOKENWEIGHT", "The weight is taken by token number; index with flat_id.",
      with_weight_of([](const GemmProblem& g, int id, int) { return id / g.top_k; }));
  add("M3-HALFWEIGHT",
      "Rows 8 to 15 of each 16 use the weight of the row 8 above: look it up for each half.",
      with_weight_of(row_of_first_half));
  add("M3-ROUNDEDTWICE",
      "The sum is rounded to bf16 before the weight is applied. Multiply in fp32, round once.",
      with_weight([](double sum, double weight) { return rounded(sum) * weight; }));
  add("M3-BF16WEIGHT", "The weight is rounded to bf16; it is fp32 and multiplies in fp32.",
      with_weight([](double sum, double weight) { return sum * rounded(weight); }));
  add("M3-GEMMZERO", "The output of GEMM2 is 0 everywhere.",
      with_weight([](double, double) { return 0.0; }));
  add("M3-GEMMNOTHING", "The output of GEMM2 was never written.",
      with_weight([](double, double) { return kUntouched; }));
  return models;
}

// ---- combine

template <class Value>
Matrix combine_matrix(const CombineProblem& p, Value value) {
  Matrix out = {p.num_tokens, p.hidden_size, {}};
  for (int token = 0; token < p.num_tokens; ++token) {
    for (int column = 0; column < p.hidden_size; ++column) {
      out.values.push_back(value(token, column));
    }
  }
  return out;
}

// The sum over slots [first, last).
Matrix some_slots(const CombineProblem& p, int first, int last) {
  return combine_matrix(p, [&](int token, int column) {
    double sum = 0.0;
    for (int slot = first; slot < last; ++slot) {
      const int flat_id = token * p.top_k + slot;
      if (p.routed(flat_id)) sum += p.value(flat_id, column);
    }
    return sum;
  });
}

Matrix slot_twice(const CombineProblem& p, int twice) {
  Matrix out = oracle::combine(p);
  const Matrix more = some_slots(p, twice, twice + 1);
  for (size_t i = 0; i < out.values.size(); ++i) out.values[i] += more.values[i];
  return out;
}

Matrix reads_unrouted(const CombineProblem& p) {
  return combine_matrix(p, [&](int token, int column) {
    double sum = 0.0;
    for (int slot = 0; slot < p.top_k; ++slot) sum += p.value(token * p.top_k + slot, column);
    return sum;
  });
}

Matrix stops_at_unrouted(const CombineProblem& p) {
  return combine_matrix(p, [&](int token, int column) {
    double sum = 0.0;
    for (int slot = 0; slot < p.top_k && p.routed(token * p.top_k + slot); ++slot) {
      sum += p.value(token * p.top_k + slot, column);
    }
    return sum;
  });
}

// y read as if it were [K, T, H].
Matrix slots_outside(const CombineProblem& p) {
  return combine_matrix(p, [&](int token, int column) {
    double sum = 0.0;
    for (int slot = 0; slot < p.top_k; ++slot) {
      if (p.routed(token * p.top_k + slot)) sum += p.value(slot * p.num_tokens + token, column);
    }
    return sum;
  });
}

Matrix bf16_sums(const CombineProblem& p) {
  return combine_matrix(p, [&](int token, int column) {
    double sum = 0.0;
    for (int slot = 0; slot < p.top_k; ++slot) {
      const int flat_id = token * p.top_k + slot;
      if (p.routed(flat_id)) sum = rounded(sum + p.value(flat_id, column));
    }
    return sum;
  });
}

// Each slot is stored over the one before.
Matrix last_routed_slot(const CombineProblem& p) {
  return combine_matrix(p, [&](int token, int column) {
    double last = 0.0;
    for (int slot = 0; slot < p.top_k; ++slot) {
      const int flat_id = token * p.top_k + slot;
      if (p.routed(flat_id)) last = p.value(flat_id, column);
    }
    return last;
  });
}

Matrix mean(const CombineProblem& p) {
  Matrix out = oracle::combine(p);
  for (double& value : out.values) value /= p.top_k;
  return out;
}

Matrix empty_tokens_left(const CombineProblem& p) {
  Matrix out = oracle::combine(p);
  for (int token = 0; token < p.num_tokens; ++token) {
    bool any = false;
    for (int slot = 0; slot < p.top_k; ++slot) any = any || p.routed(token * p.top_k + slot);
    const auto width = static_cast<size_t>(p.hidden_size);
    for (size_t c = 0; c < width && !any; ++c) {
      out.values[static_cast<size_t>(token) * width + c] = kUntouched;
    }
  }
  return out;
}

std::vector<MatrixModel<CombineProblem>> make_combine_models() {
  std::vector<MatrixModel<CombineProblem>> models;
  const auto add = [&](const char* code, const char* sentence,
                       std::function<Matrix(const CombineProblem&)> output) {
    models.push_back({{code, "m3.combine", "combine", sentence}, std::move(output)});
  };
  add("M3-UNROUTED",
      "A row of y is read that nobody wrote: leave out slots whose id is outside [0, E). Not even "
      "0 "
      "times it is safe: 0 * NaN is NaN.",
      reads_unrouted);
  add("M3-STOPS", "The sum ends at the first slot that is not routed: continue, do not break.",
      stops_at_unrouted);
  add("M3-EMPTYTOKEN", "A token without a routed slot gets zeros; its row was left as it was.",
      empty_tokens_left);
  add("M3-OLDOUT", "The sum is added to what out held before: start from 0.",
      [](const CombineProblem& p) { return combine_matrix(p, [](int, int) { return kNan; }); });
  add("M3-BF16SUM", "The running sum is rounded to bf16 after each slot: add in fp32, round once.",
      bf16_sums);
  add("M3-LASTSLOT", "The last slot is missing: the sum runs over slots 0 .. K-1.",
      [](const CombineProblem& p) { return some_slots(p, 0, p.top_k - 1); });
  add("M3-FIRSTSLOT", "Slot 0 is missing: the sum runs over slots 0 .. K-1.",
      [](const CombineProblem& p) { return some_slots(p, 1, p.top_k); });
  add("M3-OVERWRITES", "Each slot is stored over the one before it: add them.", last_routed_slot);
  add("M3-ONLYSLOT0", "Only slot 0 of each token arrives: add all K slots.",
      [](const CombineProblem& p) { return some_slots(p, 0, 1); });
  add("M3-SLOTTWICE", "Slot 0 is added twice.",
      [](const CombineProblem& p) { return slot_twice(p, 0); });
  add("M3-SLOTTWICE", "The last slot is added twice.",
      [](const CombineProblem& p) { return slot_twice(p, p.top_k - 1); });
  add("M3-KTH", "y is read as [K, T, H]; the rows of a token lie side by side: row t * K + slot.",
      slots_outside);
  add("M3-MEAN", "The sum is divided by K; the weights have been applied already.", mean);
  add("M3-OUTZERO", "out is 0 everywhere: nothing was added.",
      [](const CombineProblem& p) { return combine_matrix(p, [](int, int) { return 0.0; }); });
  models.push_back({kCombineNothing, [](const CombineProblem& p) {
                      return combine_matrix(p, [](int, int) { return kUntouched; });
                    }});
  for (const int width : {256, 512, 1024, 2048}) {
    add("M3-OUTCOLUMNS",
        "Only the first columns of out are written: each thread must go on to the next chunk.",
        [width](const CombineProblem& p) { return first_columns(oracle::combine(p), width); });
  }
  return models;
}

}  // namespace

const std::vector<MatrixModel<SiluProblem>>& silu_models() {
  static const auto models = make_silu_models();
  return models;
}
const std::vector<MatrixModel<WeightedProblem>>& weighted_models() {
  static const auto models = make_weighted_models();
  return models;
}
const std::vector<MatrixModel<CombineProblem>>& combine_models() {
  static const auto models = make_combine_models();
  return models;
}

}  // namespace moe::bugs
