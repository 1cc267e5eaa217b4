#include "layer_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "judge/fuzz.h"
#include "judge/hidden.h"
#include "layer_bugs.h"
#include "m1_align_oracle.h"
#include "m3_weighted_epilogue_bugs.h"
#include "m3_weighted_epilogue_trace.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::LayerProblem;

constexpr uint32_t kLayerOperation = 100;  // tests/runner/layer_operation.h
constexpr Bf16 kNan = 0x7fc0;
constexpr Bf16 kPoison = 0x7fa5;

constexpr LayerData kNormal = LayerData::kNormal;
constexpr LayerData kExact = LayerData::kExact;

constexpr LayerCase kCases[] = {
    // The example of the notes: weights 0.75 and 0.25.
    {"tiny", "layer_t4k2", 4, 3, 2, 32, 16, true, kNormal},
    {"tiny", "layer_exact", 4, 3, 2, 16, 16, true, kExact},
    {"edge", "layer_no_tokens", 0, 4, 2, 16, 16, true, kNormal},
    {"edge", "layer_one_token", 1, 8, 2, 64, 32, true, kNormal},
    {"edge", "layer_not_normalized", 12, 8, 2, 64, 40, false, kNormal},
    {"edge", "layer_k1", 9, 4, 1, 64, 32, false, kNormal},
    {"edge", "layer_k1_renormalized", 9, 4, 1, 64, 32, true, kNormal},
    {"edge", "layer_one_expert", 20, 1, 1, 64, 32, false, kNormal},
    {"edge", "layer_k_equals_e", 7, 5, 5, 64, 32, false, kNormal},
    {"edge", "layer_k8", 10, 16, 8, 64, 32, true, kNormal},
    {"edge", "layer_i8", 9, 4, 2, 32, 8, true, kNormal},
    {"edge", "layer_h_and_i_tails", 9, 4, 2, 72, 88, true, kNormal},
    {"edge", "layer_exact_k4", 30, 6, 4, 24, 40, true, kExact},
    {"edge", "layer_nan_logits", 15, 6, 3, 64, 32, true, LayerData::kNanLogits},
    {"edge", "layer_one_hot_weights", 9, 6, 3, 64, 32, false, LayerData::kOneHot},
    {"edge", "layer_block32", 25, 2, 2, 64, 32, true, kNormal},
    {"edge", "layer_block64", 70, 3, 2, 64, 32, true, kNormal},
    {"edge", "layer_block128", 140, 2, 2, 64, 32, false, kNormal},
    {"random", "layer_mixtral_like", 33, 8, 2, 128, 96, true, kNormal, false, 2},
    {"random", "layer_qwen3_like", 12, 64, 8, 64, 48, true, kNormal, false, 2},
    {"random", "layer_spread", 30, 8, 4, 64, 64, false, LayerData::kSpread},
    {"refused", "layer_h12", 4, 3, 2, 12, 16, true, kNormal, true},
    {"refused", "layer_i20", 4, 3, 2, 16, 20, true, kNormal, true},
    {"refused", "layer_k_exceeds_e", 4, 3, 4, 16, 16, true, kNormal, true},
    {"refused", "layer_e1025", 2, 1025, 2, 8, 8, true, kNormal, true},
    {"refused", "layer_small_workspace", 4, 3, 2, 16, 16, true, kNormal, true, 1, 1},
};

std::string shape_of(const LayerCase& c) {
  return "layer T=" + std::to_string(c.num_tokens) + " E=" + std::to_string(c.num_experts) +
         " K=" + std::to_string(c.top_k) + " H=" + std::to_string(c.hidden_size) +
         " I=" + std::to_string(c.intermediate_size) + (c.renormalize ? " renormalize" : "");
}

float draw_logit(LayerData data, int token, judge::Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNanLogit = std::numeric_limits<float>::quiet_NaN();
  const auto normal = static_cast<float>(1.5 * random.normal());
  const int pick = random.integer(0, 3);
  if (data != LayerData::kNanLogits) return normal;
  if (token % 5 == 0) return kNanLogit;
  if (token % 5 == 1) return pick == 0 ? kNanLogit : normal;
  if (token % 5 == 2) return pick == 0 ? kInfinity : pick == 1 ? -kInfinity : normal;
  return normal;
}

