// What the tables of the tiny examples share: the one routing that all stages take, the grid that
// they are printed in, the tables and operands of m2's product for any block_m.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "m1_align_oracle.h"
#include "m2_grouped_gemm_oracle.h"

namespace moe::content {

inline constexpr int kTokens = 4;
inline constexpr int kTopK = 2;
inline constexpr int kExperts = 3;
inline constexpr int kIds = kTokens * kTopK;
inline const std::vector<int32_t> kTopKIds{0, 1, 1, 2, 0, 2, 1, 0};  // as in the cases t4k2

// Rows of cells of one width, each cell in the middle of its column.
class Grid {
 public:
  Grid(std::size_t label_width, std::size_t cell_width)
      : label_width_(label_width), cell_width_(cell_width) {}

  void row(const std::string& label,
           const std::vector<std::string>& cells,
           const std::string& remark = "");
  void gap() { text_ += "\n"; }
  void say(const std::string& line) { text_ += line + "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::size_t label_width_;
  std::size_t cell_width_;
  std::string text_;
};

std::string fenced(const std::string& text);
std::string number(double value, const char* format = "%g");
// Three places, but no places for a whole zero.
std::string thousandths(double value);

template <class Values>
std::string joined(const Values& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : " ") + number(double(value));
  return text;
}

// The cells of all things numbered 0 .. count - 1.
template <class CellOf>
std::vector<std::string> cells(int count, CellOf cell_of) {
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) texts.push_back(cell_of(i));
  return texts;
}

std::vector<int> ids_of(int expert);

template <class RowOf>
std::vector<std::string> rows_by_expert(RowOf row_of) {
  return cells(kExperts, [&](int expert) {
    std::vector<int> rows;
    for (const int id : ids_of(expert)) rows.push_back(row_of(id));
    return joined(rows);
  });
}

oracle::Alignment table_of(int block_m);
// "0 4 7 8 8 ..": a block's entries up to its second pad id.
std::string block_with_pads(const oracle::Alignment& table, int block_m, int block);
// The blocks of the table, their entries and experts, and how many rows are real.
void add_table(Grid& grid, int block_m);

// Two terms of D and one column of N.
oracle::GemmProblem tiny_gemm(int block_m);
// The operands of tiny_gemm, and what it computes for each flat id.
std::string tiny_sums(const oracle::GemmProblem& problem, const judge::Matrix& out);

}  // namespace moe::content
