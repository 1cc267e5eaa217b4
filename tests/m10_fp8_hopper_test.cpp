// Tests of m10_fp8_hopper: the layer against double precision on the codes, in bf16 and fp32
// outputs; numbers of rows around half and whole tiles, of scale blocks around the ring's stages;
// and sums so long that the tensor cores' 14 bits show.
#include <drills/m10_fp8_hopper.h>

#include <algorithm>
#include <string>

#include "judge/fuzz.h"
#include "judge/hidden.h"
#include "judge/models.h"
#include "judge/suite.h"
#include "m10_fp8_hopper_bugs.h"
#include "m10_fp8_hopper_cases.h"
#include "m10_fp8_hopper_judge.h"
#include "m10_fp8_hopper_oracle.h"

namespace moe {
namespace {

using judge::Call;
using judge::Outputs;
using judge::Verdict;
using namespace m10_cases;  // NOLINT(google-build-using-namespace): the other half of this file

constexpr int64_t kLargestWorkspace = int64_t{64} << 20;

// A token with NaN among its h must be NaN in every column.
template <class T>
Verdict judge_nan_tokens(const Fp8LayerProblem& p,
                         const std::vector<T>& out,
                         const judge::Matrix& want,
                         T poison) {
  for (size_t i = 0; i < out.size(); ++i) {
    if (!std::isnan(want.values[i]) || (out[i] != poison && judge::is_nan(out[i]))) continue;
    const auto columns = static_cast<size_t>(p.hidden_size);
    return judge::wrong(bugs::kFp8LayerNanLost, {"out[" + std::to_string(i / columns) + "][" +
                                                 std::to_string(i % columns) + "] is no NaN"});
  }
  return {};
}

template <class T>
Verdict judge_again(const Fp8LayerProblem& p,
                    const std::vector<T>& out,
                    const std::vector<T>& again) {
  const auto place = std::mismatch(out.begin(), out.end(), again.begin());
  if (place.first == out.end()) return {};
  const auto index = place.first - out.begin();
  return judge::wrong(bugs::kFp8LayerUnstable,
                      {"first out[" + std::to_string(index / p.hidden_size) + "][" +
                       std::to_string(index % p.hidden_size) + "]"});
}

template <class T>
Verdict judge_values(const Fp8LayerCase& c,
                     const Fp8LayerProblem& p,
                     const std::vector<T>& out,
                     T poison) {
  if (!out.empty() && std::count(out.begin(), out.end(), poison) == std::ssize(out)) {
    return judge::wrong(bugs::kFp8LayerNothing, {});
  }
  const auto reference = oracle::fp8_layer_reference(p);
  const auto judged = judged_tokens(p, reference.out);
  const judge::Gates gates = gates_of(c);
  judge::Matrix want = wanted(p, reference, out);
  auto difference = judge::compare(out, want, judged, poison, false, gates);
  if (difference.right) return judge_nan_tokens(p, out, want, poison);
  const judge::Matrix each = moved(reference, out);
  const auto of_each = judge::compare(out, each, judged, poison, false, gates);
  if (!of_each.right) want = each, difference = of_each;
  judge::note_wrong("out", want.rows, want.columns, difference.wrong, judged);
  auto evidence = judge::shape_of_error(difference, "out", p.hidden_size);
  const judge::ValueRules<T> rules = {poison, false, gates, std::max(4e-2, gates.element / 2)};
  const auto mistakes =
      judge::explaining(bugs::fp8_layer_models(), p, out, want, difference, judged, rules);
  if (!mistakes.empty()) return judge::wrong(mistakes, evidence);
  const bool is_long = std::string(c.group) == "promotion" && difference.total < 3e-2;
  if (is_long || (p.exact && p.out_fp32 && difference.total < 1e-3)) {
    return judge::wrong(bugs::kFp8LayerPromotion, evidence);
  }
  return bugs::explain_fp8_layer(p, difference.wrong,
                                 judge::wrong("`out` is wrong.", std::move(evidence)));
}

Verdict judge_output(const Fp8LayerCase& c, const Fp8LayerProblem& p, const Outputs& outputs) {
  constexpr size_t kAgain = 8;
  const auto judge_as = [&](auto poison) -> Verdict {
    using T = decltype(poison);
    const auto out = outputs.values<T>(0);
    if (c.calls > 1) {
      Verdict verdict = judge_again(p, out, outputs.values<T>(kAgain));
      if (!verdict.pass()) return verdict;
    }
    return judge_values(c, p, out, poison);
  };
  return p.out_fp32 ? judge_as(kPoisonFp32) : judge_as(kPoisonBf16);
}

Call call_of(const Fp8LayerCase& c, const Fp8LayerProblem& p, int64_t workspace_bytes) {
  const auto out_size =
      c.refused ? size_t{16}
                : static_cast<size_t>(p.num_tokens) * static_cast<size_t>(p.hidden_size);
  const auto output = [&](const char* name) {
    return p.out_fp32 ? judge::output<Fp32>(name, out_size, kPoisonFp32)
                      : judge::output<Bf16>(name, out_size, kPoisonBf16);
  };
  Call call;
  call.operation = 0;
  call.integers = {p.num_tokens,
                   p.num_experts,
                   p.top_k,
                   p.hidden_size,
                   p.intermediate_size,
                   p.renormalize ? 1 : 0,
                   workspace_bytes - c.missing_bytes,
                   c.calls,
                   p.out_fp32 ? 1 : 0};
  call.buffers = {output("out"),
                  judge::input("x", p.x),
                  judge::input("logits", p.logits),
                  judge::input("w13_codes", p.w13.codes),
                  judge::input("w13_scales", p.w13.scales),
                  judge::input("w2_codes", p.w2.codes),
                  judge::input("w2_scales", p.w2.scales),
                  judge::workspace("workspace", static_cast<size_t>(workspace_bytes), 19)};
  if (c.calls > 1) call.buffers.push_back(output("out_again"));
  return call;
}

std::string shape_of(const Fp8LayerCase& c) {
  return "layer T=" + std::to_string(c.num_tokens) + " E=" + std::to_string(c.num_experts) +
         " K=" + std::to_string(c.top_k) + " H=" + std::to_string(c.hidden_size) +
         " I=" + std::to_string(c.intermediate_size) + (c.renormalize ? " renormalize" : "") +
         (c.out_fp32 ? " fp32" : "");
}

judge::StageCase<Fp8LayerProblem> stage_case_of(const Fp8LayerCase& c) {
  judge::StageCase<Fp8LayerProblem> stage_case;
  const int64_t bytes = judge::Suite::get().ask_value(
      0, {c.num_tokens, c.num_experts, c.top_k, c.hidden_size, c.intermediate_size, c.out_fp32},
      stage_case.before);
  if (stage_case.before.pass() && (bytes < 0 || bytes > kLargestWorkspace)) {
    stage_case.before = judge::wrong("moe_layer_fp8_workspace_bytes asks for more than 64 MiB.");
  }
  const int64_t room = std::clamp<int64_t>(bytes, 0, kLargestWorkspace);
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = [c, room](const Fp8LayerProblem& p) { return call_of(c, p, room); };
  stage_case.judge = [c](const Fp8LayerProblem& p, const Outputs& outputs) {
    return judge_output(c, p, outputs);
  };
  stage_case.explain = [](const Fp8LayerProblem&, const Outputs*, Verdict verdict) {
    return bugs::explain_fp8_layer_fault(std::move(verdict));
  };
  return stage_case;
}

class M10Layer : public testing::TestWithParam<Fp8LayerCase> {};

TEST_P(M10Layer, MatchesDoublePrecision) {
  judge::run_case(stage_case_of(GetParam()));
}

std::vector<Fp8LayerCase> cases_of(const std::string& group) {
  std::vector<Fp8LayerCase> chosen;
  if (group == "hidden") {
    return judge::hidden_cases(kCases, [](Fp8LayerCase& c, auto& random) {
      c.num_tokens += random.integer(1, 40);
      c.num_experts += random.integer(0, 3);
      c.hidden_size = kBlock * random.integer(1, 4);
      c.intermediate_size = kBlock * random.integer(1, 4);
    });
  }
  for (const Fp8LayerCase& c : kCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M10Layer, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M10Layer, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(scales, M10Layer, testing::ValuesIn(cases_of("scales")), name_of_case);
INSTANTIATE_TEST_SUITE_P(rows, M10Layer, testing::ValuesIn(cases_of("rows")), name_of_case);
INSTANTIATE_TEST_SUITE_P(ring, M10Layer, testing::ValuesIn(cases_of("ring")), name_of_case);
INSTANTIATE_TEST_SUITE_P(promotion,
                         M10Layer,
                         testing::ValuesIn(cases_of("promotion")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M10Layer, testing::ValuesIn(cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(hidden, M10Layer, testing::ValuesIn(cases_of("hidden")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M10Layer, testing::ValuesIn(cases_of("refused")), name_of_case);

// ---- Random cases

judge::CaseResult run_random(const std::string& name, const std::vector<int>& g) {
  Fp8LayerCase c = {"fuzz",        judge::kept(name.substr(5)),
                    g[0],          std::max(g[1], g[2]),
                    g[2],          kBlock * g[3],
                    kBlock * g[4], static_cast<Data>(g[5]),
                    g[6] == 0,     g[7] == 0};
  c.refused = g[8] > 0;
  if (g[8] == 1) c.hidden_size += 64;
  if (g[8] == 2) c.intermediate_size += 8;
  if (g[8] == 3) c.top_k = c.num_experts + 1;
  if (g[8] == 4) c.missing_bytes = 1;
  return judge::judge_case(stage_case_of(c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {{"layer",
                                                        {{"T", 0, 140},
                                                         {"E", 1, 9},
                                                         {"K", 1, 4},
                                                         {"H/128", 1, 3},
                                                         {"I/128", 1, 3},
                                                         {"data", 0, 2},
                                                         {"bf16", 0, 1},
                                                         {"raw", 0, 1},
                                                         {"broken", 0, 4, true}},
                                                        run_random}};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m10_fp8_hopper",
      {"m10.sort", "m10.sort_scales", "m10.halves", "m10.w_scale", "m10.produce", "m10.gather",
       "m10.a_scales", "m10.store_codes", "m10.multiply", "m10.scales", "m10.promote", "m10.amax",
       "m10.requantize", "m10.half_tile", "m10.combine", "m10.launches"},
      moe::kRandomTargets, [] { moe::bugs::fp8_layer_models(); });
}
