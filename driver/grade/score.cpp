#include "driver/grade/score.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "driver/cost/cases.h"

namespace moe::grade {
namespace {

using driver::CaseState;

double rounded(double points) {
  return std::round(points * 100) / 100;
}

std::map<std::string, CaseState> states_of(const StageResult& result) {
  std::map<std::string, CaseState> states;
  for (const CaseResult& one : result.cases) states[one.name] = one.state;
  return states;
}

std::vector<GroupScore> count_groups(const StageResult& result,
                                     const std::vector<CaseResult>& expected,
                                     const Scheme& scheme) {
  const std::map<std::string, CaseState> states = states_of(result);
  std::vector<GroupScore> groups;
  for (const CaseResult& one : expected) {
    if (one.state == CaseState::kSkip) continue;
    const auto weight = scheme.groups.find(one.group());
    if (weight == scheme.groups.end() || weight->second <= 0) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const GroupScore& g) { return g.group == one.group(); });
    if (group == groups.end()) group = groups.insert(groups.end(), GroupScore{one.group()});
    ++group->cases;
    const auto state = states.find(one.name);
    if (state != states.end() && state->second == CaseState::kPass) ++group->passed;
  }
  return groups;
}

// The first gate that is not passed whole, or nullptr.
const GroupScore* closed_gate(const std::vector<GroupScore>& groups, const Scheme& scheme) {
  for (const GroupScore& group : groups) {
    const bool gate = std::count(scheme.gate.begin(), scheme.gate.end(), group.group) > 0;
    if (gate && group.passed < group.cases) return &group;
  }
  return nullptr;
}

void add_performance(const StageResult& result, const Scheme& scheme, StageScore& score) {
  GroupScore speed;
  speed.group = "performance";
  speed.cases = 1;
  speed.maximum = rounded(score.maximum * scheme.performance_share);
  const Timing& timing = result.timing;
  if (result.mark == Mark::kPass && timing.problem.empty() && timing.reference_us > 0) {
    score.ratio = timing.mine_us / timing.reference_us;
    const double share = performance_curve(score.ratio, scheme);
    speed.passed = share > 0 ? 1 : 0;
    speed.earned = rounded(speed.maximum * share);
  } else {
    score.reason = timing.problem.empty() ? "no points for speed: not every case passes"
                                          : "no points for speed: " + timing.problem;
  }
  score.performance = speed;
}

struct CostLimit {
  const char* unit;
  double value;
  double most;
};

// A reference without any leaves room for a few.
constexpr double kSpareConflicts = 16;

std::vector<CostLimit> cost_limits(const StageResult& result, const Scheme& scheme) {
  const CostFigures& mine = result.cost;
  const CostFigures& ours = result.reference_cost;
  const double factor = scheme.max_of_reference;
  return {{"sectors a request", mine.sectors_per_request,
           scheme.max_sectors_per_request.value_or(factor * ours.sectors_per_request)},
          {"bank conflicts", mine.bank_conflicts,
           scheme.max_bank_conflicts.value_or(factor * ours.bank_conflicts + kSpareConflicts)},
          {"times the least bytes", mine.bytes_ratio,
           scheme.max_bytes_ratio.value_or(factor * ours.bytes_ratio)}};
}

void add_cost(const StageResult& result, const Scheme& scheme, StageScore& score) {
  GroupScore cost;
  cost.group = "cost";
  cost.maximum = rounded(score.maximum * scheme.cost_share);
  std::string why;
  if (result.cost.taken && result.reference_cost.taken) {
    for (const CostLimit& limit : cost_limits(result, scheme)) {
      ++cost.cases;
      if (limit.value <= limit.most) {
        ++cost.passed;
      } else {
        why += (why.empty() ? "" : ", ") + points_text(limit.value) + " " + limit.unit + " where " +
               points_text(limit.most) + " are allowed";
      }
    }
  } else {
    why = result.cost.problem.empty() ? "not every case passes" : result.cost.problem;
  }
  const bool kept = cost.cases > 0 && cost.passed == cost.cases;
  cost.cases = std::max(cost.cases, 1);
  cost.earned = kept ? cost.maximum : 0;
  if (!kept) {
    score.reason += (score.reason.empty() ? "" : "; ") + ("no points for cost: " + why);
  }
  score.cost = cost;
}

}  // namespace

double performance_curve(double ratio, const Scheme& scheme) {
  if (!(ratio > 0)) return 0;  // a time of nothing is no time
  if (ratio <= scheme.full_points_ratio) return 1;
  if (ratio >= scheme.no_points_ratio) return 0;
  return (scheme.no_points_ratio - ratio) / (scheme.no_points_ratio - scheme.full_points_ratio);
}

StageScore score_stage(const StageResult& result,
                       const std::vector<CaseResult>& expected,
                       const Scheme& scheme,
                       const std::string& stage_id,
                       bool timed) {
  StageScore score;
  const auto points = scheme.points.find(stage_id);
  score.maximum = points == scheme.points.end() ? 0 : points->second;
  score.scored = result.mark != Mark::kFault;
  if (!score.scored) return score;
  if (timed && scheme.performance_share > 0) add_performance(result, scheme, score);
  const bool has_card = driver::find_cost_case(stage_id) != nullptr;
  if (scheme.cost_share > 0 && has_card) add_cost(result, scheme, score);

  score.groups = count_groups(result, expected, scheme);
  double weights = 0;
  for (const GroupScore& group : score.groups) weights += scheme.groups.at(group.group);
  const double for_cases = score.maximum - (score.performance ? score.performance->maximum : 0) -
                           (score.cost ? score.cost->maximum : 0);
  const GroupScore* closed = closed_gate(score.groups, scheme);
  // A stage that broke a rule or the memory limit keeps nothing of what passed before.
  const bool void_stage = result.mark == Mark::kRule || result.mark == Mark::kMemory;
  double earned =
      (score.performance ? score.performance->earned : 0) + (score.cost ? score.cost->earned : 0);
  for (GroupScore& group : score.groups) {
    group.maximum = for_cases * scheme.groups.at(group.group) / weights;
    double share = static_cast<double>(group.passed) / group.cases;
    if (scheme.whole_groups && group.passed < group.cases) share = 0;
    if (closed != nullptr || void_stage) share = 0;
    group.earned = group.maximum * share;
    earned += group.earned;
  }
  if (closed != nullptr && !result.cases.empty()) {
    score.reason = "no points: not every case of group " + closed->group + " passes";
  }
  score.earned = rounded(earned);
  return score;
}

std::string points_text(double points) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f", points);
  std::string shown = text;
  while (shown.back() == '0') shown.pop_back();
  if (shown.back() == '.') shown.pop_back();
  return shown;
}

}  // namespace moe::grade
