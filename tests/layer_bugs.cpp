#include "layer_bugs.h"

#include <cmath>
#include <memory>
#include <string>

#include "m1_align_oracle.h"
#include "m3_weighted_epilogue_bugs.h"

namespace moe::bugs {

using judge::Matrix;
using oracle::LayerMistake;
using oracle::LayerProblem;

const judge::Mistake kLayerNothing = {"M3-NOTHING", "m3.layer", "layer",
                                      "out was never written: is combine called, and with out?"};
const judge::Mistake kLayerUnstable = {
    "M3-UNSTABLE", "m3.combine", "combine",
    "The same call gives other bytes the second time: a sum depends on who comes first. Let one "
    "thread add the slots of a token in a fixed order."};

namespace {

using Model = judge::MatrixModel<LayerProblem>;

std::vector<judge::Bf16> rounded(const Matrix& matrix) {
  std::vector<judge::Bf16> values;
  for (const double value : matrix.values) values.push_back(judge::to_bf16(value));
  return values;
}

// The steps of a layer on bf16 arrays, as a right implementation has them, and the layer's output
// when the result of one step is another.
class Steps {
 public:
  explicit Steps(const LayerProblem& p) {
    const auto routing =
        oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize);
    oracle::GemmProblem gemm;
    gemm.num_tokens = p.num_tokens;
    gemm.top_k = p.top_k;
    gemm.num_experts = p.num_experts;
    gemm.topk_ids = routing.topk_ids;
    gemm.n = 2 * p.intermediate_size;
    gemm.depth = p.hidden_size;
    gemm.a = p.x;
    gemm.w = p.w13;
    silu_ = {p.num_ids(), p.intermediate_size, p.exact, rounded(oracle::grouped_gemm(gemm))};

    gemm.block_m = 16;
    const auto table =
        oracle::align(gemm.topk_ids, p.num_tokens, p.top_k, p.num_experts, gemm.block_m);
    gemm.sorted_token_ids = table.sorted_token_ids;
    gemm.expert_ids = table.expert_ids;
    gemm.num_tokens_post_padded = table.num_tokens_post_padded;
    gemm.rows_are_slots = true;
    gemm.n = p.hidden_size;
    gemm.depth = p.intermediate_size;
    gemm.a = rounded(oracle::silu_and_mul(silu_));
    gemm.w = p.w2;
    weighted_ = {gemm, {routing.topk_weights.begin(), routing.topk_weights.end()}};
    combine_ = {p.num_tokens,
                p.top_k,
                p.num_experts,
                p.hidden_size,
                p.exact,
                gemm.topk_ids,
                rounded(oracle::grouped_gemm_weighted(weighted_))};
  }

  const oracle::SiluProblem& silu() const { return silu_; }
  const oracle::WeightedProblem& weighted() const { return weighted_; }
  const oracle::CombineProblem& combine() const { return combine_; }

  Matrix from_h(const Matrix& h) const {
    oracle::WeightedProblem weighted = weighted_;
    weighted.gemm.a = rounded(h);
    return from_y(oracle::grouped_gemm_weighted(weighted));
  }
  // NaN in y is a weight from behind the end of topk_weights: in a workspace, anything.
  Matrix from_y(const Matrix& y) const {
    oracle::CombineProblem combine = combine_;
    combine.y = rounded(y);
    Matrix out = oracle::combine(combine);
    for (double& value : out.values) {
      if (std::isnan(value)) value = judge::kAnything;
    }
    return out;
  }

 private:
  oracle::SiluProblem silu_;
  oracle::WeightedProblem weighted_;
  oracle::CombineProblem combine_;
};

// Mistakes of the order of steps.
void add_order_models(std::vector<Model>& models) {
  const auto add = [&](const char* code, const char* sentence, auto change) {
    LayerMistake mistake;
    change(mistake);
    models.push_back({{code, "m3.layer", "layer", sentence},
                      [mistake](const LayerProblem& p) { return oracle::moe_layer(p, mistake); }});
  };
  add("M3-NOWEIGHT", "The routing weight is never applied.",
      [](LayerMistake& m) { m.weight_in_gemm2 = false; });
  add("M3-BEFORESILU", "The weight is inside SiLU; SiLU is not linear, apply it after GEMM2.",
      [](LayerMistake& m) {
        m.weight_in_gemm1 = true;
        m.weight_in_gemm2 = false;
      });
  add("M3-BOTHGEMMS", "The routing weight is applied twice (GEMM1 and GEMM2).",
      [](LayerMistake& m) { m.weight_in_gemm1 = true; });
  add("M3-RENORM",
      "The weights are normalised although the caller did not ask for it, or the other way round: "
      "pass `renormalize` on to route.",
      [](LayerMistake& m) { m.flip_renormalize = true; });
  add("M3-GEMM1ROWS", "GEMM1 reads rows of x by flat_id; x has one row per token (Rows::kTokens).",
      [](LayerMistake& m) { m.gemm1_row_is_flat_id = true; });
  add("M3-GEMM2ROWS",
      "GEMM2 reads row flat_id / K of h; h has one row per (token, slot) (Rows::kSlots).",
      [](LayerMistake& m) { m.gemm2_row_is_token = true; });
}

}  // namespace

std::vector<Model> layer_models(const LayerProblem& p) {
  std::vector<Model> models;
  add_order_models(models);
  const auto steps = std::make_shared<const Steps>(p);
  for (const auto& model : silu_models()) {
    models.push_back({model.mistake, [steps, &model](const LayerProblem&) {
                        return steps->from_h(model.output(steps->silu()));
                      }});
  }
  for (const auto& model : weighted_models()) {
    models.push_back({model.mistake, [steps, &model](const LayerProblem&) {
                        return steps->from_y(model.output(steps->weighted()));
                      }});
  }
  for (const auto& model : combine_models()) {
    models.push_back({model.mistake, [steps, &model](const LayerProblem&) {
                        return model.output(steps->combine());
                      }});
  }
  return models;
}

}  // namespace moe::bugs
