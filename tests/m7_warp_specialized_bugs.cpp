#include "m7_warp_specialized_bugs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "m3_weighted_epilogue_oracle.h"

namespace moe::bugs {

using judge::kAnything;
using judge::kUntouched;
using judge::Matrix;
using judge::Mistake;
using oracle::dot;
using oracle::right_epilogue;
using oracle::right_sums;
using oracle::sorted_gemm;
using oracle::SortedProblem;

const Mistake kHeldTile = {
    "M7-HELD", "m7.mainloop", "mainloop",
    "Parts of the output were never stored: a held tile has kSlabs slabs, one is due in each of "
    "the first turns of the next tile, also where the reduction has fewer turns, and in the end."};
const Mistake kSortedNan = {
    "M7-NAN", "m7.gather", "gather",
    "NaN where every input is a number: what is no data was multiplied or added to. Chunks behind "
    "column D must arrive as zeros, descriptors must stay inside the tile, and the first product "
    "of a tile must overwrite."};
const Mistake kSortedNoEnd = {"M7-NOEND", "m7.gather_rows", "gather_rows",
                              "Rows at or behind num_tokens_post_padded were written."};
const Mistake kSortedNobody = {
    "M7-NOBODY", "m7.produce", "produce",
    "Rows of a block whose expert is outside [0, E) were written: such tiles get no stage."};
const Mistake kSortedFar = {"M7-INT32", "m7.gather_rows", "gather_rows",
                            "token * H does not fit 32 bits: form the offset in int64_t."};

namespace {

constexpr int kTileRows = 256;  // rows of W in a tile; in GEMM1 128 of gate, then 128 of up
constexpr int kTurn = 64;       // columns of the reduction in one stage

// ---- What meets what in the matrix instruction. Each function says where an operand is really
// read: a row of the table, a row of the W tile, columns of the reduction (any from D on are 0).
struct Access {
  std::function<int(int row, int d)> a_row = [](int row, int) { return row; };
  std::function<int(int tile_row)> w_row = [](int tile_row) { return tile_row; };
  std::function<int(int row, int d)> a_column = [](int, int d) { return d; };
  std::function<int(int d)> w_column = [](int d) { return d; };
  int first_column = 0;
  int end_column = std::numeric_limits<int>::max();
};

int turns_of(const SortedProblem& p) {
  return (p.depth() + kTurn - 1) / kTurn;
}

// The row of w[expert] that row `tile_row` of the W tile holds which has row `row_of_w` in it.
int other_row_of_w(const SortedProblem& p, int row_of_w, const Access& access) {
  const int columns = p.columns();
  const int in_tile = p.is_gemm1 ? kTileRows / 2 : kTileRows;
  const bool is_up = p.is_gemm1 && row_of_w >= columns;
  const int column = is_up ? row_of_w - columns : row_of_w;
  const int first = column / in_tile * in_tile;
  const int read = access.w_row(column - first + (is_up ? in_tile : 0));
  if (!p.is_gemm1 || read < in_tile) return first + read;
  return columns + first + read - in_tile;
}

// An element; 0 where there is none (behind an array TMA brings zeros, as the gather for padding).
double element(const SortedProblem& p,
               const std::vector<judge::Bf16>& values,
               int64_t row,
               int column) {
  const size_t index =
      static_cast<size_t>(row) * static_cast<size_t>(p.depth()) + static_cast<size_t>(column);
  const bool there = row >= 0 && column < p.depth() && index < values.size();
  return there ? static_cast<double>(judge::to_float(values[index])) : 0.0;
}

std::vector<double> read_a(const SortedProblem& p, int row, const Access& access) {
  std::vector<double> out;
  const int end = std::min(turns_of(p) * kTurn, access.end_column);
  for (int d = access.first_column; d < end; ++d) {
    const int from = access.a_row(row, d);
    const bool padding = p.is_gemm1 && (from >= p.capacity() || p.flat_id(from) >= p.num_ids());
    out.push_back(element(p, p.a, padding ? -1 : p.row_of_a(from), access.a_column(row, d)));
  }
  return out;
}

std::vector<double> read_w(const SortedProblem& p, int expert, int row_of_w, const Access& access) {
  std::vector<double> out;
  const int end = std::min(turns_of(p) * kTurn, access.end_column);
  const int64_t row = static_cast<int64_t>(expert) * p.rows_of_w() + row_of_w;
  for (int d = access.first_column; d < end; ++d) {
    out.push_back(element(p, p.w, row_of_w < p.rows_of_w() ? row : -1, access.w_column(d)));
  }
  return out;
}

Matrix with_access(const SortedProblem& p, const Access& access) {
  std::map<std::pair<int, int>, std::vector<double>> w_rows;
  std::map<int, std::vector<double>> a_rows;
  const auto sum = [&](int row, int row_of_w) {
    const int expert = p.expert_of(row);
    const int other = other_row_of_w(p, row_of_w, access);
    std::vector<double>& a = a_rows[row];
    if (a.empty()) a = read_a(p, row, access);
    std::vector<double>& w = w_rows[{expert, other}];
    if (w.empty()) w = read_w(p, expert, other, access);
    double total = 0.0;
    for (size_t d = 0; d < a.size(); ++d) total += a[d] * w[d];
    return total;
  };
  return sorted_gemm(p, sum, right_epilogue(p));
}

Matrix with_row_of_a(const SortedProblem& p, const std::function<int64_t(int row)>& row_of_a) {
  return sorted_gemm(
      p, [&](int row, int w) { return dot(p, row_of_a(row), p.expert_of(row), w); },
      right_epilogue(p));
}

Matrix with_epilogue(const SortedProblem& p, const oracle::Epilogue& epilogue) {
  return sorted_gemm(p, right_sums(p), epilogue);
}

// GEMM2 with another weight for each row of the table.
Matrix with_weight(const SortedProblem& p, const std::function<double(int row)>& weight) {
  if (p.is_gemm1) return sorted_gemm(p);
  return with_epilogue(p, [&](int row, double sum, double) { return sum * weight(row); });
}

double weight_of_row(const SortedProblem& p, int row) {
  const int flat_id = p.flat_id(row);
  return flat_id < p.num_ids() ? static_cast<double>(p.topk_weights[static_cast<size_t>(flat_id)])
                               : 0.0;
}

// The right values in other places: value(right, row, column) for each real row.
template <class Value>
Matrix moved(const SortedProblem& p, Value value) {
  const Matrix right = sorted_gemm(p);
  Matrix out = right;
  for (int row = 0; row < p.capacity(); ++row) {
    for (int column = 0; column < p.columns() && p.is_real(row); ++column) {
      out.values[static_cast<size_t>(row) * static_cast<size_t>(p.columns()) +
                 static_cast<size_t>(column)] = value(right, row, column);
    }
  }
  return out;
}

// The right value of another place. Padding gives 0 in GEMM1, and here NaN in GEMM2; columns behind
// the last are unknown.
double value_at(const SortedProblem& p, const Matrix& right, int row, int column) {
  if (column >= p.columns()) return kAnything;
  if (p.is_real(row)) return right.at(row, column);
  return p.is_gemm1 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
}

using Output = std::function<Matrix(const SortedProblem&)>;
using Add = std::function<void(
    const char* code, const char* region, const char* note, const char* sentence, Output output)>;

void add_operand_models(const Add& add) {
  add("M7-FLATROW", "m7.gather_rows", "gather_rows",
      "The row of x is flat_id; x has one row per token, so it is flat_id / top_k.",
      [](const SortedProblem& p) {
        return with_row_of_a(p,
                             [&](int row) -> int64_t { return p.is_gemm1 ? p.flat_id(row) : row; });
      });
  add("M7-LANE", "m7.gather_rows", "gather_rows",
      "A lane uses the row that it looked up for all eight rows: row my_row + 16 * i was looked "
      "up by lane i of its eight.",
      [](const SortedProblem& p) {
        Access access;
        if (p.is_gemm1) {
          access.a_row = [](int row, int d) { return row / 128 * 128 + row % 16 + d / 8 % 8 * 16; };
        }
        return with_access(p, access);
      });
  add("M7-HROW", "m7.produce", "produce",
      "The rows of h start at tile.x; a tile of 128 rows starts at tile.x * BLOCK_M.",
      [](const SortedProblem& p) {
        return with_row_of_a(p, [&](int row) -> int64_t {
          return p.is_gemm1 ? p.row_of_a(row)
                            : row / oracle::kSortedBlock + row % oracle::kSortedBlock;
        });
      });
  add("M7-EXPERT0", "m7.produce", "produce", "Every tile used the expert of the first block.",
      [](const SortedProblem& p) {
        return sorted_gemm(
            p,
            [&](int row, int w) {
              return dot(p, p.row_of_a(row), p.expert_ids[0] < 0 ? 0 : p.expert_ids[0], w);
            },
            right_epilogue(p));
      });
  add("M7-UPGATE", "m7.produce", "produce",
      "The up rows were loaded from the gate rows: up begins at row I of w13.",
      [](const SortedProblem& p) {
        Access access;
        if (p.is_gemm1) access.w_row = [](int row) { return row % (kTileRows / 2); };
        return with_access(p, access);
      });
  add("M7-UPNEXT", "m7.produce", "produce",
      "The second box follows the first: in GEMM1 it is up's, and up begins at row I of w13.",
      [](const SortedProblem& p) {
        return sorted_gemm(
            p,
            [&](int row, int w) {
              const int other = p.is_gemm1 && w >= p.columns() ? w - p.columns() + 128 : w;
              if (other >= p.rows_of_w()) return 0.0;
              return dot(p, p.row_of_a(row), p.expert_of(row), other);
            },
            right_epilogue(p));
      });
  add("M7-SECONDBOX", "m7.produce", "produce",
      "Both boxes of W have the same rows: in GEMM2 the second starts kWRows later.",
      [](const SortedProblem& p) {
        Access access;
        if (!p.is_gemm1) access.w_row = [](int row) { return row % 128; };
        return with_access(p, access);
      });
  add("M7-HALF", "m7.consume", "consume",
      "Both consumers multiplied the first 64 rows of A: consumer 1 starts at row 64.",
      [](const SortedProblem& p) {
        Access access;
        access.a_row = [](int row, int) { return row / 128 * 128 + row % 64; };
        return with_access(p, access);
      });
}

void add_layout_models(const Add& add) {
  add("M7-SWIZZLE", "m7.gather", "gather",
      "Chunks of A lie unswizzled: wgmma expects chunk c of row r at place c ^ (r % 8).",
      [](const SortedProblem& p) {
        Access access;
        if (p.is_gemm1) {
          access.a_column = [](int row, int d) { return d ^ (row % 8 * 8); };
        }
        return with_access(p, access);
      });
  for (const int which : {0, 1, 2}) {
    add("M7-KSTEP", "m7.consume", "consume",
        "The four products of a turn read the same 16 columns: the descriptors step by 32 bytes, "
        "2 in the word.",
        [which](const SortedProblem& p) {
          Access access;
          const auto first16 = [](int d) { return d / kTurn * kTurn + d % 16; };
          if (which != 1) access.a_column = [=](int, int d) { return first16(d); };
          if (which != 0) access.w_column = first16;
          return with_access(p, access);
        });
  }
  for (const int stride : {128, 256, 512}) {
    for (const bool of_w : {false, true}) {
      add("M7-STRIDE", "m7.consume", "consume",
          "The stride of a descriptor is wrong: from 8 rows to the next 8 it is 1024 bytes.",
          [=](const SortedProblem& p) {
            Access access;
            const auto row_at = [stride](int row) { return row / 8 * stride / 128 + row % 8; };
            if (of_w) {
              access.w_row = row_at;
            } else {
              access.a_row = [=](int row, int) { return row / 64 * 64 + row_at(row % 64); };
            }
            return with_access(p, access);
          });
    }
  }
  add("M7-DTAIL", "m7.mainloop", "mainloop",
      "The last terms of every sum are missing: the reduction has ceil(D / 64) turns.",
      [](const SortedProblem& p) {
        Access access;
        access.end_column = p.depth() / kTurn * kTurn;
        return with_access(p, access);
      });
  add("M7-FIRSTTURN", "m7.consume", "consume",
      "Only the last turn counts: every turn starts from zero. Only the first product of a tile "
      "overwrites.",
      [](const SortedProblem& p) {
        Access access;
        access.first_column = (turns_of(p) - 1) * kTurn;
        return with_access(p, access);
      });
  add("M7-OVERWRITE", "m7.consume", "consume",
      "Only the last 16 columns count: every product overwrites. Only the first of a tile may.",
      [](const SortedProblem& p) {
        Access access;
        access.first_column = turns_of(p) * kTurn - 16;
        return with_access(p, access);
      });
}

void add_epilogue_models(const Add& add) {
  const auto gemm1 = [&](const char* code, const char* region, const char* sentence,
                         double (*value)(double gate, double up)) {
    add(code, region, region + 3, sentence, [value](const SortedProblem& p) {
      if (!p.is_gemm1) return sorted_gemm(p);
      return with_epilogue(p, [value](int, double gate, double up) { return value(gate, up); });
    });
  };
  gemm1("M7-NOSILU", "m7.silu", "h is gate * up: SiLU is missing.",
        [](double gate, double up) { return gate * up; });
  gemm1("M7-SILU", "m7.silu", "e^-g is 2^(-g / ln 2): a factor of 1.4427 is missing.",
        [](double gate, double up) { return gate / (1.0 + std::exp2(-gate)) * up; });
  gemm1("M7-SILUONUP", "m7.pack", "SiLU belongs to gate, columns 0 to 127 of the product.",
        [](double gate, double up) { return gate * oracle::silu(up); });
  gemm1("M7-NOUP", "m7.pack", "h is silu(gate): the factor up is missing.",
        [](double gate, double) { return oracle::silu(gate); });
  const auto weight = [&](const char* code, const char* sentence,
                          std::function<double(const SortedProblem&, int row)> of_row) {
    add(code, "m7.pack", "pack", sentence, [of_row](const SortedProblem& p) {
      return with_weight(p, [&](int row) { return of_row(p, row); });
    });
  };
  weight("M7-NOWEIGHT", "The weights are not applied.",
         [](const SortedProblem&, int) { return 1.0; });
  using Other = int (*)(int row);
  for (const Other other :
       {Other([](int row) { return row & ~8; }), Other([](int row) { return row | 8; }),
        Other([](int row) { return row ^ 8; })}) {
    weight("M7-WEIGHTROW", "Row g has weights[0] and row g + 8 weights[1]; not so here.",
           [other](const SortedProblem& p, int row) { return weight_of_row(p, other(row)); });
  }
}

void add_store_models(const Add& add) {
  add("M7-SHORT", "m7.mainloop", "mainloop",
      "Zero where the reduction has one turn: what is due in turn 1 (here the weights) is due "
      "even where that turn does not exist.",
      [](const SortedProblem& p) {
        return moved(p, [&](const Matrix& right, int row, int column) {
          return p.is_gemm1 || turns_of(p) > 1 ? right.at(row, column) : 0.0;
        });
      });
  add("M7-NOTHING", "m7.next_tile", "next_tile",
      "The output was never written: do the consumers see the tile that the producer notes?",
      [](const SortedProblem& p) {
        return moved(p, [](const Matrix&, int, int) { return kUntouched; });
      });
  add("M7-STORESWIZZLE", "m7.store_slab", "store_slab",
      "Chunks of a slab lie unswizzled: TMA expects chunk c of row r at place c ^ (r % 8).",
      [](const SortedProblem& p) {
        return moved(p, [&](const Matrix& right, int row, int column) {
          return value_at(p, right, row, column ^ (row % 8 * 8));
        });
      });
  add("M7-PACKROWS", "m7.pack", "pack",
      "Rows g and g + 8 are exchanged: accumulators 4j and 4j + 1 belong to row g.",
      [](const SortedProblem& p) {
        return moved(p, [&](const Matrix& right, int row, int column) {
          return value_at(p, right, row ^ 8, column);
        });
      });
  add("M7-SLAB0", "m7.store_slab", "store_slab",
      "All slabs are stored in the first 64 columns of the tile: add 64 * slab.",
      [](const SortedProblem& p) {
        return moved(p, [&](const Matrix&, int, int column) {
          return column % (p.is_gemm1 ? 128 : 256) < 64 ? kAnything : kUntouched;
        });
      });
  add("M7-STOREROW", "m7.store_slab", "store_slab",
      "Both consumers store in the first 64 rows of the tile: consumer 1 starts at row 64.",
      [](const SortedProblem& p) {
        return moved(p, [&](const Matrix& right, int row, int column) {
          return row % 128 < 64 ? value_at(p, right, row + 64, column) : kUntouched;
        });
      });
  add("M7-ZERO", "m7.consume", "consume",
      "The output is zero everywhere: nothing was accumulated, or nothing was packed.",
      [](const SortedProblem& p) { return moved(p, [](const Matrix&, int, int) { return 0.0; }); });
}

std::vector<SortedModel> make_models() {
  std::vector<SortedModel> models;
  const Add add = [&](const char* code, const char* region, const char* note, const char* sentence,
                      Output output) {
    models.push_back({{code, region, note, sentence}, std::move(output)});
  };
  add_operand_models(add);
  add_layout_models(add);
  add_epilogue_models(add);
  add_store_models(add);
  return models;
}

}  // namespace

const std::vector<SortedModel>& sorted_models() {
  static const std::vector<SortedModel> models = make_models();
  return models;
}

}  // namespace moe::bugs