// All logits of one token.
std::vector<float> draw_logits(const LayerCase& c, int token, judge::Random& random) {
  const auto count = static_cast<size_t>(c.num_experts);
  std::vector<float> row;
  for (size_t e = 0; e < count; ++e) row.push_back(draw_logit(c.data, token, random));
  if (std::string(c.name) == "layer_t4k2") {  // softmax over ln 3 and 0, renormalised: 3/4 and 1/4
    constexpr int kIds[4][2] = {{0, 1}, {1, 2}, {0, 2}, {1, 0}};
    row.assign(count, -1.0f);
    row[static_cast<size_t>(kIds[token][0])] = std::log(3.0f);
    row[static_cast<size_t>(kIds[token][1])] = 0.0f;
  }
  if (c.data == LayerData::kHotExpert) row[count / 2] = 4.0f;
  if (c.data == LayerData::kOneHot) row[random.bits() % count] = 60.0f;
  if (c.data == LayerData::kExact) {  // K equal ones, the rest far below
    std::vector<float> exact(count, -200.0f);
    for (int left = c.top_k; left > 0;) {
      float& logit = exact[random.bits() % count];
      if (logit < 0.0f) --left;
      logit = 1.0f;
    }
    return exact;
  }
  return row;
}

void draw_x(const LayerCase& c, LayerProblem& p, judge::Random& random) {
  for (int token = 0; token < c.num_tokens; ++token) {
    const double scale = c.data == LayerData::kSpread ? std::ldexp(1.0, token % 9 - 4) : 1.0;
    for (int d = 0; d < c.hidden_size; ++d) {
      const double value = c.data == kExact ? random.integer(-1, 1) : scale * random.normal();
      p.x.push_back(judge::to_bf16(value));
    }
  }
}

// The weights of one expert. Exact: gate is 128 times a small integer, so that silu(gate) is gate
// or 0; each row of w2 picks one column of h, so that y needs no rounding.
void draw_expert(const LayerCase& c, bool chosen, LayerProblem& p, judge::Random& random) {
  const auto push = [chosen](std::vector<Bf16>& w, double value) {
    w.push_back(chosen ? judge::to_bf16(value) : kNan);
  };
  for (int row = 0; row < 2 * c.intermediate_size; ++row) {
    const int unit = row < c.intermediate_size ? 128 : 1;
    for (int d = 0; d < c.hidden_size; ++d) {
      const bool few = d < 16;  // |gate / 128| and |up| stay at or below 16
      push(p.w13, c.data != kExact ? random.normal() / std::sqrt(c.hidden_size)
                  : few            ? unit * random.integer(-1, 1)
                                   : 0);
    }
  }
  for (int row = 0; row < c.hidden_size; ++row) {
    const int picked = random.integer(0, c.intermediate_size - 1);
    for (int d = 0; d < c.intermediate_size; ++d) {
      push(p.w2, c.data != kExact ? 2.0 * random.normal() / std::sqrt(c.intermediate_size)
                 : d == picked    ? 1
                                  : 0);
    }
  }
}

LayerProblem draw_layer(const LayerCase& c, uint64_t seed) {
  judge::Random random(seed);
  LayerProblem p;
  p.num_tokens = c.num_tokens;
  p.num_experts = c.num_experts;
  p.top_k = c.top_k;
  p.hidden_size = c.hidden_size;
  p.intermediate_size = c.intermediate_size;
  p.renormalize = c.renormalize;
  p.exact = c.data == kExact;
  for (int token = 0; token < c.num_tokens; ++token) {
    const auto row = draw_logits(c, token, random);
    p.logits.insert(p.logits.end(), row.begin(), row.end());
  }
  draw_x(c, p, random);
  std::set<int32_t> chosen;
  if (!c.refused) {
    const auto routing =
        oracle::route(p.logits, c.num_tokens, c.num_experts, c.top_k, c.renormalize);
    chosen.insert(routing.topk_ids.begin(), routing.topk_ids.end());
  }
  for (int e = 0; e < c.num_experts; ++e) draw_expert(c, chosen.count(e) != 0, p, random);
  return p;
}

Call call_of(const LayerCase& c, const LayerProblem& p, int64_t workspace_bytes) {
  const auto out_size = static_cast<size_t>(p.num_tokens) * static_cast<size_t>(p.hidden_size);
  const auto behind = static_cast<size_t>(p.num_ids() - p.num_tokens) *
                      static_cast<size_t>(p.hidden_size);  // what flat ids used as rows would read
  Call call;
  call.operation = kLayerOperation;
  call.integers = {p.num_tokens,
                   p.num_experts,
                   p.top_k,
                   p.hidden_size,
                   p.intermediate_size,
                   p.renormalize ? 1 : 0,
                   workspace_bytes - c.missing_bytes,
                   c.calls};
  call.buffers = {shaped(judge::output<Bf16>("out", out_size, kPoison), p.hidden_size),
                  shaped(judge::input("x", p.x, std::vector<Bf16>(c.refused ? 0 : behind, kNan)),
                         p.hidden_size),
                  shaped(judge::input("logits", p.logits), p.num_experts),
                  shaped(judge::input("w13", p.w13), p.hidden_size, 2 * p.intermediate_size),
                  shaped(judge::input("w2", p.w2), p.intermediate_size, p.hidden_size),
                  judge::workspace("workspace", static_cast<size_t>(workspace_bytes), 19)};
  if (c.calls > 1) call.buffers.push_back(judge::output<Bf16>("out_again", out_size, kPoison));
  return call;
}

