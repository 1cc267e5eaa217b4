#include "content/figures.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "content/svg.h"
#include "content/tiny_example.h"
#include "m1_align_oracle.h"
#include "m4_group_m_oracle.h"

namespace moe::content {
namespace {

const std::vector<int32_t> kTopKIds{0, 1, 1, 2, 0, 2, 1, 0};  // as in the cases t4k2
constexpr int kIds = 8;

std::string style_of_expert(int expert) {
  return "e" + std::to_string(expert);
}

// The steps of the layer; those of the stage are marked.
Figure map_of(const std::string& stage, const std::set<std::string>& marked) {
  std::string list;
  for (const std::string& step : marked) list += (list.empty() ? "" : ", ") + step;
  Svg svg("map_" + stage, 760, 92, "The five steps of the layer; of " + stage + ": " + list,
          "Boxes from left to right: route, align, GEMM1, SwiGLU, GEMM2, weight, combine.");
  const std::vector<std::pair<std::string, std::string>> steps{
      {"route", "1"}, {"align", "1"},  {"GEMM1", "2"},  {"SwiGLU", "3"},
      {"GEMM2", "4"}, {"weight", "4"}, {"combine", "5"}};
  double x = 10;
  for (const auto& [step, number] : steps) {
    const bool mark = marked.contains(step);
    svg.cell(x, 30, 84, 36, mark ? "mark" : "soft", step);
    svg.text(x + 42, 22, number, "small");
    if (step != "combine") svg.arrow(x + 84, 48, x + 106, 48);
    x += 108;
  }
  svg.text(380, 86, "logits and x go in on the left, out comes out on the right", "small");
  return {"map_" + stage, svg.str()};
}

Figure sorting() {
  constexpr int kBlockM = 2;
  const oracle::Alignment table = oracle::align(kTopKIds, 4, 2, 3, kBlockM);
  Svg svg(
      "sorting", 620, 230, "Flat ids sorted by expert, rows of padding hatched",
      "Above, the eight flat ids of four tokens, coloured by expert. Below, the ten rows of the "
      "table in blocks of two; the rows that no id fills hold the pad id 8.");
  const auto from_x = [](int id) { return 110 + id * 50.0 + (id / 2) * 10.0; };
  const auto to_x = [](int row) { return 50 + row * 50.0 + (row / 2) * 12.0; };
  svg.text(10, 52, "flat_id", "left");
  for (int id = 0; id < kIds; ++id) {
    const int expert = kTopKIds[size_t(id)];
    svg.cell(from_x(id), 32, 44, 30, style_of_expert(expert), std::to_string(id));
    if (id % 2 == 0) svg.text(from_x(id) + 47, 22, "token " + std::to_string(id / 2), "small");
  }
  for (int row = 0; row < table.num_tokens_post_padded; ++row) {
    const int id = table.sorted_token_ids[size_t(row)];
    const int expert = table.expert_ids[size_t(row / kBlockM)];
    if (id < kIds) svg.line(from_x(id) + 22, 62, to_x(row) + 22, 140, "dash");
    svg.cell(to_x(row), 140, 44, 30, id < kIds ? style_of_expert(expert) : "pad@",
             std::to_string(id));
    if (row % kBlockM == 0)
      svg.text(to_x(row) + 47, 188, "expert " + std::to_string(expert), "small");
  }
  svg.text(310, 218, "hatched: no id, so the pad id T*K = 8");
  return {"sorting", svg.str()};
}

Figure gather() {
  Svg svg("gather", 620, 250, "Rows of x gathered into the tile of expert 0",
          "Tile rows 0, 1, 2 hold flat ids 0, 4, 7 and read rows 0, 2, 3 of x; the other tile rows "
          "are padding and read nothing. Results go to rows 0, 4, 7 of out.");
  const auto y = [](int row) { return 40 + row * 34.0; };
  svg.text(90, 28, "x [T, D]", "strong");
  svg.text(310, 28, "A tile of expert 0", "strong");
  svg.text(530, 28, "out [T*K, N]", "strong");
  for (int token = 0; token < 4; ++token) {
    svg.cell(30, y(token), 120, 26, "soft", "row " + std::to_string(token));
  }
  std::vector<int> ids;
  for (int id = 0; id < kIds; ++id) {
    if (kTopKIds[size_t(id)] == 0) ids.push_back(id);
  }
  for (int row = 0; row < 5; ++row) {
    const bool real = row < int(ids.size());
    svg.cell(250, y(row), 120, 26, real ? "e0" : "pad@",
             real ? "flat id " + std::to_string(ids[size_t(row)]) : "8");
    if (!real) continue;
    const int id = ids[size_t(row)];
    svg.arrow(150, y(id / 2) + 13, 248, y(row) + 13);
    svg.cell(470, y(row), 120, 26, "e0", "row " + std::to_string(id));
    svg.arrow(370, y(row) + 13, 468, y(row) + 13);
  }
  svg.text(200, 226, "flat_id / K", "small");
  svg.text(420, 226, "flat_id", "small");
  svg.text(310, 244, "padding rows read nothing and are not stored", "small");
  return {"gather", svg.str()};
}

Figure weight() {
  Svg svg(
      "weight", 700, 180, "Where the routing weight may go",
      "On x or before SwiGLU: wrong, SiLU is not linear. On h: right in exact arithmetic, one "
      "more rounding. In GEMM2's epilogue: right and free. In a kernel of its own: right, 56 us.");
  const std::vector<std::string> steps{"x", "GEMM1", "SwiGLU", "GEMM2", "y", "combine"};
  double x = 20;
  for (const std::string& step : steps) {
    svg.cell(x, 30, 84, 36, step == "GEMM2" ? "mark" : "soft", step);
    if (step != "combine") svg.arrow(x + 84, 48, x + 112, 48);
    x += 114;
  }
  struct Place {
    double x;
    std::string verdict, why;
  };
  const std::vector<Place> places{{62, "wrong", "passes SiLU"},
                                  {233, "wrong", "SiLU is not linear"},
                                  {347, "inexact", "h is rounded after"},
                                  {404, "right", "epilogue: free"},
                                  {575, "right", "own kernel: 56 us"}};
  for (size_t i = 0; i < places.size(); ++i) {
    const double y = i % 2 == 0 ? 110 : 146;
    svg.line(places[i].x, 68, places[i].x, y - 14, "dash");
    svg.text(places[i].x, y, places[i].verdict, "strong");
    svg.text(places[i].x, y + 15, places[i].why, "small");
  }
  return {"weight", svg.str()};
}

void draw_order(Svg& svg, double left, const oracle::TileGrid& grid, const std::string& name) {
  const std::vector<oracle::TilePlace> order = oracle::order_of(grid);
  const auto x = [&](int n) { return left + n * 56.0; };
  const auto y = [](int m) { return 40 + m * 34.0; };
  svg.text(left + 84, 24, name, "strong");
  for (size_t pid = 0; pid < order.size(); ++pid) {
    const int group = order[pid].m / grid.group_m;
    svg.cell(x(order[pid].n), y(order[pid].m), 56, 34, style_of_expert(group % 3),
             std::to_string(pid));
  }
  const TileLoads loads = tile_loads(grid);
  svg.text(left + 84, 232,
           "A " + std::to_string(loads.a) + ", W " + std::to_string(loads.w) + ", together " +
               std::to_string(loads.a + loads.w));
  constexpr double kPanelBytes = 128 * 2048 * 2;  // of GEMM1 on the main shape
  const int again = loads.a + loads.w - grid.num_pid_m - grid.num_pid_n;
  char megabytes[32];
  std::snprintf(megabytes, sizeof megabytes, "%.1f", again * kPanelBytes / 1e6);
  svg.text(left + 84, 250, std::to_string(again) + " of them again: " + megabytes + " MB", "small");
}

Figure order() {
  Svg svg("order", 520, 276, "Tile order row by row and in groups of two rows",
          "Five rows by three columns of tiles with the number of the program in each. Below, the "
          "panels loaded into a cache of four, and how many of them were there before: groups load "
          "fewer panels of W.");
  draw_order(svg, 40, {5, 3, 1}, "row by row");
  draw_order(svg, 300, {5, 3, 2}, "groups of two");
  svg.text(254, 270, "a panel of GEMM1 on the main shape: 524,288 bytes", "small");
  return {"order", svg.str()};
}

Figure scales() {
  Svg svg("scales", 620, 230, "Scale blocks along D, and one sum",
          "A row of A has one scale for each 128 of D, W one for each 128 by 128. The partial sums "
          "of both blocks are scaled apart: 128 * 1 + 128 * 2 = 384.");
  svg.text(20, 52, "row of A", "left");
  svg.cell(130, 34, 200, 28, "e0", "128 codes");
  svg.cell(330, 34, 200, 28, "e1", "128 codes");
  svg.text(230, 26, "scale 1", "small");
  svg.text(430, 26, "scale 2", "small");
  svg.text(20, 116, "rows of W", "left");
  svg.cell(130, 82, 200, 60, "e0", "128 x 128 codes, scale 1");
  svg.cell(330, 82, 200, 60, "e1", "128 x 128 codes, scale 1");
  svg.text(20, 180, "partial sum", "left");
  svg.arrow(230, 142, 230, 164);
  svg.arrow(430, 142, 430, 164);
  svg.text(230, 180, "128 * (1 * 1)");
  svg.text(330, 180, "+");
  svg.text(430, 180, "128 * (2 * 1)");
  svg.text(560, 180, "= 384", "strong");
  svg.text(330, 214, "D goes to the right; a scale belongs to one block of it", "small");
  return {"scales", svg.str()};
}

}  // namespace

std::vector<Figure> all_figures() {
  return {map_of("m1", {"route", "align"}),
          map_of("m2", {"GEMM1", "GEMM2"}),
          map_of("m3", {"SwiGLU", "weight", "combine"}),
          map_of("m4", {"GEMM1", "SwiGLU", "GEMM2", "weight"}),
          map_of("m5", {"GEMM1", "GEMM2", "weight"}),
          map_of("m6", {"GEMM1", "GEMM2"}),
          map_of("m7", {"GEMM1", "SwiGLU", "GEMM2", "weight"}),
          map_of("m8", {"route", "align", "GEMM1", "SwiGLU", "GEMM2", "weight", "combine"}),
          map_of("m9", {"route", "GEMM1", "SwiGLU", "GEMM2", "weight", "combine"}),
          map_of("m10", {"GEMM1", "SwiGLU", "GEMM2", "weight", "combine"}),
          sorting(),
          gather(),
          weight(),
          order(),
          scales()};
}

}  // namespace moe::content
