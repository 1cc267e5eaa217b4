#include "content/tiny_tables.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "judge/bf16.h"

namespace moe::content {

void Grid::row(const std::string& label,
               const std::vector<std::string>& cells,
               const std::string& remark) {
  std::string line = label;
  line.resize(std::max(label_width_, label.size()), ' ');
  for (const std::string& cell : cells) {
    const std::size_t free = cell_width_ - std::min(cell_width_, cell.size());
    line += std::string(free / 2, ' ') + cell + std::string(free - free / 2, ' ');
  }
  line += remark;
  while (!line.empty() && line.back() == ' ') line.pop_back();
  text_ += line + "\n";
}

std::string fenced(const std::string& text) {
  return "```\n" + text + "```\n";
}

std::string number(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string thousandths(double value) {
  return value == 0.0 ? "0" : number(value, "%.3f");
}

std::vector<int> ids_of(int expert) {
  std::vector<int> ids;
  for (int id = 0; id < kIds; ++id) {
    if (kTopKIds[size_t(id)] == expert) ids.push_back(id);
  }
  return ids;
}

oracle::Alignment table_of(int block_m) {
  return oracle::align(kTopKIds, kTokens, kTopK, kExperts, block_m);
}

std::string block_with_pads(const oracle::Alignment& table, int block_m, int block) {
  std::string text;
  int pads = 0;
  for (int row = 0; row < block_m && pads < 2; ++row) {
    const int id = table.sorted_token_ids[size_t(block * block_m + row)];
    text += number(id) + " ";
    pads += id == kIds ? 1 : 0;
  }
  return text + "..";
}

void add_table(Grid& grid, int block_m) {
  const oracle::Alignment table = table_of(block_m);
  const int blocks = table.num_tokens_post_padded / block_m;
  grid.row("block", cells(blocks, [](int b) { return number(b); }));
  grid.row("sorted_token_ids",
           cells(blocks, [&](int b) { return block_with_pads(table, block_m, b); }));
  grid.row("expert_ids", cells(blocks, [&](int b) { return number(table.expert_ids[size_t(b)]); }));
  grid.say("num_tokens_post_padded   " + number(table.num_tokens_post_padded) + " = " +
           number(blocks) + " blocks of " + number(block_m) + "; " + number(kIds) +
           " rows are real");
  grid.gap();
}

oracle::GemmProblem tiny_gemm(int block_m) {
  oracle::GemmProblem p;
  p.num_tokens = kTokens;
  p.top_k = kTopK;
  p.num_experts = kExperts;
  p.n = 1;
  p.depth = 2;
  p.block_m = block_m;
  p.topk_ids = kTopKIds;
  const std::array<float, 8> x{1, 2, 0, 1, 2, -1, 1, 1};
  const std::array<float, 6> w{1, 0, 2, 1, 0, -1};
  for (const float value : x) p.a.push_back(judge::to_bf16(value));
  for (const float value : w) p.w.push_back(judge::to_bf16(value));
  const oracle::Alignment table = table_of(block_m);
  p.sorted_token_ids = table.sorted_token_ids;
  p.expert_ids = table.expert_ids;
  p.num_tokens_post_padded = table.num_tokens_post_padded;
  return p;
}

std::string tiny_sums(const oracle::GemmProblem& problem, const judge::Matrix& out) {
  Grid sums(12, 6);
  const auto pair_of = [](const std::vector<judge::Bf16>& values, int i) {
    return number(double(judge::to_float(values[size_t(2 * i)]))) + " " +
           number(double(judge::to_float(values[size_t(2 * i) + 1])));
  };
  sums.row("token", cells(kTokens, [](int t) { return number(t); }));
  sums.row("x", cells(kTokens, [&](int t) { return pair_of(problem.a, t); }));
  sums.row("expert", cells(kExperts, [](int e) { return number(e); }));
  sums.row("row 0 of w", cells(kExperts, [&](int e) { return pair_of(problem.w, e); }));
  sums.gap();
  sums.row("flat_id", cells(kIds, [](int id) { return number(id); }));
  sums.row("token", cells(kIds, [](int id) { return number(id / kTopK); }));
  sums.row("expert", cells(kIds, [](int id) { return number(kTopKIds[size_t(id)]); }));
  sums.row("out", cells(kIds, [&](int id) { return number(out.at(id, 0)); }));
  return sums.text();
}

}  // namespace moe::content
