#include "look.h"

#include <cstdio>
#include <utility>

namespace moe::judge {
namespace {

Look& noted() {
  static Look look;
  return look;
}

}  // namespace

LookOptions& look_options() {
  static LookOptions options;
  return options;
}

void note_wrong(const std::string& name,
                int64_t rows,
                int64_t columns,
                std::vector<uint8_t> wrong,
                const std::vector<uint8_t>& judged) {
  if (!look_options().map || columns <= 0) return;
  for (size_t i = 0; i < wrong.size(); ++i) {
    const size_t row = i / static_cast<size_t>(columns);
    if (row < judged.size() && judged[row] == 0) wrong[i] = 2;
  }
  noted().map = {name, rows, columns, std::move(wrong)};
}

void note_trace(std::vector<std::string> lines) {
  noted().trace = std::move(lines);
}

Look take_look() {
  return std::exchange(noted(), Look{});
}

bool parse_place(const std::string& text, Place& place) {
  long long row = 0;
  long long column = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%lld,%lld%n", &row, &column, &used) != 2) return false;
  place = {row, column};
  return static_cast<size_t>(used) == text.size() && row >= 0 && column >= 0;
}

}  // namespace moe::judge
