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
std::string caption(const std::string& heading, const char* file, bool chinese) {
  const std::string link = std::string(chinese ? "../results/" : "results/") + file;
  return (chinese ? "实测，" : "Measured, ") + heading + (chinese ? "（[方法](" : " ([method](") +
         link + (chinese ? ")）：\n\n" : ")):\n\n");
}

struct Row {
  std::string heading;  // of the section above it
  std::vector<std::string> header;
  std::vector<std::string> cells;
};

// The lines of all tables of content/results/FILE.
std::vector<Row> rows_of(const driver::Course& course, const char* file) {
  std::vector<Row> rows;
  std::string heading;
  std::vector<std::string> header;
  const std::string text = driver::read_file(course.root / "content/results" / file);
  for (const std::string& line : driver::split_lines(text)) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (!line.starts_with("|")) {
      header.clear();
      continue;
    }
    const std::vector<std::string> cells = cells_of(line);
    if (header.empty()) {
      header = cells;
    } else if (!cells.front().starts_with("---")) {
      rows.push_back({heading, header, cells});
    }
  }
  return rows;
}

// "table NAME": the table of README.md whose first heading is NAME.
std::string table_body(const driver::Course& course, const std::string& name, bool chinese) {
  std::string found;
  for (const Row& row : rows_of(course, "README.md")) {
    if (row.header.front() != name) continue;
    if (found.empty()) {
      found = caption(row.heading, "README.md", chinese) + table_line(row.header) +
              rule_line(row.header.size());
    }
    found += table_line(row.cells);
  }
  return found;
}

// The lines of the tables of stages whose first cell is the stage, or the stage and what of it is
// measured ("m7 GEMM1"): of the first section that has any, since the latest stands first.
std::string stage_body(const driver::Course& course,
                       const char* file,
                       const std::string& id,
                       bool chinese) {
  std::string found;
  std::string heading;
  std::vector<std::string> header;
  for (Row row : rows_of(course, file)) {
    const std::string what = row.cells.front();
    if (row.header.front() != "stage" || (what != id && !what.starts_with(id + " "))) continue;
    const std::size_t first = what == id ? 1 : 0;
    if (first == 0) {
      row.header.front() = "what";
      row.cells.front() = what.substr(id.size() + 1);
    }
    if (!found.empty() && row.heading != heading) break;
    if (row.header != header) {
      found += found.empty() ? caption(row.heading, file, chinese) : "\n";
      found += table_line(row.header, first) + rule_line(row.header.size() - first);
    }
    heading = row.heading;
    header = row.header;
    found += table_line(row.cells, first);
  }
  return found;
}

// README.md is asked first, ladder.md only about stages that it leaves out. A stage that neither
// names has no figures: the note says so, and turns stale when there are some.
std::string measured_body(const driver::Course& course, const std::string& wanted, bool chinese) {
  if (wanted.starts_with("table ")) return table_body(course, wanted.substr(6), chinese);
  if (driver::find_stage(wanted) == nullptr) return "";
  for (const char* file : {"README.md", "ladder.md"}) {
    const std::string found = stage_body(course, file, wanted, chinese);
    if (!found.empty()) return found;
  }
  const std::string folder = chinese ? "../results/" : "results/";
  const std::string files = "[README.md](" + folder + "README.md)" + (chinese ? "、" : " and ") +
                            "[ladder.md](" + folder + "ladder.md)";
  return chinese ? "尚未在 GPU 上测量：" + files + " 没有 " + wanted + " 的数字。\n"
                 : "Not measured on a GPU yet: " + files + " have no figure of " + wanted + ".\n";
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
