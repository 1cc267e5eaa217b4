#include "driver/markdown.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace moe::driver {
namespace {

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

int heading_level(std::string_view line) {
  const std::size_t level = line.find_first_not_of('#');
  const bool heading = level != 0 && level != std::string_view::npos && line[level] == ' ';
  return heading ? static_cast<int>(level) : 0;
}

bool is_fence(const std::string& line) {
  return starts_with(trimmed(line), "```");
}

// "1. " or "- " at its start: how many characters the mark takes, else 0. In a paragraph only "1. "
// begins a list: with another number the sentence went on.
std::size_t list_mark(std::string_view line, bool in_paragraph) {
  if (starts_with(line, "- ") || starts_with(line, "* ")) return 2;
  const std::size_t digits = line.find_first_not_of("0123456789");
  const bool numbered =
      digits != 0 && digits != std::string_view::npos && starts_with(line.substr(digits), ". ");
  if (!numbered || (in_paragraph && line.substr(0, digits) != "1")) return 0;
  return digits + 2;
}

// Links and emphasis inside a line. The text of a link has no bracket: "[0, E), see [note](...)".
std::string inline_text(std::string text) {
  static const std::regex kImage(R"(!\[([^\]]*)\]\(([^)]*)\))");
  static const std::regex kLink(R"(\[([^\[\]]+)\]\((https?://[^)]*|[^)]*)\))");
  static const std::regex kExternal(R"(\[([^\[\]]+)\]\((https?://[^)]*)\))");
  static const std::regex kNote(R"(\[([^\[\]]+)\]\((m[0-9]+)_[a-z0-9_]+\.md#([a-z0-9_-]+)\))");
  text = std::regex_replace(text, kImage, "(figure $2: $1)");
  text = std::regex_replace(text, kExternal, "$1 ($2)");
  text = std::regex_replace(text, kNote, "$1 (drill notes $2 $3)");
  text = std::regex_replace(text, kLink, "$1");
  return std::regex_replace(text, std::regex(R"(\*\*([^*]+)\*\*)"), "$1");
}

// <details><summary>Answer</summary>text</details> -> "Answer: text", or "(folded)".
std::string unfolded(const std::string& text, bool answers) {
  static const std::regex kDetails(R"(<details>\s*<summary>([^<]*)</summary>([\s\S]*?)</details>)");
  return std::regex_replace(text, kDetails, answers ? "$1: $2" : "($1 is folded.)");
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  bool code = false;
  for (const char c : trimmed(line).substr(1)) {
    code = c == '`' ? !code : code;
    if (c == '|' && !code) {
      cells.push_back(inline_text(trimmed(cell)));
      cell.clear();
    } else {
      cell += c;
    }
  }
  return cells;
}

bool is_rule(const std::string& line) {
  return line.find_first_not_of("|-: ") == std::string::npos;
}

class Renderer {
 public:
  Renderer(const Paint& paint, const RenderOptions& options)
      : paint_(paint), answers_(options.answers), margin_(options.indent, ' ') {}

  std::string render(std::string_view markdown) {
    for (const std::string& line : split_lines(unfolded(std::string(markdown), answers_))) {
      take(line);
    }
    end_block();
    return text_;
  }

 private:
  void take(const std::string& line) {
    if (is_fence(line)) {
      if (!in_code_) end_block();
      in_code_ = !in_code_;
      if (!in_code_) text_ += "\n";
      return;
    }
    if (in_code_) {
      text_ += margin_ + "    " + line + "\n";
      return;
    }
    const std::string plain = trimmed(line);
    if (plain.empty()) {
      end_block();
    } else if (heading_level(line) > 0) {
      end_block();
      text_ += margin_ + paint_.strong(inline_text(trimmed(line.substr(line.find(' '))))) + "\n\n";
    } else if (plain.front() == '|') {
      if (!paragraph_.empty()) end_block();
      if (!is_rule(plain)) table_.push_back(cells_of(plain));
    } else {
      take_words(line, plain);
    }
  }

  void take_words(const std::string& line, const std::string& plain) {
    if (!table_.empty()) end_block();
    const std::size_t mark = list_mark(plain, !paragraph_.empty() && mark_.empty());
    if (mark > 0) {
      if (!paragraph_.empty()) end_block(false);
      const std::size_t depth = line.find_first_not_of(' ');
      mark_ = std::string(depth, ' ') + plain.substr(0, mark);
    }
    paragraph_ += (paragraph_.empty() ? "" : " ") + plain.substr(mark);
  }

  void end_block(bool gap = true) {
    if (!paragraph_.empty()) text_ += wrapped(margin_ + mark_, inline_text(paragraph_));
    if (!table_.empty()) end_table();
    if (gap && !(paragraph_.empty() && table_.empty())) text_ += "\n";
    paragraph_.clear();
    mark_.clear();
    table_.clear();
  }

  // Columns side by side where they fit, else each row as a block of "heading: cell".
  void end_table() {
    std::vector<std::size_t> width;
    for (const auto& row : table_) {
      width.resize(std::max(width.size(), row.size()), 0);
      for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    }
    std::size_t total = margin_.size();
    for (const std::size_t one : width) total += one + 2;
    if (total <= columns() + 2) {
      for (std::size_t number = 0; number < table_.size(); ++number) {
        std::string line;
        for (std::size_t i = 0; i < table_[number].size(); ++i) {
          line += padded(table_[number][i], width[i]) + "  ";
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text_ += margin_ + (number == 0 ? paint_.strong(line) : line) + "\n";
      }
      return;
    }
    for (std::size_t number = 1; number < table_.size(); ++number) {
      for (std::size_t i = 0; i < table_[number].size(); ++i) {
        const std::string& name = i < table_[0].size() ? table_[0][i] : std::string();
        const std::string first = i == 0 ? "" : "    " + (name.empty() ? "" : name + ": ");
        text_ += wrapped(margin_ + first, table_[number][i]);
      }
    }
  }

  const Paint& paint_;
  bool answers_;
  std::string margin_;
  std::string text_;
  std::string paragraph_;
  std::string mark_;  // of a list item, before its first line
  std::vector<std::vector<std::string>> table_;
  bool in_code_ = false;
};

}  // namespace

std::string section_slug(std::string_view title) {
  std::string slug;
  for (const char c : title) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '_' || c == '-') {
      slug += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      slug += '-';
    }
  }
  return slug;
}

std::vector<Section> sections_of(std::string_view markdown) {
  std::vector<Section> sections;
  bool in_code = false;
  for (const std::string& line : split_lines(markdown)) {
    if (is_fence(line)) in_code = !in_code;
    const int level = in_code ? 0 : heading_level(line);
    if (level > 0) {
      Section section;
      section.level = level;
      section.title = trimmed(line.substr(static_cast<std::size_t>(level)));
      section.slug = section_slug(section.title);
      sections.push_back(section);
    } else if (!sections.empty()) {
      sections.back().body += line + "\n";
    }
  }
  return sections;
}

std::string rendered(std::string_view markdown, const Paint& paint, const RenderOptions& options) {
  return Renderer(paint, options).render(markdown);
}

}  // namespace moe::driver
