#include "m8_persistent_bugs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "judge/models.h"
#include "m8_persistent_oracle.h"

namespace moe::bugs {
namespace {

using judge::Mistake;
using judge::Verdict;
using oracle::LayerProblem;
using oracle::PersistentTile;

constexpr int kBlockColumns = 128;
constexpr int kHalf = 64;    // rows of a tile of GEMM1 that one warpgroup multiplies
constexpr int kWhole = 128;  // rows of a whole tile of GEMM1
constexpr int kUnit = 16;

const Mistake kTiles = {
    "M8-TILES", "m8.next_tile", "next_tile",
    "Some tiles are wrong and all others right: they were skipped, or have another tile's rows. "
    "Every number below num_tiles is handed out once in every call, from counters that start at 0; "
    "tile_of finds its run and the rows in it."};
const Mistake kHalves = {
    "M8-HALF", "m8.half_tile", "half_tile",
    "Of tiles of GEMM1 with more than 64 tokens the rows from 64 on are wrong, and nothing else: "
    "only a tile of at most 64 tokens leaves the second warpgroup without work."};
const Mistake kLongTiles = {
    "M8-LONG", "m8.long_tile", "long_tile",
    "Of GEMM1's long tiles the rows from 128 on are wrong, and nothing else: these 16 are wgmma's "
    "N; their stage's rows start at kTokens1, and each consumer multiplies them by its own 64 rows "
    "of gate and the same of up. If they are right there: does cut say that the tile is long?"};
const Mistake kBehindLongTiles = {
    "M8-BEHIND", "m8.tile_of", "tile_of",
    "Of experts with long tiles the last rows are wrong, as many as long tiles have more than "
    "others: cut says how many tiles are long, and a tile starts behind kUnit more for each long "
    "one in front of it."};
const Mistake kFirstRows = {
    "M8-NEXT", "m8.store", "store",
    "Only the first rows of experts behind another one are wrong: the tile in front stored its "
    "padding over them. A tile that doesn't fill the box of 64 rows stores boxes of kUnit."};
const Mistake kLongExperts = {
    "M8-CUT", "m8.cut", "cut",
    "Only rows of experts with several tiles are wrong: a tile of GEMM2 has a multiple of kUnit "
    "rows, all but an expert's last have tile_rows, and blocks of a cluster do the same tokens."};
const Mistake kAll = {
    "M8-ALL", "m8.launches", "launches",
    "Every token is wrong. Is each of the five kernels launched, in order? If so: a tile's first "
    "product must overwrite what the accumulators hold (m8.multiply), and tiles of one unit are "
    "stored, too (m8.store)."};
const Mistake kSecondHalves = {
    "M8-CONSUMER", "m8.multiply", "multiply",
    "Of each 128 columns of out the second 64 are wrong: they are consumer 1's rows of W, from row "
    "64 of the tile on."};
const Mistake kLastRows = {
    "M8-TAIL", "m8.store", "store",
    "Only the rows of an expert's last unit are wrong: a tile of t tokens stores all units up to "
    "t."};

// Elements that are wrong by more than rounding can explain.
std::vector<uint8_t> wrong_elements(const LayerProblem& p, const std::vector<judge::Bf16>& out) {
  const auto want = oracle::moe_layer(p);
  const auto columns = static_cast<size_t>(p.hidden_size);
  std::vector<uint8_t> is_wrong;
  for (size_t first = 0; first < out.size(); first += columns) {
    double squares = 0.0;
    for (size_t i = first; i < first + columns; ++i) squares += want.values[i] * want.values[i];
    const double allowed = 0.08 * std::sqrt(squares / static_cast<double>(columns));
    for (size_t i = first; i < first + columns; ++i) {
      const double error = static_cast<double>(judge::to_float(out[i])) - want.values[i];
      is_wrong.push_back(std::fabs(error) <= allowed ? 0 : 1);  // NaN is wrong
    }
  }
  return is_wrong;
}

// Mistakes of which it is known what they give.
std::vector<judge::MatrixModel<LayerProblem>> persistent_models() {
  constexpr int kTurn = 64;
  // GEMM2 without some columns of the reduction.
  const auto without = [](const LayerProblem& p, auto is_missing) {
    LayerProblem other = p;
    for (size_t i = 0; i < other.w2.size(); ++i) {
      const int column = static_cast<int>(i % static_cast<size_t>(p.intermediate_size));
      if (is_missing(column)) other.w2[i] = 0;
    }
    return oracle::moe_layer(other);
  };
  return {
      {{"M8-SUMS", "m8.multiply", "multiply",
        "Only the last turn of GEMM2 counts: the first product of a tile overwrites, all others "
        "add."},
       [=](const LayerProblem& p) {
         const int last = (p.intermediate_size - 1) / kTurn * kTurn;
         return without(p, [last](int column) { return column < last; });
       }},
      {{"M8-PAIRS", "m8.combine", "combine",
        "Columns 2c and 2c + 1 are exchanged: the lower half of a word is the first of a pair."},
       [](const LayerProblem& p) {
         judge::Matrix out = oracle::moe_layer(p);
         for (size_t i = 0; i + 1 < out.values.size(); i += 2) {
           std::swap(out.values[i], out.values[i + 1]);
         }
         return out;
       }}};
}

// Whether all that is wrong lies in the second half of column tiles.
bool are_second_halves(const LayerProblem& p, const std::vector<uint8_t>& is_wrong) {
  int64_t wrong = 0;
  for (size_t i = 0; i < is_wrong.size(); ++i) {
    const auto column = static_cast<int>(i % static_cast<size_t>(p.hidden_size));
    if (is_wrong[i] == 0) continue;
    if (column % kBlockColumns < kHalf) return false;
    ++wrong;
  }
  return wrong > 0;
}

// A part of out: a token and a block of 128 columns.
using Cell = std::pair<int, int>;
using Cells = std::set<Cell>;

int column_blocks(const LayerProblem& p) {
  return (p.hidden_size + kBlockColumns - 1) / kBlockColumns;
}

// Cells with a wrong element: even garbage is right by chance where the data have many zeros.
Cells wrong_cells(const LayerProblem& p, const std::vector<uint8_t>& is_wrong) {
  Cells cells;
  for (int token = 0; token < p.num_tokens; ++token) {
    for (int block = 0; block < column_blocks(p); ++block) {
      const int first = block * kBlockColumns;
      const int end = std::min(p.hidden_size, first + kBlockColumns);
      const auto row = is_wrong.begin() + static_cast<std::ptrdiff_t>(token) * p.hidden_size;
      if (std::count(row + first, row + end, 1) > 0) cells.insert({token, block});
    }
  }
  return cells;
}

// What depends on rows first .. end - 1 of a tile.
Cells cells_of(const LayerProblem& p, const PersistentTile& tile, size_t first, size_t end) {
  Cells cells;
  for (size_t row = first; row < std::min(end, tile.tokens.size()); ++row) {
    for (int block = 0; block < column_blocks(p); ++block) {
      const bool all_columns = tile.gemm == 1;
      if (all_columns || block * kBlockColumns == tile.column) {
        cells.insert({tile.tokens[row], block});
      }
    }
  }
  return cells;
}

bool covers(const Cells& all, const Cells& part) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

std::string text_of(const PersistentTile& tile) {
  return "GEMM" + std::to_string(tile.gemm) + ", expert " + std::to_string(tile.expert) +
         ", its rows " + std::to_string(tile.first) + " to " +
         std::to_string(tile.first + static_cast<int>(tile.tokens.size()) - 1) + ", columns from " +
         std::to_string(tile.column);
}

// The tiles of some GEMMs that are wrong as a whole, if they are all that is wrong and not all
// there are.
std::vector<PersistentTile> wrong_tiles(const LayerProblem& p,
                                        const Cells& wrong,
                                        const std::vector<int>& gemms) {
  std::vector<PersistentTile> found;
  Cells explained;
  std::vector<PersistentTile> tiles;
  for (const int gemm : gemms) {
    const auto more = oracle::persistent_tiles(p, gemm);
    tiles.insert(tiles.end(), more.begin(), more.end());
  }
  for (const PersistentTile& tile : tiles) {
    const Cells cells = cells_of(p, tile, 0, tile.tokens.size());
    if (!covers(wrong, cells)) continue;
    explained.insert(cells.begin(), cells.end());
    found.push_back(tile);
  }
  if (explained != wrong || found.size() == tiles.size()) found.clear();
  return found;
}

// Whether exactly the cells of some rows of each tile are wrong; `rows` says which: [first, end).
template <class Rows>
bool are_rows(const LayerProblem& p, const Cells& wrong, int gemm, Rows rows) {
  Cells explained;
  const auto tiles = oracle::persistent_tiles(p, gemm);
  for (const PersistentTile& tile : tiles) {
    const std::pair<int, int> range = rows(tile);
    const Cells cells = cells_of(p, tile, static_cast<size_t>(range.first),
                                 static_cast<size_t>(std::max(range.first, range.second)));
    explained.insert(cells.begin(), cells.end());
  }
  // Not every one need be wrong: which writer comes last is chance. But if all rows are meant there
  // is nothing to tell.
  const auto all = static_cast<size_t>(p.num_tokens * column_blocks(p));
  return explained.size() < all && covers(explained, wrong) && 2 * wrong.size() > explained.size();
}

// Of experts with several tiles of GEMM2.
Cells cells_of_long_experts(const LayerProblem& p) {
  const auto tiles = oracle::persistent_tiles(p, 2);
  Cells cells;
  for (const PersistentTile& tile : tiles) {
    const bool is_long = std::any_of(tiles.begin(), tiles.end(), [&](const PersistentTile& other) {
      return other.expert == tile.expert && other.first > 0;
    });
    const Cells own = cells_of(p, tile, 0, tile.tokens.size());
    if (is_long) cells.insert(own.begin(), own.end());
  }
  return cells;
}

int rows_of(const PersistentTile& tile) {
  return static_cast<int>(tile.tokens.size());
}

// The mistakes about long tiles of GEMM1, if they explain all that is wrong.
const Mistake* long_tile_mistake(const LayerProblem& p, const Cells& wrong) {
  if (are_rows(p, wrong, 1, [](const PersistentTile& tile) {
        return std::pair<int, int>{kWhole, rows_of(tile)};
      })) {
    return &kLongTiles;
  }
  const auto tiles = oracle::persistent_tiles(p, 1);
  const auto at_end = [&](const PersistentTile& tile) {
    int long_rows = 0;  // of the expert's, padding included, what is not a whole number of tiles
    int rows = 0;
    for (const PersistentTile& other : tiles) {
      if (other.expert != tile.expert || other.column != tile.column) continue;
      rows = other.first + rows_of(other);
      if (rows_of(other) > kWhole) long_rows += kUnit;
    }
    const int padded = (rows + kUnit - 1) / kUnit * kUnit;
    const int first = padded - long_rows - tile.first;
    return std::pair<int, int>{std::max(0, long_rows > 0 ? first : rows_of(tile)), rows_of(tile)};
  };
  return are_rows(p, wrong, 1, at_end) ? &kBehindLongTiles : nullptr;
}

}  // namespace

Verdict explain_persistent(const LayerProblem& p,
                           const std::vector<judge::Bf16>& out,
                           Verdict verdict) {
  constexpr judge::Gates kGates = {1.7e-2, 2.5e-2, 8e-2};  // of layer_cases.cpp
  constexpr judge::ValueRules<judge::Bf16> kRules = {0x7fa5, false, kGates, 4e-2};
  const std::vector<uint8_t> judged(static_cast<size_t>(p.num_tokens), 1);
  const auto want = oracle::moe_layer(p);
  const auto difference = judge::compare(out, want, judged, kRules.poison, false, kGates);
  const auto mistakes =
      judge::explaining(persistent_models(), p, out, want, difference, judged, kRules);
  if (!mistakes.empty()) return judge::wrong(mistakes, verdict.evidence);
  const auto is_wrong = wrong_elements(p, out);
  if (are_second_halves(p, is_wrong)) return judge::wrong(kSecondHalves, verdict.evidence);
  const Cells wrong = wrong_cells(p, is_wrong);
  const auto named = [&](const Mistake& mistake) {
    return judge::wrong(mistake, verdict.evidence);
  };
  if (wrong.empty()) return verdict;
  if (const Mistake* mistake = long_tile_mistake(p, wrong)) return named(*mistake);
  if (are_rows(p, wrong, 1, [](const PersistentTile& tile) {
        return std::pair<int, int>{kHalf, rows_of(tile)};
      })) {
    return named(kHalves);
  }
  const auto are_tiles = [&](const std::vector<int>& gemms) {
    const auto tiles = wrong_tiles(p, wrong, gemms);
    for (size_t i = 0; i < std::min<size_t>(tiles.size(), 3); ++i) {
      verdict.evidence.push_back("wrong: " + text_of(tiles[i]));
    }
    return !tiles.empty();
  };
  if (are_tiles({2}) || are_tiles({1})) return named(kTiles);
  const int first_expert = oracle::persistent_tiles(p, 2).front().expert;
  if (are_rows(p, wrong, 2, [&](const PersistentTile& tile) {
        const bool behind = tile.expert != first_expert && tile.first == 0;
        return std::pair<int, int>{0, behind ? kHalf : 0};
      })) {
    return named(kFirstRows);
  }
  for (const int gemm : {2, 1}) {
    if (are_rows(p, wrong, gemm, [](const PersistentTile& tile) {
          return std::pair<int, int>{(rows_of(tile) - 1) / kUnit * kUnit, rows_of(tile)};
        })) {
      return named(kLastRows);
    }
  }
  if (wrong.size() == static_cast<size_t>(p.num_tokens * column_blocks(p))) return named(kAll);
  if (are_tiles({1, 2})) return named(kTiles);
  return covers(cells_of_long_experts(p), wrong) ? named(kLongExperts) : verdict;
}

namespace {

const Mistake kShares = {
    "M8-SHARE", "m8.tile_of", "tile_of",
    "A stage gets more bytes than its block expects, or fewer: blocks of a cluster load for each "
    "other. Both get the same column where shares_w, and else the same token tile."};

struct FaultModel {
  std::vector<const char*> parts;  // all must stand in the report
  Mistake mistake;
};

const std::vector<FaultModel>& fault_models() {
  static const std::vector<FaultModel> models = {
      {{"load_acquire"},
       {"M8-READY", "m8.report", "report",
        "GEMM2 waits for rows of h that nobody reports: every tile of GEMM1 is done once, the "
        "thread that loads adds 1 for it, and ready[] starts at 0."}},
      {{"deadlock", "bytes missing, no copy under way"}, kShares},
      {{"expect_tx announced"}, kShares},
      {{"deadlock", "1 of 2 arrivals missing"},
       {"M8-STORED", "m8.half_tile", "half_tile",
        "The thread that loads waits for both consumers to say that a tile is stored: one without "
        "work says it, too, of its tile before, and later of this one."}},
      {{"deadlock", "mbarrier_wait"},
       {"M8-RING", "m8.half_tile", "half_tile",
        "The ring stands still: a consumer without work hands each stage back all the same, one "
        "arrival of each of its warps, at each block of the cluster."}},
      {{"wgmma reads", "a copy under way"},
       {"M8-RING", "m8.half_tile", "half_tile",
        "A stage is read while it is filled: wait for full[] before a stage is handed back."}},
      {{"more arrivals in a phase"},
       {"M8-RING", "m8.half_tile", "half_tile",
        "A stage was handed back before it was full: wait for full[] also where nothing is "
        "multiplied."}},
      {{"memory fault"},
       {"M8-PLACE", "m8.place", "place",
        "A row or a token points outside its array: rows of a slot come from totals and place, "
        "those "
        "of a tile from the table that cut writes and tile_of reads."}},
  };
  return models;
}

}  // namespace

Verdict explain_persistent_fault(Verdict verdict) {
  for (const FaultModel& model : fault_models()) {
    const bool fits = std::all_of(model.parts.begin(), model.parts.end(), [&](const char* part) {
      return verdict.fault.find(part) != std::string::npos;
    });
    if (!fits) continue;
    Verdict named = judge::wrong(model.mistake, {verdict.sentence});
    named.state = verdict.state;
    named.fault = verdict.fault;
    return named;
  }
  return verdict;
}

}  // namespace moe::bugs
