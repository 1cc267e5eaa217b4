#include "m8_persistent_bugs.h"

#include <algorithm>
#include <set>
#include <string>

#include "m8_persistent_oracle.h"

namespace moe::bugs {
namespace {

using judge::Mistake;
using judge::Verdict;
using oracle::LayerProblem;
using oracle::PersistentTile;

constexpr int kBlockColumns = 128;
constexpr int kHalf = 64;  // rows of a tile of GEMM1 that one warpgroup multiplies
constexpr int kUnit = 16;

const Mistake kTiles = {
    "M8-TILES", "m8.next_tile", "next_tile",
    "Some tiles are wrong and all others right: they were skipped, or have another tile's rows. "
    "Every number below num_tiles must be handed out, and tile_of must find its run."};
const Mistake kHalves = {
    "M8-HALF", "m8.half_tile", "half_tile",
    "Of tiles of GEMM1 with more than 64 tokens the rows from 64 on are wrong, and nothing else: "
    "only a tile of at most 64 tokens leaves the second warpgroup without work."};
const Mistake kFirstRows = {
    "M8-NEXT", "m8.store", "store",
    "Only the first rows of experts behind another one are wrong: the tile in front stored its "
    "padding over them. A tile that doesn't fill the box of 64 rows stores boxes of kUnit."};
const Mistake kLastRows = {
    "M8-TAIL", "m8.store", "store",
    "Only the rows of an expert's last unit are wrong: a tile of t tokens stores all units up to "
    "t."};

// A part of out: a token and a block of 128 columns.
using Cell = std::pair<int, int>;
using Cells = std::set<Cell>;

int column_blocks(const LayerProblem& p) {
  return (p.hidden_size + kBlockColumns - 1) / kBlockColumns;
}

// Cells of which most elements are wrong; the others' errors, if any, are chance.
Cells wrong_cells(const LayerProblem& p, const std::vector<uint8_t>& is_wrong) {
  Cells cells;
  for (int token = 0; token < p.num_tokens; ++token) {
    for (int block = 0; block < column_blocks(p); ++block) {
      const int first = block * kBlockColumns;
      const int end = std::min(p.hidden_size, first + kBlockColumns);
      const auto row = is_wrong.begin() + static_cast<std::ptrdiff_t>(token) * p.hidden_size;
      if (2 * std::count(row + first, row + end, 1) > end - first) cells.insert({token, block});
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

// The tiles of one GEMM that are wrong as a whole, if they are all that is wrong and not all there
// are.
std::vector<PersistentTile> wrong_tiles(const LayerProblem& p, const Cells& wrong, int gemm) {
  std::vector<PersistentTile> found;
  Cells explained;
  const auto tiles = oracle::persistent_tiles(p, gemm);
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
  // Not every one need be wrong: which writer comes last is chance.
  return !wrong.empty() && covers(explained, wrong) && 2 * wrong.size() > explained.size();
}

int rows_of(const PersistentTile& tile) {
  return static_cast<int>(tile.tokens.size());
}

}  // namespace

Verdict explain_by_tiles(const LayerProblem& p,
                         const std::vector<uint8_t>& is_wrong,
                         Verdict verdict) {
  const Cells wrong = wrong_cells(p, is_wrong);
  const auto named = [&](const Mistake& mistake) {
    return judge::wrong(mistake, verdict.evidence);
  };
  if (wrong.empty()) return verdict;
  if (are_rows(p, wrong, 1, [](const PersistentTile& tile) {
        return std::pair<int, int>{kHalf, rows_of(tile)};
      })) {
    return named(kHalves);
  }
  for (const int gemm : {2, 1}) {
    const auto tiles = wrong_tiles(p, wrong, gemm);
    if (tiles.empty()) continue;
    for (size_t i = 0; i < std::min<size_t>(tiles.size(), 3); ++i) {
      verdict.evidence.push_back("wrong: " + text_of(tiles[i]));
    }
    return named(kTiles);
  }
  const int first_expert = oracle::persistent_tiles(p, 2).front().expert;
  if (are_rows(p, wrong, 2, [&](const PersistentTile& tile) {
        const bool behind = tile.expert > first_expert && tile.first == 0;
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
  return verdict;
}

namespace {

struct FaultModel {
  std::vector<const char*> parts;  // all must stand in the report
  Mistake mistake;
};

const std::vector<FaultModel>& fault_models() {
  static const std::vector<FaultModel> models = {
      {{"load_acquire"},
       {"M8-READY", "m8.report", "report",
        "GEMM2 waits for rows of h that nobody reports: each consumer of GEMM1 adds 1 for each of "
        "its tiles, also where it had nothing to multiply, and ready[] starts at 0."}},
      {{"deadlock", "mbarrier_wait"},
       {"M8-RING", "m8.half_tile", "half_tile",
        "The ring stands still: a consumer without work hands each stage back all the same, one "
        "arrival of each of its warps."}},
      {{"wgmma reads", "a copy under way"},
       {"M8-RING", "m8.half_tile", "half_tile",
        "A stage is read while it is filled: wait for full[] before a stage is handed back."}},
      {{"more arrivals in a phase"},
       {"M8-RING", "m8.half_tile", "half_tile",
        "A stage was handed back before it was full: wait for full[] also where nothing is "
        "multiplied."}},
      {{"bulk stores that may still have to read"},
       {"M8-STORED", "m8.store", "store", "Bulk stores were left behind, or never committed."}},
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
