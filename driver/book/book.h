// `drill read`: the notes as a static site in build/site, beside the code. cmark-gfm renders the
// Markdown and source-highlight the code; what is here joins them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "driver/book/markdown.h"
#include "driver/course.h"

namespace moe::driver::book {

// The programs of Debian that do the rendering.
struct Tools {
  std::filesystem::path markdown;   // cmark-gfm
  std::filesystem::path highlight;  // source-highlight

  static Tools find();
  std::string missing() const;  // names of Debian packages, or ""
};

// One page of the site.
struct Source {
  std::string markdown;  // "content/zh/m1_align.md", below the root of the course
  std::string html;      // "zh/m1_align.html", below the site
  std::string title;     // of the navigation
  const Stage* stage = nullptr;
  bool chinese = false;
};

std::vector<Source> sources_of(const Course& course);

// Where a region stands: the lines of its markers in the solution.
struct Place {
  const Stage* stage = nullptr;
  Region region;
};

// What all pages need to know of each other.
struct Book {
  const Course& course;
  Tools tools;
  std::vector<Source> sources;
  std::vector<Place> places;

  const Place* place_of(const std::string& label) const;
  const Source* source_of(const std::string& markdown) const;
};

// note_html.cpp: the rendered note with anchors, badges, links of the site and figures.
std::string note_html(const Book& book, const Source& source);

// code_html.cpp: the pane with the tabs mine, solution and contract.
std::string code_pane(const Book& book, const Stage& stage);

// Writes the site; returns what went wrong, or "".
std::string write_site(const Course& course, const std::filesystem::path& folder);

std::string escaped(std::string_view text);  // for HTML

// "../" for every folder that the page lies in.
std::string path_to_root(const Source& source);

}  // namespace moe::driver::book
