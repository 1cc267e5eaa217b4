// The notes and hints in content/*.md, for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/terminal.h"

namespace moe::driver {

// A heading and what stands below it up to the next heading of any level.
struct Section {
  int level = 0;      // 1 for "#"
  std::string title;  // "Tiny example by hand"
  std::string slug;   // "tiny-example-by-hand"
  std::string body;   // without the heading
};

std::vector<Section> sections_of(std::string_view markdown);

// As anchors of links are made: lower case, blanks to dashes, other signs left out.
std::string section_slug(std::string_view title);

struct RenderOptions {
  bool answers = true;  // show what <details> folds away
  std::size_t indent = 0;
};

// Paragraphs are filled, code and tables kept in shape, links reduced to their text.
std::string rendered(std::string_view markdown, const Paint& paint, const RenderOptions& options);

}  // namespace moe::driver
