// The drawing of a sweep: SVG, time over tokens, both logarithmic.
#include <algorithm>
#include <cmath>

#include "driver/drawing.h"
#include "driver/sweep.h"

namespace moe::driver {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 440;
constexpr double kLeft = 70;
constexpr double kRight = 150;  // room for the names of the lines
constexpr double kTop = 50;
constexpr double kBottom = 50;

// Where a value lies between two others, 0 to 1.
double share(double value, double least, double most) {
  return std::log(value / least) / std::log(most / least);
}

struct Frame {
  double least_tokens, most_tokens, least_us, most_us;

  double x(double tokens) const {
    return kLeft + (kWidth - kLeft - kRight) * share(tokens, least_tokens, most_tokens);
  }
  double y(double us) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * share(us, least_us, most_us);
  }
};

Frame frame_of(const Sweep& sweep) {
  double least = sweep.points.front().layer_us;
  double most = least;
  for (const SweepPoint& point : sweep.points) {
    for (const double us : {point.floor_us, point.dense_us, point.layer_us}) {
      if (us <= 0.0) continue;
      least = std::min(least, us);
      most = std::max(most, us);
    }
  }
  return {static_cast<double>(sweep.points.front().num_tokens),
          static_cast<double>(sweep.points.back().num_tokens),
          std::pow(10.0, std::floor(std::log10(least))),
          std::pow(10.0, std::floor(std::log10(most)) + 1.0)};
}

std::string axes(const Frame& frame) {
  std::string svg;
  for (double us = frame.least_us; us <= frame.most_us * 1.001; us *= 10.0) {
    svg += line_between(kLeft, frame.y(us), kWidth - kRight, frame.y(us));
    svg += text_at(kLeft - 8, frame.y(us) + 4, "end", printed("%g us", us));
  }
  for (double tokens = 1.0; tokens <= frame.most_tokens * 1.001; tokens *= 4.0) {
    if (tokens < frame.least_tokens) continue;
    svg += line_between(frame.x(tokens), kTop, frame.x(tokens), kHeight - kBottom);
    svg += text_at(frame.x(tokens), kHeight - kBottom + 18, "middle", printed("%g", tokens));
  }
  svg += text_at((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle", "tokens");
  return svg;
}

struct Curve {
  double SweepPoint::*time;
  const char* name;
  const char* style;
  double end = 0.0;  // where its name stands
};

// Points without a time are left out.
std::string line_of(const Sweep& sweep, const Frame& frame, Curve& curve) {
  std::string points;
  for (const SweepPoint& point : sweep.points) {
    const double us = point.*curve.time;
    if (us <= 0.0) continue;
    curve.end = frame.y(us);
    points +=
        printed("%s%.1f,%.1f", points.empty() ? "" : " ", frame.x(point.num_tokens), curve.end);
  }
  if (points.empty()) return {};
  return "<polyline class=\"" + std::string(curve.style) + "\" points=\"" + points + "\"/>\n";
}

// The lines, and their names beside their ends, none over another.
std::string curves(const Sweep& sweep, const Frame& frame) {
  constexpr double kApart = 16;
  std::vector<Curve> drawn;
  std::string svg;
  for (Curve curve : {Curve{&SweepPoint::floor_us, "floor", "floor"},
                      Curve{&SweepPoint::dense_us, "cuBLAS dense", "dense"},
                      Curve{&SweepPoint::layer_us, "layer", "layer"}}) {
    const std::string line = line_of(sweep, frame, curve);
    svg += line;
    if (!line.empty()) drawn.push_back(curve);
  }
  std::sort(drawn.begin(), drawn.end(),
            [](const Curve& a, const Curve& b) { return a.end < b.end; });
  double last = kTop - kApart;
  for (const Curve& curve : drawn) {
    last = std::max(last + kApart, curve.end);
    svg += text_at(kWidth - kRight + 8, last + 4, curve.style, curve.name);
  }
  return svg;
}

constexpr const char* kStyle =
    R"svg(rect{fill:var(--paper)}line{stroke:var(--grid)}polyline{fill:none;stroke-width:2}
text{font:13px ui-sans-serif,system-ui,sans-serif;fill:var(--ink)}
.end{text-anchor:end}.middle{text-anchor:middle}
polyline.layer{stroke:var(--a)}polyline.dense{stroke:var(--b)}
polyline.floor{stroke:var(--c);stroke-dasharray:5 4}
text.layer{fill:var(--a)}text.dense{fill:var(--b)}text.floor{fill:var(--c)}
</style>
)svg";

}  // namespace

std::string svg_of(const Sweep& sweep) {
  const Frame frame = frame_of(sweep);
  std::string svg =
      drawing_begin(kWidth, kHeight, "Time of the layer over tokens: " + sweep.title, "");
  svg += std::string("<style>\n") + kColours + kStyle +
         printed("<rect width=\"%g\" height=\"%g\"/>\n", kWidth, kHeight);
  svg += text_at(kLeft, 28, "", sweep.title) + axes(frame);
  svg += curves(sweep, frame);
  return svg + "</svg>\n";
}

}  // namespace moe::driver
