#include "m5_block_fp8_bugs.h"

#include <algorithm>
#include <cmath>

namespace moe::bugs {

using judge::kUntouched;
using judge::Matrix;
using oracle::Fp8GemmProblem;
using oracle::Partials;

const judge::Mistake kFp8PadRowsStored = {
    "M5-PADSTORE", "m5.store", "store",
    "Padding rows are stored: flat id T*top_k is one row behind the end of out. Skip them."};
const judge::Mistake kFp8ColumnsSpill = {"M5-NSPILL", "m5.store", "store",
                                         "Columns at or behind N are stored and spill into the "
                                         "next row: mask the store with column < N."};
const judge::Mistake kFp8Unrouted = {"M5-UNROUTED", "m5.store", "store",
                                     "A row of out without a routed flat id was written."};
const judge::Mistake kFp8NanLost = {
    "M5-NAN-LOST", "m5.multiply", "multiply",
    "A NaN code (0x7f) among the operands of a row gave a number: NaN must stay NaN."};
const judge::Mistake kFp8Uninitialised = {"M5-NAN", "m5.multiply", "multiply",
                                          "NaN where every operand is a number: something is read "
                                          "that is no operand, or before it arrived."};
const judge::Mistake kFp8Offset32 = {"M5-INT32", "m5.scales", "scales",
                                     "An offset does not fit 32 bits: form it in int64_t."};
namespace {

using judge::from_e4m3;
using judge::from_e5m2;
double right_a(const Fp8GemmProblem& p, int flat_id, int block) {
  return a_scale_at(p, a_scale_index(p, p.row_of(flat_id), block));
}
double right_w(const Fp8GemmProblem& p, int flat_id, int column, int block) {
  return w_scale_at(p, w_scale_index(p, p.expert_of(flat_id), column, block));
}
double given_weight(const Fp8GemmProblem& p, int index) {
  if (p.topk_weights.empty()) return 1.0;
  return static_cast<double>(p.topk_weights[static_cast<size_t>(index)]);
}

// The GEMM with its steps open.
struct Terms {
  oracle::Decoder decode_a = from_e4m3;
  oracle::Decoder decode_w = from_e4m3;
  std::function<double(const Fp8GemmProblem&, int flat_id, int block)> a_scale = right_a;
  std::function<double(const Fp8GemmProblem&, int flat_id, int column, int block)> w_scale =
      right_w;
  std::function<double(const Fp8GemmProblem&, int flat_id)> weight = given_weight;
  // The total after one more block.
  std::function<double(double total, double partial, double scale)> add =
      [](double total, double partial, double scale) { return total + partial * scale; };
  bool keep_partial = false;  // the partial sum runs on
  bool scale_last = false;    // and only the last block's scale is applied
  bool drop_tail = false;     // of D
};

Matrix gemm_with(const Fp8GemmProblem& p, const Terms& terms) {
  const Partials partials = oracle::partial_sums(p, terms.decode_a, terms.decode_w);
  const int blocks = terms.drop_tail ? p.depth / 128 : p.k_blocks();
  Matrix out = {p.num_ids(), p.n, {}};
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    for (int column = 0; column < p.n; ++column) {
      if (!p.routed(flat_id)) {
        out.values.push_back(kUntouched);
        continue;
      }
      double total = 0.0;
      double partial = 0.0;
      for (int block = 0; block < blocks; ++block) {
        const double scale =
            terms.a_scale(p, flat_id, block) * terms.w_scale(p, flat_id, column, block);
        partial = partials.at(flat_id, column, block) + (terms.keep_partial ? partial : 0.0);
        if (terms.scale_last && block + 1 < blocks) continue;
        total = terms.add(total, partial, scale);
      }
      out.values.push_back(total * terms.weight(p, flat_id));
    }
  }
  return out;
}

class GemmModels {
 public:
  void add(judge::Mistake mistake, std::function<Matrix(const Fp8GemmProblem&)> output) {
    models.push_back({mistake, std::move(output)});
  }
  // One mistake, in any of the forms that it takes.
  void terms(judge::Mistake mistake, const std::vector<std::function<void(Terms&)>>& changes) {
    for (const auto& change : changes) {
      Terms changed;
      change(changed);
      add(mistake, [changed](const Fp8GemmProblem& p) { return gemm_with(p, changed); });
    }
  }
  std::vector<Fp8GemmModel> models;
};

double up_to_power(double scale) {
  return oracle::power_of_two_at_least(static_cast<float>(scale));
}
double to_bf16(double value) {
  return judge::to_float(judge::to_bf16(value));
}

using Change = std::function<void(Terms&)>;

Change a_block(int (*which)(const Fp8GemmProblem&, int block)) {
  return [which](Terms& t) {
    t.a_scale = [which](const Fp8GemmProblem& p, int flat_id, int block) {
      return right_a(p, flat_id, which(p, block));
    };
  };
}
Change w_block(int (*which)(const Fp8GemmProblem&, int block)) {
  return [which](Terms& t) {
    t.w_scale = [which](const Fp8GemmProblem& p, int flat_id, int column, int block) {
      return right_w(p, flat_id, column, which(p, block));
    };
  };
}
Change a_row(int64_t (*row)(const Fp8GemmProblem&, int flat_id)) {
  return [row](Terms& t) {
    t.a_scale = [row](const Fp8GemmProblem& p, int flat_id, int block) {
      return a_scale_at(p, a_scale_index(p, row(p, flat_id), block));
    };
  };
}
Change a_scale_by(double (*change)(double)) {
  return [change](Terms& t) {
    t.a_scale = [change](const Fp8GemmProblem& p, int flat_id, int block) {
      return change(right_a(p, flat_id, block));
    };
  };
}
Change w_scale_by(double (*change)(double)) {
  return [change](Terms& t) {
    t.w_scale = [change](const Fp8GemmProblem& p, int flat_id, int column, int block) {
      return change(right_w(p, flat_id, column, block));
    };
  };
}
Change weight_of(double (*weight)(const Fp8GemmProblem&, int flat_id)) {
  return [weight](Terms& t) { t.weight = weight; };
}
// The mistake in A's scales, in W's, and in both.
std::vector<Change> blocks(int (*which)(const Fp8GemmProblem&, int block)) {
  const Change a = a_block(which);
  const Change w = w_block(which);
  return {a, w, [a, w](Terms& t) { a(t), w(t); }};
}

int first_block(const Fp8GemmProblem&, int) {
  return 0;
}
int block_before(const Fp8GemmProblem&, int block) {
  return block - 1;
}
int block_before_or_first(const Fp8GemmProblem&, int block) {
  return std::max(block - 1, 0);
}
int block_after(const Fp8GemmProblem&, int block) {
  return block + 1;
}
int block_after_or_last(const Fp8GemmProblem& p, int block) {
  return std::min(block + 1, p.k_blocks() - 1);
}
// A partial block has no scale of its own.
int whole_blocks(const Fp8GemmProblem& p, int block) {
  return std::max(0, std::min(block, p.depth / 128 - 1));
}

int64_t sorted_row_of(const Fp8GemmProblem& p, int flat_id) {
  const auto found = std::find(p.sorted_token_ids.begin(), p.sorted_token_ids.end(), flat_id);
  return found - p.sorted_token_ids.begin();
}

void add_block_models(GemmModels& m) {
  m.terms({"M5-SCALES0", "m5.scales", "scales",
           "The scales never move: every 128 of D have their own, in A and in W."},
          {blocks(first_block).back()});
  m.terms({"M5-ASCALE0", "m5.scales", "scales", "Read a new A scale for every 128 of D."},
          {a_block(first_block)});
  m.terms({"M5-WSCALE0", "m5.scales", "scales", "Read a new W scale for every 128 of D."},
          {w_block(first_block)});
  for (const auto which : {block_before, block_before_or_first}) {
    m.terms({"M5-SCALE-LATE", "m5.promote", "promote",
             "Scales are one block of D late: partial sum b needs scale b."},
            blocks(which));
  }
  for (const auto which : {block_after, block_after_or_last}) {
    m.terms({"M5-SCALE-EARLY", "m5.promote", "promote",
             "Scales are one block of D early: partial sum b needs scale b."},
            blocks(which));
  }
  m.terms(
      {"M5-TAILSCALE", "m5.scales", "scales", "The last, partial block of D has its own scale."},
      blocks(whole_blocks));
}

void add_a_scale_models(GemmModels& m) {
  m.terms({"M5-ASCALE-FLAT", "m5.scale_rows", "scale-rows",
           "In GEMM1 A scales belong to tokens, as the rows of A do: divide the flat id by top_k."},
          {a_row([](const Fp8GemmProblem&, int flat_id) -> int64_t { return flat_id; })});
  m.terms(
      {"M5-ASCALE-TOKEN", "m5.scale_rows", "scale-rows",
       "In GEMM2 A scales belong to (token, slot): the row is the flat id itself."},
      {a_row([](const Fp8GemmProblem& p, int flat_id) -> int64_t { return flat_id / p.top_k; })});
  m.terms({"M5-ASCALE-SORTED", "m5.scale_rows", "scale-rows",
           "A scales are read by the row of the table; they belong to rows of A."},
          {a_row(sorted_row_of)});
  m.terms({"M5-NOASCALE", "m5.scales", "scales", "The A scale is not applied."},
          {a_scale_by([](double) { return 1.0; })});
  m.terms({"M5-ASCALE-TWICE", "m5.promote", "promote", "The A scale is applied twice."},
          {a_scale_by([](double scale) { return scale * scale; })});
  m.terms({"M5-ASCALE-LAYOUT", "m5.scales", "scales",
           "a_scales is read as [blocks][rows]; it is [rows][ceil(D/128)]."},
          {[](Terms& t) {
            t.a_scale = [](const Fp8GemmProblem& p, int flat_id, int block) {
              return a_scale_at(p, static_cast<int64_t>(block) * p.rows_of_a() + p.row_of(flat_id));
            };
          }});
  m.terms({"M5-ASCALE-STRIDE", "m5.scales", "scales",
           "A row of a_scales has ceil(D/128) scales: round up."},
          {[](Terms& t) {
            t.a_scale = [](const Fp8GemmProblem& p, int flat_id, int block) {
              return a_scale_at(p,
                                static_cast<int64_t>(p.row_of(flat_id)) * (p.depth / 128) + block);
            };
          }});
}

Change w_index(int64_t (*index)(const Fp8GemmProblem&, int expert, int column, int block)) {
  return [index](Terms& t) {
    t.w_scale = [index](const Fp8GemmProblem& p, int flat_id, int column, int block) {
      return w_scale_at(p, index(p, p.expert_of(flat_id) - p.first_expert, column, block));
    };
  };
}

void add_w_scale_models(GemmModels& m) {
  m.terms({"M5-NOWSCALE", "m5.scales", "scales", "The W scale is not applied."},
          {w_scale_by([](double) { return 1.0; })});
  m.terms({"M5-WSCALE-TWICE", "m5.promote", "promote", "The W scale is applied twice."},
          {w_scale_by([](double scale) { return scale * scale; })});
  m.terms({"M5-WSCALE-LAYOUT", "m5.scales", "scales",
           "w_scales is read as [k blocks][n blocks]; it is [ceil(N/128)][ceil(D/128)]."},
          {w_index([](const Fp8GemmProblem& p, int expert, int column, int block) -> int64_t {
            return (static_cast<int64_t>(expert) * p.k_blocks() + block) * p.n_blocks() +
                   column / 128;
          })});
  m.terms({"M5-WSCALE-STRIDE", "m5.scales", "scales",
           "An expert has ceil(N/128) rows of ceil(D/128) scales: round both up."},
          {w_index([](const Fp8GemmProblem& p, int expert, int column, int block) -> int64_t {
             return (static_cast<int64_t>(expert) * (p.n / 128) + column / 128) * p.k_blocks() +
                    block;
           }),
           w_index([](const Fp8GemmProblem& p, int expert, int column, int block) -> int64_t {
             const int64_t tile = static_cast<int64_t>(expert) * p.n_blocks() + column / 128;
             return tile * (p.depth / 128) + block;
           })});
  m.terms({"M5-WSCALE-COLUMN0", "m5.scales", "scales",
           "Every range of 128 columns has W scales of its own; here all use those of the first."},
          {w_index([](const Fp8GemmProblem& p, int expert, int, int block) -> int64_t {
            return static_cast<int64_t>(expert) * p.n_blocks() * p.k_blocks() + block;
          })});
  m.terms(
      {"M5-WSCALE-EXPERT0", "m5.scales", "scales", "The W scales are those of the first expert."},
      {w_index([](const Fp8GemmProblem& p, int, int column, int block) -> int64_t {
        return static_cast<int64_t>(column / 128) * p.k_blocks() + block;
      })});
  m.terms(
      {"M5-SEAM", "m5.scales", "scales",
       "Blocks of W scales count from row 0 of the expert, not anew at the seam of gate and up."},
      {w_index([](const Fp8GemmProblem& p, int expert, int column, int block) -> int64_t {
        const int half = p.n / 2;
        const int row = column < half ? column / 128 : (half + 127) / 128 + (column - half) / 128;
        const int64_t tile = static_cast<int64_t>(expert) * p.n_blocks() + row;
        return tile * p.k_blocks() + block;
      })});
  // As long as all rows of tiles are one group, program pid computes row pid % num_pid_m of tiles.
  m.terms({"M5-WSCALE-PID", "m5.scales", "scales",
           "The columns of the W scales come from the program's number, not from the tile it "
           "computes."},
          {[](Terms& t) {
            t.w_scale = [](const Fp8GemmProblem& p, int flat_id, int column, int block) {
              const int num_pid_m = p.num_tokens_post_padded / p.block_m;
              const int64_t pid = column / 128 * num_pid_m + sorted_row_of(p, flat_id) / p.block_m;
              return right_w(p, flat_id, static_cast<int>(pid % p.n_blocks()) * 128, block);
            };
          }});
  m.terms(
      {"M5-NTAILSCALE", "m5.scales", "scales", "The last, partial block of N has its own scale."},
      {w_index([](const Fp8GemmProblem& p, int expert, int column, int block) -> int64_t {
        const int row = std::max(0, std::min(column / 128, p.n / 128 - 1));
        return (static_cast<int64_t>(expert) * p.n_blocks() + row) * p.k_blocks() + block;
      })});
}

void add_sum_models(GemmModels& m) {
  m.terms({"M5-SCALE-POW2", "m5.scales", "scales", "Scales are fp32; keep their fraction."},
          {a_scale_by(up_to_power), w_scale_by(up_to_power)});
  m.terms({"M5-SCALE-BF16", "m5.scales", "scales", "Scales are fp32; do not round them to bf16."},
          {a_scale_by(to_bf16)});
  m.terms({"M5-BF16SUM", "m5.promote", "promote",
           "Add up the scaled partial sums in fp32, not in bf16."},
          {[](Terms& t) {
            t.add = [](double total, double partial, double scale) {
              return to_bf16(total + partial * scale);
            };
          }});
  m.terms({"M5-KEPT", "m5.promote", "promote",
           "The partial sum is not cleared: each block is added again with the scales of all later "
           "ones."},
          {[](Terms& t) { t.keep_partial = true; }});
  m.terms({"M5-LASTSCALE", "m5.promote", "promote",
           "The sum over all of D is scaled once, with the last block's scales: scale every 128 "
           "apart."},
          {[](Terms& t) { t.keep_partial = t.scale_last = true; }});
  m.terms({"M5-REPLACED", "m5.promote", "promote",
           "Only the last block of D is left: add, do not assign."},
          {[](Terms& t) { t.scale_last = true; }});
  m.terms({"M5-DTAIL", "m5.promote", "promote",
           "The last, partial block of D is missing: round the number of blocks up."},
          {[](Terms& t) { t.drop_tail = true; }});
  m.terms({"M5-E5M2", "m5.multiply", "multiply", "Operands are e4m3; they are read as e5m2."},
          {[](Terms& t) { t.decode_a = t.decode_w = from_e5m2; },
           [](Terms& t) { t.decode_a = from_e5m2; }, [](Terms& t) { t.decode_w = from_e5m2; }});
}

void add_store_models(GemmModels& m) {
  m.terms({"M5-NOWEIGHT", "m5.store", "store", "The routing weight is not applied."},
          {weight_of([](const Fp8GemmProblem&, int) { return 1.0; })});
  m.terms({"M5-WEIGHT-TWICE", "m5.store", "store", "The routing weight is applied twice."},
          {weight_of([](const Fp8GemmProblem& p, int flat_id) {
            return given_weight(p, flat_id) * given_weight(p, flat_id);
          })});
  m.terms({"M5-WEIGHT-TOKEN", "m5.store", "store",
           "Weights are in (token, slot) order: index with the flat id, not with the token."},
          {weight_of([](const Fp8GemmProblem& p, int flat_id) {
             return given_weight(p, flat_id / p.top_k);
           }),
           weight_of([](const Fp8GemmProblem& p, int flat_id) {
             return given_weight(p, flat_id / p.top_k * p.top_k);
           })});
  m.terms({"M5-WEIGHT-SORTED", "m5.store", "store",
           "Weights are in (token, slot) order; here they are read by the row of the table."},
          {weight_of([](const Fp8GemmProblem& p, int flat_id) {
            const auto row = static_cast<int>(sorted_row_of(p, flat_id));
            return row < p.num_ids() ? given_weight(p, row) : std::nan("");
          })});
  m.add({"M5-FP32-ROUNDED", "m5.store", "store",
         "With out_fp32 the sum is stored as it is, not rounded to bf16."},
        [](const Fp8GemmProblem& p) {
          Matrix out = gemm_with(p, {});
          for (double& value : out.values) value = value == kUntouched ? value : to_bf16(value);
          return out;
        });
  m.add(
      {"M5-SORTEDSTORE", "m5.store", "store",
       "The rows are right but stored in sorted order; row flat_id of out is where each belongs."},
      [](const Fp8GemmProblem& p) {
        const Matrix right = gemm_with(p, {});
        const auto n = static_cast<size_t>(p.n);
        Matrix out = {right.rows, p.n, std::vector<double>(right.values.size(), kUntouched)};
        for (int row = 0; row < std::min(p.num_tokens_post_padded, p.num_ids()); ++row) {
          const auto flat_id = static_cast<size_t>(p.sorted_token_ids[static_cast<size_t>(row)]);
          if (flat_id >= static_cast<size_t>(p.num_ids())) continue;
          std::copy_n(&right.values[flat_id * n], n, &out.values[static_cast<size_t>(row) * n]);
        }
        return out;
      });
  m.terms(
      {"M5-ZERO", "m5.promote", "promote", "The output is zero everywhere: nothing was added up."},
      {[](Terms& t) { t.add = [](double, double, double) { return 0.0; }; }});
  m.add({"M5-NOTHING", "m5.store", "store", "out was never written."}, [](const Fp8GemmProblem& p) {
    Matrix out = gemm_with(p, {});
    std::fill(out.values.begin(), out.values.end(), kUntouched);
    return out;
  });
}

}  // namespace

const std::vector<Fp8GemmModel>& fp8_gemm_models() {
  static const std::vector<Fp8GemmModel> models = [] {
    GemmModels m;
    add_block_models(m);
    add_a_scale_models(m);
    add_w_scale_models(m);
    add_sum_models(m);
    add_store_models(m);
    return m.models;
  }();
  return models;
}

}  // namespace moe::bugs
