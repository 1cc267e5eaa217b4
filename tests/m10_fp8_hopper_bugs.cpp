#include "m10_fp8_hopper_bugs.h"

#include <algorithm>
#include <string>

namespace moe::bugs {

using judge::Mistake;
using judge::Verdict;
using oracle::Fp8LayerMistake;
using oracle::Fp8LayerProblem;

const Mistake kFp8LayerNothing = {
    "M10-NOTHING", "m10.launches", "launches",
    "`out` is as it was before: are all seven steps launched, combine the last?"};
const Mistake kFp8LayerUnstable = {"M10-UNSTABLE", "m10.combine", "combine",
                                   "The same call twice gives other bytes: add the slots of a "
                                   "token in their order, and let no sum "
                                   "depend on which rows lie beside a row."};
const Mistake kFp8LayerPromotion = {
    "M10-PROMOTION", "m10.promote", "promote",
    "Sums lose their last bits, and nothing else is wrong: tensor cores keep about 14 bits of a "
    "sum "
    "of e4m3 products. Start a fresh sum every 128 and add it, scaled, in fp32."};

const Mistake kFp8LayerNanLost = {
    "M10-NANLOST", "m10.requantize", "requantize",
    "A NaN got lost: in h it doesn't count for the scale, its code is 0x7f, and it reaches every "
    "column of its token."};

namespace {

const Mistake kSecondHalves = {
    "M10-SECONDHALF", "m10.halves", "halves",
    "Of each 256 columns of out the second 128 are wrong: GEMM2's second half of W starts 128 rows "
    "further on and has a scale of its own."};
const Mistake kLongBlocks = {
    "M10-HALF", "m10.half_tile", "half_tile",
    "Only tokens of experts with more than 64 rows are wrong: rows 64 to 127 of a block are used "
    "if "
    "any of them is a slot's (m10.sort), and only then has the second warpgroup work."};
const Mistake kLayout = {"M10-LAYOUT", "m10.gather", "gather",
                         "Values are wrong here and there. Chunk c of row r of a swizzled tile "
                         "lies at c ^ (r % 8), where x "
                         "is gathered and where codes are stored (m10.store_codes)."};
const Mistake kAll = {
    "M10-ALL", "m10.launches", "launches",
    "Every token is wrong. Is each step launched, in order, with the right scales? A stage's full "
    "barrier must cover all that the stage holds: codes, W's halves, A's scales."};

struct Switch {
  Mistake mistake;
  void (*set)(Fp8LayerMistake&);
};

// clang-format off: one sentence a line
const std::vector<Switch>& switches() {
  static const std::vector<Switch> all = {
      {{"M10-NOASCALE", "m10.scales", "scales",
        "The scales of A are left out: a partial sum is times the scale of its row of A and that "
        "of its half of W."},
       [](Fp8LayerMistake& m) { m.no_a_scale = true; }},
      {{"M10-NOWSCALE", "m10.scales", "scales",
        "The scales of W are left out: a partial sum is times the scale of its row of A and that "
        "of its half of W."},
       [](Fp8LayerMistake& m) { m.no_w_scale = true; }},
      {{"M10-ABLOCK0", "m10.a_scales", "a_scales",
        "Every turn has the scales of A's first block: in a_scales [depth / 128, rows] a turn's "
        "are one row further on."},
       [](Fp8LayerMistake& m) { m.first_a_scale = true; }},
      {{"M10-WBLOCK0", "m10.w_scale", "w_scale",
        "Every turn has the scale of W's first block of the reduction: `turn` counts in w_scales' "
        "last index."},
       [](Fp8LayerMistake& m) { m.first_w_scale = true; }},
      {{"M10-FIRSTSCALE", "m10.w_scale", "w_scale",
        "The second half of W has the scale of the first: its block is that of its own first row, "
        "w_rows[1]."},
       [](Fp8LayerMistake& m) { m.scale_of_first_half = true; }},
      {{"M10-UP", "m10.halves", "halves",
        "In GEMM1 `up` comes from the next 128 rows of gate: it starts I rows behind gate."},
       [](Fp8LayerMistake& m) { m.up_is_next_gate = true; }},
      {{"M10-STEPS", "m10.multiply", "multiply",
        "The last 32 of every 128 are missing: a block of 128 takes four wgmma of depth 32."},
       [](Fp8LayerMistake& m) { m.last_step_missing = true; }},
      {{"M10-LASTTURN", "m10.promote", "promote",
        "Only the last turn counts: FIRST overwrites the sums, every other turn adds to them."},
       [](Fp8LayerMistake& m) { m.last_block_only = true; }},
      {{"M10-BOTHFIRST", "m10.multiply", "multiply",
        "Both halves multiply the first half of W: the second starts kHalf rows further on in the "
        "stage."},
       [](Fp8LayerMistake& m) { m.codes_of_first_half = true; }},
      {{"M10-FIRSTCODES", "m10.gather", "gather",
        "Every turn of GEMM1 has the first 128 codes of x: a turn's start at code k."},
       [](Fp8LayerMistake& m) { m.first_x_block = true; }},
      {{"M10-POWEROF2", "m10.launches", "launches",
        "The scales of x are powers of two: that is m5's option, not asked for here."},
       [](Fp8LayerMistake& m) { m.x_power_of_two = true; }},
      {{"M10-SIGNED", "m10.amax", "amax",
        "The scale of a row of h comes from its largest value: it comes from the largest "
        "magnitude."},
       [](Fp8LayerMistake& m) { m.amax_of_positive = true; }},
      {{"M10-FLATROW", "m10.sort", "sort",
        "GEMM1 reads row flat_id of x: the row is the token's, flat_id / top_k."},
       [](Fp8LayerMistake& m) { m.row_is_flat_id = true; }},
      {{"M10-XSCALE", "m10.sort_scales", "sort_scales",
        "All rows have the scales of token 0: x_scales has a row for each token."},
       [](Fp8LayerMistake& m) { m.x_scale_of_first_token = true; }},
      {{"M10-AMAX1", "m10.amax", "amax",
        "The scale of a row of h comes from one lane's columns: four lanes hold the row, and its "
        "largest magnitude is that of all."},
       [](Fp8LayerMistake& m) { m.amax_lanes = 1; }},
      {{"M10-AMAX2", "m10.amax", "amax",
        "The scale of a row of h comes from two lanes' columns: four lanes hold the row, two "
        "exchanges bring them together."},
       [](Fp8LayerMistake& m) { m.amax_lanes = 2; }},
      {{"M10-NOTDIVIDED", "m10.requantize", "requantize",
        "The codes of h are of h itself: they are of h / scale."},
       [](Fp8LayerMistake& m) { m.codes_not_divided = true; }},
      {{"M10-NOWEIGHT", "m10.combine", "combine",
        "The routing weights are left out: y has none, combine multiplies."},
       [](Fp8LayerMistake& m) { m.weight = 0; }},
      {{"M10-WEIGHTTWICE", "m10.combine", "combine", "The routing weights are applied twice."},
       [](Fp8LayerMistake& m) { m.weight = 2; }},
  };
  return all;
}
// clang-format on

// Rows 64 to 127 of the blocks of 128.
size_t rows_of_second_warpgroup(const Fp8LayerProblem& p) {
  int sum = 0;
  for (const int rows : oracle::rows_of_experts(p)) {
    sum += rows / 128 * 64 + std::max(0, rows % 128 - 64);
  }
  return static_cast<size_t>(sum);
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

const std::vector<judge::MatrixModel<Fp8LayerProblem>>& fp8_layer_models() {
  static const std::vector<judge::MatrixModel<Fp8LayerProblem>> models = [] {
    std::vector<judge::MatrixModel<Fp8LayerProblem>> all;
    for (const Switch& one : switches()) {
      all.push_back({one.mistake, [set = one.set](const Fp8LayerProblem& p) {
                       Fp8LayerMistake mistake;
                       set(mistake);
                       return oracle::moe_layer_fp8(p, mistake);
                     }});
    }
    return all;
  }();
  return models;
}

Verdict explain_fp8_layer(const Fp8LayerProblem& p,
                          const std::vector<uint8_t>& is_wrong,
                          Verdict verdict) {
  const auto columns = static_cast<size_t>(p.hidden_size);
  size_t wrong_rows = 0;
  size_t wrong_elements = 0;
  bool only_second_halves = true;
  for (size_t first = 0; first < is_wrong.size(); first += columns) {
    bool row_is_wrong = false;
    for (size_t column = 0; column < columns; ++column) {
      if (is_wrong[first + column] == 0) continue;
      row_is_wrong = true;
      ++wrong_elements;
      if (column / 128 % 2 == 0) only_second_halves = false;
    }
    if (row_is_wrong) ++wrong_rows;
  }
  if (8 * wrong_elements < is_wrong.size()) return verdict;  // too few to tell
  if (only_second_halves) return judge::wrong(kSecondHalves, verdict.evidence);
  if (wrong_rows <= rows_of_second_warpgroup(p)) {
    return judge::wrong(kLongBlocks, verdict.evidence);
  }
  const bool all = wrong_rows == static_cast<size_t>(p.num_tokens);
  return judge::wrong(all ? kAll : kLayout, verdict.evidence);
}

namespace {

struct FaultModel {
  std::vector<const char*> parts;  // all must stand in the report
  Mistake mistake;
};

const std::vector<FaultModel>& fault_models() {
  static const std::vector<FaultModel> models = {
      {{"deadlock", "mbarrier_wait"},
       {"M10-RING", "m10.half_tile", "half_tile",
        "The ring stands still: full[] wants the bytes that were announced and all arrivals, and a "
        "warpgroup without work hands each stage back all the same."}},
      {{"wgmma reads", "a copy under way"},
       {"M10-RING", "m10.half_tile", "half_tile",
        "A stage is read while it is filled: wait for full[] before a stage is used or handed "
        "back."}},
      {{"more arrivals in a phase"},
       {"M10-RING", "m10.half_tile", "half_tile",
        "A stage was handed back before it was full: wait for full[] also where nothing is "
        "multiplied."}},
      {{"memory fault"},
       {"M10-ROWS", "m10.sort", "sort",
        "A row points outside its array: sorted_token has tokens and -1, sorted_row the rows of "
        "slots."}},
  };
  return models;
}

}  // namespace

Verdict explain_fp8_layer_fault(Verdict verdict) {
  for (const FaultModel& model : fault_models()) {
    const bool fits = std::all_of(model.parts.begin(), model.parts.end(),
                                  [&](const char* part) { return has(verdict.fault, part); });
    if (!fits) continue;
    Verdict named = judge::wrong(model.mistake, {verdict.sentence});
    named.state = verdict.state;
    named.fault = verdict.fault;
    return named;
  }
  return verdict;
}

}  // namespace moe::bugs
