// `drill padding`: what a capacity factor drops and wastes, and what blocks waste, for one routing.
#include "driver/padding.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <random>

#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr double kFactors[] = {1.0, 1.25, 1.5, 2.0, 4.0};
constexpr int kBlocks[] = {16, 32, 64, 128};
constexpr int kMaxIds = 1 << 26;  // 64 M ids: 256 MB

// In (0, 1); the same on every platform, which std::uniform_real_distribution does not promise.
double unit_interval(std::mt19937_64& bits) {
  return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53;
}

std::vector<int> top_of_scores(const RoutingSizes& sizes, double skew, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::vector<int> ids;
  std::vector<std::pair<double, int>> scores(static_cast<std::size_t>(sizes.num_experts));
  for (int token = 0; token < sizes.num_tokens; ++token) {
    for (int e = 0; e < sizes.num_experts; ++e) {
      const double gumbel = -std::log(-std::log(unit_interval(bits)));
      scores[static_cast<std::size_t>(e)] = {-skew * std::log(e + 1.0) + gumbel, e};
    }
    std::partial_sort(scores.begin(), scores.begin() + sizes.top_k, scores.end(),
                      [](const auto& a, const auto& b) { return a.first > b.first; });
    for (int slot = 0; slot < sizes.top_k; ++slot) {
      ids.push_back(scores[static_cast<std::size_t>(slot)].second);
    }
  }
  return ids;
}

std::string format_line(const char* format, auto... values) {
  char line[160];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

int usage(const std::string& sentence) {
  std::fprintf(stderr, "drill padding: %s\n", sentence.c_str());
  return static_cast<int>(Verdict::kUsage);
}

std::string fault_of(const RoutingSizes& sizes) {
  if (sizes.num_tokens < 1 || sizes.num_experts < 1 || sizes.top_k < 1) {
    return "-T, -E and -K must be at least 1";
  }
  if (sizes.top_k > sizes.num_experts) return "-K must not exceed -E";
  if (std::int64_t{sizes.num_tokens} * std::max(sizes.top_k, sizes.num_experts) > kMaxIds) {
    return "that many tokens are more than this command wants to draw";
  }
  return "";
}

void print_capacity(const std::vector<std::int64_t>& rows) {
  say("\ncapacity: room for ceil(factor * T*K / E) rows at every expert, the rest is dropped\n");
  say("  factor   rows each   computed   dropped           wasted FLOPs\n");
  std::int64_t routed = 0;
  for (const std::int64_t count : rows) routed += count;
  const std::int64_t most = *std::max_element(rows.begin(), rows.end());
  std::vector<std::pair<double, std::int64_t>> lines;
  for (const double factor : kFactors) lines.emplace_back(factor, capacity_of(rows, factor));
  const double mean = static_cast<double>(routed) / static_cast<double>(rows.size());
  // The least factor that drops nothing.
  const bool listed = std::any_of(lines.begin(), lines.end(),
                                  [&](const auto& line) { return line.second == most; });
  if (!listed) lines.emplace_back(static_cast<double>(most) / mean, most);
  std::sort(lines.begin(), lines.end());
  for (const auto& [factor, capacity] : lines) {
    const Padding p = pad_to_capacity(rows, capacity);
    say(format_line("  %6.2f   %9lld   %8lld   %7lld  %5.1f %%   %11.1f %%\n", factor,
                    static_cast<long long>(capacity), static_cast<long long>(p.room),
                    static_cast<long long>(p.dropped), 100 * p.dropped_share(), 100 * p.wasted()));
  }
}

void print_blocks(const std::vector<std::int64_t>& rows) {
  say("\nblocks: every expert's rows rounded up (align of m1), nothing is dropped\n");
  say("  block_m   computed   padding   wasted FLOPs\n");
  for (const int block_m : kBlocks) {
    const Padding p = pad_to_blocks(rows, block_m);
    say(format_line("  %7d   %8lld   %7lld   %10.1f %%\n", block_m, static_cast<long long>(p.room),
                    static_cast<long long>(p.room - p.computed), 100 * p.wasted()));
  }
}

}  // namespace

std::vector<int> uniform_routing(const RoutingSizes& sizes, std::uint64_t seed) {
  return top_of_scores(sizes, 0.0, seed);
}

std::vector<int> zipf_routing(const RoutingSizes& sizes, double skew, std::uint64_t seed) {
  return top_of_scores(sizes, skew, seed);
}

std::vector<int> hot_routing(const RoutingSizes& sizes) {
  std::vector<int> ids;
  for (int token = 0; token < sizes.num_tokens; ++token) {
    for (int slot = 0; slot < sizes.top_k; ++slot) ids.push_back(slot);
  }
  return ids;
}

