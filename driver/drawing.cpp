#include "driver/drawing.h"

#include <cstdarg>
#include <cstdio>

namespace moe::driver {

const char* const kColours =
    R"svg(svg{--ink:#1f2328;--paper:#fff;--grid:#d0d7de;--a:#0969da;--b:#9a6700;--c:#656d76}
@media (prefers-color-scheme:dark){svg{--ink:#e6edf3;--paper:#0d1117;--grid:#30363d;--a:#58a6ff;
--b:#d29922;--c:#8b949e}}
)svg";

std::string printed(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string escaped(const std::string& words) {
  std::string text;
  for (const char c : words) {
    text += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return text;
}

std::string text_at(double x, double y, const char* style, const std::string& words) {
  return printed("<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", x, y, style) + escaped(words) +
         "</text>\n";
}

std::string line_between(double x1, double y1, double x2, double y2) {
  return printed("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x1, y1, x2, y2);
}

std::string drawing_begin(double width,
                          double height,
                          const std::string& title,
                          const std::string& description) {
  std::string svg = printed(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 %g %g\" width=\"%g\" "
      "height=\"%g\">\n",
      width, height, width, height);
  svg += "<title>" + escaped(title) + "</title>\n";
  if (!description.empty()) svg += "<desc>" + escaped(description) + "</desc>\n";
  return svg;
}

}  // namespace moe::driver
