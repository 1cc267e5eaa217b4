// A cost card as text and as JSON.
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/cost/card.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr std::size_t kShownLines = 4;
constexpr double kWasteful = 0.1;  // of a line's sectors or passes

std::string format(const char* pattern, auto... values) {
  char text[200];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

std::string bytes_text(double bytes) {
  if (bytes < 1e4) return format("%.0f B", bytes);
  if (bytes < 1e7) return format("%.1f KB", bytes / 1e3);
  return format("%.1f MB", bytes / 1e6);
}

double as_double(std::uint64_t count) {
  return static_cast<double>(count);
}

// "mma of a warp": what the blocks do, each at work on average.
std::string work_text(const CostCard& card) {
  const double blocks = std::max(1.0, as_double(card.blocks_at_work));
  std::string text = format("%.1f barriers", as_double(card.barriers) / blocks);
  if (card.mma > 0) text += format(", %.0f mma of a warp", as_double(card.mma) / blocks);
  if (card.wgmma > 0) text += format(", %.1f wgmma", as_double(card.wgmma) / blocks);
  return text;
}

std::string traffic_text(std::uint64_t blocks, std::uint64_t dram, double least) {
  return padded(bytes_text(as_double(blocks)) + " by the blocks,", 26) +
         padded(bytes_text(as_double(dram)) + " in DRAM;", 20) + "the least is " +
         bytes_text(least);
}

// The least time of both, in us: what the memory needs and what the tensor cores need.
struct Floors {
  double memory_us = 0;
  double math_us = 0;
};

Floors floors_of(const CostCard& card, const CostCase& least, const GpuSheet& gpu) {
  const bool fp8 = least.fp8 && gpu.fp8_tflops > 0;
  return {as_double(card.dram_read + card.dram_written) / gpu.terabytes_s * 1e-6,
          as_double(card.flops) / (fp8 ? gpu.fp8_tflops : gpu.bf16_tflops) * 1e-6};
}

double intensity_of(const CostCard& card, const CostCase& least) {
  return least.flops / std::max(1.0, as_double(card.dram_read + card.dram_written));
}

std::string floor_text(const CostCard& card, const CostCase& least, const GpuSheet& gpu) {
  const Floors floors = floors_of(card, least, gpu);
  if (card.flops == 0) {
    return format("%s: memory, %.3f us for the bytes in DRAM", gpu.name, floors.memory_us);
  }
  return format("%s: %s binds (DRAM %.3f us, tensor cores %.3f us); %.1f FLOP a byte", gpu.name,
                floors.memory_us >= floors.math_us ? "memory" : "arithmetic", floors.memory_us,
                floors.math_us, intensity_of(card, least));
}

std::string source_text(const std::filesystem::path& root, const CostLine& line) {
  const std::vector<std::string> lines = split_lines(read_file(root / line.file));
  if (line.line < 1 || static_cast<std::size_t>(line.line) > lines.size()) return {};
  std::string text = lines[static_cast<std::size_t>(line.line) - 1];
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

std::string line_text(const CostLine& line, const std::filesystem::path& root) {
  const char* unit = line.shared ? "bank passes" : "sectors";
  std::string text = "  " + line.file + ":" + std::to_string(line.line) + "  " + line.via + ", " +
                     (line.writes ? "writes " : "reads ") + (line.shared ? "shared" : "global") +
                     "\n";
  const std::string source = source_text(root, line).substr(0, kColumns - 6);
  if (!source.empty()) text += "      " + source + "\n";
  text += format("      %llu requests of %.1f %s; %.1f would do\n",
                 static_cast<unsigned long long>(line.requests), line.units_each(), unit,
                 line.least_each());
  return text;
}

// The lines with most of what `cost` counts, as far as it is worth telling.
template <class Cost>
std::string lines_text(const CostCard& card, const std::filesystem::path& root, Cost cost) {
  std::vector<CostLine> lines = card.lines;
  std::stable_sort(lines.begin(), lines.end(),
                   [cost](const CostLine& a, const CostLine& b) { return cost(a) > cost(b); });
  std::string text;
  for (std::size_t i = 0; i < std::min(kShownLines, lines.size()); ++i) {
    if (cost(lines[i]) > 0) text += line_text(lines[i], root);
  }
  return text;
}

std::uint64_t waste_of(const CostLine& line) {
  if (as_double(line.excess()) < kWasteful * as_double(line.units)) return 0;
  return line.excess() * (line.shared ? 128 : 32);
}

}  // namespace

std::string cost_text(const CostCard& card,
                      const CostCase& least,
                      const GpuSheet& gpu,
                      const std::filesystem::path& root) {
  std::string text;
  const auto row = [&text](std::string_view label, const std::string& value) {
    text += padded(label, 9) + value + "\n";
  };
  row("read", traffic_text(card.read(), card.dram_read, least.least_read));
  row("written", traffic_text(card.written(), card.dram_written, least.least_written));
  row("access", format("%.1f sectors a request, %llu bank conflicts", card.sectors_per_request(),
                       static_cast<unsigned long long>(card.bank_conflicts())));
  row("blocks",
      format("%llu, %llu of them at work; each ", static_cast<unsigned long long>(card.blocks),
             static_cast<unsigned long long>(card.blocks_at_work)) +
          work_text(card));
  if (card.flops > 0) {
    row("padding", format("%.0f %% of the multiply-adds", 100 * card.padded_share(least)));
  }
  row("floor", floor_text(card, least, gpu));
  text += "\nlines that move most between blocks and L2\n";
  text += lines_text(card, root,
                     [](const CostLine& line) { return line.shared ? 0 : line.moved_bytes(); });
  const std::string waste = lines_text(card, root, waste_of);
  if (!waste.empty()) text += "\nlines that a better layout would make cheaper\n" + waste;
  return text;
}

namespace {

std::string comparison_row(std::string_view label, double mine, double reference) {
  const std::string ratio = reference > 0 ? format("%.2f x", mine / reference) : "";
  return "  " + padded(label, 26) + padded(format("%.1f", mine), 14) +
         padded(format("%.1f", reference), 14) + ratio + "\n";
}

using Key = std::pair<std::string, std::pair<bool, bool>>;

Key key_of(const CostLine& line) {
  return {line.via, {line.shared, line.writes}};
}

}  // namespace

std::string cost_comparison(const CostCard& mine,
                            const CostCard& reference,
                            const CostCase& least) {
  std::string text = "  " + padded("", 26) + padded("this", 14) + "reference\n";
  text += comparison_row("KB read by the blocks", as_double(mine.read()) / 1e3,
                         as_double(reference.read()) / 1e3);
  text += comparison_row("KB written by the blocks", as_double(mine.written()) / 1e3,
                         as_double(reference.written()) / 1e3);
  text += comparison_row("KB in DRAM", as_double(mine.dram_read + mine.dram_written) / 1e3,
                         as_double(reference.dram_read + reference.dram_written) / 1e3);
  text += comparison_row("sectors a request", mine.sectors_per_request(),
                         reference.sectors_per_request());
  text += comparison_row("bank conflicts", as_double(mine.bank_conflicts()),
                         as_double(reference.bank_conflicts()));
  text += comparison_row("barriers", as_double(mine.barriers), as_double(reference.barriers));
  text += comparison_row("mma and wgmma", as_double(mine.mma + mine.wgmma),
                         as_double(reference.mma + reference.wgmma));
  text += comparison_row("% padding", 100 * mine.padded_share(least),
                         100 * reference.padded_share(least));
  // By kind of access: lines of two files can't be matched.
  std::map<Key, std::uint64_t> kinds;
  for (const CostLine& line : reference.lines) kinds[key_of(line)] += line.moved_bytes();
  std::map<Key, std::uint64_t> own;
  for (const CostLine& line : mine.lines) own[key_of(line)] += line.moved_bytes();
  for (const auto& [kind, bytes] : own) {
    if (as_double(bytes) <= 1.1 * as_double(kinds[kind])) continue;
    const auto& [shared, writes] = kind.second;
    text += comparison_row(
        kind.first + (writes ? ", writes " : ", reads ") + (shared ? "shared KB" : "global KB"),
        as_double(bytes) / 1e3, as_double(kinds[kind]) / 1e3);
  }
  return text;
}

std::string cost_json(const CostCard& card,
                      const CostCase& least,
                      const GpuSheet& gpu,
                      std::string_view side) {
  using Json = nlohmann::ordered_json;
  const Floors floors = floors_of(card, least, gpu);
  Json lines = Json::array();
  for (const CostLine& line : card.lines) {
    lines.push_back({{"file", line.file},
                     {"line", line.line},
                     {"via", line.via},
                     {"space", line.shared ? "shared" : "global"},
                     {"writes", line.writes},
                     {"requests", line.requests},
                     {"bytes", line.bytes},
                     {line.shared ? "bank_passes" : "sectors", line.units},
                     {line.shared ? "least_bank_passes" : "least_sectors", line.least}});
  }
  Json kernels = Json::array();
  for (const CostKernel& kernel : card.kernels) {
    kernels.push_back(
        {{"name", kernel.name}, {"blocks", kernel.blocks}, {"threads", kernel.threads}});
  }
  const Json json = {{"version", 1},
                     {"stage", least.stage},
                     {"case", least.name},
                     {"side", side},
                     {"read_bytes", card.read()},
                     {"written_bytes", card.written()},
                     {"dram_read_bytes", card.dram_read},
                     {"dram_written_bytes", card.dram_written},
                     {"least_read_bytes", least.least_read},
                     {"least_written_bytes", least.least_written},
                     {"bytes_ratio", card.bytes_ratio(least)},
                     {"sectors_per_request", card.sectors_per_request()},
                     {"bank_conflicts", card.bank_conflicts()},
                     {"blocks", card.blocks},
                     {"blocks_at_work", card.blocks_at_work},
                     {"barriers", card.barriers},
                     {"mma", card.mma},
                     {"wgmma", card.wgmma},
                     {"flops", card.flops},
                     {"real_flops", least.flops},
                     {"padded_share", card.padded_share(least)},
                     {"gpu", gpu.name},
                     {"flops_per_byte", intensity_of(card, least)},
                     {"memory_us", floors.memory_us},
                     {"arithmetic_us", floors.math_us},
                     {"kernels", kernels},
                     {"lines", lines}};
  return json.dump(2) + "\n";
}

}  // namespace moe::driver
