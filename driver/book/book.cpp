#include "driver/book/book.h"

#include <algorithm>
#include <fstream>

#include "driver/process.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver::book {
namespace {

namespace fs = std::filesystem;

std::string head_html(const Source& source) {
  const std::string root = path_to_root(source);
  return std::string("<!doctype html>\n<html lang=\"") + (source.chinese ? "zh" : "en") +
         "\">\n<head><meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escaped(source.title) + " - moe-drills</title>\n<link rel=\"icon\" href=\"data:,\">\n" +
         "<link rel=\"stylesheet\" href=\"" + root + "site.css\">\n<script src=\"" + root +
         "site.js\" defer></script>\n<script src=\"" + root +
         "steppers.js\" defer></script>\n</head>\n";
}

// The note of the same stage in the other language, or nullptr: not all are translated.
const Source* other_language_of(const Book& book, const Source& here) {
  if (here.stage == nullptr) return nullptr;
  for (const Source& source : book.sources) {
    if (source.stage == here.stage && source.chinese != here.chinese) return &source;
  }
  return nullptr;
}

std::string navigation(const Book& book, const Source& here) {
  const std::string root = path_to_root(here);
  std::string html =
      "<header><nav aria-label=\"Pages\"><a href=\"" + root + "index.html\">moe-drills</a>";
  for (const Source& source : book.sources) {
    // A Chinese page leads to the Chinese notes; pages without a stage are in English.
    if (source.stage != nullptr && source.chinese != here.chinese) continue;
    if (source.title.empty()) continue;
    const bool current = source.html == here.html;
    html += std::string("<a href=\"") + root + source.html + "\"" +
            (current ? " aria-current=\"page\"" : "") + ">" + escaped(source.title) + "</a>";
  }
  const Source* other = other_language_of(book, here);
  if (other != nullptr) {
    html += "<a href=\"" + root + other->html + "\" lang=\"" +
            (here.chinese ? "en\">English" : "zh\">\xe4\xb8\xad\xe6\x96\x87") + "</a>";
  }
  return html + "</nav><button id=\"theme\" type=\"button\">light / dark</button></header>\n";
}

std::string page_html(const Book& book, const Source& source) {
  std::string html =
      head_html(source) + "<body>\n<a class=\"skip\" href=\"#note\">Skip to the text</a>\n" +
      navigation(book, source) + "<div class=\"" + (source.stage != nullptr ? "split" : "single") +
      "\">\n<main id=\"note\">\n" + note_html(book, source) + "</main>\n";
  if (source.stage != nullptr) html += code_pane(book, *source.stage);
  return html + "</div>\n</body>\n</html>\n";
}

std::string index_html(const Book& book) {
  Source index;
  index.html = "index.html";
  index.title = "Contents";
  std::string html =
      head_html(index) + "<body>\n" + navigation(book, index) +
      "<div class=\"single\"><main id=\"note\">\n<h1>moe-drills</h1>\n<table>\n"
      "<thead><tr><th>stage</th><th>you write</th><th>where you are</th></tr></thead>\n";
  for (const Source& source : book.sources) {
    if (source.stage == nullptr || source.chinese) continue;
    const Standing standing = standing_of(book.course, *source.stage);
    html += "<tr><td><a href=\"" + source.html + "\">" + source.stage->id + "</a></td><td>" +
            escaped(source.stage->title) + "</td><td>" +
            escaped(standing.word + "  " + standing.detail) + "</td></tr>\n";
  }
  return html +
         "</table>\n<p>New to CUDA: <a href=\"start.html\">CUDA in one page</a>. What the layer "
         "is: <a href=\"moe.html\">Mixture of Experts</a>. Words: <a "
         "href=\"glossary.html\">glossary</a>. <a href=\"zh/m1_align.html\" "
         "lang=\"zh\">\xe4\xb8\xad\xe6\x96\x87</a></p>\n<p>Next: <code>./" +
         escaped(next_command(book.course)) + "</code></p>\n</main></div>\n</body>\n</html>\n";
}

bool write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << text;
  return file.good();
}

}  // namespace

Tools Tools::find() {
  return {find_program("cmark-gfm"), find_program("source-highlight")};
}

std::string Tools::missing() const {
  std::string names;
  if (markdown.empty()) names += " cmark-gfm";
  if (highlight.empty()) names += " source-highlight";
  return names.empty() ? "" : names.substr(1);
}

std::vector<Source> sources_of(const Course& course) {
  std::vector<Source> sources{{"content/start.md", "start.html", "CUDA", nullptr, false},
                              {"content/moe.md", "moe.html", "MoE", nullptr, false}};
  for (const bool chinese : {false, true}) {
    for (const Stage& stage : kStages) {
      const std::string page = (chinese ? "zh/" : "") + std::string(stage.stem);
      if (!fs::exists(course.root / "content" / (page + ".md"))) continue;
      sources.push_back({"content/" + page + ".md", page + ".html", stage.id, &stage, chinese});
    }
  }
  sources.push_back({"content/glossary.md", "glossary.html", "Glossary", nullptr, false});
  sources.push_back({"content/testing.md", "testing.html", "Verdicts", nullptr, false});
  sources.push_back({"content/results/README.md", "results.html", "Results", nullptr, false});
  sources.push_back({"content/results/ladder.md", "ladder.html", "Ladder", nullptr, false});
  sources.push_back({"emulator/README.md", "emulator.html", "Emulator", nullptr, false});
  sources.push_back({"README.md", "readme.html", "README", nullptr, false});
  return sources;
}

const Place* Book::place_of(const std::string& label) const {
  const auto found = std::find_if(places.begin(), places.end(),
                                  [&](const Place& place) { return place.region.label == label; });
  return found == places.end() ? nullptr : &*found;
}

const Source* Book::source_of(const std::string& markdown) const {
  const auto found = std::find_if(sources.begin(), sources.end(), [&](const Source& source) {
    return source.markdown == markdown;
  });
  return found == sources.end() ? nullptr : &*found;
}

std::string write_site(const Course& course, const fs::path& folder) {
  Book book{course, Tools::find(), sources_of(course), {}};
  if (!book.tools.missing().empty()) return "not installed: " + book.tools.missing();
  for (const Stage& stage : kStages) {
    for (const Region& region : regions_of(course, stage)) book.places.push_back({&stage, region});
  }
  bool good = write_text(folder / "index.html", index_html(book));
  for (const Source& source : book.sources) {
    good = good && write_text(folder / source.html, page_html(book, source));
  }
  for (const char* asset : {"site.css", "site.js", "steppers.js"}) {
    const std::string text = read_file(course.root / "driver/book" / asset);
    good = good && !text.empty() && write_text(folder / asset, text);
  }
  return good ? "" : "cannot write " + folder.string();
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

std::string path_to_root(const Source& source) {
  std::string path;
  for (const char c : source.html) path += c == '/' ? "../" : "";
  return path;
}

}  // namespace moe::driver::book
