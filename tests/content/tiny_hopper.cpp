#include "content/tiny_hopper.h"

#include <array>
#include <vector>

#include "content/tiny_tables.h"
#include "judge/bf16.h"
#include "m6_wgmma_oracle.h"
#include "m7_warp_specialized_oracle.h"
#include "m8_persistent_oracle.h"

namespace moe::content {
namespace {

// ---- m6

constexpr int kChunks = oracle::kTileDepth / oracle::kChunkValues;  // of a row of a tile

// Which chunk lies at each place of a row of a swizzled tile, for the real rows of block 0, the
// last row of a group of eight and the first of the next.
std::string m6_swizzle() {
  const std::vector<int> ids = ids_of(0);
  Grid grid(13, 3);
  grid.row("place", cells(kChunks, [](int place) { return number(place); }));
  const auto add_row = [&](int row, const std::string& remark) {
    grid.row("row " + number(row),
             cells(kChunks, [&](int place) { return number(place ^ row % 8); }), remark);
  };
  for (int row = 0; row < int(ids.size()); ++row) {
    add_row(row, "  x row " + number(ids[size_t(row)] / kTopK) + ", flat id " +
                     number(ids[size_t(row)]));
  }
  add_row(int(ids.size()), "  the first row of zeros");
  add_row(7, "");
  add_row(8, "  over again");
  return grid.text();
}

// ---- m7

// m2's x and gate rows, an up row and a row of w2 for each expert, H = 2 and I = 1.
oracle::SortedProblem m7_problem(bool is_gemm1) {
  const oracle::GemmProblem gate = tiny_gemm(oracle::kSortedBlock);
  const std::array<float, 6> up{0, 1, 1, 0, 1, 1};
  const std::array<float, 6> w2{1, 0, 2, 0, -1, 0};
  oracle::SortedProblem p;
  p.is_gemm1 = is_gemm1;
  p.num_tokens = kTokens;
  p.top_k = kTopK;
  p.num_experts = kExperts;
  p.hidden_size = 2;
  p.intermediate_size = 1;
  p.topk_ids = kTopKIds;
  p.sorted_token_ids = gate.sorted_token_ids;
  p.expert_ids = gate.expert_ids;
  p.num_tokens_post_padded = gate.num_tokens_post_padded;
  for (int id = 0; id < kIds; ++id) p.topk_weights.push_back(id % kTopK == 0 ? 0.75f : 0.25f);
  if (!is_gemm1) {
    for (const float value : w2) p.w.push_back(judge::to_bf16(value));
    return p;
  }
  p.a = gate.a;
  for (int e = 0; e < kExperts; ++e) {
    p.w.insert(p.w.end(), gate.w.begin() + 2 * e, gate.w.begin() + 2 * e + 2);
    p.w.push_back(judge::to_bf16(up[size_t(2 * e)]));
    p.w.push_back(judge::to_bf16(up[size_t(2 * e) + 1]));
  }
  return p;
}

std::string m7_rows() {
  Grid grid(24, 20);
  add_table(grid, oracle::kSortedBlock);
  const auto numbered = [](int expert) {
    std::string text;
    for (int i = 0; i < int(ids_of(expert).size()); ++i) {
      text += number(expert * oracle::kSortedBlock + i) + " ";
    }
    return text + "..";
  };
  // Every expert has one block here, so expert e's rows start at e blocks.
  grid.row("row p of h and y", cells(kExperts, numbered));
  grid.row("belongs to flat id", rows_by_expert([](int id) { return id; }));
  grid.row("row of x (GEMM1)", rows_by_expert([](int id) { return id / kTopK; }));
  grid.row("rows of padding", cells(kExperts, [](int e) {
             return number(double(oracle::kSortedBlock) - double(ids_of(e).size()));
           }));
  return grid.text();
}

std::string m7_sums() {
  const oracle::SortedProblem gemm1 = m7_problem(true);
  const judge::Matrix h = oracle::sorted_gemm(gemm1);
  oracle::SortedProblem gemm2 = m7_problem(false);
  for (const double value : h.values) gemm2.a.push_back(judge::to_bf16(value));
  const judge::Matrix y = oracle::sorted_gemm(gemm2);
  std::vector<int> real;
  for (int row = 0; row < gemm1.capacity(); ++row) {
    if (gemm1.is_real(row)) real.push_back(row);
  }
  const oracle::SumOf sum = oracle::right_sums(gemm1);
  Grid grid(14, 8);
  const auto add_row = [&](const std::string& label, auto cell_of) {
    grid.row(label, cells(int(real.size()), [&](int i) { return cell_of(real[size_t(i)]); }));
  };
  const auto w2_of = [&](int row) { return gemm2.w[size_t(2 * gemm2.expert_of(row))]; };
  add_row("row p", [](int row) { return number(row); });
  add_row("flat_id", [&](int row) { return number(gemm1.flat_id(row)); });
  add_row("token", [&](int row) { return number(double(gemm1.row_of_a(row))); });
  add_row("expert", [&](int row) { return number(gemm1.expert_of(row)); });
  add_row("gate", [&](int row) { return number(sum(row, 0)); });
  add_row("up", [&](int row) { return number(sum(row, 1)); });
  add_row("h, in bf16",
          [&](int row) { return thousandths(double(judge::to_float(gemm2.a[size_t(row)]))); });
  add_row("w2", [&](int row) { return number(double(judge::to_float(w2_of(row)))); });
  add_row("weight",
          [&](int row) { return number(double(gemm2.topk_weights[size_t(gemm2.flat_id(row))])); });
  add_row("y", [&](int row) { return thousandths(y.at(row, 0)); });
  return grid.text();
}

// ---- m8

constexpr int kUnit = 16;  // an expert's rows are padded to a multiple of it

// The first slot of a token has the largest logit.
oracle::LayerProblem m8_problem() {
  oracle::LayerProblem p;
  p.num_tokens = kTokens;
  p.num_experts = kExperts;
  p.top_k = kTopK;
  p.hidden_size = 256;
  p.intermediate_size = 256;
  p.logits.assign(size_t(kTokens * kExperts), 0.0f);
  for (int id = 0; id < kIds; ++id) {
    const int place = id / kTopK * kExperts + kTopKIds[size_t(id)];
    p.logits[size_t(place)] = float(kTopK - id % kTopK);
  }
  return p;
}

std::string m8_rows() {
  std::vector<int> sorted_row(kIds);
  int first = 0;
  for (int e = 0; e < kExperts; ++e) {
    const std::vector<int> ids = ids_of(e);
    for (int rank = 0; rank < int(ids.size()); ++rank) {
      sorted_row[size_t(ids[size_t(rank)])] = first + rank;
    }
    first += (int(ids.size()) + kUnit - 1) / kUnit * kUnit;
  }
  Grid grid(14, 5);
  grid.row("flat_id", cells(kIds, [](int id) { return number(id); }));
  grid.row("expert", cells(kIds, [](int id) { return number(kTopKIds[size_t(id)]); }));
  grid.row("sorted_row", cells(kIds, [&](int id) { return number(sorted_row[size_t(id)]); }),
           "   of all: " + number(first) + " rows");
  return grid.text();
}

std::string m8_tiles() {
  const std::vector<oracle::PersistentTile> tiles = oracle::persistent_tiles(m8_problem(), 1);
  const auto of_tile = [&](auto value) {
    return cells(int(tiles.size()), [&](int i) { return value(tiles[size_t(i)]); });
  };
  Grid grid(14, 9);
  grid.row("tile", cells(int(tiles.size()), [](int i) { return number(i); }));
  grid.row("expert", of_tile([](const auto& tile) { return number(tile.expert); }));
  grid.row("column of h", of_tile([](const auto& tile) { return number(tile.column); }));
  grid.row("rows of x", of_tile([](const auto& tile) { return joined(tile.tokens); }));
  return grid.text();
}

// "128 | 22": the rows of the tiles of `rows` tokens that all choose expert 0 of `experts`.
std::string m8_cut(int rows, int experts, int gemm) {
  oracle::LayerProblem p;
  p.num_tokens = rows;
  p.num_experts = experts;
  p.top_k = 1;
  p.hidden_size = 128;
  p.intermediate_size = 128;
  p.logits.assign(size_t(rows * experts), 0.0f);
  for (int t = 0; t < rows; ++t) p.logits[size_t(t * experts)] = 1.0f;
  std::string text;
  for (const oracle::PersistentTile& tile : oracle::persistent_tiles(p, gemm)) {
    text += (text.empty() ? "" : " | ") + number(double(tile.tokens.size()));
  }
  return text;
}

std::string m8_cuts() {
  Grid grid(42, 14);
  grid.row("GEMM1, at most 128 tokens, tokens are M", {m8_cut(150, 1, 1)},
           "  a half tile at the end: one warpgroup");
  grid.row("GEMM2, at most 256, tokens are N", {m8_cut(150, 1, 2)}, "  wgmma with N = 160");
  grid.row("GEMM2, at most 128 (E = 2)", {m8_cut(150, 2, 2)}, "  even: N = 80");
  grid.row("GEMM2, at most 64 (E = 4)", {m8_cut(150, 4, 2)}, "  N = 64, 64, 32");
  return grid.text();
}

std::string m8_long_tiles() {
  Grid grid(30, 24);
  grid.row("130 rows, rounded up to 144", {m8_cut(130, 1, 1)}, "  128 as M, 16 as N");
  grid.row("150 rows, rounded up to 160", {m8_cut(150, 1, 1)}, "  32 are left, for one tile");
  grid.row("260 rows, rounded up to 272", {m8_cut(260, 1, 1)}, "  16 are left");
  grid.row("280 rows, rounded up to 288", {m8_cut(280, 1, 1)}, "  32 are left, for two tiles");
  grid.row("420 rows, rounded up to 432", {m8_cut(420, 1, 1)}, "  48 are left");
  return grid.text();
}

}  // namespace

std::string m6_example() {
  constexpr int kSmallest = oracle::kWgmmaRows;
  Grid rows(20, 17);
  add_table(rows, kSmallest);
  rows.row("row of x (GEMM1)", rows_by_expert([](int id) { return id / kTopK; }));
  rows.row("row of h (GEMM2)", rows_by_expert([](int id) { return id; }));
  const oracle::GemmProblem problem = tiny_gemm(kSmallest);
  const oracle::GemmTiles tiles(problem);
  const judge::Matrix out = tiles.sum([&](int position, int expert, int column, int d) {
    return tiles.a(position, d) * tiles.w(expert, column, d);
  });
  return fenced(rows.text()) +
         "\nA row of a tile is 128 bytes: 8 chunks of 16 bytes, 64 values. It is not stored as it "
         "is:\nchunk c of row r lies at place c XOR r % 8. The tile of A of block 0, the chunk at "
         "each place:\n\n" +
         fenced(m6_swizzle()) +
         "\nWith numbers, two terms of D and one column of N. The tiles hold 64 terms and 128 "
         "columns; the\nrest is zeros, so the sums are m2's:\n\n" +
         fenced(tiny_sums(problem, out));
}

std::string m7_example() {
  return fenced(m7_rows()) +
         "\nWith numbers, H = 2 and I = 1: x and the gate rows are m2's, up is `0 1`, `1 0`, `1 1` "
         "for\nthe three experts. Column 0 of y:\n\n" +
         fenced(m7_sums());
}

std::string m8_example() {
  return fenced(m8_rows()) +
         "\nWith I = 256, the tiles of GEMM1 in the order of their numbers:\n\n" +
         fenced(m8_tiles()) +
         "\nA longer expert, 150 rows, rounded up to 160. The real rows of its tiles, at one "
         "column:"
         "\n\n" +
         fenced(m8_cuts()) + "\nLong tiles of GEMM1, in the same way:\n\n" +
         fenced(m8_long_tiles());
}

}  // namespace moe::content
