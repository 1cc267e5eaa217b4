// A drawing in SVG with the colours of the notes: light or dark as the reader's system is, or as
// the page that holds it says (--ink, --paper, --soft, --mark, --e0 .. --e2).
#pragma once

#include <string>

namespace moe::content {

class Svg {
 public:
  // `name` makes the ids of the drawing its own: several stand in one page.
  Svg(std::string name, int width, int height, std::string title, std::string description);

  void text(double x, double y, const std::string& words, const std::string& style = "");
  // style: classes such as "e0", "pad", "mark", "soft"
  void box(double x, double y, double width, double height, const std::string& style);
  void cell(double x,
            double y,
            double width,
            double height,
            const std::string& style,
            const std::string& words);  // a box with words in its middle
  void line(double x1, double y1, double x2, double y2, const std::string& style = "");
  void arrow(double x1, double y1, double x2, double y2, const std::string& style = "");

  std::string str() const;

 private:
  std::string name_;
  int width_;
  int height_;
  std::string title_;
  std::string description_;
  std::string body_;
};

}  // namespace moe::content