RoutingText parse_routing(std::string_view text) {
  RoutingText routing;
  int number = 0;
  for (const std::string& whole : split_lines(text)) {
    ++number;
    std::string line = whole.substr(0, whole.find('#'));
    std::replace(line.begin(), line.end(), ',', ' ');
    int ids = 0;
    const char* at = line.c_str();
    while (true) {
      while (std::isspace(static_cast<unsigned char>(*at)) != 0) ++at;
      if (*at == '\0') break;
      char* end = nullptr;
      const long id = std::strtol(at, &end, 10);
      if (end == at || id < -1 || id > 65535) {
        routing.fault = "line " + std::to_string(number) + ": an id is -1 (not routed) to 65535";
        return routing;
      }
      routing.topk_ids.push_back(static_cast<int>(id));
      routing.sizes.num_experts = std::max(routing.sizes.num_experts, static_cast<int>(id) + 1);
      ++ids;
      at = end;
    }
    if (ids == 0) continue;
    if (routing.sizes.top_k == 0) routing.sizes.top_k = ids;
    if (routing.sizes.top_k != ids) {
      routing.fault = "line " + std::to_string(number) + ": " + counted(std::size_t(ids), "id") +
                      ", the first line has " + std::to_string(routing.sizes.top_k);
      return routing;
    }
    ++routing.sizes.num_tokens;
  }
  if (routing.sizes.num_experts == 0) routing.fault = "it names no expert";
  return routing;
}

std::vector<std::int64_t> rows_of_experts(const std::vector<int>& topk_ids, int num_experts) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(num_experts));
  for (const int id : topk_ids) {
    if (id >= 0 && id < num_experts) ++rows[static_cast<std::size_t>(id)];
  }
  return rows;
}

double Padding::wasted() const {
  return room == 0 ? 0.0 : 1.0 - static_cast<double>(computed) / static_cast<double>(room);
}

double Padding::dropped_share() const {
  const std::int64_t routed = computed + dropped;
  return routed == 0 ? 0.0 : static_cast<double>(dropped) / static_cast<double>(routed);
}

Padding pad_to_capacity(const std::vector<std::int64_t>& rows, std::int64_t capacity) {
  Padding p;
  for (const std::int64_t count : rows) {
    p.room += capacity;
    p.computed += std::min(count, capacity);
    p.dropped += std::max<std::int64_t>(count - capacity, 0);
  }
  return p;
}

Padding pad_to_blocks(const std::vector<std::int64_t>& rows, int block_m) {
  Padding p;
  for (const std::int64_t count : rows) {
    p.room += (count + block_m - 1) / block_m * block_m;
    p.computed += count;
  }
  return p;
}

std::int64_t capacity_of(const std::vector<std::int64_t>& rows, double factor) {
  std::int64_t routed = 0;
  for (const std::int64_t count : rows) routed += count;
  return static_cast<std::int64_t>(
      std::ceil(factor * static_cast<double>(routed) / static_cast<double>(rows.size())));
}

int run_padding(const PaddingOptions& options) {
  RoutingSizes sizes{options.num_tokens, options.num_experts == 0 ? 64 : options.num_experts,
                     options.top_k};
  const bool drawn =
      options.routing == "uniform" || options.routing == "zipf" || options.routing == "hot";
  std::vector<int> ids;
  std::string name = options.routing + " routing";
  if (drawn) {
    const std::string fault = fault_of(sizes);
    if (!fault.empty()) return usage(fault);
    if (options.routing == "hot") ids = hot_routing(sizes);
    if (options.routing == "uniform") ids = uniform_routing(sizes, options.seed);
    if (options.routing == "zipf") ids = zipf_routing(sizes, options.skew, options.seed);
    if (options.routing == "zipf") name += format_line(", skew %g", options.skew);
    if (options.routing != "hot") name += ", seed " + std::to_string(options.seed);
  } else {
    const std::string text = read_file(options.routing);
    if (text.empty()) {
      return usage("there is no routing and no file " + shell_quoted(options.routing) +
                   "; routings are uniform, zipf, hot");
    }
    RoutingText parsed = parse_routing(text);
    if (!parsed.fault.empty()) return usage(options.routing + ", " + parsed.fault);
    sizes = parsed.sizes;
    sizes.num_experts = std::max(sizes.num_experts, options.num_experts);  // some may be unnamed
    ids = std::move(parsed.topk_ids);
    name = options.routing;
  }

  const std::vector<std::int64_t> rows = rows_of_experts(ids, sizes.num_experts);
  std::int64_t routed = 0;
  for (const std::int64_t count : rows) routed += count;
  const auto [least, most] = std::minmax_element(rows.begin(), rows.end());
  say(format_line("T=%d K=%d E=%d  ", sizes.num_tokens, sizes.top_k, sizes.num_experts) + name +
      "\n");
  say(format_line("rows of an expert: least %lld, mean %.1f, most %lld; empty experts: %lld\n",
                  static_cast<long long>(*least),
                  static_cast<double>(routed) / static_cast<double>(rows.size()),
                  static_cast<long long>(*most),
                  static_cast<long long>(std::count(rows.begin(), rows.end(), 0))));
  print_capacity(rows);
  print_blocks(rows);
  return 0;
}

}  // namespace moe::driver
