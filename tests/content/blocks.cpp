#include "content/blocks.h"

#include <stdexcept>
#include <vector>

#include "content/tiny_example.h"
#include "driver/terminal.h"

namespace moe::content {
namespace {

using driver::Region;

// The cells of "| a | b |".
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t at = 1;
  while (at < line.size()) {
    const std::size_t end = std::min(line.find('|', at), line.size());
    std::string cell = line.substr(at, end - at);
    while (!cell.empty() && cell.front() == ' ') cell.erase(0, 1);
    while (!cell.empty() && cell.back() == ' ') cell.pop_back();
    cells.push_back(cell);
    at = end + 1;
  }
  return cells;
}

std::string table_line(const std::vector<std::string>& cells, std::size_t first = 0) {
  std::string line = "|";
  for (std::size_t i = first; i < cells.size(); ++i) line += " " + cells[i] + " |";
  return line + "\n";
}

std::string rule_line(std::size_t cells) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells; ++i) line += "---|";
  return line + "\n";
}

// The heading of the section that the table stands in says machine and date.
std::string caption(const std::string& heading, bool chinese) {
  const std::string link = chinese ? "../results/README.md" : "results/README.md";
  return (chinese ? "实测，" : "Measured, ") + heading + (chinese ? "（[方法](" : " ([method](") +
         link + (chinese ? ")）：\n\n" : ")):\n\n");
}

std::string measured_body(const driver::Course& course, const std::string& wanted, bool chinese) {
  std::string heading;
  std::string found;
  std::vector<std::string> header;
  const bool whole = wanted.starts_with("table ");
  for (const std::string& line :
       driver::split_lines(driver::read_file(course.root / "content/results/README.md"))) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (!line.starts_with("|")) {
      header.clear();
      continue;
    }
    const std::vector<std::string> cells = cells_of(line);
    if (header.empty()) {
      header = cells;
      if (whole && cells.front() == wanted.substr(6)) {
        found += caption(heading, chinese) + table_line(cells) + rule_line(cells.size());
      }
    } else if (cells.front().starts_with("---")) {
      continue;
    } else if (whole && header.front() == wanted.substr(6)) {
      found += table_line(cells);
    } else if (header.front() == "stage" && cells.front() == wanted) {
      if (found.empty()) {
        found = caption(heading, chinese) + table_line(header, 1) + rule_line(header.size() - 1);
      }
      found += table_line(cells, 1);
    }
  }
  return found;
}

// The section that cites the region first, below the heading "Regions".
std::string section_of(const NoteFile& note, const std::string& label) {
  for (const driver::Citation& citation : note.page.citations) {
    if (citation.label != label) continue;
    const driver::Heading* section = nullptr;
    for (const driver::Heading& heading : note.page.headings) {
      if (heading.line < citation.line && heading.level == 3) section = &heading;
    }
    if (section != nullptr) return "[" + section->text + "](#" + section->slug + ")";
  }
  return "-";
}

std::string regions_body(const driver::Course& course, const NoteFile& note, const Stage& stage) {
  const bool chinese = note.chinese();
  std::string body = chinese ? "| 区域 | 代码行数 | 归谁写 | 小节 |\n"
                             : "| region | lines of code | | section |\n";
  body += rule_line(4);
  for (const Region& region : driver::regions_of(course, stage)) {
    const char* whose =
        chinese ? (region.given ? "已给出" : "你") : (region.given ? "given" : "yours");
    body += table_line({"`" + region.label + "`", std::to_string(region.code_lines), whose,
                        section_of(note, region.label)});
  }
  return body;
}

}  // namespace

std::string generated_body(const driver::Course& course,
                           const NoteFile& note,
                           const driver::Block& block) {
  std::string body;
  if (block.kind == "tiny") {
    body = tiny_example(block.arguments);
  } else if (block.kind == "measured") {
    body = measured_body(course, block.arguments, note.chinese());
  } else if (block.kind == "regions") {
    const Stage* stage = driver::find_stage(block.arguments);
    if (stage != nullptr) body = regions_body(course, note, *stage);
  } else {
    return "";
  }
  if (body.empty()) {
    throw std::runtime_error(block.kind + " " + block.arguments + " names nothing");
  }
  return "\n" + body + "\n";
}

}  // namespace moe::content
