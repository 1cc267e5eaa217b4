// Tests of m4_group_m: the order of tiles (every tile once, and what a modelled cache loads), the
// order that the kernel really takes, its results, the table of tiles, the layer.
#include <drills/m4_group_m.h>

#include <algorithm>
#include <string>

#include "judge/fuzz.h"
#include "judge/hidden.h"
#include "judge/models.h"
#include "judge/suite.h"
#include "layer_bugs.h"
#include "layer_cases.h"
#include "m4_group_m_bugs.h"
#include "m4_group_m_cases.h"
#include "m4_group_m_oracle.h"
#include "m4_group_m_orders.h"
#include "m4_group_m_picks.h"
#include "m4_group_m_trace.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::EpilogueProblem;
using oracle::TileGrid;
using oracle::TilePlace;
using namespace m4_cases;  // NOLINT(google-build-using-namespace): the other half of this file

// ---- tile_of alone

Call call_order(const OrderCase& c) {
  size_t tiles = 0;
  for (int m = c.min_m; m <= c.max_m; ++m) {
    for (int n = c.min_n; n <= c.max_n; ++n) tiles += static_cast<size_t>(m * n);
  }
  Call call;
  call.operation = 1;
  call.integers = {c.min_m, c.max_m, c.min_n, c.max_n, c.group_m};
  call.buffers = {judge::output<int32_t>("tiles", 2 * tiles, kNoTile)};
  return call;
}

Verdict judge_orders(const OrderCase& c, const std::vector<TilePlace>& all) {
  std::vector<TileGrid> grids;
  std::vector<std::vector<TilePlace>> orders;
  std::vector<std::string> evidence;
  const judge::Mistake* otherwise = nullptr;
  auto next = all.begin();
  for (int m = c.min_m; m <= c.max_m; ++m) {
    for (int n = c.min_n; n <= c.max_n; ++n) {
      const TileGrid grid = {m, n, c.group_m};
      orders.emplace_back(next, next + grid.size());
      next += grid.size();
      grids.push_back(grid);
      if (!evidence.empty()) continue;
      evidence = coverage_errors(orders.back(), grid);
      if (!evidence.empty() || c.cache == 0) continue;
      evidence = locality_errors(orders.back(), grid, {c.cache, {}});
      otherwise = &bugs::kPoorOrder;
    }
  }
  return evidence.empty() ? Verdict{} : name_order(orders, grids, evidence, otherwise);
}

class M4Order : public testing::TestWithParam<OrderCase> {};

TEST_P(M4Order, HasEveryTileOnce) {
  const OrderCase& c = GetParam();
  judge::StageCase<OrderCase> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = "tile_of num_pid_m=" + std::to_string(c.min_m) + ".." +
                     std::to_string(c.max_m) + " num_pid_n=" + std::to_string(c.min_n) + ".." +
                     std::to_string(c.max_n) + " group_m=" + std::to_string(c.group_m);
  stage_case.refused = c.refused;
  stage_case.make = [&](uint64_t) { return c; };
  stage_case.call = call_order;
  stage_case.judge = [](const OrderCase& p, const Outputs& outputs) {
    return judge_orders(p, places_of(outputs.values<int32_t>(0)));
  };
  stage_case.explain = [](const OrderCase&, const Outputs*, Verdict verdict) {
    return explain_division({bugs::kNoRows, bugs::kGroupWidth}, std::move(verdict));
  };
  stage_case.trace = [](const OrderCase& p, const Outputs* outputs, judge::Place place) {
    const TileGrid grid = {p.min_m, p.min_n, p.group_m};  // of several the first
    auto got =
        outputs == nullptr ? std::vector<TilePlace>() : places_of(outputs->values<int32_t>(0));
    got.resize(std::min(got.size(), static_cast<size_t>(grid.size())));
    return oracle::trace_of(grid, got, place);
  };
  judge::run_case(stage_case);
}

Verdict check_host_order() {
  for (const TileGrid& grid : {TileGrid{5, 3, 2}, {1, 2, 2}, {7, 1, 4}, {10, 6, 4}, {3, 2, 100}}) {
    Verdict verdict;
    std::vector<TilePlace> order;
    for (int pid = 0; pid < grid.size() && verdict.pass(); ++pid) {
      const int64_t packed = judge::Suite::get().ask_value(
          2, {pid, grid.num_pid_m, grid.num_pid_n, grid.group_m}, verdict);
      order.push_back({static_cast<int>(packed >> 32), static_cast<int>(packed & 0xffffffff)});
    }
    if (!verdict.pass()) return verdict;
    const auto evidence = coverage_errors(order, grid);
    if (!evidence.empty()) return name_order({order}, {grid}, evidence, &bugs::kHostDiffers);
  }
  return {};
}

