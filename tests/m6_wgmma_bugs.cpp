#include "m6_wgmma_bugs.h"

#include <limits>
#include <string_view>

#include "m6_wgmma_oracle.h"

namespace moe::bugs {

using judge::Matrix;
using oracle::GemmProblem;
using oracle::GemmTiles;
using oracle::kChunkValues;
using oracle::kStepDepth;
using oracle::kTileColumns;
using oracle::kTileDepth;
using oracle::kWgmmaRows;

const judge::Mistake kWgmmaUninitialised = {
    "M6-NAN", "m6.mainloop", "mainloop",
    "NaN where every input is a number: a tile is multiplied before it has arrived. Is a "
    "cp_async_wait, an mbarrier_wait or a __syncthreads missing?"};

judge::Mistake in_m6(const judge::Mistake& of_m2) {
  struct Place {
    std::string_view of_m2;
    const char* region;
    const char* note;
  };
  static constexpr Place kPlaces[] = {
      {"m2.early_exit", "m6.early_exit", "given"}, {"m2.gather", "m6.rows", "given"},
      {"m2.load", "m6.load_w", "load_w"},          {"m2.multiply", "m6.multiply", "multiply"},
      {"m2.mainloop", "m6.mainloop", "mainloop"},  {"m2.store", "m6.store", "store"}};
  for (const Place& place : kPlaces) {
    if (place.of_m2 == of_m2.region) {
      return {of_m2.code, place.region, place.note, of_m2.sentence};
    }
  }
  return of_m2;
}

namespace {

// Both operands as they are, but for where the terms are taken from.
struct Source {
  int position;
  int column;
  int a_depth;
  int w_depth;
};

Matrix with_sources(const GemmProblem& p, Source (*source)(const GemmProblem&, Source)) {
  const GemmTiles tiles(p);
  return tiles.sum([&](int position, int expert, int column, int d) {
    const Source s = source(p, {position, column, d, d});
    return tiles.a(s.position, s.a_depth) * tiles.w(expert, s.column, s.w_depth);
  });
}

// The row of a tile that wgmma takes for row `row` when 8 rows are `step` rows apart.
int strided(int row, int step) {
  return row / 8 * step + row % 8;
}

template <int STEP>
Source with_stride(const GemmProblem& /*p*/, Source s) {
  s.position = s.position / kWgmmaRows * kWgmmaRows + strided(s.position % kWgmmaRows, STEP);
  s.column = s.column / kTileColumns * kTileColumns + strided(s.column % kTileColumns, STEP);
  return s;
}

// Each 16 columns start CHUNKS chunks behind those before: 2 is right.
template <int CHUNKS>
Source with_k_step(const GemmProblem& /*p*/, Source s) {
  const int in_tile = s.a_depth % kTileDepth;
  s.a_depth += -in_tile + in_tile / kStepDepth * CHUNKS * kChunkValues + in_tile % kStepDepth;
  s.w_depth = s.a_depth;
  return s;
}

// wgmma finds chunk c of a row where c ^ row % 8 would lie; there lies the chunk that WRONG sends
// to that place.
template <int (*WRONG)(int place, int row)>
Source with_swizzle(const GemmProblem& /*p*/, Source s) {
  const int row = s.position % kWgmmaRows;
  const int place = s.a_depth % kTileDepth / kChunkValues ^ row % 8;
  s.a_depth =
      s.a_depth / kTileDepth * kTileDepth + WRONG(place, row) * kChunkValues + s.a_depth % 8;
  return s;
}
int unswizzled(int place, int /*row*/) {
  return place;
}
int by_eight_rows(int place, int row) {
  return place ^ row / 8 % 8;
}
int by_four(int place, int row) {
  return place ^ row % 4;
}
int rotated(int place, int row) {
  return (place - row % 8 + 8) % 8;
}

// Only the terms from `first` on count.
Matrix last_terms(const GemmProblem& p, int first) {
  const GemmTiles tiles(p);
  return tiles.sum([&](int position, int expert, int column, int d) {
    return d >= first ? tiles.a(position, d) * tiles.w(expert, column, d) : 0.0;
  });
}

// W's rows behind column D are zeros all the same, so only a NaN that is read shows.
Matrix a_not_masked(const GemmProblem& p) {
  const GemmTiles tiles(p);
  return tiles.sum([&](int position, int expert, int column, int d) {
    return tiles.a_unmasked(position, d) * tiles.w(expert, column, d);
  });
}

// The box starts at row k0 and column first_column.
Matrix box_transposed(const GemmProblem& p) {
  const GemmTiles tiles(p);
  return tiles.sum([&](int position, int expert, int column, int d) {
    const int w_row = d / kTileDepth * kTileDepth + column % kTileColumns;
    const int w_depth = column / kTileColumns * kTileColumns + d % kTileDepth;
    return tiles.a(position, d) * tiles.w(expert, w_row, w_depth);
  });
}

void add_operand_models(std::vector<GemmModel>& models) {
  const auto add = [&](const char* code, const char* region, const char* note, const char* sentence,
                       Source (*source)(const GemmProblem&, Source)) {
    models.push_back({{code, region, note, sentence},
                      [source](const GemmProblem& p) { return with_sources(p, source); }});
  };
  add("M6-NOSWIZZLE", "m6.gather", "gather",
      "A is copied without the swizzle: chunk c of row r belongs where chunk c ^ (r % 8) would "
      "lie.",
      with_swizzle<unswizzled>);
  for (const auto source :
       {with_swizzle<by_eight_rows>, with_swizzle<by_four>, with_swizzle<rotated>}) {
    add("M6-SWIZZLE", "m6.gather", "gather",
        "A is swizzled in another way than wgmma reads it: chunk c of row r belongs at c ^ (r % "
        "8), "
        "an exclusive or with all three bits of the row.",
        source);
  }
  for (const auto source : {with_stride<1>, with_stride<4>, with_stride<2>, with_stride<0>}) {
    add("M6-STRIDE", "m6.descriptor", "descriptor",
        "The descriptor's stride is wrong: 8 rows of 128 bytes are 1024 bytes, and the field "
        "counts "
        "units of 16.",
        source);
  }
  for (const auto source : {with_k_step<0>, with_k_step<1>}) {
    add("M6-KSTEP", "m6.multiply", "multiply",
        "The products of a tile do not walk along it: 16 columns are 32 bytes, so each descriptor "
        "is "
        "2 more than the one before.",
        source);
  }
  add("M6-WARPGROUP", "m6.multiply", "multiply",
      "Both warpgroups multiply the first 64 rows of A: each has rows of its own.",
      [](const GemmProblem& /*p*/, Source s) {
        s.position -= s.position % (2 * kWgmmaRows) / kWgmmaRows * kWgmmaRows;
        return s;
      });
  add("M6-HALVES", "m6.store", "store",
      "Rows g and g + 8 of a warp are exchanged: accumulator 4j + 2h + e is row g + 8h.",
      [](const GemmProblem& /*p*/, Source s) {
        s.position ^= 8;
        return s;
      });
  add("M6-COLUMN0", "m6.load_w", "load_w",
      "Every block loads the first columns of its expert's W: the box starts at row first_column.",
      [](const GemmProblem& /*p*/, Source s) {
        s.column %= kTileColumns;
        return s;
      });
}

std::vector<GemmModel> make_models() {
  std::vector<GemmModel> models;
  add_operand_models(models);
  const auto add = [&](const char* code, const char* region, const char* note, const char* sentence,
                       std::function<Matrix(const GemmProblem&)> output) {
    models.push_back({{code, region, note, sentence}, std::move(output)});
  };
  for (const int depth : {kStepDepth, kTileDepth}) {
    add("M6-OVERWRITE", "m6.multiply", "multiply",
        "Earlier products are overwritten: every wgmma must add to the accumulators.",
        [depth](const GemmProblem& p) { return last_terms(p, GemmTiles(p).depth() - depth); });
  }
  add("M6-BOX", "m6.load_w", "load_w",
      "The coordinates of the box are exchanged: tma_load takes the column first, then the row.",
      box_transposed);
  add("M6-DEPTHMASK", "m6.gather", "gather",
      "Columns of A at or behind D are not masked: TMA brings zeros there, and zero times NaN is "
      "NaN.",
      a_not_masked);
  for (const GemmModel& of_m2 : gemm_models()) {
    models.push_back({in_m6(of_m2.mistake), of_m2.output});
  }
  return models;
}

}  // namespace

const std::vector<GemmModel>& wgmma_models() {
  static const std::vector<GemmModel> models = make_models();
  return models;
}

}  // namespace moe::bugs
