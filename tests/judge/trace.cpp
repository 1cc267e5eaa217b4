#include "trace.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <utility>

namespace moe::judge {
namespace {

constexpr size_t kFirstTerms = 20;
constexpr size_t kLastTerms = 4;

}  // namespace

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value == 0.0 ? 0.0 : value);  // no "-0"
  return text;
}

void Trace::line(const char* format, ...) {
  end_table();
  char text[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  lines_.emplace_back(text);
}

void Trace::heading(const std::vector<std::string>& names) {
  end_table();
  table_ = {names};
}

void Trace::row(const std::vector<std::string>& values) {
  table_.push_back(values);
}

void Trace::end_table() {
  if (table_.empty()) return;
  std::vector<size_t> width;
  for (const auto& row : table_) {
    width.resize(std::max(width.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  const size_t terms = table_.size() - 1;
  for (size_t number = 0; number < table_.size(); ++number) {
    const bool shown =
        terms <= kFirstTerms + kLastTerms || number <= kFirstTerms || number + kLastTerms > terms;
    if (!shown) {
      if (number == kFirstTerms + 1) {
        lines_.push_back("    ... " + std::to_string(terms - kFirstTerms - kLastTerms) +
                         " more terms");
      }
      continue;
    }
    std::string text = " ";
    for (size_t i = 0; i < table_[number].size(); ++i) {
      text += std::string(3 + width[i] - table_[number][i].size(), ' ') + table_[number][i];
    }
    lines_.push_back(text);
  }
  table_.clear();
}

void Trace::result(const std::string& name, const std::string& want, const std::string& got) {
  line("%s should be %s%s", name.c_str(), want.c_str(),
       got.empty()   ? "; the call gave no output"
       : got == want ? ", and it is"
                     : ("; it is " + got).c_str());
}

bool Trace::has(const std::string& name, Place place, int64_t rows, int64_t columns) {
  if (place.row < rows && place.column < columns) return true;
  line("There is no %s[%lld][%lld]: it has %lld rows and %lld columns, counted from 0.",
       name.c_str(), static_cast<long long>(place.row), static_cast<long long>(place.column),
       static_cast<long long>(rows), static_cast<long long>(columns));
  return false;
}

std::vector<std::string> Trace::take() {
  end_table();
  return std::exchange(lines_, {});
}

}  // namespace moe::judge
