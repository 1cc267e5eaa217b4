// The figures of the notes, drawn from the tiny example: content/figures/NAME.svg.
#pragma once

#include <string>
#include <vector>

namespace moe::content {

struct Figure {
  std::string name;  // "sorting"
  std::string svg;
};

std::vector<Figure> all_figures();

}  // namespace moe::content
