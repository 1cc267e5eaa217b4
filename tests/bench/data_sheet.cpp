#include "data_sheet.h"

#include <algorithm>
#include <cstdio>

namespace moe::bench {
namespace {

// The longer of two names that fit stands first.
constexpr DataSheet kSheets[] = {
    {"H200", 4.8, 989, 1979},     {"H100 PCIe", 2.0, 756, 1513},
    {"H100 NVL", 3.9, 835, 1671}, {"H100", 3.35, 989, 1979},
    {"H20", 4.0, 148, 296},       {"GH200", 4.9, 989, 1979},
    {"B200", 8.0, 2250, 4500},    {"A100-SXM4-80GB", 2.039, 312, 0},
    {"A100 80GB", 1.935, 312, 0}, {"A100", 1.555, 312, 0},
    {"L40S", 0.864, 362, 733},    {"RTX 4090", 1.008, 165, 330},
    {"RTX 3090", 0.936, 71, 0},
};

}  // namespace

std::optional<DataSheet> data_sheet_of(const std::string& device) {
  const DataSheet* best = nullptr;
  for (const DataSheet& sheet : kSheets) {
    const bool fits = device.find(sheet.name) != std::string::npos;
    const bool longer =
        best == nullptr || std::string(sheet.name).size() > std::string(best->name).size();
    if (fits && longer) best = &sheet;
  }
  return best == nullptr ? std::nullopt : std::optional<DataSheet>(*best);
}

std::optional<DataSheet> parse_data_sheet(const std::string& text) {
  DataSheet sheet;
  sheet.name = "--limits";
  const int fields = std::sscanf(text.c_str(), "%lf,%lf,%lf", &sheet.terabytes_s,
                                 &sheet.bf16_tflops, &sheet.fp8_tflops);
  const bool good = fields >= 2 && sheet.terabytes_s > 0 && sheet.bf16_tflops > 0;
  return good ? std::optional<DataSheet>(sheet) : std::nullopt;
}

double floor_us(const DataSheet& sheet, double flops, double bytes, bool fp8) {
  const double tflops = fp8 && sheet.fp8_tflops > 0 ? sheet.fp8_tflops : sheet.bf16_tflops;
  return std::max(flops / tflops * 1e-6, bytes / sheet.terabytes_s * 1e-6);
}

}  // namespace moe::bench
