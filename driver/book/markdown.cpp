#include "driver/book/markdown.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>

namespace moe::driver {
namespace {

// One code point of UTF-8; advances `at`.
char32_t next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(at);
  const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  char32_t point = length == 1 ? first : first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) point = (point << 6) | (byte(at + i) & 0x3fu);
  at += length;
  return point;
}

bool is_wide_punctuation(char32_t point) {
  return (point >= 0x2000 && point <= 0x206f) || (point >= 0x3000 && point <= 0x303f) ||
         (point >= 0xff00 && point <= 0xff0f) || (point >= 0xff1a && point <= 0xff20) ||
         (point >= 0xff3b && point <= 0xff40) || (point >= 0xff5b && point <= 0xff65);
}

int line_at(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(),
                                         text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

void blank_out(std::string& text, std::size_t from, std::size_t to) {
  for (std::size_t i = from; i < to && i < text.size(); ++i) {
    if (text[i] != '\n') text[i] = ' ';
  }
}

// Blanks out fenced code; lengths and lines stay.
std::string without_fences(std::string_view text) {
  std::string prose(text);
  std::size_t start = 0;
  std::string fence;
  while (start < text.size()) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view mark = line.substr(indent, 3);
    const bool is_fence = mark == "```" || mark == "~~~";
    if (is_fence || !fence.empty()) blank_out(prose, start, end);
    if (is_fence && fence.empty()) {
      fence = mark;
    } else if (is_fence && fence == mark) {
      fence.clear();
    }
    start = end + 1;
  }
  return prose;
}

std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (space && (line.empty() || line.back() == ' ')) continue;
    line += space ? ' ' : c;
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Takes the code spans out of the prose. A span may go over a line end, not over an empty line.
void take_code_spans(std::string& prose, Page& page) {
  std::size_t at = 0;
  while ((at = prose.find('`', at)) != std::string::npos) {
    const std::size_t open = at;
    while (at < prose.size() && prose[at] == '`') ++at;
    const std::string ticks(at - open, '`');
    std::size_t close = prose.find(ticks, at);
    while (close != std::string::npos && close + ticks.size() < prose.size() &&
           prose[close + ticks.size()] == '`') {
      close = prose.find(ticks, close + ticks.size() + 1);
    }
    if (close == std::string::npos || prose.find("\n\n", at) < close) continue;
    const std::string_view inside = std::string_view(prose).substr(at, close - at);
    page.code.push_back({line_at(prose, open), on_one_line(inside)});
    blank_out(prose, open, close + ticks.size());
    at = close + ticks.size();
  }
}

void find_headings(std::string_view text, const std::string& prose, Page& page) {
  static const std::regex kHeading("(^|\n)(#{1,6}) ([^\n]+)");
  std::map<std::string, int> seen;
  for (std::sregex_iterator match(prose.begin(), prose.end(), kHeading), end; match != end;
       ++match) {
    Heading heading;
    const auto start = static_cast<std::size_t>(match->position(2));
    heading.line = line_at(text, start);
    heading.level = static_cast<int>(match->length(2));
    // From the text: code spans belong to a heading too.
    const auto words = static_cast<std::size_t>(match->position(3));
    heading.text = on_one_line(text.substr(words, static_cast<std::size_t>(match->length(3))));
    heading.slug = slug_of(heading.text);
    const int before = seen[heading.slug]++;
    if (before > 0) heading.slug += "-" + std::to_string(before);
    page.headings.push_back(heading);
  }
}

void find_links(const std::string& prose, Page& page) {
  static const std::regex kLink(R"((!?)\[([^\]]*)\]\(([^)\s]*)[^)]*\))");
  static const std::regex kTag(R"re(<(img|a)\s([^>]*)>)re");
  static const std::regex kSource(R"re((src|href)="([^"]*)")re");
  static const std::regex kAlt(R"re(alt="([^"]*)")re");
  for (std::sregex_iterator match(prose.begin(), prose.end(), kLink), end; match != end; ++match) {
    page.links.push_back({line_at(prose, static_cast<std::size_t>(match->position())),
                          match->str(3), on_one_line(match->str(2)), match->length(1) == 1});
  }
  for (std::sregex_iterator match(prose.begin(), prose.end(), kTag), end; match != end; ++match) {
    const std::string attributes = match->str(2);
    std::smatch source;
    std::smatch alt;
    const bool has_source = std::regex_search(attributes, source, kSource);
    const bool has_alt = std::regex_search(attributes, alt, kAlt);
    if (!has_source) continue;
    page.links.push_back({line_at(prose, static_cast<std::size_t>(match->position())),
                          source.str(2), has_alt ? alt.str(1) : "", match->str(1) == "img"});
  }
}

void find_blocks(std::string_view text, const std::string& prose, Page& page) {
  static const std::regex kMark(R"((^|\n)<!-- (BEGIN|END) (\S+) ?([^\n]*?) ?-->(?=\n))");
  for (std::sregex_iterator match(prose.begin(), prose.end(), kMark), end; match != end; ++match) {
    const auto at = static_cast<std::size_t>(match->position() + match->length(1));
    const bool begins = match->str(2) == "BEGIN";
    if (begins) {
      Block block;
      block.line = line_at(text, at);
      block.kind = match->str(3);
      block.arguments = match->str(4);
      block.body = static_cast<std::size_t>(match->position() + match->length()) + 1;
      page.blocks.push_back(block);
    } else if (!page.blocks.empty() && page.blocks.back().kind == match->str(3)) {
      page.blocks.back().size = at - page.blocks.back().body;
      page.blocks.back().closed = true;
    }
  }
}

}  // namespace

std::string slug_of(std::string_view heading) {
  std::string slug;
  std::size_t at = 0;
  while (at < heading.size()) {
    const std::size_t start = at;
    const char32_t point = next_code_point(heading, at);
    if (point >= 0x80) {
      if (!is_wide_punctuation(point)) slug += heading.substr(start, at - start);
    } else if (point == ' ' || point == '-') {
      slug += '-';
    } else if (point == '_' || std::isalnum(static_cast<int>(point)) != 0) {
      slug += static_cast<char>(std::tolower(static_cast<int>(point)));
    }
  }
  return slug;
}

Page scan_markdown(std::string_view text) {
  Page page;
  std::string prose = without_fences(text);
  find_headings(text, prose, page);
  find_blocks(text, prose, page);
  take_code_spans(prose, page);
  find_links(prose, page);

  static const std::regex kRegion(R"(\bregion\s+(m\d+\.\w+))");
  const std::string whole(text);
  for (std::sregex_iterator match(whole.begin(), whole.end(), kRegion), end; match != end;
       ++match) {
    page.citations.push_back(
        {line_at(text, static_cast<std::size_t>(match->position())), match->str(1)});
  }
  return page;
}

}  // namespace moe::driver
