// What the checker of the notes and the book need to know about a Markdown page: its headings with
// their anchors, its links and images, the regions it cites. Not a parser of Markdown: pages are
// rendered by cmark-gfm.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct Heading {
  int line = 0;  // 1-based
  int level = 0;
  std::string text;
  std::string slug;  // the anchor that GitHub gives it
};

struct Link {
  int line = 0;
  std::string target;
  std::string text;  // the alternative text of an image
  bool image = false;
};

struct Citation {
  int line = 0;
  std::string label;  // "m2.gather"
};

// What stands between <!-- BEGIN KIND ARGUMENTS --> and <!-- END KIND -->.
struct Block {
  int line = 0;
  std::string kind;
  std::string arguments;
  std::size_t body = 0;  // where the line behind BEGIN starts in the text
  std::size_t size = 0;  // up to the start of the END line
  bool closed = false;
};

struct Page {
  std::vector<Heading> headings;
  std::vector<Link> links;          // outside of code
  std::vector<Citation> citations;  // "region m2.gather", everywhere
  std::vector<Citation> code;       // the text of each `code span`, on one line
  std::vector<Block> blocks;
};

Page scan_markdown(std::string_view text);

// GitHub's anchor of a heading, without the number that tells equal ones apart.
std::string slug_of(std::string_view heading);

}  // namespace moe::driver
