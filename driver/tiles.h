// The table of measured tiles, drills/m4_group_m.tiles.h, as text that `drill tune` changes.
#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>

namespace moe::driver {

// A line of kTunedTiles.
struct TunedLine {
  std::array<int, 5> layer = {};  // E, K, H, I, T: there is one line for each
  std::string tile;               // "{128, {128, 64, 16}, {128, 64, 8}}"
  std::string measured;           // on what and when: "NVIDIA H200, 2026-11-29"
};

// The table is not of the form that it was written in.
class TableError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What m4_group_m.tune reports, one JSON object: the line (without `measured`) and the two times.
struct TuneReport {
  TunedLine line;
  std::string gpu;
  double us = 0;         // the layer with this tile
  double us_before = 0;  // and with the one that the table gave
};
TuneReport parse_tune_report(std::string_view json);  // throws where it is no such report

// "{64, 8, 2048, 768, 4096, {128, {128, 64, 16}, {128, 64, 8}}},"
std::string text_of(const TunedLine& line);

// The tile that the header has for exactly this layer, or "". Throws TableError.
std::string tuned_tile(std::string_view header, const std::array<int, 5>& layer);

// The header with the line in the table: in place of the one for the same layer, else where it
// belongs. Lines are sorted, each below a comment that says what measured it; the same table and
// line always give the same text, formatted as clang-format would. Throws TableError.
std::string with_tuned_line(std::string_view header, const TunedLine& line);

}  // namespace moe::driver