Verdict judge_layer(const LayerCase& c, const LayerProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  if (c.calls > 1) {
    const auto again = outputs.values<Bf16>(6);
    const auto place = std::mismatch(out.begin(), out.end(), again.begin());
    if (place.first != out.end()) {
      const auto index = place.first - out.begin();
      return judge::wrong(bugs::kLayerUnstable,
                          {"first out[" + std::to_string(index / p.hidden_size) + "][" +
                           std::to_string(index % p.hidden_size) +
                           "]: " + std::to_string(judge::to_float(*place.first)) + ", then " +
                           std::to_string(judge::to_float(*place.second))});
    }
  }
  if (!out.empty() && std::count(out.begin(), out.end(), kPoison) == std::ssize(out)) {
    return judge::wrong(std::vector{bugs::kLayerNothing, bugs::kCombineNothing}, {});
  }
  const auto want = oracle::moe_layer(p);
  const std::vector<uint8_t> judged(static_cast<size_t>(p.num_tokens), 1);
  if (judge::compare(out, want, judged, kPoison, p.exact, kLayerGates).right) return {};
  return judge::judge_matrix(bugs::layer_models(p), p, out, want, judged,
                             {"out", kPoison, p.exact, kLayerGates, kLayerSlack});
}

}  // namespace

LayerProblem make_layer(const LayerCase& c, uint64_t seed) {
  return draw_layer(c, seed);
}

std::vector<LayerCase> layer_cases_of(const std::string& group) {
  if (group == "hidden") {
    return judge::hidden_cases(kCases, [](LayerCase& c, auto& random) {
      c.num_tokens += random.integer(1, 20);
      c.num_experts += random.integer(0, 5);
      c.hidden_size = 8 * random.integer(3, 16);
      c.intermediate_size = 8 * random.integer(2, 12);
    });
  }
  std::vector<LayerCase> chosen;
  for (const LayerCase& c : kCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}

judge::StageCase<LayerProblem> layer_stage_case(const LayerCase& c) {
  constexpr int64_t kLargestWorkspace = int64_t{64} << 20;
  judge::StageCase<LayerProblem> stage_case;
  const int64_t bytes = judge::Suite::get().ask_value(
      kLayerOperation, {c.num_tokens, c.num_experts, c.top_k, c.hidden_size, c.intermediate_size},
      stage_case.before);
  if (stage_case.before.pass() && (bytes < 0 || bytes > kLargestWorkspace)) {
    stage_case.before = judge::wrong("moe_layer_workspace_bytes asks for more than 64 MiB.");
  }
  const int64_t room = std::clamp<int64_t>(bytes, 0, kLargestWorkspace);
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.composed = true;
  stage_case.make = [c](uint64_t seed) { return make_layer(c, seed); };
  stage_case.call = [c, room](const LayerProblem& p) { return call_of(c, p, room); };
  stage_case.judge = [c](const LayerProblem& p, const Outputs& outputs) {
    return judge_layer(c, p, outputs);
  };
  stage_case.trace = [](const LayerProblem& p, const Outputs* outputs, judge::Place place) {
    return oracle::trace_of(p, outputs == nullptr ? std::vector<Bf16>() : outputs->values<Bf16>(0),
                            place);
  };
  return stage_case;
}

judge::FuzzTarget random_layers(const LayerStageCase& stage_case_of) {
  return {"layer",
          {{"T", 0, 50},
           {"E", 1, 30},
           {"K", 1, 8},
           {"H/8", 1, 16},
           {"I/8", 1, 12},
           {"renormalize", 0, 1},
           {"data", 0, 3},
           {"broken", 0, 4, true}},
          [stage_case_of](const std::string& name, const std::vector<int>& g) {
            constexpr LayerData kData[] = {LayerData::kNormal, LayerData::kSpread,
                                           LayerData::kNanLogits, LayerData::kOneHot};
            LayerCase c = {"fuzz",     judge::kept(name.substr(5)),
                           g[0],       std::max(g[1], g[2]),
                           g[2],       8 * g[3],
                           8 * g[4],   g[5] != 0,
                           kData[g[6]]};
            c.refused = g[7] > 0;
            if (g[7] == 1) c.hidden_size += 4;
            if (g[7] == 2) c.intermediate_size += 4;
            if (g[7] == 3) c.top_k = c.num_experts + 1;
            if (g[7] == 4) c.missing_bytes = 1;
            return judge::judge_case(stage_case_of(c));
          }};
}

}  // namespace moe
