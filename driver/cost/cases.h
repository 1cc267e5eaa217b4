// What a cost card is taken of and held against: one small case of each stage with the least that
// its contract allows, and data sheets of GPUs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct CostCase {
  const char* stage;        // m2
  const char* name;         // group/name in the stage's tests
  double flops;             // on real rows
  double least_read;        // bytes: every input once
  double least_written;     // bytes: every output once
  std::size_t cache_bytes;  // of the modelled L2; 0: the GPU's own, which holds all of the case
  bool fp8;
};

// The representative case of a stage stands first. nullptr: no case of that stage has that name.
const CostCase* find_cost_case(std::string_view stage, std::string_view name = {});
std::vector<std::string> cost_case_names(std::string_view stage);

// From the makers' data sheets, dense.
struct GpuSheet {
  const char* name;
  double terabytes_s;
  double bf16_tflops;
  double fp8_tflops;  // 0: has none
  std::size_t l2_bytes;
};

const GpuSheet* find_gpu_sheet(std::string_view name);  // in any case: "h200"; nullptr: unknown
std::string gpu_sheet_names();

}  // namespace moe::driver
