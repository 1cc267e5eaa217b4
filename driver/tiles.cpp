#include "driver/tiles.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <vector>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr std::string_view kTableStart = "inline constexpr TunedTile kTunedTiles[] = {\n";
constexpr std::string_view kTableEnd = "};\n";
constexpr std::size_t kLongestComment = 90;  // a line has 100 columns

struct Table {
  std::string before;  // up to and with the line that opens it
  std::vector<TunedLine> lines;
  std::string after;  // from the line that closes it
};

TunedLine parse_line(const std::string& text, const std::string& measured) {
  static const std::regex kLine(
      R"(\{(\d+), (\d+), (\d+), (\d+), (\d+), (\{\d+, \{\d+, \d+, \d+\}, \{\d+, \d+, \d+\}\})\},)");
  std::smatch match;
  if (!std::regex_match(text, match, kLine)) {
    throw TableError("kTunedTiles has a line of another form: " + text);
  }
  TunedLine line;
  for (std::size_t i = 0; i < line.layer.size(); ++i) line.layer[i] = std::stoi(match[i + 1]);
  line.tile = match[6];
  line.measured = measured;
  return line;
}

Table parse_table(std::string_view header) {
  const std::size_t start = header.find(kTableStart);
  if (start == std::string_view::npos) throw TableError("kTunedTiles is not there");
  const std::size_t body = start + kTableStart.size();
  const std::size_t end = header.find(kTableEnd, body);
  if (end == std::string_view::npos) throw TableError("kTunedTiles has no end");
  Table table{std::string(header.substr(0, body)), {}, std::string(header.substr(end))};
  std::string measured;  // a comment holds for all lines below it
  for (const std::string& line : split_lines(header.substr(body, end - body))) {
    const std::string text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (text.rfind("// ", 0) == 0) {
      measured = text.substr(3);
    } else if (!text.empty()) {
      table.lines.push_back(parse_line(text, measured));
    }
  }
  return table;
}

}  // namespace

TuneReport parse_tune_report(std::string_view json) {
  const nlohmann::json report = nlohmann::json::parse(json);
  const auto tile_of = [&](const char* gemm) {
    const auto tile = report.at(gemm).get<std::array<int, 3>>();
    return "{" + std::to_string(tile[0]) + ", " + std::to_string(tile[1]) + ", " +
           std::to_string(tile[2]) + "}";
  };
  TuneReport result;
  std::size_t i = 0;
  for (const char* key :
       {"num_experts", "top_k", "hidden_size", "intermediate_size", "num_tokens"}) {
    result.line.layer[i++] = report.at(key).get<int>();
  }
  result.line.tile = "{" + std::to_string(report.at("block_m").get<int>()) + ", " +
                     tile_of("gemm1") + ", " + tile_of("gemm2") + "}";
  result.gpu = report.at("gpu").get<std::string>();
  result.us = report.at("us").get<double>();
  result.us_before = report.at("us_before").get<double>();
  return result;
}

std::string text_of(const TunedLine& line) {
  std::string text = "{";
  for (const int number : line.layer) text += std::to_string(number) + ", ";
  return text + line.tile + "},";
}

std::string tuned_tile(std::string_view header, const std::array<int, 5>& layer) {
  for (const TunedLine& line : parse_table(header).lines) {
    if (line.layer == layer) return line.tile;
  }
  return {};
}

std::string with_tuned_line(std::string_view header, const TunedLine& line) {
  Table table = parse_table(header);
  std::erase_if(table.lines, [&](const TunedLine& other) { return other.layer == line.layer; });
  table.lines.push_back(line);
  std::stable_sort(table.lines.begin(), table.lines.end(),
                   [](const TunedLine& a, const TunedLine& b) { return a.layer < b.layer; });
  std::string text = table.before;
  for (const TunedLine& one : table.lines) {
    const std::string measured = one.measured.empty() ? "not known on what" : one.measured;
    text += "    // " + measured.substr(0, kLongestComment) + "\n    " + text_of(one) + "\n";
  }
  return text + table.after;
}

}  // namespace moe::driver
