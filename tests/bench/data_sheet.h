// data_sheet.h: what a GPU can do at most, from its maker's data sheet (dense, without sparsity).
// What claims to be faster is not believed.
#pragma once

#include <optional>
#include <string>

namespace moe::bench {

struct DataSheet {
  const char* name = "";   // a part of the device's name
  double terabytes_s = 0;  // memory bandwidth
  double bf16_tflops = 0;  // with fp32 sums
  double fp8_tflops = 0;   // 0: has none
};

// Of the device with that name; nothing when it is not in the table.
std::optional<DataSheet> data_sheet_of(const std::string& device);

// "4.8,989,1979": limits of one's own, for a GPU that is not in the table.
std::optional<DataSheet> parse_data_sheet(const std::string& text);

// The least time for this work, in us.
double floor_us(const DataSheet& sheet, double flops, double bytes, bool fp8);

}  // namespace moe::bench
