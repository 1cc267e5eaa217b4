// What a routing costs in padding: the sums behind `drill padding`, apart from reading and
// printing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct RoutingSizes {
  int num_tokens = 0;
  int num_experts = 0;
  int top_k = 0;
};

// topk_ids [T, K]: distinct experts, all equally likely.
std::vector<int> uniform_routing(const RoutingSizes& sizes, std::uint64_t seed);

// Popularity of the expert of rank r is about r^-skew: the K largest of log(r^-skew) + Gumbel
// noise.
std::vector<int> zipf_routing(const RoutingSizes& sizes, double skew, std::uint64_t seed);

// The worst that top-k can do: every token names experts 0 .. K-1.
std::vector<int> hot_routing(const RoutingSizes& sizes);

struct RoutingText {
  RoutingSizes sizes;  // num_experts: the largest id + 1
  std::vector<int> topk_ids;
  std::string fault;  // "" or what is wrong with the text
};

// One token a line, its ids separated by blanks or commas; "#" starts a comment.
RoutingText parse_routing(std::string_view text);

// Rows of each expert; ids outside [0, E) are not routed.
std::vector<std::int64_t> rows_of_experts(const std::vector<int>& topk_ids, int num_experts);

struct Padding {
  std::int64_t room = 0;      // rows that are computed
  std::int64_t computed = 0;  // rows among them that hold a token
  std::int64_t dropped = 0;   // routed rows that found no room

  double wasted() const;         // share of the FLOPs spent on no token
  double dropped_share() const;  // of the routed rows
};

// Every expert gets room for `capacity` rows; what is more is dropped.
Padding pad_to_capacity(const std::vector<std::int64_t>& rows, std::int64_t capacity);

// Every expert's rows are rounded up to blocks, as `align` of m1 does; nothing is dropped.
Padding pad_to_blocks(const std::vector<std::int64_t>& rows, int block_m);

// ceil(factor * routed rows / E): what a capacity factor means.
std::int64_t capacity_of(const std::vector<std::int64_t>& rows, double factor);

}  // namespace moe::driver
