#include "content/svg.h"

#include <cstdio>

namespace moe::content {
namespace {

std::string escaped(const std::string& words) {
  std::string text;
  for (const char c : words) {
    if (c == '&') {
      text += "&amp;";
    } else if (c == '<') {
      text += "&lt;";
    } else if (c == '>') {
      text += "&gt;";
    } else {
      text += c;
    }
  }
  return text;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string attribute(const char* name, double value) {
  return std::string(" ") + name + "=\"" + number(value) + "\"";
}

std::string class_of(const std::string& style) {
  return style.empty() ? "" : " class=\"" + style + "\"";
}

constexpr const char* kStyle = R"svg(<style>
svg{--ink:#1f2328;--paper:#fff;--soft:#eef1f4;--mark:#fff1c2;--e0:#cfe3ff;--e1:#d6f0d0;--e2:#f6d6e6}
%media (prefers-color-scheme:dark){svg{--ink:#e6edf3;--paper:#0d1117;--soft:#21262d;--mark:#5c4a12;
--e0:#1f3f66;--e1:#234a22;--e2:#5a2745}}
.fig text{font:13px ui-sans-serif,system-ui,sans-serif;fill:var(--ink);text-anchor:middle}
.fig text.left{text-anchor:start}.fig text.strong{font-weight:600}
.fig text.small{font-size:11px}.fig text.left.small{text-anchor:start}
.fig rect{stroke:var(--ink);fill:var(--paper)}.fig line,.fig path{stroke:var(--ink);fill:none}
.fig rect.e0{fill:var(--e0)}.fig rect.e1{fill:var(--e1)}.fig rect.e2{fill:var(--e2)}
.fig rect.soft{fill:var(--soft)}.fig rect.mark{fill:var(--mark);stroke-width:2.5}
.fig rect.pad@{fill:url(#hatch@)}.fig rect.none{fill:none}.fig .thick{stroke-width:2.5}
.fig .dash{stroke-dasharray:4 3}.fig .tip{fill:var(--ink);stroke:none}
</style>
<defs><pattern id="hatch@" width="6" height="6" patternUnits="userSpaceOnUse"
patternTransform="rotate(45)"><rect width="6" height="6" style="stroke:none;fill:var(--soft)"/>
<line x1="0" y1="0" x2="0" y2="6"/></pattern>
<marker id="tip@" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>
)svg";

// "@" stands for the name, "%" for "@".
std::string with_name(const std::string& text, const std::string& name) {
  std::string named;
  for (const char c : text) {
    if (c == '@') {
      named += "-" + name;
    } else {
      named += c == '%' ? '@' : c;  // "%media"
    }
  }
  return named;
}

}  // namespace

Svg::Svg(std::string name, int width, int height, std::string title, std::string description)
    : name_(std::move(name)),
      width_(width),
      height_(height),
      title_(std::move(title)),
      description_(std::move(description)) {}

void Svg::text(double x, double y, const std::string& words, const std::string& style) {
  body_ += "<text" + attribute("x", x) + attribute("y", y) + class_of(style) + ">" +
           escaped(words) + "</text>\n";
}

void Svg::box(double x, double y, double width, double height, const std::string& style) {
  body_ += "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) +
           attribute("height", height) + class_of(style) + "/>\n";
}

void Svg::cell(double x,
               double y,
               double width,
               double height,
               const std::string& style,
               const std::string& words) {
  box(x, y, width, height, style);
  text(x + width / 2, y + height / 2 + 4.5, words);
}

void Svg::line(double x1, double y1, double x2, double y2, const std::string& style) {
  body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
           attribute("y2", y2) + class_of(style) + "/>\n";
}

void Svg::arrow(double x1, double y1, double x2, double y2, const std::string& style) {
  body_ += "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) +
           attribute("y2", y2) + class_of(style) + " marker-end=\"url(#tip@)\"/>\n";
}

std::string Svg::str() const {
  const std::string size = std::to_string(width_) + " " + std::to_string(height_);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" role=\"img\" viewBox=\"0 0 " +
         size + "\" width=\"" + std::to_string(width_) + "\" height=\"" + std::to_string(height_) +
         "\">\n" + "<title>" + escaped(title_) + "</title>\n<desc>" + escaped(description_) +
         "</desc>\n" + with_name(kStyle, name_) + with_name(body_, name_) + "</svg>\n";
}

}  // namespace moe::content
