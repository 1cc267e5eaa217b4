#include "driver/look.h"

#include <algorithm>

namespace moe::driver {
namespace {

constexpr std::size_t kMapRows = 32;
constexpr std::size_t kMargin = 10;  // for the numbers of rows

// How many values one character stands for, so that `count` of them fit into `room`.
std::size_t step_of(std::size_t count, std::size_t room) {
  return std::max<std::size_t>(1, (count + room - 1) / room);
}

// '#' all wrong, '+' some, '.' none, ' ' nothing judged.
char character_of(const WrongMap& map,
                  std::size_t row,
                  std::size_t rows,
                  std::size_t column,
                  std::size_t columns) {
  std::size_t wrong = 0;
  std::size_t judged = 0;
  for (std::size_t r = row; r < std::min(row + rows, map.rows); ++r) {
    for (std::size_t c = column; c < std::min(column + columns, map.columns); ++c) {
      const char cell = map.cells[r * map.columns + c];
      wrong += cell == '1' ? 1 : 0;
      judged += cell != '2' ? 1 : 0;
    }
  }
  if (judged == 0) return ' ';
  return wrong == 0 ? '.' : wrong == judged ? '#' : '+';
}

std::string right_aligned(std::size_t number, std::size_t width) {
  const std::string text = std::to_string(number);
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace

std::string map_text(const WrongMap& map, const Paint& paint, std::size_t width) {
  if (map.cells.empty()) return {};
  const std::size_t row_step = step_of(map.rows, kMapRows);
  const std::size_t column_step = step_of(map.columns, width - kMargin - 2);
  std::string text = wrapped("  map     ", map.name + ": " + counted(map.rows, "row") + ", " +
                                               counted(map.columns, "column"));
  for (std::size_t row = 0; row < map.rows; row += row_step) {
    std::string line;
    for (std::size_t column = 0; column < map.columns; column += column_step) {
      const char c = character_of(map, row, row_step, column, column_step);
      line += c == '#' || c == '+' ? paint.bad(std::string(1, c)) : std::string(1, c);
    }
    text += right_aligned(row, kMargin - 2) + " |" + line + "|\n";
  }
  std::string legend = ". right  # wrong  (blank: not judged)";
  if (row_step > 1 || column_step > 1) {
    legend = ". right  # all wrong  + some wrong; one character is " + std::to_string(row_step) +
             " x " + std::to_string(column_step) + " values";
  }
  return text + wrapped(std::string(kMargin, ' '), legend);
}

std::string look_text(const CaseRecord& one, const Paint& paint) {
  std::string text = map_text(one.map, paint);
  if (!text.empty() && !one.trace.empty()) text += "\n";
  for (const std::string& line : one.trace) text += "  " + without_control_bytes(line) + "\n";
  return text.empty() ? text : "\n" + text;
}

}  // namespace moe::driver
