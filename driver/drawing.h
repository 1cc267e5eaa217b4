// drawing.h: what the drawings of `drill sweep` and `drill bench layer` share: SVG as text, colours
// for light and dark.
#pragma once

#include <string>

namespace moe::driver {

[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...);

// For use between the tags of XML.
std::string escaped(const std::string& words);

std::string text_at(double x, double y, const char* style, const std::string& words);
std::string line_between(double x1, double y1, double x2, double y2);

// "<svg ...>" with a title and, unless it is empty, a description for those who can't see it.
std::string drawing_begin(double width,
                          double height,
                          const std::string& title,
                          const std::string& description);

// Rules that stand first in <style>: --ink, --paper, --grid, --a, --b, --c as the reader's system
// is.
extern const char* const kColours;

}  // namespace moe::driver
