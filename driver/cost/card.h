// The cost card: what the kernels of one call ask of the hardware, from the counts of the traced
// emulator (emulator/src/cost_watch.cpp). Nothing is timed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "driver/cost/cases.h"

namespace moe::driver {

// What one source line does to global memory (units are 32-byte sectors) or shared memory (passes
// over its banks), reading or writing.
struct CostLine {
  std::string file;  // "mine/m2_grouped_gemm.cu"; "" where it is not known
  int line = 0;
  std::string via;  // "cp.async"
  bool shared = false;
  bool writes = false;
  std::uint64_t requests = 0;  // of a warp each
  std::uint64_t bytes = 0;     // of its lanes
  std::uint64_t units = 0;
  std::uint64_t least = 0;  // of them in the best layout of as many bytes

  std::uint64_t excess() const { return units - least; }
  double units_each() const { return ratio(units); }
  double least_each() const { return ratio(least); }
  std::uint64_t moved_bytes() const { return units * (shared ? 128 : 32); }

 private:
  double ratio(std::uint64_t count) const {
    return requests == 0 ? 0 : static_cast<double>(count) / static_cast<double>(requests);
  }
};

struct CostKernel {
  std::string name;
  std::uint64_t blocks = 0;
  int threads = 0;
};

struct CostCard {
  std::vector<CostKernel> kernels;
  std::uint64_t blocks = 0;
  std::uint64_t blocks_at_work = 0;  // that multiplied, or met at a barrier
  std::uint64_t barriers = 0;
  std::uint64_t mma = 0;    // of a warp
  std::uint64_t wgmma = 0;  // of a warpgroup
  std::uint64_t flops = 0;  // of both, padding included
  std::uint64_t dram_read = 0;
  std::uint64_t dram_written = 0;
  std::vector<CostLine> lines;  // one for each source line, memory and direction; largest first

  // Between the blocks and L2.
  std::uint64_t read() const { return global(false); }
  std::uint64_t written() const { return global(true); }
  std::uint64_t global_requests() const;
  // Sectors of an average request, and passes over the banks that a better layout would save.
  double sectors_per_request() const;
  std::uint64_t bank_conflicts() const;
  // Of 0 .. 1: multiply-adds that no real row needed.
  double padded_share(const CostCase& least) const;
  // Bytes that pass DRAM, by the modelled cache, over the least.
  double bytes_ratio(const CostCase& least) const;

 private:
  std::uint64_t global(bool writes) const;
};

// Of one line of the traced runner's file. `lines_of` names source lines by pc: see below. Throws
// std::exception on what is no such line.
struct Symbol {
  std::string function;
  std::string place;  // "mine/m2.cu:31", "" when not known
};
using Symbols = std::vector<std::pair<std::uint64_t, Symbol>>;

// The program counters that the counts name.
std::vector<std::uint64_t> counters_of(std::string_view raw);
CostCard parse_cost(std::string_view raw, const Symbols& symbols);

// By addr2line, which comes with every compiler.
Symbols resolve_symbols(const std::filesystem::path& runner,
                        const std::filesystem::path& root,
                        const std::vector<std::uint64_t>& counters);
// Its output: "0x1234", then for each inlined frame, innermost first, a function and a place.
Symbols parse_symbols(std::string_view output, const std::filesystem::path& root);

// ---- What is shown.
std::string cost_text(const CostCard& card,
                      const CostCase& least,
                      const GpuSheet& gpu,
                      const std::filesystem::path& root);
// The figures of two cards side by side, and the lines of the first that cost more.
std::string cost_comparison(const CostCard& mine, const CostCard& reference, const CostCase& least);
std::string cost_json(const CostCard& card,
                      const CostCase& least,
                      const GpuSheet& gpu,
                      std::string_view side);

}  // namespace moe::driver