// ---- grouped_gemm

// Whether the programs were ordered over the rows of the worst routing. Those on rows behind the
// end may have left, or may have noted their tile.
bool is_order_of_capacity(const EpilogueProblem& p, const std::vector<TilePlace>& trace) {
  const TileGrid grid = p.grid();
  const TileGrid worst = {static_cast<int>(p.gemm.expert_ids.size()), grid.num_pid_n, grid.group_m};
  const auto order = oracle::order_of(worst);
  for (size_t pid = 0; pid < trace.size(); ++pid) {
    const bool left = trace[pid].m == kNoTile && order[pid].m >= grid.num_pid_m;
    if (!left && !(trace[pid] == order[pid])) return false;
  }
  return worst.num_pid_m != grid.num_pid_m;
}

// The order that the kernel's programs really took.
Verdict judge_trace(const EpilogueProblem& p, const std::vector<TilePlace>& trace) {
  const TileGrid grid = p.grid();
  const auto end = trace.begin() + static_cast<std::ptrdiff_t>(grid.size());
  const std::vector<TilePlace> order(trace.begin(), end);
  auto evidence = coverage_errors(order, grid);
  const bool covered = evidence.empty();
  if (covered && p.cache > 0) {
    const auto first = p.gemm.expert_ids.begin();
    evidence = locality_errors(order, grid, {p.cache, {first, first + grid.num_pid_m}});
  }
  const auto late =
      std::find_if(end, trace.end(), [](const TilePlace& t) { return t.m != kNoTile; });
  if (late != trace.end()) {
    evidence.insert(evidence.begin(), "pid " + std::to_string(late - trace.begin()) +
                                          " worked on a tile, of " + text_of(grid));
  }
  if (evidence.empty()) return {};
  if (is_order_of_capacity(p, trace)) return judge::wrong(bugs::kCapacityOrder, evidence);
  if (covered && late != trace.end()) return judge::wrong(bugs::kExitMissing, evidence);
  return name_order({order}, {grid}, evidence, covered ? &bugs::kPoorOrder : nullptr);
}

Verdict judge_gemm(const EpilogueProblem& p, const Outputs& outputs) {
  Verdict order = judge_trace(p, places_of(outputs.values<int32_t>(1)));
  if (!order.pass()) return order;
  const auto out = outputs.values<Bf16>(0);
  std::vector<uint8_t> routed(static_cast<size_t>(p.gemm.num_ids()));
  for (size_t id = 0; id < routed.size(); ++id)
    routed[id] = p.gemm.routed(static_cast<int>(id)) ? 1 : 0;
  Verdict verdict = judge::judge_matrix(bugs::epilogue_models(), p, out, oracle::grouped_gemm(p),
                                        routed, {"out", kPoison, p.gemm.exact});
  if (!verdict.pass()) return verdict;
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t row = i / static_cast<size_t>(p.columns());
    if (routed[row] != 0 || out[i] == kPoison) continue;
    return judge::wrong("A row of out without a routed flat id was written.",
                        {"flat id " + std::to_string(row) + " has no expert"});
  }
  return {};
}

class M4GroupedGemm : public testing::TestWithParam<GemmCase> {};

judge::StageCase<EpilogueProblem> stage_case_of(const GemmCase& c) {
  judge::StageCase<EpilogueProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = call_gemm;
  stage_case.judge = judge_gemm;
  stage_case.explain = [](const EpilogueProblem&, const Outputs*, Verdict verdict) {
    return explain_division({bugs::kExitMissing}, std::move(verdict));
  };
  stage_case.trace = [](const EpilogueProblem& p, const Outputs* outputs, judge::Place place) {
    return oracle::trace_of(p, outputs == nullptr ? std::vector<Bf16>() : outputs->values<Bf16>(0),
                            place);
  };
  return stage_case;
}

TEST_P(M4GroupedGemm, MultipliesInThatOrder) {
  judge::run_case(stage_case_of(GetParam()));
}

// ---- host helpers

struct HostCheck {
  const char* group;
  const char* name;
  const char* shape;
  Verdict (*check)();
};

constexpr HostCheck kHostChecks[] = {
    {"edge", "order_on_host", "tile_of, five small grids", check_host_order},
    {"edge", "pick_tile", "pick_tile, all limits of the tables", check_picks},
};

class M4Host : public testing::TestWithParam<HostCheck> {};

TEST_P(M4Host, ReturnsWhatTheHeaderSays) {
  const HostCheck& c = GetParam();
  judge::run_check(std::string(c.group) + "/" + c.name, c.shape, c.check);
}

// ---- the layer

