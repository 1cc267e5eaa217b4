#include "results.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace moe::bench {
namespace {

using Json = nlohmann::ordered_json;

[[gnu::format(printf, 1, 2)]] std::string line(const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

bool starts_with(const std::string& text, const char* prefix) {
  return text.rfind(prefix, 0) == 0;
}

double at_share(const std::vector<float>& sorted, size_t tenths) {
  if (sorted.empty()) return 0.0;
  return static_cast<double>(sorted[(sorted.size() - 1) * tenths / 10]);
}

const Result* find(const Run& run, const std::string& what, const std::string& side) {
  for (const Result& result : run.results) {
    if (result.what == what && result.side == side) return &result;
  }
  return nullptr;
}

std::string row(const char* what, const std::string& side, double us, double flops, double bytes) {
  const int over = std::max(0, static_cast<int>(side.size()) - 13);  // into the room of the time
  std::string text = line("  %-10s%-14s%*.1f us", what, side.c_str(), std::max(7, 9 - over), us);
  text +=
      flops > 0.0 && us > 0.0 ? line("  %7.1f TFLOPS", flops / us * 1e-6) : std::string(16, ' ');
  if (bytes > 0.0 && us > 0.0) text += line("  %7.1f GB/s", bytes / us * 1e-3);
  return text;
}

// As everywhere in the command's words.
std::string shown(const std::string& side) {
  return side == "solution" ? "reference" : side;
}

std::string result_lines(const Result& result) {
  if (!result.right()) {
    return line("  %-10s%-14s", result.what.c_str(), shown(result.side).c_str()) + result.verdict +
           "\n";
  }
  return row(result.what.c_str(), shown(result.side), result.median_us, result.flops,
             result.bytes) +
         line("   %.1f to %.1f, %zu runs\n", result.p10_us, result.p90_us, result.runs);
}

std::string cublas_lines(const Run& run, const Result& result) {
  std::string text;
  const auto kind_row = [&](const char* kind, const char* name, const std::string& rest) {
    if (run.cublas.count(kind) == 0) return;
    CublasTimes one;
    one["dense"] = run.cublas.at(kind);
    const double us = dense_us(one, result.what);
    if (us > 0.0) text += row("", name, us, result.flops, 0.0) + rest + "\n";
  };
  kind_row("dense", "cuBLAS dense", "");
  kind_row("grouped", "  grouped", "");
  kind_row("capacity", "  capacity",
           line("   dropped %.1f %%, wasted %.1f %%", 100.0 * run.capacity.dropped,
                100.0 * run.capacity.wasted));
  return text;
}

std::string ratio_line(const Run& run, const std::string& what) {
  const Result* mine = find(run, what, "mine");
  const Result* reference = find(run, what, "solution");
  const Result* judged = mine != nullptr && mine->right() ? mine : reference;
  if (judged == nullptr || !judged->right()) return {};
  std::string text;
  if (judged == mine && reference != nullptr && reference->right()) {
    text += line("%.2f x the reference's time", mine->median_us / reference->median_us);
  }
  const double dense = dense_us(run.cublas, what);
  if (dense > 0.0) {
    text += (text.empty() ? "" : ", ") + line("%.2f x cuBLAS dense", judged->median_us / dense);
  }
  return text.empty() ? text : "           " + text + "\n";
}

// Each kernel of tests/alternative beside the solution that it was made from.
std::string alternative_lines(const Run& run, const std::string& what) {
  const Result* reference = find(run, what, "solution");
  if (reference == nullptr || !reference->right()) return {};
  std::string text;
  for (const Result& result : run.results) {
    const bool is_alternative = result.side != "mine" && result.side != "solution";
    if (result.what != what || !is_alternative || !result.right()) continue;
    text += line("           %s: %.3f x the reference's time\n", result.side.c_str(),
                 result.median_us / reference->median_us);
  }
  return text;
}

std::string floor_line(const Run& run, const Result& result) {
  std::string text;
  if (run.sheet) {
    const double by_bytes = floor_us(*run.sheet, 0.0, result.bytes, result.fp8);
    const double by_flops = floor_us(*run.sheet, result.flops, 0.0, result.fp8);
    text = line("floor %.1f us by FLOPs, %.1f us by bytes", by_flops, by_bytes);
  }
  if (result.padded_rows > 0) {
    const double padding =
        1.0 - static_cast<double>(result.rows) / static_cast<double>(result.padded_rows);
    text += (text.empty() ? "" : "; ") + line("padding %.1f %% of the rows", 100.0 * padding);
  }
  return text.empty() ? text : "           " + text + "\n";
}

std::string kernel_lines(const Result& result) {
  std::string text;
  for (const protocol::KernelUse& use : result.kernels) {
    text += line("           %s: %d registers, %d bytes local, %d + %d bytes shared,\n",
                 std::string(use.name).substr(0, 40).c_str(), use.registers, use.local_bytes,
                 use.static_bytes, use.dynamic_bytes);
    text += line("             %d blocks an SM; %lld blocks of %d threads\n",
                 use.blocks_per_multiprocessor, static_cast<long long>(use.blocks), use.threads);
  }
  return text;
}

Json json_of_kernels(const std::vector<protocol::KernelUse>& kernels) {
  Json list = Json::array();
  for (const protocol::KernelUse& use : kernels) {
    list.push_back({{"name", use.name},
                    {"registers", use.registers},
                    {"local_bytes", use.local_bytes},
                    {"static_shared_bytes", use.static_bytes},
                    {"dynamic_shared_bytes", use.dynamic_bytes},
                    {"threads", use.threads},
                    {"blocks", use.blocks},
                    {"blocks_per_multiprocessor", use.blocks_per_multiprocessor}});
  }
  return list;
}

Json json_of_result(const Run& run, const Result& r) {
  Json json = {{"what", r.what},           {"side", r.side},     {"verdict", r.verdict},
               {"median_us", r.median_us}, {"p10_us", r.p10_us}, {"p90_us", r.p90_us},
               {"runs", r.runs},           {"flops", r.flops},   {"bytes", r.bytes},
               {"tflops", r.tflops()},     {"rows", r.rows},     {"padded_rows", r.padded_rows}};
  if (const double dense = dense_us(run.cublas, r.what); dense > 0.0) json["cublas_us"] = dense;
  if (run.sheet) json["floor_us"] = floor_us(*run.sheet, r.flops, r.bytes, r.fp8);
  json["kernels"] = json_of_kernels(r.kernels);
  return json;
}

}  // namespace

Result result_of(const TimedCall& call, const std::string& side, std::vector<float> us) {
  std::sort(us.begin(), us.end());
  Result result;
  result.what = call.what;
  result.side = side;
  result.median_us = at_share(us, 5);
  result.p10_us = at_share(us, 1);
  result.p90_us = at_share(us, 9);
  result.runs = us.size();
  result.flops = call.flops;
  result.bytes = call.bytes;
  result.fp8 = call.fp8;
  result.rows = call.rows;
  result.padded_rows = call.padded_rows;
  return result;
}

void refuse_if_too_fast(const std::optional<DataSheet>& sheet,
                        double hidden_bytes,
                        Result& result) {
  if (!sheet || result.runs == 0) return;
  const double bytes = std::max(0.0, result.bytes - hidden_bytes);
  const double least = floor_us(*sheet, result.flops, bytes, result.fp8);
  if (result.median_us >= least) return;
  result.verdict = line("refused: %.1f us, and the data sheet (%s) allows no less than %.1f us",
                        result.median_us, sheet->name, least);
}

double dense_us(const CublasTimes& cublas, const std::string& what) {
  const auto found = cublas.find("dense");
  if (found == cublas.end() || found->second.size() != 2) return 0.0;
  if (starts_with(what, "GEMM1")) return found->second[0];
  if (starts_with(what, "GEMM2")) return found->second[1];
  return starts_with(what, "layer") ? found->second[0] + found->second[1] : 0.0;
}

std::string text_of(const Run& run) {
  const Shape& s = run.shape;
  std::string text = line("bench  %s   %s: T%d E%d K%d H%d I%d   routing %s\n", run.stage.c_str(),
                          s.name, s.num_tokens, s.num_experts, s.top_k, s.hidden_size,
                          s.intermediate_size, name_of(s.spread));
  text += "       " + run.device;
  text += run.sheet ? line("   data sheet: %.4g TB/s, %.0f TFLOPS bf16\n", run.sheet->terabytes_s,
                           run.sheet->bf16_tflops)
                    : "   no data sheet known: nothing is refused\n";
  for (size_t i = 0; i < run.results.size(); ++i) {
    const Result& result = run.results[i];
    text += result_lines(result);
    const bool last = i + 1 == run.results.size() || run.results[i + 1].what != result.what;
    if (!last) continue;
    text += cublas_lines(run, result) + ratio_line(run, result.what) +
            alternative_lines(run, result.what) + floor_line(run, result);
    for (const char* side : {"mine", "solution"}) {
      const Result* of_side = find(run, result.what, side);
      if (of_side == nullptr || of_side->kernels.empty()) continue;
      text += line("           %s:\n", shown(side).c_str()) + kernel_lines(*of_side);
    }
  }
  for (const std::string& note : run.notes) text += "note   " + note + "\n";
  return text;
}

std::string json_of(const Run& run) {
  const Shape& s = run.shape;
  Json json = {{"version", 1},
               {"stage", run.stage},
               {"device", run.device},
               {"shape",
                {{"name", s.name},
                 {"num_tokens", s.num_tokens},
                 {"num_experts", s.num_experts},
                 {"top_k", s.top_k},
                 {"hidden_size", s.hidden_size},
                 {"intermediate_size", s.intermediate_size}}},
               {"routing", name_of(s.spread)},
               {"notes", run.notes}};
  for (const auto& [kind, us] : run.cublas) json["cublas_us"][kind] = us;
  json["capacity"] = {{"rows", run.capacity.rows},
                      {"dropped", run.capacity.dropped},
                      {"wasted_flops", run.capacity.wasted}};
  json["results"] = Json::array();
  for (const Result& result : run.results) json["results"].push_back(json_of_result(run, result));
  return json.dump(2) + "\n";
}

}  // namespace moe::bench
