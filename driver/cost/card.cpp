#include "driver/cost/card.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "driver/fault.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

using Json = nlohmann::json;

// "moe::mine::(anonymous namespace)::kernel<16>(moe::Problem)" -> "kernel<16>"
std::string short_name(std::string name) {
  constexpr std::string_view kNameless = "(anonymous namespace)";
  for (std::size_t at = name.find(kNameless); at != std::string::npos; at = name.find(kNameless)) {
    name.erase(at, kNameless.size());
  }
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth == 0 && name[i] == '(') return name.substr(begin, i - begin);
    if (depth == 0 && (name[i] == ':' || name[i] == ' ')) begin = i + 1;
  }
  return name.substr(begin);
}

// As a reader names it: below the course's root.
std::string relative_place(std::string place, const std::filesystem::path& root) {
  place = place.substr(0, place.find(" (discriminator"));
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return place;
  std::string file = std::filesystem::path(place.substr(0, colon)).lexically_normal().string();
  const std::string prefix = root.string() + "/";
  if (file.rfind(prefix, 0) == 0) file.erase(0, prefix.size());
  while (file.rfind("../", 0) == 0) file.erase(0, 3);
  return file + place.substr(colon);
}

const Symbol& symbol_of(const Symbols& symbols, std::uint64_t counter) {
  static const Symbol kUnknown;
  const auto found = std::find_if(symbols.begin(), symbols.end(),
                                  [counter](const auto& one) { return one.first == counter; });
  return found == symbols.end() ? kUnknown : found->second;
}

CostLine line_of(const Json& record, const Symbols& symbols) {
  CostLine line;
  std::string place;
  if (record.contains("file")) {
    place = relative_place(
        record.at("file").get<std::string>() + ":" + std::to_string(record.at("line").get<int>()),
        {});
  } else {
    place = symbol_of(symbols, record.at("pc").get<std::uint64_t>()).place;
  }
  const std::size_t colon = place.rfind(':');
  if (colon != std::string::npos) {
    line.file = place.substr(0, colon);
    line.line = std::atoi(place.c_str() + colon + 1);
  }
  line.via = record.at("via").get<std::string>();
  line.shared = record.at("space").get<std::string>() == "shared";
  line.writes = record.at("writes").get<bool>();
  line.requests = record.at("requests").get<std::uint64_t>();
  line.bytes = record.at("bytes").get<std::uint64_t>();
  line.units = record.at("units").get<std::uint64_t>();
  line.least = record.at("least").get<std::uint64_t>();
  return line;
}

// One entry for all program counters of a source line.
void merge_lines(std::vector<CostLine>* lines) {
  std::map<std::tuple<std::string, int, std::string, bool, bool>, CostLine> merged;
  for (const CostLine& line : *lines) {
    CostLine& sum = merged[{line.file, line.line, line.via, line.shared, line.writes}];
    const CostLine before = sum;
    sum = line;
    sum.requests += before.requests;
    sum.bytes += before.bytes;
    sum.units += before.units;
    sum.least += before.least;
  }
  lines->clear();
  for (const auto& [key, line] : merged) lines->push_back(line);
  std::stable_sort(lines->begin(), lines->end(), [](const CostLine& a, const CostLine& b) {
    return a.moved_bytes() > b.moved_bytes();
  });
}

}  // namespace

std::uint64_t CostCard::global(bool writes) const {
  std::uint64_t sum = 0;
  for (const CostLine& line : lines) {
    if (!line.shared && line.writes == writes) sum += line.moved_bytes();
  }
  return sum;
}

std::uint64_t CostCard::global_requests() const {
  std::uint64_t sum = 0;
  for (const CostLine& line : lines) sum += line.shared ? 0 : line.requests;
  return sum;
}

double CostCard::sectors_per_request() const {
  const auto requests = static_cast<double>(global_requests());
  return requests == 0 ? 0 : static_cast<double>(read() + written()) / 32 / requests;
}

std::uint64_t CostCard::bank_conflicts() const {
  std::uint64_t sum = 0;
  for (const CostLine& line : lines) sum += line.shared ? line.excess() : 0;
  return sum;
}

double CostCard::padded_share(const CostCase& least) const {
  if (flops == 0) return 0;
  return std::max(0.0, 1 - least.flops / static_cast<double>(flops));
}

double CostCard::bytes_ratio(const CostCase& least) const {
  return static_cast<double>(dram_read + dram_written) / (least.least_read + least.least_written);
}

std::vector<std::uint64_t> counters_of(std::string_view raw) {
  std::vector<std::uint64_t> counters;
  const Json record = Json::parse(raw);
  for (const Json& kernel : record.at("kernels")) {
    counters.push_back(kernel.at("function").get<std::uint64_t>());
    for (const Json& line : kernel.at("lines")) {
      if (line.contains("pc")) counters.push_back(line.at("pc").get<std::uint64_t>());
    }
  }
  return counters;
}

CostCard parse_cost(std::string_view raw, const Symbols& symbols) {
  const Json record = Json::parse(raw);
  if (record.at("version").get<int>() != 1) throw std::runtime_error("counts of another version");
  CostCard card;
  for (const Json& kernel : record.at("kernels")) {
    const auto number = [&kernel](const char* name) {
      return kernel.at(name).get<std::uint64_t>();
    };
    card.kernels.push_back({short_name(symbol_of(symbols, number("function")).function),
                            number("blocks"), kernel.at("threads").get<int>()});
    card.blocks += number("blocks");
    card.blocks_at_work += number("blocks_at_work");
    card.barriers += number("barriers");
    card.mma += number("mma");
    card.wgmma += number("wgmma");
    card.flops += number("flops");
    card.dram_read += number("dram_read");
    card.dram_written += number("dram_written");
    for (const Json& line : kernel.at("lines")) card.lines.push_back(line_of(line, symbols));
  }
  merge_lines(&card.lines);
  return card;
}

Symbols parse_symbols(std::string_view output, const std::filesystem::path& root) {
  Symbols symbols;
  std::string frames;
  bool is_function = true;
  const auto close = [&] {
    if (!symbols.empty()) symbols.back().second.place = pick_frame(frames, root);
    frames.clear();
  };
  for (const std::string& line : split_lines(output)) {
    if (line.rfind("0x", 0) == 0) {
      close();
      symbols.push_back({std::stoull(line, nullptr, 16), {}});
      is_function = true;
    } else if (is_function) {
      if (!symbols.empty()) symbols.back().second.function = line;  // the outermost stays
      is_function = false;
    } else {
      // An atomic of a function in drills/ is that function's line, not the emulator's.
      const std::string place = relative_place(line, root);
      if (place.rfind("emulator/", 0) != 0) frames += place + "\n";
      is_function = true;
    }
  }
  close();
  return symbols;
}

Symbols resolve_symbols(const std::filesystem::path& runner,
                        const std::filesystem::path& root,
                        const std::vector<std::uint64_t>& counters) {
  Command command;
  command.arguments = {"addr2line", "-a", "-i", "-f", "-C", "-e", runner};
  for (const std::uint64_t counter : counters) {
    char text[32];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(counter));
    command.arguments.emplace_back(text);
  }
  command.limit_s = 60;
  const Outcome outcome = run_process(command);
  return outcome.exit_code == 0 ? parse_symbols(outcome.output, root) : Symbols();
}

}  // namespace moe::driver
