#include "m1_align_bugs.h"

#include <drills/m1_align.h>

#include <algorithm>

namespace moe::bugs {
namespace {

using oracle::Alignment;

// align with its steps open, so that a model changes one of them.
struct Steps {
  std::function<bool(int32_t flat_id, int32_t expert)> counted = [](int32_t, int32_t) {
    return true;
  };
  std::function<bool(int32_t flat_id, int32_t expert)> placed = [](int32_t, int32_t) {
    return true;
  };
  std::function<int32_t(int32_t count, int block_m)> padded = [](int32_t count, int block_m) {
    return (count + block_m - 1) / block_m * block_m;
  };
  int32_t more_of_first = 0;  // what expert 0 is counted too often
  bool inclusive = false;     // offsets from an inclusive scan
  std::function<int32_t(int32_t)> entry = [](int32_t flat_id) { return flat_id; };
  int32_t pad = kAny;  // kAny: the right one
};

Alignment align_with(const AlignProblem& p, const Steps& steps) {
  const auto capacity =
      static_cast<int64_t>(align_capacity(p.num_tokens, p.top_k, p.num_experts, p.block_m));
  const int32_t num_ids = p.num_tokens * p.top_k;
  std::vector<int32_t> counts(static_cast<size_t>(p.num_experts), 0);
  const auto routed = [&](int32_t e) { return e >= 0 && e < p.num_experts; };
  for (int32_t i = 0; i < num_ids; ++i) {
    const int32_t e = p.topk_ids[static_cast<size_t>(i)];
    if (routed(e) && steps.counted(i, e)) ++counts[static_cast<size_t>(e)];
  }
  counts[0] += steps.more_of_first;
  Alignment result;
  const int32_t pad = steps.pad == kAny ? num_ids : steps.pad;
  result.sorted_token_ids.assign(static_cast<size_t>(capacity), pad);
  result.expert_ids.assign(static_cast<size_t>(capacity / p.block_m), -1);
  std::vector<int64_t> starts;
  int64_t end = 0;
  for (int e = 0; e < p.num_experts; ++e) {
    const int32_t padded = steps.padded(counts[static_cast<size_t>(e)], p.block_m);
    starts.push_back(steps.inclusive ? end + padded : end);
    for (int64_t row = end; row < end + padded; row += p.block_m) {
      const auto block = static_cast<size_t>(row / p.block_m);
      if (block < result.expert_ids.size()) result.expert_ids[block] = e;
    }
    end += padded;
  }
  result.num_tokens_post_padded = static_cast<int32_t>(end);
  for (int32_t i = 0; i < num_ids; ++i) {
    const int32_t e = p.topk_ids[static_cast<size_t>(i)];
    if (!routed(e) || !steps.placed(i, e)) continue;
    const int64_t row = starts[static_cast<size_t>(e)]++;
    if (row >= 0 && row < capacity)
      result.sorted_token_ids[static_cast<size_t>(row)] = steps.entry(i);
  }
  return result;
}

AlignModel model(const char* code,
                 const char* region,
                 const char* note,
                 const char* sentence,
                 std::function<Alignment(const AlignProblem&)> output) {
  return {{code, region, note, sentence}, std::move(output)};
}

Alignment with_pad(const AlignProblem& p, int32_t pad) {
  Steps steps;
  steps.pad = pad;
  return align_with(p, steps);
}

// Only num_tokens_post_padded is predictable: ids collide in the scatter.
Alignment only_total(const AlignProblem& p, int64_t total) {
  Alignment a = align_with(p, {});
  std::fill(a.sorted_token_ids.begin(), a.sorted_token_ids.end(), kAny);
  std::fill(a.expert_ids.begin(), a.expert_ids.end(), kAny);
  a.num_tokens_post_padded = static_cast<int32_t>(total);
  return a;
}

// Rows of experts [first, E), each count rounded up as `steps` say.
int64_t padded_rows(const AlignProblem& p, int first_expert, const Steps& steps) {
  std::vector<int32_t> counts(static_cast<size_t>(p.num_experts), 0);
  for (size_t i = 0; i < p.topk_ids.size(); ++i) {
    const int32_t e = p.topk_ids[i];
    if (e >= first_expert && e < p.num_experts && steps.counted(static_cast<int32_t>(i), e)) {
      ++counts[static_cast<size_t>(e)];
    }
  }
  int64_t rows = 0;
  for (const int32_t count : counts) rows += steps.padded(count, p.block_m);
  return rows;
}

std::vector<AlignModel> make_align_models() {
  std::vector<AlignModel> models;
  const auto add = [&](AlignModel m) { models.push_back(std::move(m)); };
  add(model("M1-PAD-MINUS1", "m1.count", "padding",
            "Padding entries must hold the pad id T*top_k, not -1.",
            [](const AlignProblem& p) { return with_pad(p, -1); }));
  add(model("M1-PAD-ZERO", "m1.count", "padding",
            "Padding entries are 0, so flat id 0 would be computed again; use the pad id T*top_k.",
            [](const AlignProblem& p) { return with_pad(p, 0); }));
  add(model("M1-PAD-T", "m1.count", "padding",
            "The pad id is T; ids count (token, slot) pairs, so the first invalid id is T*top_k.",
            [](const AlignProblem& p) { return with_pad(p, p.num_tokens); }));
  add(model("M1-FIRST1024", "m1.count", "count",
            "Only the first 1024 ids were handled: every loop over ids needs a stride.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.counted = steps.placed = [](int32_t i, int32_t) { return i < 1024; };
              return align_with(p, steps);
            }));
  add(model("M1-FIRST1024", "m1.count", "count",
            "Only the first 1024 ids were counted: the loop over ids needs a stride.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.counted = [](int32_t i, int32_t) { return i < 1024; };
              return only_total(p, padded_rows(p, 0, steps));
            }));
  for (const int lanes : {32, 128, 256, 512, 1024}) {
    add(model("M1-IDLELANES", "m1.count", "count",
              "Lanes behind the last id counted into expert 0: they must count nothing.",
              [lanes](const AlignProblem& p) {
                Steps steps;
                const auto num_ids = static_cast<int32_t>(p.topk_ids.size());
                steps.more_of_first = (lanes - num_ids % lanes) % lanes;
                return align_with(p, steps);
              }));
  }
  add(model("M1-FIRST256", "m1.count", "count",
            "Experts from 256 on are never counted: one thread for each expert needs a stride.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.counted = [](int32_t, int32_t e) { return e < 256; };
              return only_total(p, padded_rows(p, 0, steps));
            }));
  add(model("M1-COUNT-UNPADDED", "m1.scan", "padded-scan",
            "num_tokens_post_padded is the number of padded rows, not of flat ids.",
            [](const AlignProblem& p) {
              Alignment a = align_with(p, {});
              Steps unpadded;
              unpadded.padded = [](int32_t count, int) { return count; };
              a.num_tokens_post_padded = static_cast<int32_t>(padded_rows(p, 0, unpadded));
              return a;
            }));
  add(model(
      "M1-NOPAD", "m1.scan", "padded-scan",
      "Each expert's rows must start on a block boundary: round its count up to whole blocks.",
      [](const AlignProblem& p) {
        Steps steps;
        steps.padded = [](int32_t count, int) { return count; };
        return only_total(p, padded_rows(p, 0, steps));
      }));
  add(model("M1-WARPTOTALS", "m1.scan", "padded-scan",
            "From expert 32 on the rows start again at 0: add the totals of the warps before.",
            [](const AlignProblem& p) {
              return only_total(p, padded_rows(p, (p.num_experts - 1) / 32 * 32, {}));
            }));
  add(model("M1-ROUNDDOWN", "m1.scan", "padded-scan",
            "The count is rounded down: the last partial block of an expert is lost. Round up.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.padded = [](int32_t count, int b) { return count / b * b; };
              return only_total(p, padded_rows(p, 0, steps));
            }));
  add(model("M1-EXTRABLOCK", "m1.scan", "padded-scan",
            "A block too many where the count is already a multiple of block_m: use "
            "(count + block_m - 1) / block_m.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.padded = [](int32_t count, int b) { return (count / b + 1) * b; };
              return align_with(p, steps);
            }));
  add(model("M1-EXTRABLOCK-BUSY", "m1.scan", "padded-scan",
            "A block too many for experts whose count is a multiple of block_m: use "
            "(count + block_m - 1) / block_m.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.padded = [](int32_t count, int b) {
                return count == 0 ? 0 : (count / b + 1) * b;
              };
              return align_with(p, steps);
            }));
  add(model(
      "M1-INCLUSIVE", "m1.scan", "padded-scan",
      "Rows are shifted by one expert: an expert starts at the sum of the padded counts *before* "
      "it (exclusive scan).",
      [](const AlignProblem& p) {
        Steps steps;
        steps.inclusive = true;
        return align_with(p, steps);
      }));
  add(model(
      "M1-LASTLABEL", "m1.scan", "padded-scan",
      "The last block of an expert is labelled with the next expert.", [](const AlignProblem& p) {
        Alignment a = align_with(p, {});
        for (size_t b = 0; b < a.expert_ids.size(); ++b) {
          const bool last = b + 1 == a.expert_ids.size() || a.expert_ids[b + 1] != a.expert_ids[b];
          if (a.expert_ids[b] >= 0 && last) a.expert_ids[b] = -2 - a.expert_ids[b];
        }
        for (int32_t& e : a.expert_ids) e = e < -1 ? -2 - e + 1 : e;
        return a;
      }));
  add(model(
      "M1-LASTLABEL", "m1.scan", "padded-scan",
      "expert_ids are shifted by one block: block b is labelled with the expert of block b + 1.",
      [](const AlignProblem& p) {
        Alignment a = align_with(p, {});
        if (a.expert_ids.empty()) return a;
        a.expert_ids.erase(a.expert_ids.begin());
        a.expert_ids.push_back(-1);
        return a;
      }));
  add(model("M1-COUNT-CAPACITY", "m1.scan", "padded-scan",
            "num_tokens_post_padded is the number of rows in use, not the length of the array.",
            [](const AlignProblem& p) {
              Alignment a = align_with(p, {});
              a.num_tokens_post_padded = static_cast<int32_t>(a.sorted_token_ids.size());
              return a;
            }));
  add(model("M1-32EXPERTS", "m1.scan", "padded-scan",
            "Experts from 32 on are missing: the scan stops at one warp.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.counted = steps.placed = [](int32_t, int32_t e) { return e < 32; };
              return align_with(p, steps);
            }));
  add(model("M1-TOKEN", "m1.scatter", "scatter",
            "The table holds tokens; it must hold flat ids, token * top_k + slot.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.entry = [k = p.top_k](int32_t i) { return i / k; };
              return align_with(p, steps);
            }));
  add(model("M1-FIRSTONLY", "m1.scatter", "scatter",
            "Only one id of each expert is stored; the cursor of the expert must move on.",
            [](const AlignProblem& p) {
              Alignment a = align_with(p, {});
              std::vector<bool> seen(static_cast<size_t>(p.num_experts), false);
              for (size_t row = 0; row < a.sorted_token_ids.size(); ++row) {
                const int32_t e = a.expert_ids[row / static_cast<size_t>(p.block_m)];
                if (e < 0) continue;
                // Which id ends in the first row depends on timing.
                a.sorted_token_ids[row] =
                    seen[static_cast<size_t>(e)] ? static_cast<int32_t>(p.topk_ids.size()) : kAny;
                seen[static_cast<size_t>(e)] = true;
              }
              return a;
            }));
  add(model("M1-NOTSCATTERED", "m1.scatter", "scatter",
            "No id was stored: all rows hold the pad id.", [](const AlignProblem& p) {
              Steps steps;
              steps.placed = [](int32_t, int32_t) { return false; };
              return align_with(p, steps);
            }));
  add(model("M1-LASTEXPERT", "m1.count", "count",
            "The last expert is never counted: experts run from 0 to E - 1.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.counted = [last = p.num_experts - 1](int32_t, int32_t e) { return e != last; };
              return align_with(p, steps);
            }));
  add(model("M1-LASTEXPERT", "m1.count", "count",
            "The last expert is never counted nor stored: experts run from 0 to E - 1.",
            [](const AlignProblem& p) {
              Steps steps;
              steps.counted = steps.placed = [last = p.num_experts - 1](int32_t, int32_t e) {
                return e != last;
              };
              return align_with(p, steps);
            }));
  add(model("M1-NOTHING", "m1.scatter", "scatter", "The tables were never written.",
            [](const AlignProblem& p) {
              Alignment a = align_with(p, {});
              std::fill(a.sorted_token_ids.begin(), a.sorted_token_ids.end(), kPoisonId);
              std::fill(a.expert_ids.begin(), a.expert_ids.end(), kPoisonId);
              a.num_tokens_post_padded = kPoisonId;
              return a;
            }));
  return models;
}

}  // namespace

const judge::Mistake kNanWeight = {"M1-WEIGHT-NAN", "m1.weights", "weights",
                                   "A weight is NaN. Lanes without a slot and NaN logits weigh 0, "
                                   "and a sum of 0 divides nothing."};
const judge::Mistake kUnrouted = {
    "M1-UNROUTED", "m1.count", "count",
    "Ids outside [0, E) are not routed: skip them, do not count with them."};

const std::vector<AlignModel>& align_models() {
  static const std::vector<AlignModel> models = make_align_models();
  return models;
}

}  // namespace moe::bugs
