#include "m2_grouped_gemm_bugs.h"

#include <algorithm>
#include <limits>

namespace moe::bugs {

using judge::kUntouched;
using judge::Matrix;
using oracle::GemmProblem;

const judge::Mistake kPadRowsStored = {
    "M2-PADSTORE", "m2.store", "store",
    "Padding rows are stored: flat id T*top_k is one row behind the end of out. Skip them."};
const judge::Mistake kColumnsSpill = {"M2-NSPILL", "m2.store", "store",
                                      "Columns at or behind N are stored and spill into the next "
                                      "row: mask the store with column < N."};
const judge::Mistake kOffset32 = {
    "M2-INT32", "m2.load", "load",
    "expert * N * D does not fit 32 bits: form the offset in int64_t."};
const judge::Mistake kNoEarlyExit = {"M2-NOEXIT", "m2.early_exit", "expert",
                                     "Blocks at or behind num_tokens_post_padded must return: they "
                                     "worked on what an older batch left in "
                                     "the tables."};
const judge::Mistake kPaddingRead = {
    "M2-PADREAD", "m2.load", "load",
    "A padding row is read: its pointer is null. Chunks of padding rows must arrive as zeros."};
const judge::Mistake kUninitialised = {
    "M2-NAN", "m2.mainloop", "mainloop",
    "NaN where every input is a number: shared memory is read before its copy has arrived, or a "
    "copy has landed in another buffer. Is a cp_async_wait or a __syncthreads missing, or are "
    "there copies for rows behind the tile (BLOCK_M = 16)?"};
const judge::Mistake kUnroutedRow = {"M2-UNROUTED", "m2.store", "store",
                                     "A row of out without a routed flat id was written."};

namespace {

// Fills a matrix value by value for the routed flat ids; the others stay untouched.
template <class Value>
Matrix for_routed(const GemmProblem& p, Value value) {
  Matrix out = {p.num_ids(), p.n, {}};
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    for (int column = 0; column < p.n; ++column) {
      out.values.push_back(p.routed(flat_id) ? value(flat_id, column) : kUntouched);
    }
  }
  return out;
}

int expert_of(const GemmProblem& p, int flat_id) {
  return p.topk_ids[static_cast<size_t>(flat_id)];
}

int row_of(const GemmProblem& p, int flat_id) {
  return p.rows_are_slots ? flat_id : flat_id / p.top_k;
}

Matrix with_rows(const GemmProblem& p, int64_t (*row)(const GemmProblem&, int)) {
  return for_routed(p, [&](int flat_id, int column) {
    return oracle::dot(p, row(p, flat_id), expert_of(p, flat_id), column, p.depth);
  });
}

Matrix with_expert(const GemmProblem& p, int (*expert)(const GemmProblem&, int)) {
  return for_routed(p, [&](int flat_id, int column) {
    const int e = expert(p, flat_id);
    return oracle::dot(p, row_of(p, flat_id), std::clamp(e, p.first_expert, p.num_experts - 1),
                       column, p.depth);
  });
}

// Row r of the output is what belongs to the flat id in row r of the sorted table.
Matrix stored_in_sorted_order(const GemmProblem& p) {
  Matrix out = {
      p.num_ids(), p.n,
      std::vector<double>(static_cast<size_t>(p.num_ids()) * static_cast<size_t>(p.n), kUntouched)};
  for (int row = 0; row < std::min(p.num_tokens_post_padded, p.num_ids()); ++row) {
    const int flat_id = p.sorted_token_ids[static_cast<size_t>(row)];
    if (flat_id >= p.num_ids()) continue;
    for (int column = 0; column < p.n; ++column) {
      out.values[static_cast<size_t>(row) * static_cast<size_t>(p.n) +
                 static_cast<size_t>(column)] =
          oracle::dot(p, row_of(p, flat_id), expert_of(p, flat_id), column, p.depth);
    }
  }
  return out;
}

Matrix depth_tail_dropped(const GemmProblem& p, int block_k) {
  return for_routed(p, [&](int flat_id, int column) {
    return oracle::dot(p, row_of(p, flat_id), expert_of(p, flat_id), column,
                       p.depth / block_k * block_k);
  });
}

Matrix column_tail_dropped(const GemmProblem& p, int block_n) {
  return for_routed(p, [&](int flat_id, int column) {
    if (column >= p.n / block_n * block_n) return kUntouched;
    return oracle::dot(p, row_of(p, flat_id), expert_of(p, flat_id), column, p.depth);
  });
}

// w read as if it were [E, D, N].
Matrix weights_transposed(const GemmProblem& p) {
  return for_routed(p, [&](int flat_id, int column) {
    const size_t slab = static_cast<size_t>(p.n) * static_cast<size_t>(p.depth);
    const auto* w = p.w.data() + static_cast<size_t>(expert_of(p, flat_id) - p.first_expert) * slab;
    const auto* a =
        p.a.data() + static_cast<size_t>(row_of(p, flat_id)) * static_cast<size_t>(p.depth);
    double sum = 0.0;
    for (int d = 0; d < p.depth; ++d) {
      sum +=
          static_cast<double>(judge::to_float(a[d])) *
          static_cast<double>(judge::to_float(
              w[static_cast<size_t>(d) * static_cast<size_t>(p.n) + static_cast<size_t>(column)]));
    }
    return sum;
  });
}

// Nothing masked at D: the last tile of the reduction reads on into what follows in memory.
Matrix depth_not_masked(const GemmProblem& p, int block_k) {
  const auto element = [](const std::vector<judge::Bf16>& values, size_t index) {
    return index < values.size() ? static_cast<double>(judge::to_float(values[index]))
                                 : std::numeric_limits<double>::quiet_NaN();
  };
  const int end = (p.depth + block_k - 1) / block_k * block_k;
  return for_routed(p, [&](int flat_id, int column) {
    const auto depth = static_cast<size_t>(p.depth);
    const size_t a = static_cast<size_t>(row_of(p, flat_id)) * depth;
    const size_t w =
        (static_cast<size_t>(expert_of(p, flat_id) - p.first_expert) * static_cast<size_t>(p.n) +
         static_cast<size_t>(column)) *
        depth;
    double sum = 0.0;
    for (size_t d = 0; d < static_cast<size_t>(end); ++d) {
      sum += element(p.a, a + d) * element(p.w, w + d);
    }
    return sum;
  });
}

// The last valid row of each block stays as it was.
Matrix last_row_missing(const GemmProblem& p) {
  Matrix out = oracle::grouped_gemm(p);
  for (int first = 0; first < p.num_tokens_post_padded; first += p.block_m) {
    for (int row = first + p.block_m - 1; row >= first; --row) {
      const int flat_id = p.sorted_token_ids[static_cast<size_t>(row)];
      if (flat_id >= p.num_ids()) continue;
      for (int column = 0; column < p.n; ++column) {
        out.values[static_cast<size_t>(flat_id) * static_cast<size_t>(p.n) +
                   static_cast<size_t>(column)] = kUntouched;
      }
      break;
    }
  }
  return out;
}

// A product whose terms and running sum can be tampered with.
template <class Term, class After>
Matrix with_terms(const GemmProblem& p, Term term, After after) {
  return for_routed(p, [&](int flat_id, int column) {
    const auto depth = static_cast<size_t>(p.depth);
    const size_t a = static_cast<size_t>(row_of(p, flat_id)) * depth;
    const size_t w =
        (static_cast<size_t>(expert_of(p, flat_id) - p.first_expert) * static_cast<size_t>(p.n) +
         static_cast<size_t>(column)) *
        depth;
    double sum = 0.0;
    for (size_t d = 0; d < depth; ++d) {
      const size_t other = term(d);
      const double w_value =
          other < depth ? static_cast<double>(judge::to_float(p.w[w + other])) : 0.0;
      sum = after(sum + static_cast<double>(judge::to_float(p.a[a + d])) * w_value, d + 1);
    }
    return sum;
  });
}

Matrix bf16_accumulator(const GemmProblem& p, size_t step) {
  return with_terms(
      p, [](size_t d) { return d; },
      [step, depth = static_cast<size_t>(p.depth)](double sum, size_t done) {
        const bool round = done % step == 0 || done == depth;
        return round ? static_cast<double>(judge::to_float(judge::to_bf16(sum))) : sum;
      });
}

// Of every 16 terms of W the first 8 meet the last 8 of A.
Matrix b_halves_swapped(const GemmProblem& p) {
  return with_terms(
      p, [](size_t d) { return d ^ 8; }, [](double sum, size_t) { return sum; });
}

Matrix cut_off(const GemmProblem& p) {
  Matrix out = oracle::grouped_gemm(p);
  for (double& value : out.values) {
    if (value == kUntouched) continue;
    value =
        static_cast<double>(judge::to_float(static_cast<judge::Bf16>(judge::to_fp32(value) >> 16)));
  }
  return out;
}

int first_block_expert(const GemmProblem& p, int /*flat_id*/) {
  return p.expert_ids.empty() ? 0 : p.expert_ids[0];
}

std::vector<GemmModel> make_models() {
  std::vector<GemmModel> models;
  const auto add = [&](const char* code, const char* region, const char* note, const char* sentence,
                       std::function<Matrix(const GemmProblem&)> output) {
    models.push_back({{code, region, note, sentence}, std::move(output)});
  };
  add("M2-ZERO", "m2.multiply", "mainloop",
      "The output is zero everywhere: nothing was accumulated.",
      [](const GemmProblem& p) { return for_routed(p, [](int, int) { return 0.0; }); });
  add("M2-NOTHING", "m2.store", "store", "out was never written.",
      [](const GemmProblem& p) { return for_routed(p, [](int, int) { return kUntouched; }); });
  add("M2-FLATROW", "m2.gather", "gather",
      "GEMM1 used flat_id as the row of x; x has one row per token, so the row is flat_id / top_k.",
      [](const GemmProblem& p) {
        return with_rows(p, [](const GemmProblem& q, int flat_id) -> int64_t {
          return q.rows_are_slots ? row_of(q, flat_id) : flat_id;
        });
      });
  add("M2-SLOT0", "m2.gather", "gather",
      "GEMM2 used flat_id / top_k as the row of h; h has one row per (token, slot), so the row is "
      "flat_id itself. Now every slot reads another token's rows.",
      [](const GemmProblem& p) {
        return with_rows(
            p, [](const GemmProblem& q, int flat_id) -> int64_t { return flat_id / q.top_k; });
      });
  add("M2-SLOT0-OF-TOKEN", "m2.gather", "gather",
      "GEMM2 read slot 0 of the token for every slot; the row of h is flat_id itself.",
      [](const GemmProblem& p) {
        return with_rows(p, [](const GemmProblem& q, int flat_id) -> int64_t {
          return q.rows_are_slots ? flat_id / q.top_k * q.top_k : row_of(q, flat_id);
        });
      });
  add("M2-MODROW", "m2.gather", "gather",
      "The row is flat_id % T; ids are token * top_k + slot, so divide by top_k, do not take a "
      "remainder.",
      [](const GemmProblem& p) {
        return with_rows(p, [](const GemmProblem& q, int flat_id) -> int64_t {
          return q.rows_are_slots ? row_of(q, flat_id) : flat_id % q.num_tokens;
        });
      });
  add("M2-SORTEDSTORE", "m2.store", "store",
      "The rows are right but stored in sorted order; row flat_id of out is where each belongs.",
      stored_in_sorted_order);
  add("M2-EXPERT0", "m2.early_exit", "expert",
      "Every block used the expert of the first block: read expert_ids[pid_m], one for each M "
      "block.",
      [](const GemmProblem& p) { return with_expert(p, first_block_expert); });
  add("M2-EXPERT-ZERO", "m2.early_exit", "expert",
      "Every block used expert 0: read expert_ids[pid_m], one for each M block.",
      [](const GemmProblem& p) {
        return with_expert(p, [](const GemmProblem&, int) { return 0; });
      });
  add("M2-EXPERTNEXT", "m2.early_exit", "expert", "Each block used the expert after its own.",
      [](const GemmProblem& p) {
        return with_expert(
            p, [](const GemmProblem& q, int flat_id) { return expert_of(q, flat_id) + 1; });
      });
  for (const int block_k : {16, 32, 64, 128}) {
    add("M2-DTAIL", "m2.mainloop", "mainloop",
        "The last terms of every sum are missing: the reduction stops at the last whole tile of D.",
        [block_k](const GemmProblem& p) { return depth_tail_dropped(p, block_k); });
  }
  for (const int block_k : {16, 32, 64}) {
    add("M2-DEPTHMASK", "m2.load", "load",
        "Columns at or behind D are not masked: the last tile reads on into the next row.",
        [block_k](const GemmProblem& p) { return depth_not_masked(p, block_k); });
  }
  for (const int block_n : {16, 32, 64, 128}) {
    add("M2-NTAIL", "m2.store", "store",
        "The last columns are never written: round the number of column tiles up and mask with "
        "column "
        "< N.",
        [block_n](const GemmProblem& p) { return column_tail_dropped(p, block_n); });
  }
  for (const size_t step : {16u, 32u, 64u}) {
    add("M2-BF16SUM", "m2.mainloop", "mainloop",
        "The running sum is rounded to bf16: keep it in fp32 and round once, at the end.",
        [step](const GemmProblem& p) { return bf16_accumulator(p, step); });
  }
  add("M2-BHALVES", "m2.multiply", "mainloop",
      "The two registers of a B fragment are exchanged: the first holds k = 0 .. 7 of 16.",
      b_halves_swapped);
  add("M2-CUTOFF", "m2.store", "store",
      "Sums are cut off to bf16: round to the nearest, as the _rn conversions do.", cut_off);
  add("M2-WLAYOUT", "m2.load", "load",
      "w is read as [E, D, N]; it is stored [E, N, D], like the weight of a PyTorch Linear.",
      weights_transposed);
  add("M2-LASTROW", "m2.store", "store", "The last valid row of each block is missing.",
      last_row_missing);
  return models;
}

}  // namespace

Matrix from_stale_tail(const GemmProblem& p) {
  return with_expert(p, [](const GemmProblem& q, int) { return q.topk_ids[0]; });
}

const std::vector<GemmModel>& gemm_models() {
  static const std::vector<GemmModel> models = make_models();
  return models;
}

}  // namespace moe::bugs
