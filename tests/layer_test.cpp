// Tests of the whole layer, whichever stages stand in the runner: `layer.m3.sms` has m1 and m3 of
// the solution and m2 of the learner. The cases are those of the stages that have a moe_layer.
#include "layer_cases.h"

namespace moe {
namespace {

class Layer : public testing::TestWithParam<LayerCase> {};

TEST_P(Layer, MatchesDoublePrecision) {
  judge::run_case(layer_stage_case(GetParam()));
}

const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, Layer, testing::ValuesIn(layer_cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, Layer, testing::ValuesIn(layer_cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, Layer, testing::ValuesIn(layer_cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused,
                         Layer,
                         testing::ValuesIn(layer_cases_of("refused")),
                         name_of_case);

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  // The blanks of every stage that may be in the runner.
  return moe::judge::stage_main(
      argc, argv, "layer",
      {"m1.topk", "m1.weights", "m1.count", "m1.scan", "m1.scatter", "m2.early_exit", "m2.gather",
       "m2.load", "m2.multiply", "m2.mainloop", "m2.store", "m3.swiglu", "m3.weight", "m3.combine",
       "m3.layer", "m4.tile_of", "m4.pick_tile", "m4.order"});
}
