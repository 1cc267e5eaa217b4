// The drawing of the ladder: SVG, a bar for each rung, in times of cuBLAS dense.
#include <algorithm>
#include <array>

#include "driver/drawing.h"
#include "driver/ladder.h"

namespace moe::driver {
namespace {

// Letters stay readable where a page shows it at 60 % of this width.
constexpr double kWidth = 900;
constexpr double kLeft = 190;   // room for the names
constexpr double kRight = 200;  // room for the figures
constexpr double kMargin = 24;
constexpr double kTop = 84;
constexpr double kRowHeight = 34;
constexpr double kBarHeight = 22;
constexpr double kBottom = 56;  // room for the legend

struct Kind {
  const char* name;
  const char* words;
  double width;  // of the words, about
};
constexpr std::array<Kind, 5> kKinds{{{"yours", "yours", 50},
                                      {"ours", "this repository", 130},
                                      {"cublas", "cuBLAS, GEMMs alone", 195},
                                      {"prototype", "a prototype", 100},
                                      {"published", "published kernels, another run", 260}}};

double times_of(const Rung& rung) {
  return rung.us / rung.dense_us;
}

std::string bar(double x, double y, double width, double height, const std::string& kind) {
  return printed("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" class=\"%s\"/>\n", x,
                 y, width, height, kind.c_str());
}

// All of it in words, for those who can't see it.
std::string description_of(const std::vector<Rung>& rungs) {
  std::string text = "Bars from the fastest to the slowest, in times of cuBLAS dense:";
  const char* between = " ";
  for (const Rung& rung : rungs) {
    text += between + rung.name +
            printed(" (%s) %.2f, %.0f us", rung.kind.c_str(), times_of(rung), rung.us);
    between = "; ";
  }
  return text + ".";
}

std::string legend(const std::vector<Rung>& rungs, double y) {
  std::string svg;
  double x = kMargin;
  for (const Kind& kind : kKinds) {
    const bool drawn = std::any_of(rungs.begin(), rungs.end(),
                                   [&](const Rung& rung) { return rung.kind == kind.name; });
    if (!drawn) continue;
    svg += bar(x, y - 14, 18, 16, kind.name) + text_at(x + 25, y, "small", kind.words);
    x += 25 + kind.width + 18;
  }
  return svg;
}

constexpr const char* kStyle =
    R"svg(rect{fill:var(--paper);stroke-width:2}line{stroke:var(--ink);stroke-dasharray:5 4}
text{font:19px ui-sans-serif,system-ui,sans-serif;fill:var(--ink)}
.end{text-anchor:end}text.title{font-weight:600}text.small{font-size:17px}
rect.ours{fill:var(--a);stroke:var(--a)}rect.yours{fill:var(--ink);stroke:var(--ink)}
rect.cublas{fill:var(--b);stroke:var(--b)}rect.published{fill:var(--grid);stroke:var(--c)}
rect.prototype{stroke:var(--a);stroke-dasharray:5 4}
</style>
)svg";

}  // namespace

std::string svg_of(const Ladder& ladder) {
  std::vector<Rung> rungs = ladder.rungs;
  std::stable_sort(rungs.begin(), rungs.end(),
                   [](const Rung& a, const Rung& b) { return times_of(a) < times_of(b); });
  double most = 1.0;
  for (const Rung& rung : rungs) most = std::max(most, times_of(rung));
  const double unit = (kWidth - kLeft - kRight) / most;
  const double end = kTop + kRowHeight * static_cast<double>(rungs.size());
  std::string svg = drawing_begin(kWidth, end + kBottom, ladder.title, description_of(rungs));
  svg += std::string("<style>\n") + kColours + kStyle;
  svg += printed("<rect width=\"%g\" height=\"%g\"/>\n", kWidth, end + kBottom);
  svg += text_at(kMargin, 34, "title", ladder.title);
  svg += text_at(kMargin, 62, "small",
                 "times of cuBLAS dense (both GEMMs, the same FLOPs) in the same run; shorter is "
                 "faster");
  double y = kTop;
  for (const Rung& rung : rungs) {
    const double width = unit * times_of(rung);
    const double base = y + kRowHeight / 2 + 6;
    svg += text_at(kLeft - 12, base, "end", rung.name);
    svg += bar(kLeft, y + (kRowHeight - kBarHeight) / 2, width, kBarHeight, rung.kind);
    svg +=
        text_at(kLeft + width + 10, base, "", printed("%.2f x, %.0f us", times_of(rung), rung.us));
    y += kRowHeight;
  }
  svg += line_between(kLeft + unit, kTop, kLeft + unit, end);
  return svg + legend(rungs, end + 34) + "</svg>\n";
}

}  // namespace moe::driver
