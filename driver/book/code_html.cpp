// The right side of a stage's page: the learner's file, the solution and the contract.
#include <regex>

#include "driver/book/book.h"
#include "driver/process.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver::book {
namespace {

// The highlighted lines; the plain ones where the tool does not give as many.
std::vector<std::string> highlighted(const Book& book, const std::filesystem::path& file) {
  std::vector<std::string> plain;
  for (const std::string& line : split_lines(read_file(file))) plain.push_back(escaped(line));
  Command command;
  command.arguments = {book.tools.highlight, "-s", "cpp", "-f", "html-css", "--no-doc", "-i", file};
  command.limit_s = 30;
  const std::string html = run_process(command).output;
  const std::string open = "<pre><tt>";
  const std::size_t start = html.find(open);
  const std::size_t end = html.rfind("</tt></pre>");
  if (start == std::string::npos || end == std::string::npos) return plain;
  const std::size_t from = start + open.size();
  std::vector<std::string> lines = split_lines(html.substr(from, end - from));
  return lines.size() == plain.size() ? lines : plain;
}

struct Tab {
  std::string name;  // "mine"
  std::string file;  // "mine/m2_grouped_gemm.cu"
};

std::string file_html(const Book& book, const Tab& tab) {
  static const std::regex kBegin(R"(^\s*// BEGIN (m\d+\.\w+))");
  static const std::regex kEnd(R"(^\s*// END m\d+\.\w+)");
  const std::filesystem::path path = book.course.root / tab.file;
  const std::vector<std::string> source = split_lines(read_file(path));
  const std::vector<std::string> lines = highlighted(book, path);
  std::string html = "<pre>";
  bool inside = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (!inside && std::regex_search(source[i], match, kBegin)) {
      inside = true;
      html += "<span class=\"region\" tabindex=\"0\" id=\"" + tab.name + "-" + match.str(1) +
              "\" data-region=\"" + match.str(1) + "\">";
    }
    html += "<span class=\"line\" data-line=\"" + std::to_string(i + 1) + "\">" + lines[i] +
            "</span>\n";
    if (inside && std::regex_search(source[i], kEnd)) {
      inside = false;
      html += "</span>";
    }
  }
  return html + (inside ? "</span>" : "") + "</pre>";
}

std::string verdict_html(const Book& book, const Stage& stage) {
  const Standing standing = standing_of(book.course, stage);
  const std::string id = stage.id;
  const char* kind = standing.passed ? "good" : standing.word == "WRONG" ? "bad" : "open";
  return "<p class=\"verdict " + std::string(kind) + "\"><strong>" + escaped(standing.word) +
         "</strong> " + escaped(standing.detail) + " <code>./drill " + id + "</code></p>";
}

}  // namespace

std::string code_pane(const Book& book, const Stage& stage) {
  const std::string stem = stage.stem;
  const std::vector<Tab> tabs{{"mine", source_name(stage, "mine")},
                              {"solution", source_name(stage, "solution")},
                              {"contract", "drills/" + stem + ".h"}};
  std::string html = "<aside id=\"code\" aria-label=\"Code\">\n<div class=\"bar\">" +
                     verdict_html(book, stage) + "<div role=\"tablist\" aria-label=\"Files\">";
  for (const Tab& tab : tabs) {
    const bool first = tab.name == "mine";
    html += "<button role=\"tab\" id=\"tab-" + tab.name + "\" aria-controls=\"panel-" + tab.name +
            "\" aria-selected=\"" + (first ? "true" : "false") + "\" tabindex=\"" +
            (first ? "0" : "-1") + "\">" + tab.name + "</button>";
  }
  html += "</div>\n<p id=\"spoken\" aria-live=\"polite\"></p></div>\n";
  for (const Tab& tab : tabs) {
    html += "<div role=\"tabpanel\" id=\"panel-" + tab.name + "\" aria-labelledby=\"tab-" +
            tab.name + "\"" + (tab.name == "mine" ? "" : " hidden") + "><p class=\"file\">" +
            tab.file + "</p>";
    const bool fold = tab.name == "solution";
    if (fold) html += "<details id=\"fold\"><summary>Show the solution</summary>";
    html += file_html(book, tab) + (fold ? "</details>" : "") + "</div>\n";
  }
  return html + "</aside>\n";
}

}  // namespace moe::driver::book
