// From a note's Markdown to the left side of its page.
#include <functional>
#include <regex>
#include <set>

#include "driver/book/book.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver::book {
namespace {

namespace fs = std::filesystem;

// std::regex_replace with a function.
std::string replaced(const std::string& text,
                     const std::regex& pattern,
                     const std::function<std::string(const std::smatch&)>& replacement) {
  std::string out;
  auto at = text.cbegin();
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    out.append(at, (*match)[0].first);
    out += replacement(*match);
    at = (*match)[0].second;
  }
  out.append(at, text.cend());
  return out;
}

std::string rendered(const Book& book, const Source& source) {
  Command command;
  command.arguments = {book.tools.markdown, "--unsafe", "-e", "table",
                       book.course.root / source.markdown};
  command.limit_s = 30;
  return run_process(command).output;
}

// GitHub's anchors: the headings of both come in the same order.
std::string with_anchors(const std::string& html, const Page& page) {
  static const std::regex kHeading("<h([1-6])>");
  std::size_t next = 0;
  return replaced(html, kHeading, [&](const std::smatch& match) {
    if (next >= page.headings.size()) return match.str();
    return "<h" + match.str(1) + " id=\"" + escaped(page.headings[next++].slug) + "\">";
  });
}

std::string badge(const Book& book, const Source& source, const std::string& label) {
  const Place* place = book.place_of(label);
  if (place == nullptr) return "<code>region " + escaped(label) + "</code>";
  std::string page;
  if (place->stage != source.stage) {
    const std::string stem = place->stage->stem;
    page = path_to_root(source) + stem + ".html";
  }
  const std::string lines =
      std::to_string(place->region.begin_line) + "-" + std::to_string(place->region.end_line);
  const std::string file = source_name(*place->stage, "solution");
  return "<a class=\"badge\" href=\"" + page + "#region-" + label + "\" data-region=\"" + label +
         "\" title=\"" + file + ", lines " + lines + "\">" + label + "<small>lines " + lines +
         "</small></a>";
}

std::string with_badges(const Book& book, const Source& source, const std::string& html) {
  static const std::regex kRegion(R"(<code>region\s+(m\d+\.\w+)(\s+in\s+[\w./]+)?</code>)");
  return replaced(html, kRegion,
                  [&](const std::smatch& match) { return badge(book, source, match.str(1)); });
}

// Paragraphs say which regions they speak of.
std::string with_citations(const std::string& html) {
  static const std::regex kLabel(R"re(data-region="([^"]+)")re");
  std::string out;
  std::size_t start = 0;
  while (start < html.size()) {
    std::size_t end = html.find("</p>", start);
    end = end == std::string::npos ? html.size() : end + 4;
    std::string piece = html.substr(start, end - start);
    const std::size_t open = piece.rfind("<p>");
    std::set<std::string> labels;
    if (open != std::string::npos) {
      const std::string paragraph = piece.substr(open);
      for (std::sregex_iterator label(paragraph.begin(), paragraph.end(), kLabel), last;
           label != last; ++label) {
        labels.insert(label->str(1));
      }
    }
    if (!labels.empty()) {
      std::string cites;
      for (const std::string& label : labels) cites += (cites.empty() ? "" : " ") + label;
      piece.replace(open, 3, "<p data-cites=\"" + cites + "\">");
    }
    out += piece;
    start = end;
  }
  return out;
}

std::string link_of(const Book& book, const Source& source, const std::string& target) {
  if (target.empty() || target[0] == '#' || target.find("://") != std::string::npos) return target;
  const std::size_t hash = std::min(target.find('#'), target.size());
  const fs::path path =
      (fs::path(source.markdown).parent_path() / target.substr(0, hash)).lexically_normal();
  if (const Source* goal = book.source_of(path.string())) {
    return path_to_root(source) + goal->html + target.substr(hash);
  }
  return path_to_root(source) + "../../" + path.string() + target.substr(hash);
}

std::string with_links(const Book& book, const Source& source, const std::string& html) {
  static const std::regex kLink(R"re(<a href="([^"]*)">)re");
  return replaced(html, kLink, [&](const std::smatch& match) {
    return "<a href=\"" + link_of(book, source, match.str(1)) + "\">";
  });
}

// Drawings become part of the page, so that they follow its colours.
std::string with_figures(const Book& book, const Source& source, const std::string& html) {
  static const std::regex kImage(R"re(<p><img src="([^"]*\.svg)" alt="([^"]*)" /></p>)re");
  static const std::regex kStepper(R"(<!-- figure (\w+) -->)");
  const std::string drawn = replaced(html, kImage, [&](const std::smatch& match) {
    const fs::path path = book.course.root / fs::path(source.markdown).parent_path() / match.str(1);
    std::string svg = read_file(path);
    const std::string role = "role=\"img\"";
    const std::size_t at = svg.find(role);
    if (at != std::string::npos) {
      svg.replace(at, role.size(), role + " aria-label=\"" + match.str(2) + "\"");
    }
    return "<figure data-figure=\"" + path.stem().string() + "\">" + svg + "</figure>";
  });
  return replaced(drawn, kStepper, [](const std::smatch& match) {
    return "<figure class=\"stepper\" data-stepper=\"" + match.str(1) + "\"></figure>";
  });
}

}  // namespace

std::string note_html(const Book& book, const Source& source) {
  const Page page = scan_markdown(read_file(book.course.root / source.markdown));
  std::string html = with_anchors(rendered(book, source), page);
  html = with_links(book, source, html);
  html = with_citations(with_badges(book, source, html));
  return with_figures(book, source, html);
}

}  // namespace moe::driver::book
