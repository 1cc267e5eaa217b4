#include "driver/skeleton.h"

#include <algorithm>
#include <optional>
#include <set>

namespace moe::driver {
namespace {

constexpr std::string_view kBegin = "// BEGIN";
constexpr std::string_view kEnd = "// END";
constexpr std::string_view kStub = "// STUB:";
constexpr std::string_view kGiven = "(given)";

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// The lines of a text without their newlines; a last line without one counts.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

// What follows a marker word, or nothing when the line is no such marker. "// ENDING" is none.
std::optional<std::string_view> marker_rest(std::string_view line, std::string_view marker) {
  const std::string_view text = trimmed(line);
  if (!starts_with(text, marker)) return std::nullopt;
  const std::string_view rest = text.substr(marker.size());
  if (!rest.empty() && rest.front() != ' ' && marker.back() != ':') return std::nullopt;
  return rest;
}

bool is_marker(std::string_view line) {
  return marker_rest(line, kBegin) || marker_rest(line, kEnd);
}

bool is_comment(std::string_view line) {
  return starts_with(trimmed(line), "//");
}

// The comment block above line `begin`, joined with blanks. A few lines of code may stand between
// (a declaration that the region fills, say), but no blank line and no marker.
std::string instruction_above(const std::vector<std::string_view>& lines, std::size_t begin) {
  constexpr int kCodeBetween = 3;
  std::size_t last = begin;
  for (int i = 0; i < kCodeBetween && last > 0; ++i) {
    const std::string_view line = trimmed(lines[last - 1]);
    if (line.empty() || is_comment(line)) break;
    --last;
  }
  std::size_t first = last;
  while (first > 0 && is_comment(lines[first - 1]) && !is_marker(lines[first - 1])) --first;
  std::string text;
  for (std::size_t i = first; i < last; ++i) {
    const std::string_view words = trimmed(trimmed(lines[i]).substr(2));
    if (!text.empty() && !words.empty()) text += ' ';
    text += words;
  }
  return text;
}

// Walks over the lines of a solution and collects its regions.
class RegionFinder {
 public:
  RegionFinder(std::string_view solution, std::string_view file, std::string_view stage_id)
      : lines_(lines_of(solution)), file_(file), stage_id_(stage_id) {}

  std::vector<Region> find() {
    for (index_ = 0; index_ < lines_.size(); ++index_) {
      const std::string_view line = lines_[index_];
      if (const auto rest = marker_rest(line, kBegin)) {
        begin(*rest);
      } else if (const auto end_rest = marker_rest(line, kEnd)) {
        end(*end_rest);
      } else if (const auto stub = marker_rest(line, kStub)) {
        add_stub(*stub);
      } else if (open_ && !trimmed(line).empty() && !is_comment(line)) {
        ++open_->code_lines;
      }
    }
    if (open_) {
      throw MarkerError(file_, open_->begin_line, "BEGIN " + open_->label + " has no END");
    }
    return regions_;
  }

 private:
  int line_number() const { return static_cast<int>(index_) + 1; }

  [[noreturn]] void fail(const std::string& rule) const {
    throw MarkerError(file_, line_number(), rule);
  }

  // A label and, for BEGIN, "(given)": label_text is "m2.gather (given)".
  std::string read_label(std::string_view rest, std::string_view marker, bool& given) const {
    rest = trimmed(rest);
    const std::size_t blank = rest.find(' ');
    std::string label(rest.substr(0, blank));
    const std::string_view after =
        blank == std::string_view::npos ? std::string_view() : trimmed(rest.substr(blank));
    given = marker == kBegin && after == kGiven;
    if (label.empty() || label.front() == '(') {
      fail(std::string(marker.substr(3)) + " without a label");
    }
    if (!after.empty() && !given) fail("unknown words after the label: " + std::string(after));
    return label;
  }

  void check_label(const std::string& label) const {
    const std::string prefix = std::string(stage_id_) + ".";
    const std::string_view name = std::string_view(label).substr(
        std::min(label.size(), starts_with(label, prefix) ? prefix.size() : label.size()));
    const bool plain =
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
    if (name.empty() || !plain) {
      fail("label " + label + " is not of the form " + prefix + "some_name");
    }
  }

