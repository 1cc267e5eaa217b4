// `drill sweep`: the layer that the library chooses, at 1 to 16384 tokens.
#include "driver/sweep.h"

#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>

#include "driver/measure.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr const char* kNames = "tokens\tfloor_us\tcublas_dense_us\tlayer_us";

std::string one_place(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

bool write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text << std::flush;
  return read_file(path) == text;
}

// "one NVIDIA H200, 2026-11-29, shape B: E128 K8 H2048 I768"
std::string title_of_bench(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  const auto& shape = json.at("shape");
  const auto size = [&](const char* name) { return std::to_string(shape.at(name).get<int>()); };
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char today[16];
  std::strftime(today, sizeof today, "%Y-%m-%d", &parts);
  return "one " + json.at("device").get<std::string>() + ", " + today + ", shape " +
         shape.at("name").get<std::string>() + ": E" + size("num_experts") + " K" + size("top_k") +
         " H" + size("hidden_size") + " I" + size("intermediate_size");
}

// Writes `file` and, beside it, the drawing; prints the cliffs.
int write_sweep(const Sweep& sweep, const std::filesystem::path& file, bool with_text) {
  std::filesystem::path drawing = file;
  drawing.replace_extension(".svg");
  const bool written =
      (!with_text || write_file(file, text_of(sweep))) && write_file(drawing, svg_of(sweep));
  if (!written) {
    say("drill sweep: " + file.string() + " or " + drawing.string() + " cannot be written\n");
    return static_cast<int>(Verdict::kFault);
  }
  for (const std::string& cliff : cliffs_of(sweep)) say(wrapped("cliff  ", cliff));
  say("wrote  " + (with_text ? file.string() + " and " : std::string()) + drawing.string() + "\n");
  return 0;
}

int draw_again(const std::string& file) {
  try {
    return write_sweep(parse_sweep(read_file(file)), file, false);
  } catch (const std::exception& error) {
    say("drill sweep: " + file + ": " + error.what() + "\n");
    return static_cast<int>(Verdict::kUsage);
  }
}

}  // namespace

std::vector<int> sweep_tokens(int most) {
  std::set<int> tokens;
  for (int power = 1; power <= most; power *= 2) {
    for (const int neighbour : {power - 1, power, power + 1}) {
      if (neighbour >= 1 && neighbour <= most) tokens.insert(neighbour);
    }
  }
  return {tokens.begin(), tokens.end()};
}

SweepPoint point_of_bench(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  const auto& result = json.at("results").at(0);
  const std::string verdict = result.at("verdict");
  if (verdict != "right") throw std::runtime_error(verdict);
  SweepPoint point;
  point.num_tokens = json.at("shape").at("num_tokens");
  point.floor_us = result.value("floor_us", 0.0);
  point.dense_us = result.value("cublas_us", 0.0);
  point.layer_us = result.at("median_us");
  return point;
}

std::string text_of(const Sweep& sweep) {
  std::string text = "# " + sweep.title + "\n" + kNames + "\n";
  for (const SweepPoint& point : sweep.points) {
    text += std::to_string(point.num_tokens);
    for (const double us : {point.floor_us, point.dense_us, point.layer_us}) {
      text += "\t" + one_place(us);
    }
    text += "\n";
  }
  return text;
}

Sweep parse_sweep(const std::string& text) {
  Sweep sweep;
  const std::vector<std::string> lines = split_lines(text);
  const auto fail = [](std::size_t line, const char* what) {
    throw std::runtime_error("line " + std::to_string(line + 1) + ": " + what);
  };
  if (lines.empty() || lines[0].rfind("# ", 0) != 0) fail(0, "no title");
  sweep.title = lines[0].substr(2);
  if (lines.size() < 2 || lines[1] != kNames) fail(1, "not the names of the columns");
  for (std::size_t i = 2; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    std::istringstream fields(lines[i]);
    SweepPoint point;
    fields >> point.num_tokens >> point.floor_us >> point.dense_us >> point.layer_us;
    std::string rest;
    if (fields.fail() || fields >> rest) fail(i, "not four numbers");
    const int before = sweep.points.empty() ? 0 : sweep.points.back().num_tokens;
    if (point.num_tokens <= before) fail(i, "tokens do not ascend from 1");
    if (point.floor_us < 0.0 || point.dense_us < 0.0 || point.layer_us <= 0.0) {
      fail(i, "no time of a layer");
    }
    sweep.points.push_back(point);
  }
  if (sweep.points.size() < 2) throw std::runtime_error("fewer than two points");
  return sweep;
}

std::vector<std::string> cliffs_of(const Sweep& sweep) {
  constexpr double kMost = 1.05;
  std::vector<std::string> cliffs;
  for (std::size_t i = 0; i + 1 < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const SweepPoint& next = sweep.points[i + 1];
    if (point.layer_us <= kMost * next.layer_us) continue;
    cliffs.push_back("T = " + std::to_string(point.num_tokens) + " takes " +
                     one_place(point.layer_us) + " us, T = " + std::to_string(next.num_tokens) +
                     " only " + one_place(next.layer_us) + " us");
  }
  return cliffs;
}

int run_sweep(const Course& course, const SweepOptions& options) {
  if (!options.plot.empty()) return draw_again(options.plot);
  const Backend backend = choose_backend(Wish::kGpu);
  const int code =
      prepare_measurement(course, backend, {"bench_stage"}, {"layer.solution", "cublas_baseline"});
  if (code != 0) return code;
  const std::filesystem::path json = course.tree("cuda") / "sweep.json";
  Sweep sweep;
  for (const int tokens : sweep_tokens(options.most)) {
    std::error_code ignored;
    std::filesystem::remove(json, ignored);
    const int failed = run_and_show(
        {course.tree("host") / "tests" / "bench_stage", "--stage", "layer", "--shape",
         options.shape, "--tokens", std::to_string(tokens), "--cublas",
         course.tree("cuda") / "tests" / "cublas_baseline", "--solution",
         course.tree("cuda") / "runners/layer.solution", "--brief", "1", "--json", json});
    try {
      const std::string text = read_file(json);
      sweep.points.push_back(point_of_bench(text));
      sweep.title = title_of_bench(text);
    } catch (const std::exception& error) {
      say(wrapped("drill sweep: ", "T = " + std::to_string(tokens) + ": " + error.what()));
      return failed != 0 ? failed : static_cast<int>(Verdict::kFault);
    }
  }
  return write_sweep(sweep, options.out, true);
}

}  // namespace moe::driver
