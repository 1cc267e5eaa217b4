#include "m5_block_fp8_bugs.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>

namespace moe::bugs {

using judge::Fp8;
using oracle::Quantized;
using oracle::QuantizeProblem;

const judge::Mistake kPowerBelow = {
    "M5-POW2-DOWN", "m5.power", "power-of-two",
    "The power of two is the one below the scale; then amax does not fit any more."};
const judge::Mistake kPowerNext = {
    "M5-POW2-NEXT", "m5.power", "power-of-two",
    "A scale that is a power of two already must stay as it is; here it is doubled."};
const judge::Mistake kPowerRounds = {
    "M5-POW2-LOG", "m5.power", "power-of-two",
    "Scales just above a power of two get that power: log2 rounds. Take the exponent bits."};
const judge::Mistake kPowerWrong = {
    "M5-POW2-BITS", "m5.power", "power-of-two",
    "power_of_two_at_least is wrong: keep the exponent bits and add one if the mantissa is not 0."};

namespace {

// The quantisers, with their steps open.

// Which values share a scale.
enum class Group { kBlock, kRow, kLane, kWarp };

struct Steps {
  Group group = Group::kBlock;
  int carry = 0;  // +1: a warp knows its own amax and those of lower warps, -1: of higher ones
  std::function<float(float amax, float value)> larger = [](float amax, float value) {
    return std::isnan(value) ? amax : std::max(amax, std::min(std::fabs(value), 3.3895314e38f));
  };
  float floor = 1e-10f;
  float largest = 448.0f;
  std::function<float(float amax, const Steps&)> scale_of = [](float amax, const Steps& s) {
    return std::fmax(amax, s.floor) / s.largest;
  };
  std::function<float(float scale, bool asked)> power = [](float scale, bool asked) {
    return asked ? oracle::power_of_two_at_least(scale) : scale;
  };
  std::function<float(float value, float scale, float amax)> quotient_of =
      [](float value, float scale, float) { return value / scale; };
  std::function<Fp8(float quotient)> encode = [](float quotient) {
    return judge::to_e4m3(static_cast<double>(quotient));
  };
};

// A number for the values that share an amax, within one matrix; equal numbers share.
int64_t group_of(Group group, int row, int k, int k_blocks) {
  const int64_t block = static_cast<int64_t>(row / 128) * k_blocks + k / 128;
  switch (group) {
    case Group::kRow:  // all of D
      return row / 128;
    case Group::kLane:  // the four values of one lane
      return static_cast<int64_t>(row) * k_blocks * 32 + k / 4;
    case Group::kWarp:  // the rows of one warp of eight
      return block * 8 + row % 8;
    default:
      return block;
  }
}

Quantized quantize_with(const QuantizeProblem& p, const Steps& steps) {
  const int k_blocks = (p.depth + 127) / 128;
  const int n_blocks = (p.n + 127) / 128;
  const size_t groups = static_cast<size_t>(p.n) * static_cast<size_t>(k_blocks) * 32;
  Quantized result;
  for (int matrix = 0; matrix < p.num_matrices; ++matrix) {
    const judge::Bf16* values = p.values.data() + static_cast<size_t>(matrix) *
                                                      static_cast<size_t>(p.n) *
                                                      static_cast<size_t>(p.depth);
    const auto value_at = [&](int row, int k) {
      return judge::to_float(
          values[static_cast<size_t>(row) * static_cast<size_t>(p.depth) + static_cast<size_t>(k)]);
    };
    const auto index = [&](int row, int k) {
      return static_cast<size_t>(group_of(steps.group, row, k, k_blocks));
    };
    std::vector<float> amax(groups, 0.0f);
    for (int row = 0; row < p.n; ++row) {
      for (int k = 0; k < p.depth; ++k) {
        float& of_group = amax[index(row, k)];
        of_group = steps.larger(of_group, value_at(row, k));
      }
    }
    for (size_t i = 1; steps.carry > 0 && i < groups; ++i) {
      if (i % 8 != 0) amax[i] = std::max(amax[i], amax[i - 1]);
    }
    for (size_t i = groups - 1; steps.carry < 0 && i > 0; --i) {
      if (i % 8 != 0) amax[i - 1] = std::max(amax[i], amax[i - 1]);
    }
    const auto scale_at = [&](int row, int k) {
      return steps.power(steps.scale_of(amax[index(row, k)], steps), p.power_of_two);
    };
    for (int row = 0; row < p.n; ++row) {
      for (int k = 0; k < p.depth; ++k) {
        result.codes.push_back(steps.encode(
            steps.quotient_of(value_at(row, k), scale_at(row, k), amax[index(row, k)])));
      }
    }
    for (int block = 0; block < n_blocks * k_blocks; ++block) {
      result.scales.push_back(scale_at(block / k_blocks * 128, block % k_blocks * 128));
    }
  }
  return result;
}

class QuantizeModels {
 public:
  void add(const char* code,
           const char* region,
           const char* note,
           const char* sentence,
           std::function<Quantized(const QuantizeProblem&)> output) {
    models.push_back({{code, region, note, sentence}, std::move(output)});
  }
  // One mistake, in any of the forms that it takes.
  void steps(const char* code,
             const char* region,
             const char* note,
             const char* sentence,
             const std::vector<std::function<void(Steps&)>>& changes) {
    for (const auto& change : changes) {
      Steps changed;
      change(changed);
      add(code, region, note, sentence,
          [changed](const QuantizeProblem& p) { return quantize_with(p, changed); });
    }
  }
  std::vector<QuantizeModel> models;
};

void add_amax_models(QuantizeModels& m) {
  m.steps("M5-AMAX-ROW", "m5.block", "amax",
          "amax is taken over the whole row; every 128 of D have a scale of their own.",
          {[](Steps& s) { s.group = Group::kRow; }});
  m.steps("M5-AMAX-LANE", "m5.block", "amax",
          "amax is each lane's own: the 32 lanes of the warp must agree on the largest.",
          {[](Steps& s) { s.group = Group::kLane; }});
  m.steps("M5-AMAX-WARP", "m5.block", "amax",
          "amax is each warp's own: all warps of the thread block share the 128 x 128 values.",
          {[](Steps& s) { s.group = Group::kWarp; }});
  const auto carry = [](int which) {
    return [which](Steps& s) {
      s.group = Group::kWarp;
      s.carry = which;
    };
  };
  m.steps("M5-TILE-BARRIER", "m5.block", "amax",
          "warp_amax is read before all warps have written theirs: a __syncthreads is missing.",
          {carry(1), carry(-1)});
  m.steps("M5-AMAX-SIGNED", "m5.amax", "amax",
          "amax is the largest value, not the largest magnitude.", {[](Steps& s) {
            s.larger = [](float amax, float v) {
              return std::isnan(v) ? amax : std::max(amax, std::min(v, 3.3895314e38f));
            };
          }});
  m.steps("M5-NAN-AMAX", "m5.amax", "amax", "NaN counts in amax and spoils its whole block.",
          {[](Steps& s) {
             s.larger = [](float amax, float v) { return std::isnan(v) ? v : std::max(amax, v); };
             s.scale_of = [](float amax, const Steps& t) { return amax / t.largest; };
           },
           [](Steps& s) {
             s.larger = [](float amax, float v) {
               return std::isnan(v) ? FLT_MAX
                                    : std::max(amax, std::min(std::fabs(v), 3.3895314e38f));
             };
             s.scale_of = [](float amax, const Steps& t) {
               return std::fmax(std::min(amax, 3.3895314e38f), t.floor) / t.largest;
             };
           }});
  m.steps("M5-INF", "m5.scale", "scale",
          "An infinite value makes the scale infinite; it counts as the largest bf16.",
          {[](Steps& s) {
            s.larger = [](float amax, float v) {
              return std::isnan(v) ? amax : std::max(amax, std::fabs(v));
            };
          }});
}

void add_scale_models(QuantizeModels& m) {
  m.steps(
      "M5-ZERO-SCALE", "m5.scale", "scale",
      "A block of zeros gets the scale 0, and its codes are 0 / 0, NaN: amax counts as 1e-10 at "
      "least.",
      {[](Steps& s) { s.floor = 0.0f; }});
  m.steps("M5-FLOOR", "m5.scale", "scale", "The least amax is 1e-10, before the division by 448.",
          {[](Steps& s) { s.floor = 1e-12f; }, [](Steps& s) { s.floor = FLT_MIN; },
           [](Steps& s) {
             s.scale_of = [](float amax, const Steps& t) {
               return std::fmax(amax / t.largest, t.floor);
             };
           }});
  m.steps("M5-LARGEST", "m5.scale", "scale", "amax is divided by 448, the largest e4m3 value.",
          {[](Steps& s) { s.largest = 240.0f; }, [](Steps& s) { s.largest = 256.0f; },
           [](Steps& s) { s.largest = 127.0f; }, [](Steps& s) { s.largest = 480.0f; }});
  m.add("M5-INVERSE", "m5.scale", "scale",
        "The stored scale is its own inverse: value = code * scale, so the scale is amax / 448.",
        [](const QuantizeProblem& p) {
          Quantized q = quantize_with(p, {});
          for (float& scale : q.scales) scale = 1.0f / scale;
          return q;
        });
  m.steps("M5-POW2-NEVER", "m5.scale", "power-of-two", "The option `power_of_two` is ignored.",
          {[](Steps& s) { s.power = [](float scale, bool) { return scale; }; }});
  m.steps("M5-POW2-ALWAYS", "m5.scale", "power-of-two",
          "Scales are powers of two only where `power_of_two` asks for it.", {[](Steps& s) {
            s.power = [](float scale, bool) { return oracle::power_of_two_at_least(scale); };
          }});
  m.steps(kPowerBelow.code, kPowerBelow.region, kPowerBelow.note, kPowerBelow.sentence,
          {[](Steps& s) {
            s.power = [](float scale, bool asked) {
              const float up = oracle::power_of_two_at_least(scale);
              return !asked || up == scale ? scale : up / 2;
            };
          }});
  m.steps(kPowerNext.code, kPowerNext.region, kPowerNext.note, kPowerNext.sentence, {[](Steps& s) {
            s.power = [](float scale, bool asked) {
              const float up = oracle::power_of_two_at_least(scale);
              return asked && up == scale ? 2 * up : asked ? up : scale;
            };
          }});
}

void add_code_models(QuantizeModels& m) {
  m.steps(
      "M5-RECIPROCAL", "m5.encode", "encode",
      "Codes come from a multiplication by an inverse, which is rounded once more: some differ. "
      "Divide by the scale.",
      {[](Steps& s) {
         s.quotient_of = [](float v, float scale, float) { return v * (1.0f / scale); };
       },
       [](Steps& s) {
         s.quotient_of = [](float v, float, float amax) {
           return v * (448.0f / std::fmax(amax, 1e-10f));
         };
       },
       [](Steps& s) {
         s.quotient_of = [](float v, float, float amax) {
           return v * 448.0f / std::fmax(amax, 1e-10f);
         };
       }});
  m.steps("M5-NAN-CODE", "m5.encode", "encode",
          "NaN must give the code 0x7f; here it becomes a number.",
          {[](Steps& s) {
             s.encode = [](float q) { return std::isnan(q) ? Fp8{0x7e} : judge::to_e4m3(q); };
           },
           [](Steps& s) {
             s.encode = [](float q) { return std::isnan(q) ? Fp8{0xfe} : judge::to_e4m3(q); };
           },
           [](Steps& s) {
             s.encode = [](float q) { return std::isnan(q) ? Fp8{0} : judge::to_e4m3(q); };
           }});
  m.steps("M5-NOSAT", "m5.encode", "encode", "What is too large must become 448 (0x7e), not NaN.",
          {[](Steps& s) {
            s.encode = [](float q) {
              const Fp8 sign = std::signbit(q) ? 0x80 : 0;
              return std::isinf(q) ? static_cast<Fp8>(sign | 0x7f) : judge::to_e4m3(q);
            };
          }});
  m.steps("M5-TRUNCATE", "m5.encode", "encode", "Codes are rounded to zero; round to nearest even.",
          {[](Steps& s) {
            s.encode = [](float q) { return judge::to_fp8(q, {3, -6, 0x7e, true}); };
          }});
  m.steps("M5-MINUSZERO", "m5.encode", "encode", "-0 must give the code 0x80.", {[](Steps& s) {
            s.encode = [](float q) { return q == 0.0f ? Fp8{0} : judge::to_e4m3(q); };
          }});
  m.steps("M5-E5M2-CODE", "m5.encode", "encode", "Codes are e5m2; they must be e4m3.",
          {[](Steps& s) { s.encode = [](float q) { return judge::to_e5m2(q); }; }});
  m.steps("M5-UNSCALED", "m5.encode", "encode", "Values are not divided by the scale.",
          {[](Steps& s) { s.quotient_of = [](float v, float, float) { return v; }; }});
}

float poison_scale() {
  float value = 0.0f;
  std::memcpy(&value, &kPoisonBits, sizeof value);
  return value;
}

// Blocks of scales [matrix][n_block][k_block] in another order, or only some of them written.
void add_layout_models(QuantizeModels& m) {
  m.add("M5-SCALES-LAYOUT", "m5.block", "scale",
        "The scales are stored [blocks][rows]; a row's scales lie side by side.",
        [](const QuantizeProblem& p) {
          const Quantized right = quantize_with(p, {});
          Quantized q = right;
          const auto per_matrix = right.scales.size() / static_cast<size_t>(p.num_matrices);
          for (size_t i = 0; i < q.scales.size(); ++i) {
            const size_t place =
                i % per_matrix * static_cast<size_t>(p.num_matrices) + i / per_matrix;
            q.scales[place] = right.scales[i];
          }
          return q;
        });
  m.add("M5-QTAIL", "m5.block", "amax",
        "The last, partial block of D was not quantised: round the number of blocks up.",
        [](const QuantizeProblem& p) {
          Quantized q = quantize_with(p, {});
          const size_t depth = static_cast<size_t>(p.depth);
          const size_t k_blocks = (depth + 127) / 128;
          for (size_t i = 0; i < q.codes.size(); ++i) {
            if (i % depth >= depth / 128 * 128) q.codes[i] = kPoisonCode;
          }
          for (size_t i = depth / 128; depth % 128 != 0 && i < q.scales.size(); i += k_blocks) {
            q.scales[i] = poison_scale();
          }
          return q;
        });
  m.add("M5-QNOTHING", "m5.block", "amax", "Nothing was written.", [](const QuantizeProblem& p) {
    Quantized q = quantize_with(p, {});
    std::fill(q.codes.begin(), q.codes.end(), kPoisonCode);
    std::fill(q.scales.begin(), q.scales.end(), poison_scale());
    return q;
  });
}

}  // namespace

const std::vector<QuantizeModel>& quantize_models() {
  static const std::vector<QuantizeModel> models = [] {
    QuantizeModels m;
    add_amax_models(m);
    add_scale_models(m);
    add_code_models(m);
    add_layout_models(m);
    return m.models;
  }();
  return models;
}

}  // namespace moe::bugs
