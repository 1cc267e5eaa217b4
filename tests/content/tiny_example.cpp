#include "content/tiny_example.h"

#include <algorithm>
#include <array>
#include <list>
#include <utility>
#include <vector>

#include "content/tiny_decode.h"
#include "content/tiny_hopper.h"
#include "content/tiny_tables.h"
#include "judge/fp8.h"
#include "m3_weighted_epilogue_oracle.h"
#include "m5_block_fp8_oracle.h"

namespace moe::content {
namespace {

std::string m1_tokens() {
  Grid tokens(12, 7);
  const auto pair_of = [](int token, auto value) {
    return number(value(token * kTopK)) + " " + number(value(token * kTopK + 1));
  };
  tokens.row("token", cells(kTokens, [](int t) { return number(t); }));
  tokens.row("topk_ids", cells(kTokens, [&](int t) {
               return pair_of(t, [](int id) { return kTopKIds[size_t(id)]; });
             }));
  tokens.row("flat_id",
             cells(kTokens, [&](int t) { return pair_of(t, [](int id) { return id; }); }),
             "    pad id = 4 * 2 = 8");
  tokens.gap();
  return tokens.text();
}

std::string m1_experts(int block_m) {
  std::vector<int> padded;
  std::vector<int> first{0};
  for (int e = 0; e < kExperts; ++e) {
    const int count = int(ids_of(e).size());
    padded.push_back((count + block_m - 1) / block_m * block_m);
    first.push_back(first.back() + padded.back());
  }
  Grid experts(12, 9);
  experts.row("expert", cells(kExperts, [](int e) { return number(e); }));
  experts.row("flat ids", rows_by_expert([](int id) { return id; }));
  experts.row("count", cells(kExperts, [](int e) { return number(double(ids_of(e).size())); }));
  experts.row("padded", cells(kExperts, [&](int e) { return number(padded[size_t(e)]); }),
              "  rounded up to blocks of 2");
  experts.row("first row", cells(kExperts, [&](int e) { return number(first[size_t(e)]); }),
              "  sum of `padded` before it; of all: " + number(first.back()) + " rows");
  experts.gap();
  return experts.text();
}

std::string m1_table(int block_m) {
  const oracle::Alignment table = table_of(block_m);
  const int blocks = table.num_tokens_post_padded / block_m;
  Grid rows(24, 7);
  rows.row("row", cells(blocks, [](int b) { return number(2 * b) + " " + number(2 * b + 1); }));
  rows.row("sorted_token_ids", cells(blocks, [&](int b) {
             return number(table.sorted_token_ids[size_t(2 * b)]) + " " +
                    number(table.sorted_token_ids[size_t(2 * b) + 1]);
           }));
  rows.row("expert_ids", cells(blocks, [&](int b) { return number(table.expert_ids[size_t(b)]); }));
  rows.say("num_tokens_post_padded    " + number(table.num_tokens_post_padded));
  rows.gap();

  const oracle::Routing plain = oracle::route({2, 1, 0}, 1, kExperts, kTopK, false);
  const oracle::Routing scaled = oracle::route({2, 1, 0}, 1, kExperts, kTopK, true);
  const auto weights = [](const oracle::Routing& routing) {
    return thousandths(routing.topk_weights[0]) + " " + thousandths(routing.topk_weights[1]);
  };
  rows.say("logits 2 1 0, K = 2       ids " + joined(plain.topk_ids) + ", weights " +
           weights(plain) + "; with renormalize " + weights(scaled));
  return rows.text();
}

std::string m1_example() {
  return fenced(m1_tokens() + m1_experts(2) + m1_table(2));
}

constexpr int kTileRows = 16;  // the smallest block_m of the GEMMs

std::string m2_rows() {
  Grid grid(20, 17);
  add_table(grid, kTileRows);
  grid.row("flat ids", rows_by_expert([](int id) { return id; }));
  grid.row("row of x (GEMM1)", rows_by_expert([](int id) { return id / kTopK; }));
  grid.row("row of h (GEMM2)", rows_by_expert([](int id) { return id; }));
  grid.row("row of out", rows_by_expert([](int id) { return id; }));
  return grid.text();
}

std::string m2_sums() {
  const oracle::GemmProblem problem = tiny_gemm(kTileRows);
  return tiny_sums(problem, oracle::grouped_gemm(problem));
}

std::string m2_example() {
  return fenced(m2_rows()) + "\nWith numbers, two terms of D and one column of N:\n\n" +
         fenced(m2_sums());
}

std::string m3_example() {
  const std::array<double, kIds> gate{2, 0, -2, 2, 2, 2, 0, -2};
  const std::array<double, kIds> up{1, 5, 4, 2, 2, 3, 7, 2};
  const std::array<double, kExperts> w2{1, 2, -1};
  const auto h = [&](int id) { return oracle::silu(gate[size_t(id)]) * up[size_t(id)]; };
  const auto product = [&](int id) { return w2[size_t(kTopKIds[size_t(id)])] * h(id); };
  const auto weight = [](int id) { return id % kTopK == 0 ? 0.75 : 0.25; };
  Grid grid(12, 8);
  grid.row("flat_id", cells(kIds, [](int id) { return number(id); }));
  grid.row("token", cells(kIds, [](int id) { return number(id / kTopK); }));
  grid.row("expert", cells(kIds, [](int id) { return number(kTopKIds[size_t(id)]); }));
  grid.row("gate", cells(kIds, [&](int id) { return number(gate[size_t(id)]); }));
  grid.row("up", cells(kIds, [&](int id) { return number(up[size_t(id)]); }));
  grid.row("silu(gate)",
           cells(kIds, [&](int id) { return thousandths(oracle::silu(gate[size_t(id)])); }));
  grid.row("h", cells(kIds, [&](int id) { return thousandths(h(id)); }));
  grid.row("w2 * h", cells(kIds, [&](int id) { return thousandths(product(id)); }));
  grid.row("weight", cells(kIds, [&](int id) { return number(weight(id)); }));
  grid.row("y", cells(kIds, [&](int id) { return thousandths(weight(id) * product(id)); }));
  grid.gap();
  Grid out(12, 16);
  out.row("token", cells(kTokens, [](int t) { return number(t); }));
  out.row("out", cells(kTokens, [&](int t) {
            const int id = t * kTopK;
            return thousandths(weight(id) * product(id) + weight(id + 1) * product(id + 1));
          }));
  return fenced(grid.text() + out.text());
}

// Panels loaded into a cache of four that drops the one used longest ago.
TileLoads loads_of(const oracle::TileGrid& grid, const std::vector<int>& expert_of_row) {
  constexpr std::size_t kPanels = 4;
  TileLoads loads;
  std::list<int> cache;
  const auto use = [&](int panel) {
    const auto found = std::find(cache.begin(), cache.end(), panel);
    const bool missing = found == cache.end();
    if (!missing) cache.erase(found);
    cache.push_front(panel);
    if (cache.size() > kPanels) cache.pop_back();
    return missing ? 1 : 0;
  };
  for (const oracle::TilePlace& tile : oracle::order_of(grid)) {
    const int expert = expert_of_row.empty() ? 0 : expert_of_row[size_t(tile.m)];
    loads.a += use(tile.m);
    loads.w += use(1000 + expert * grid.num_pid_n + tile.n);
  }
  return loads;
}

std::string pid_grid(const oracle::TileGrid& grid, const std::vector<std::string>& remarks) {
  const std::vector<oracle::TilePlace> order = oracle::order_of(grid);
  Grid picture(8, 5);
  picture.row("", cells(grid.num_pid_n, [](int n) { return "n=" + number(n); }));
  for (int m = 0; m < grid.num_pid_m; ++m) {
    picture.row(
        "  m=" + number(m),
        cells(grid.num_pid_n,
              [&](int n) {
                const auto tile = std::find(order.begin(), order.end(), oracle::TilePlace{m, n});
                return number(double(tile - order.begin()));
              }),
        "   " + remarks[size_t(m)]);
  }
  return fenced(picture.text());
}

std::string m4_example() {
  const oracle::Alignment table = table_of(kTileRows);
  const oracle::TileGrid tokens{table.num_tokens_post_padded / kTileRows, 3, 2};
  std::vector<std::string> rows;
  for (int m = 0; m < tokens.num_pid_m; ++m) {
    rows.push_back("expert " + number(table.expert_ids[size_t(m)]) + ": " +
                   block_with_pads(table, kTileRows, m));
  }
  std::string text = pid_grid(tokens, rows);
  const oracle::TileGrid grid{5, 3, 2};
  text +=
      "\nFive rows of tiles of one expert, three columns, groups of two rows: the case "
      "`tiny/order_5x3_group2`.\n\n";
  text += pid_grid(
      grid, {"group 0: rows 0, 1", "", "group 1: rows 2, 3", "", "group 2: one row is left"});
  text +=
      "\n| order, a cache of 4 panels | A, 5x3 | W, 5x3 | sum | sum, the tokens above |\n"
      "|---|---|---|---|---|\n";
  const auto line = [&](const std::string& name, int group, int token_group) {
    const TileLoads one = loads_of({5, 3, group}, {});
    const TileLoads three = loads_of({tokens.num_pid_m, 3, token_group}, table.expert_ids);
    text += "| " + name + " | " + number(one.a) + " | " + number(one.w) + " | " +
            number(one.a + one.w) + " | " + number(three.a + three.w) + " |\n";
  };
  line("groups of 2", 2, 2);
  line("row by row", 1, 1);
  line("column by column", 5, 3);
  return text;
}

// All codes are 1; token t has the scales t + 1 and 2 (t + 1), expert e has e + 1 twice.
oracle::Fp8GemmProblem m5_problem() {
  oracle::Fp8GemmProblem p;
  p.num_tokens = kTokens;
  p.top_k = kTopK;
  p.num_experts = kExperts;
  p.n = 1;
  p.depth = 256;
  p.out_fp32 = true;
  p.topk_ids = kTopKIds;
  const judge::Fp8 one = judge::to_e4m3(1.0);
  p.a_codes.assign(size_t(kTokens) * 256, one);
  p.w_codes.assign(size_t(kExperts) * 256, one);
  for (int t = 0; t < kTokens; ++t) {
    p.a_scales.push_back(float(t + 1));
    p.a_scales.push_back(float(2 * (t + 1)));
  }
  p.w_scales = {1, 1, 2, 2, 3, 3};
  return p;
}

std::string m5_places(const oracle::Fp8GemmProblem& p) {
  Grid grid(26, 13);
  const auto by_block = [&](int block) {
    return rows_by_expert(
        [&](int id) { return int(oracle::a_scale_index(p, p.row_of(id), block)); });
  };
  grid.row("flat ids", rows_by_expert([](int id) { return id; }));
  grid.row("row of a_codes", rows_by_expert([&](int id) { return p.row_of(id); }));
  grid.row("place in a_scales, block 0", by_block(0));
  grid.row("                   block 1", by_block(1));
  grid.row("place in w_scales, block 0", cells(kExperts, [&](int e) {
             return number(double(oracle::w_scale_index(p, e, 0, 0)));
           }));
  grid.row("                   block 1", cells(kExperts, [&](int e) {
             return number(double(oracle::w_scale_index(p, e, 0, 1)));
           }));
  grid.gap();
  return grid.text();
}

std::string m5_sums(const oracle::Fp8GemmProblem& p) {
  const judge::Matrix out = oracle::grouped_gemm_fp8(p);
  Grid sums(20, 7);
  const auto scaled = [&](int id, int block) {
    const auto row = size_t(oracle::a_scale_index(p, p.row_of(id), block));
    const auto expert = size_t(oracle::w_scale_index(p, p.expert_of(id), 0, block));
    return p.a_scales[row] * p.w_scales[expert];
  };
  sums.row("flat_id", cells(kIds, [](int id) { return number(id); }));
  sums.row("sum of each block", cells(kIds, [](int) { return number(128); }));
  sums.row("scales of block 0", cells(kIds, [&](int id) { return number(double(scaled(id, 0))); }));
  sums.row("scales of block 1", cells(kIds, [&](int id) { return number(double(scaled(id, 1))); }));
  sums.row("out", cells(kIds, [&](int id) { return number(out.at(id, 0)); }));
  return sums.text();
}

std::string m5_example() {
  const oracle::Fp8GemmProblem p = m5_problem();
  return fenced(m5_places(p) + m5_sums(p));
}

}  // namespace

TileLoads tile_loads(const oracle::TileGrid& grid) {
  return loads_of(grid, {});
}

std::string tiny_example(std::string_view stage) {
  constexpr std::pair<std::string_view, std::string (*)()> kExamples[] = {
      {"m1", m1_example}, {"m2", m2_example},   {"m3", m3_example}, {"m4", m4_example},
      {"m5", m5_example}, {"m6", m6_example},   {"m7", m7_example}, {"m8", m8_example},
      {"m9", m9_example}, {"m10", m10_example},
  };
  for (const auto& [name, example] : kExamples) {
    if (name == stage) return example();
  }
  return "";
}

}  // namespace moe::content
