// The observer behind `drill cost`: what each line of the kernels of one call asks of memory, and
// how much the blocks compute and wait. Counts only, the same in every run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cost_model.h"
#include "fiber.h"
#include "observer.h"

namespace emulator {

class CostWatch : public Observer {
 public:
  // What one line (or one pc) of a kernel does to one of the two memories.
  struct Line {
    Place place;
    std::uintptr_t pc = 0;
    Via via = Via::kPlain;
    Space space = Space::kGlobal;
    bool writes = false;
    std::uint64_t requests = 0;  // of warps; of rows where a copy engine moves boxes
    std::uint64_t bytes = 0;     // of all lanes
    std::uint64_t units = 0;     // sectors, or passes over the banks
    std::uint64_t least = 0;     // of them, for as many different bytes in the best layout
  };
  struct Kernel {
    const void* function = nullptr;
    dim3 grid;
    dim3 block;
    std::size_t smem_bytes = 0;
    std::uint64_t blocks = 0;
    std::uint64_t blocks_at_work = 0;  // that multiplied, or met at a barrier
    std::uint64_t barriers = 0;
    std::uint64_t mma = 0;    // mma.sync of a warp
    std::uint64_t wgmma = 0;  // wgmma of a warpgroup
    std::uint64_t flops = 0;  // of both
    std::uint64_t dram_read = 0;
    std::uint64_t dram_written = 0;
    std::vector<Line> lines;
  };

  // Writes one line of JSON at the end of `file` when it is destroyed; cache_bytes is what the
  // modelled L2 holds.
  CostWatch(std::string file, std::size_t cache_bytes);
  CostWatch(const CostWatch&) = delete;
  CostWatch& operator=(const CostWatch&) = delete;
  ~CostWatch() override;

  const std::vector<Kernel>& kernels() const { return kernels_; }

  void launch_begins(const Grid& grid) override;
  void launch_ends(bool faulted) override;
  void block_begins(Block& block) override;
  void block_ends(Block& block) override;
  void access(Block& block, int thread, const Access& access) override;
  void complete(Block& block, const Sync& sync) override;
  void wgmma_issued(Block& block, int thread, int n, bool is_e4m3, Place place) override;

 private:
  // The requests of one line that lanes of one warp have made since the warp was last together:
  // a lane's n-th access belongs to request n.
  struct Open {
    std::array<std::uint16_t, kLanes> count{};
    std::vector<WarpRequest> requests;
    std::size_t used = 0;
  };
  struct Warp {
    std::vector<Open> lines;           // by the number of the line
    std::vector<std::size_t> touched;  // those with requests, in the order of their first one
  };

  std::size_t line_of(const Access& access, bool writes);
  Warp& warp_of(const Block& block, int thread);
  void add(Block& block, int thread, const Access& access, bool writes);
  void count_request(std::size_t number, const WarpRequest& request);
  void count_row(std::size_t number, const Access& access);
  void close(Warp& warp);
  void close_warps(const Block& block, int first, int count);
  void work(const Block& block);

  std::string file_;
  CacheModel cache_;
  std::vector<Kernel> kernels_;
  std::unordered_map<std::uint64_t, std::size_t> line_numbers_;
  std::vector<std::vector<Warp>> warps_;  // by rank in the cluster and number in the block
  std::vector<bool> at_work_;             // by rank
  std::vector<std::uintptr_t> sectors_;
};

}  // namespace emulator
