#include "driver/grade/source_text.h"

#include <algorithm>
#include <cctype>

namespace moe::grade {
namespace {

// A raw string that starts at `at` (on its R): where it ends, or npos where none starts.
std::size_t end_of_raw_string(std::string_view text, std::size_t at) {
  const std::size_t open = text.find('(', at + 2);
  if (open == std::string_view::npos || open - at > 18) return std::string_view::npos;
  const std::string close = ")" + std::string(text.substr(at + 2, open - at - 2)) + "\"";
  const std::size_t end = text.find(close, open);
  return end == std::string_view::npos ? end : end + close.size();
}

// Takes comments and the contents of strings out of a text, as a compiler's first phases see it.
class Stripper {
 public:
  explicit Stripper(std::string_view text) : text_(text) {}

  std::string run() {
    while (at_ < text_.size()) {
      if (!joined_line()) step();
    }
    return code_;
  }

 private:
  enum class In { kCode, kLine, kBlock, kText };

  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  // A backslash at the end of a line, blanks behind it or not: the next line belongs to this one.
  bool joined_line() {
    if (text_[at_] != '\\') return false;
    std::size_t end = at_ + 1;
    while (end < text_.size() && std::string_view(" \t\r").find(text_[end]) < 3) ++end;
    if (end >= text_.size() || text_[end] != '\n') return false;
    at_ = end + 1;
    ++owed_lines_;
    return true;
  }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      code_.append(static_cast<std::size_t>(owed_lines_) + 1, '\n');
      owed_lines_ = 0;
      if (in_ == In::kLine || in_ == In::kText) in_ = In::kCode;
    } else if (in_ == In::kBlock && c == '*' && next() == '/') {
      in_ = In::kCode;
      code_ += ' ';
      ++at_;
    } else if (in_ == In::kText) {
      if (c == '\\') ++at_;
      if (c == quote_) {
        code_ += c;
        in_ = In::kCode;
      }
    } else if (in_ == In::kCode) {
      step_in_code(c);
    }
    ++at_;
  }

  void step_in_code(char c) {
    const bool after_word = !code_.empty() && is_word_char(code_.back());
    if (c == '/' && (next() == '/' || next() == '*')) {
      in_ = next() == '/' ? In::kLine : In::kBlock;
      ++at_;
      return;
    }
    if (c == 'R' && next() == '"' && !after_word && skipped_raw_string()) return;
    code_ += c;
    if (c == '"' || (c == '\'' && !after_word)) {  // 1'000 is a number
      quote_ = c;
      // The name of an include stays readable.
      std::string rest;
      const std::string directive = directive_of(code_.substr(code_.rfind('\n') + 1), rest);
      in_ = directive.rfind("include", 0) == 0 ? In::kCode : In::kText;
    }
  }

  bool skipped_raw_string() {
    const std::size_t end = end_of_raw_string(text_, at_);
    if (end == std::string_view::npos) return false;
    const std::string_view raw = text_.substr(at_, end - at_);
    owed_lines_ += static_cast<int>(std::count(raw.begin(), raw.end(), '\n'));
    code_ += "\"\"";
    at_ = end - 1;
    return true;
  }

  std::string_view text_;
  std::string code_;
  std::size_t at_ = 0;
  int owed_lines_ = 0;  // ends of lines that were joined, given back at the next true one
  In in_ = In::kCode;
  char quote_ = '"';
};

}  // namespace

bool is_word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string directive_of(const std::string& line, std::string& rest) {
  std::size_t at = line.find_first_not_of(" \t\v\f");
  if (at == std::string::npos) return {};
  if (line[at] == '#') {
    ++at;
  } else if (line.compare(at, 2, "%:") == 0) {
    at += 2;
  } else {
    return {};
  }
  at = line.find_first_not_of(" \t\v\f", at);
  if (at == std::string::npos) return {};
  std::size_t end = at;
  while (end < line.size() && is_word_char(line[end])) ++end;
  rest = line.substr(end);
  return line.substr(at, end - at);
}

std::string code_only(std::string_view text) {
  return Stripper(text).run();
}

}  // namespace moe::grade