class M4Layer : public testing::TestWithParam<LayerCase> {};

TEST_P(M4Layer, GoesFromLogitsToOutput) {
  judge::run_case(layer_stage_case(GetParam()));
}

// ---- instances

template <class Case, size_t COUNT>
std::vector<Case> in_group(const Case (&cases)[COUNT], const std::string& group) {
  std::vector<Case> chosen;
  for (const Case& c : cases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
std::vector<LayerCase> layers_in_group(const std::string& group) {
  std::vector<LayerCase> chosen = layer_cases_of(group);
  // The largest tile of the default table.
  if (group == "random") {
    chosen.push_back({"random", "layer_tile128", 170, 2, 2, 64, 32, true, LayerData::kNormal});
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny,
                         M4Order,
                         testing::ValuesIn(in_group(kOrderCases, "tiny")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(edge,
                         M4Order,
                         testing::ValuesIn(in_group(kOrderCases, "edge")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(refused,
                         M4Order,
                         testing::ValuesIn(in_group(kOrderCases, "refused")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(tiny,
                         M4GroupedGemm,
                         testing::ValuesIn(in_group(kGemmCases, "tiny")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(edge,
                         M4GroupedGemm,
                         testing::ValuesIn(in_group(kGemmCases, "edge")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(random,
                         M4GroupedGemm,
                         testing::ValuesIn(in_group(kGemmCases, "random")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(refused,
                         M4GroupedGemm,
                         testing::ValuesIn(in_group(kGemmCases, "refused")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(hidden,
                         M4GroupedGemm,
                         testing::ValuesIn(judge::hidden_cases(kGemmCases,
                                                               [](GemmCase& c, auto& random) {
                                                                 c.num_tokens +=
                                                                     random.integer(1, 20);
                                                                 c.num_experts +=
                                                                     random.integer(0, 3);
                                                                 c.group_m = random.integer(1, 7);
                                                                 c.depth =
                                                                     8 * random.integer(2, 20);
                                                               })),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(hidden,
                         M4Layer,
                         testing::ValuesIn(layer_cases_of("hidden")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M4Host, testing::ValuesIn(kHostChecks), name_of_case);
INSTANTIATE_TEST_SUITE_P(tiny, M4Layer, testing::ValuesIn(layers_in_group("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M4Layer, testing::ValuesIn(layers_in_group("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random,
                         M4Layer,
                         testing::ValuesIn(layers_in_group("random")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(refused,
                         M4Layer,
                         testing::ValuesIn(layers_in_group("refused")),
                         name_of_case);

// ---- Random cases

constexpr TileShape kRandomShapes[] = {k16, k32, k64, k64x256, k128x32, k128, k128x256};

judge::CaseResult run_random(const std::string& name, const std::vector<int>& g) {
  const auto epilogue = static_cast<Epilogue>(g[9]);
  // The exact data of SwiGLU need gates of 32 and more: whatever else, it gets normal ones.
  const Data data = epilogue == kSwiglu || g[10] == 1 ? kNormal
                    : g[10] == 2                      ? Data::kSpread
                                                      : kExact;
  GemmCase c = {"fuzz",
                judge::kept(name.substr(5)),
                g[0] == 0 ? kTokens : kSlots,
                g[1],
                g[2],
                std::max(g[2], g[3]),
                8 * g[4],
                8 * g[5],
                kRandomShapes[g[6]],
                g[7],
                kRandomLoads[g[8]],
                data,
                epilogue};
  c.refused = g[11] > 0;
  if (g[11] == 1) c.n += 4;
  if (g[11] == 2) c.depth += 4;
  if (g[11] == 3) c.group_m = 0;
  if (g[11] == 4) c.shape.block_n = 48;
  if (g[11] == 5) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
  return judge::judge_case(stage_case_of(c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {{"gemm",
                                                        {{"rows", 0, 1},
                                                         {"T", 0, 60},
                                                         {"K", 1, 8},
                                                         {"E", 1, 30},
                                                         {"N/8", 1, 40},
                                                         {"D/8", 1, 24},
                                                         {"tile", 0, 6},
                                                         {"group_m", 1, 12},
                                                         {"load", 0, kNumRandomLoads - 1},
                                                         {"epilogue", 0, 2},
                                                         {"data", 0, 2},
                                                         {"broken", 0, 5, true}},
                                                        run_random},
                                                       random_layers()};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(argc, argv, "m4_group_m",
                                {"m4.tile_of", "m4.pick_tile", "m4.order"}, moe::kRandomTargets,
                                [] {
                                  moe::bugs::order_models();
                                  moe::bugs::epilogue_models();
                                  moe::bugs::pick_models();
                                  moe::bugs::layer_models({});
                                });
}
