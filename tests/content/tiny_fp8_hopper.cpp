// The table of m10's note: one token, one expert, two scale blocks, all codes of the weights 1.
#include <cmath>

#include "content/tiny_hopper.h"
#include "content/tiny_tables.h"
#include "judge/bf16.h"
#include "m10_fp8_hopper_oracle.h"
#include "m5_block_fp8_oracle.h"

namespace moe::content {
namespace {

constexpr int kBlock = 128;
constexpr int kHidden = 2 * kBlock;
constexpr judge::Fp8 kOne = 0x38;

oracle::Fp8LayerProblem m10_problem() {
  oracle::Fp8LayerProblem p;
  p.num_tokens = p.num_experts = p.top_k = 1;
  p.hidden_size = kHidden;
  p.intermediate_size = kBlock;
  p.logits = {0.0f};
  for (int d = 0; d < kHidden; ++d) p.x.push_back(judge::to_bf16(d < kBlock ? 448.0 : 224.0));
  p.w13.codes.assign(size_t(2 * kBlock * kHidden), kOne);
  p.w13.scales = {0x1p-12f, 0x1p-11f, 0x1p-13f, 0x1p-12f};  // gate, up
  p.w2.codes.assign(size_t(kHidden * kBlock), kOne);
  p.w2.scales = {0x1p-7f, 0x1p-6f};
  return p;
}

}  // namespace

std::string m10_example() {
  const oracle::Fp8LayerProblem p = m10_problem();
  const oracle::Quantized x = oracle::quantize({1, 1, kHidden, false, p.x});
  const auto partial = [&](int block) {
    return kBlock * judge::from_e4m3(x.codes[size_t(block * kBlock)]);
  };
  const auto scaled = [&](int block, int side) {
    return partial(block) * double(x.scales[size_t(block)]) *
           double(p.w13.scales[size_t(2 * side + block)]);
  };
  Grid grid(38, 9);
  const auto add_row = [&](const std::string& label, auto cell_of, const std::string& remark = "") {
    grid.row(label, cells(2, [&](int block) { return number(cell_of(block)); }), remark);
  };
  add_row("scale block", [](int block) { return double(block); });
  add_row("x", [&](int block) { return double(judge::to_float(p.x[size_t(block * kBlock)])); });
  add_row("its scale", [&](int block) { return double(x.scales[size_t(block)]); });
  add_row("its code, as a value",
          [&](int block) { return judge::from_e4m3(x.codes[size_t(block * kBlock)]); });
  add_row("partial sum of 128 products", partial, "   level one, on the tensor cores");
  add_row("scale of gate, in 1/4096",
          [&](int block) { return 4096.0 * double(p.w13.scales[size_t(block)]); });
  add_row(
      "times both scales", [&](int block) { return scaled(block, 0); },
      "   level two: gate = " + number(scaled(0, 0) + scaled(1, 0)));
  add_row(
      "the same of up", [&](int block) { return scaled(block, 1); },
      "   up = " + number(scaled(0, 1) + scaled(1, 1)));
  const double gate = scaled(0, 0) + scaled(1, 0);
  const double h = gate / (1.0 + std::exp(-gate)) * (scaled(0, 1) + scaled(1, 1));
  grid.gap();
  grid.say("h = silu(gate) * up = " + number(h) + ", scale " + number(h / 448.0) + ", code 448");
  const judge::Matrix out = oracle::moe_layer_fp8(p);
  grid.say("out = " + number(out.at(0, 0)) + " in the first 128 columns, " +
           number(out.at(0, kBlock)) + " in the others: w2 has the scales 1/128 and 1/64");
  return fenced(grid.text());
}

}  // namespace moe::content