  void begin(std::string_view rest) {
    Region region;
    region.label = read_label(rest, kBegin, region.given);
    check_label(region.label);
    if (open_) fail("BEGIN " + region.label + " inside of region " + open_->label);
    if (!labels_.insert(region.label).second) fail("label " + region.label + " is used twice");
    region.begin_line = line_number();
    region.instruction = instruction_above(lines_, index_);
    open_ = region;
  }

  void end(std::string_view rest) {
    bool given = false;
    const std::string label = read_label(rest, kEnd, given);
    if (!open_) fail("END " + label + " without a BEGIN");
    if (label != open_->label) fail("END " + label + " closes region " + open_->label);
    if (open_->code_lines == 0) fail("region " + label + " holds no code");
    open_->end_line = line_number();
    regions_.push_back(*open_);
    open_.reset();
  }

  void add_stub(std::string_view code) {
    if (!open_) fail("STUB outside of a region");
    if (open_->given) fail("STUB in the given region " + open_->label);
    if (starts_with(code, " ")) code.remove_prefix(1);
    open_->stubs.emplace_back(code);
  }

  std::vector<std::string_view> lines_;
  std::string_view file_;
  std::string_view stage_id_;
  std::size_t index_ = 0;
  std::optional<Region> open_;
  std::set<std::string> labels_;
  std::vector<Region> regions_;
};

std::string blank_body(const Region& region, std::string_view indent) {
  const std::string start(indent);
  const std::string lines = region.code_lines == 1 ? " line" : " lines";
  std::string body = start + "// about " + std::to_string(region.code_lines) + lines + "\n";
  body += start + "DRILL_TODO(\"" + region.label + "\");\n";
  for (const std::string& stub : region.stubs) body += start + stub + "\n";
  return body;
}

}  // namespace

MarkerError::MarkerError(std::string_view file, int line, const std::string& rule)
    : std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + rule) {}

std::vector<Region> find_regions(std::string_view solution,
                                 std::string_view file,
                                 std::string_view stage_id) {
  return RegionFinder(solution, file, stage_id).find();
}

std::string make_skeleton(std::string_view solution,
                          std::string_view file,
                          std::string_view stage_id) {
  const std::vector<Region> regions = find_regions(solution, file, stage_id);
  const std::vector<std::string_view> lines = lines_of(solution);
  std::string skeleton;
  std::size_t index = 0;
  const auto copy_up_to = [&](std::size_t end) {
    for (; index < end; ++index) skeleton += std::string(lines[index]) + "\n";
  };
  for (const Region& region : regions) {
    if (region.given) continue;
    const std::size_t begin = static_cast<std::size_t>(region.begin_line);
    copy_up_to(begin - 1);
    index = static_cast<std::size_t>(region.end_line) - 1;
    // clang-format moves a BEGIN in front of `#pragma` to the left; the END stands where both
    // belong.
    const std::string_view indent = lines[index].substr(0, lines[index].find("//"));
    const std::string_view marker = lines[begin - 1];
    skeleton += std::string(indent) + std::string(marker.substr(marker.find("//"))) + "\n";
    skeleton += blank_body(region, indent);
  }
  copy_up_to(lines.size());
  return skeleton;
}

int marker_line(std::string_view text, std::string_view label) {
  int number = 0;
  for (const std::string_view line : lines_of(text)) {
    ++number;
    const auto rest = marker_rest(line, kBegin);
    if (!rest) continue;
    const std::string_view words = trimmed(*rest);
    if (words.substr(0, words.find(' ')) == label) return number;
  }
  return 0;
}

bool has_todo(std::string_view line, std::string_view label) {
  const std::string_view code = line.substr(0, line.find("//"));
  const std::size_t call = code.find("DRILL_TODO");
  if (call == std::string_view::npos) return false;
  std::string quoted("\"");
  quoted.append(label).append("\"");
  return code.find(quoted, call) != std::string_view::npos;
}

std::vector<Blank> find_blanks(const std::vector<Region>& regions, std::string_view mine) {
  std::vector<Blank> blanks;
  const std::vector<std::string_view> lines = lines_of(mine);
  for (const Region& region : regions) {
    if (region.given) continue;
    Blank blank;
    blank.label = region.label;
    blank.instruction = region.instruction;
    blank.line = marker_line(mine, region.label);
    blank.written = std::none_of(lines.begin(), lines.end(), [&](std::string_view line) {
      return has_todo(line, region.label);
    });
    blanks.push_back(blank);
  }
  return blanks;
}

}  // namespace moe::driver
