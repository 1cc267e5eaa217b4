// What is wrong with an order of tiles, and which mistake gives it.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "judge/verdict.h"
#include "m4_group_m_bugs.h"
#include "m4_group_m_cases.h"
#include "m4_group_m_oracle.h"

namespace moe::m4_cases {

using oracle::TileGrid;
using oracle::TilePlace;

inline std::string text_of(const TilePlace& place) {
  return "(" + std::to_string(place.m) + ", " + std::to_string(place.n) + ")";
}

inline std::string text_of(const TileGrid& grid) {
  return std::to_string(grid.num_pid_m) + " x " + std::to_string(grid.num_pid_n) +
         " tiles, group_m " + std::to_string(grid.group_m);
}

// The places that stand in an output of {m, n} pairs.
inline std::vector<TilePlace> places_of(const std::vector<int32_t>& values) {
  std::vector<TilePlace> places;
  for (size_t i = 0; i + 1 < values.size(); i += 2) places.push_back({values[i], values[i + 1]});
  return places;
}

// What is wrong with the coverage of a grid, or nothing.
inline std::vector<std::string> coverage_errors(const std::vector<TilePlace>& order,
                                                const TileGrid& grid) {
  std::vector<int> times(static_cast<size_t>(grid.size()), 0);
  for (size_t pid = 0; pid < order.size(); ++pid) {
    const TilePlace& t = order[pid];
    if (t.m == kNoTile) return {text_of(grid) + ": pid " + std::to_string(pid) + " has no tile"};
    if (t.m < 0 || t.m >= grid.num_pid_m || t.n < 0 || t.n >= grid.num_pid_n) {
      return {text_of(grid) + ": pid " + std::to_string(pid) + " gets " + text_of(t) +
              ", which is outside the grid; the reference has " +
              text_of(oracle::tile_of(static_cast<int>(pid), grid))};
    }
    const int tile = t.m * grid.num_pid_n + t.n;
    ++times[static_cast<size_t>(tile)];
  }
  const auto missing = std::count(times.begin(), times.end(), 0);
  if (missing == 0) return {};
  const auto first = static_cast<int>(std::find(times.begin(), times.end(), 0) - times.begin());
  return {text_of(grid) + ": " + std::to_string(missing) + " tiles have no program, first " +
          text_of(TilePlace{first / grid.num_pid_n, first % grid.num_pid_n})};
}

inline std::vector<std::string> locality_errors(const std::vector<TilePlace>& order,
                                                const TileGrid& grid,
                                                const oracle::PanelCache& cache) {
  const int64_t loads = oracle::panels_loaded(order, cache);
  const int64_t reference = oracle::panels_loaded(oracle::order_of(grid), cache);
  if (static_cast<double>(loads) <= oracle::kLocalityGate * static_cast<double>(reference))
    return {};
  return {text_of(grid) + ", a cache of " + std::to_string(cache.capacity) +
          " panels: " + std::to_string(loads) + " panels are loaded, the reference order loads " +
          std::to_string(reference)};
}

// The mistakes that give these orders on these grids, else `otherwise`.
inline judge::Verdict name_order(const std::vector<std::vector<TilePlace>>& orders,
                                 const std::vector<TileGrid>& grids,
                                 const std::vector<std::string>& evidence,
                                 const judge::Mistake* otherwise) {
  std::vector<judge::Mistake> mistakes;
  for (const bugs::OrderModel& model : bugs::order_models()) {
    int64_t agreed = 0;
    int64_t all = 0;
    for (size_t i = 0; i < grids.size(); ++i) {
      for (size_t pid = 0; pid < orders[i].size(); ++pid) {
        agreed += orders[i][pid] == model.tile_of(static_cast<int>(pid), grids[i]) ? 1 : 0;
        ++all;
      }
    }
    if (agreed * 100 >= all * 99) mistakes.push_back(model.mistake);
  }
  if (mistakes.empty() && otherwise != nullptr) mistakes.push_back(*otherwise);
  if (!mistakes.empty()) return judge::wrong(mistakes, evidence);
  return judge::wrong("Not every tile belongs to exactly one program.", evidence);
}

// Division by zero in a kernel is some number on a GPU and a signal on the emulator.
inline judge::Verdict explain_division(const std::vector<judge::Mistake>& mistakes,
                                       judge::Verdict verdict) {
  if (verdict.sentence.find("Floating point exception") == std::string::npos) return verdict;
  judge::Verdict named = judge::wrong(mistakes, {verdict.sentence});
  named.state = verdict.state;
  named.fault = verdict.fault;
  return named;
}

}  // namespace moe::m4_cases
