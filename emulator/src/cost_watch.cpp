#include "cost_watch.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "block.h"
#include "device.h"
#include "watch.h"

namespace emulator {

namespace {

constexpr std::uint32_t kLargest = 16;  // bytes that one lane moves at a time
constexpr std::uint64_t kFlopsOfMma = 2 * 16 * 8 * 16;
constexpr std::uint64_t kFlopsOfMmaE4m3 = 2 * 16 * 8 * 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// Shared memory as the kernel lays it out: the window and the thread-local segment may start
// anywhere.
std::uintptr_t place_in_shared(const Block& block, const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const auto low = reinterpret_cast<std::uintptr_t>(block.static_shared);
  if (place - low < block.static_shared_bytes) return place - low;
  return place - reinterpret_cast<std::uintptr_t>(block.dynamic_shared);
}

std::uint64_t key_of(const Access& access, bool writes) {
  std::uint64_t key = access.pc;
  if (access.place.line != 0) {
    key = reinterpret_cast<std::uintptr_t>(access.place.file) * 0x9e3779b97f4a7c15u +
          static_cast<std::uint64_t>(access.place.line);
  }
  return key * 64 + static_cast<std::uint64_t>(access.via) * 4 +
         (access.space == Space::kShared ? 2 : 0) + (writes ? 1 : 0);
}

}  // namespace

CostWatch::CostWatch(std::string file, std::size_t cache_bytes)
    : file_(std::move(file)), cache_(cache_bytes) {}

void CostWatch::launch_begins(const Grid& grid) {
  kernels_.emplace_back();
  Kernel& kernel = kernels_.back();
  kernel.function = grid.call->function();
  kernel.grid = grid.grid_dim;
  kernel.block = grid.block_dim;
  kernel.smem_bytes = grid.smem_bytes;
  line_numbers_.clear();
  warps_.clear();
  warps_.resize(static_cast<std::size_t>(grid.cluster_size));
  at_work_.assign(static_cast<std::size_t>(grid.cluster_size), false);
  kernel.dram_read = cache_.bytes_read();
  kernel.dram_written = cache_.bytes_written();
}

// What is written stays in the cache for the next kernel; the last one's goes to memory.
void CostWatch::launch_ends(bool /*faulted*/) {
  Kernel& kernel = kernels_.back();
  kernel.dram_read = cache_.bytes_read() - kernel.dram_read;
  kernel.dram_written = cache_.bytes_written() - kernel.dram_written;
}

void CostWatch::block_begins(Block& block) {
  const auto rank = static_cast<std::size_t>(block.rank());
  ++kernels_.back().blocks;
  at_work_[rank] = false;
  warps_[rank].resize(static_cast<std::size_t>((block.num_threads() + kLanes - 1) / kLanes));
}

void CostWatch::block_ends(Block& block) {
  close_warps(block, 0, static_cast<int>(warps_[static_cast<std::size_t>(block.rank())].size()));
}

void CostWatch::work(const Block& block) {
  const auto rank = static_cast<std::size_t>(block.rank());
  if (at_work_[rank]) return;
  at_work_[rank] = true;
  ++kernels_.back().blocks_at_work;
}

std::size_t CostWatch::line_of(const Access& access, bool writes) {
  std::vector<Line>& lines = kernels_.back().lines;
  const auto [found, is_new] = line_numbers_.try_emplace(key_of(access, writes), lines.size());
  if (is_new) {
    lines.push_back({access.place, access.pc, access.via, access.space, writes, 0, 0, 0, 0});
  }
  return found->second;
}

CostWatch::Warp& CostWatch::warp_of(const Block& block, int thread) {
  return warps_[static_cast<std::size_t>(block.rank())][static_cast<std::size_t>(thread / kLanes)];
}

void CostWatch::access(Block& block, int thread, const Access& access) {
  if (access.reads) add(block, thread, access, false);
  if (access.writes) add(block, thread, access, true);
}

void CostWatch::add(Block& block, int thread, const Access& access, bool writes) {
  const std::size_t number = line_of(access, writes);
  Line& line = kernels_.back().lines[number];
  line.bytes += access.bytes;
  if (access.via == Via::kBulk || access.via == Via::kWgmma) {
    count_row(number, access);
    return;
  }
  Warp& warp = warp_of(block, thread);
  if (warp.lines.size() <= number) warp.lines.resize(number + 1);
  Open& open = warp.lines[number];
  if (open.used == 0) warp.touched.push_back(number);
  const auto lane = static_cast<std::size_t>(thread % kLanes);
  auto place = reinterpret_cast<std::uintptr_t>(access.address);
  if (access.space == Space::kShared) place = place_in_shared(block, access.address);
  for (std::uint32_t done = 0; done < access.bytes; done += kLargest) {
    const std::size_t turn = open.count[lane]++;
    if (open.requests.size() <= turn) open.requests.resize(turn + 1);
    open.used = std::max(open.used, turn + 1);
    WarpRequest& request = open.requests[turn];
    request.lanes |= 1u << lane;
    request.bytes = std::max(request.bytes, std::min(access.bytes - done, kLargest));
    request.address[lane] = place + done;
  }
}

void CostWatch::count_request(std::size_t number, const WarpRequest& request) {
  Line& line = kernels_.back().lines[number];
  ++line.requests;
  if (line.space == Space::kShared) {
    const BankPasses banks =
        line.via == Via::kCpAsync ? count_copy_passes(request) : count_bank_passes(request);
    line.units += static_cast<std::uint64_t>(banks.passes);
    line.least += static_cast<std::uint64_t>(banks.least);
    return;
  }
  list_sectors(request, &sectors_);
  line.units += sectors_.size();
  line.least += static_cast<std::uint64_t>(least_sectors(request));
  for (const std::uintptr_t sector : sectors_) {
    line.writes ? cache_.write(sector) : cache_.read(sector);
  }
}

// What a copy engine or wgmma moves: no lanes, and by the 128-byte swizzle no bank conflicts.
void CostWatch::count_row(std::size_t number, const Access& access) {
  constexpr std::uint32_t kBytesOfAllBanks = 128;
  Line& line = kernels_.back().lines[number];
  ++line.requests;
  if (line.space == Space::kShared) {
    const std::uint64_t passes = access.bytes >= kBytesOfAllBanks ? access.bytes / 128 : 0;
    line.units += passes;
    line.least += passes;
    return;
  }
  const auto place = reinterpret_cast<std::uintptr_t>(access.address);
  for (std::uintptr_t s = place / kSectorBytes; s <= (place + access.bytes - 1) / kSectorBytes;
       ++s) {
    ++line.units;
    line.writes ? cache_.write(s) : cache_.read(s);
  }
  line.least += (access.bytes + kSectorBytes - 1) / kSectorBytes;
}

// The warp is together again: what its lanes did since belongs to no later request.
void CostWatch::close(Warp& warp) {
  for (const std::size_t number : warp.touched) {
    Open& open = warp.lines[number];
    for (std::size_t i = 0; i < open.used; ++i) {
      count_request(number, open.requests[i]);
      open.requests[i] = {};
    }
    open.used = 0;
    open.count = {};
  }
  warp.touched.clear();
}

void CostWatch::close_warps(const Block& block, int first, int count) {
  std::vector<Warp>& warps = warps_[static_cast<std::size_t>(block.rank())];
  for (int i = first; i < first + count && i < static_cast<int>(warps.size()); ++i) {
    close(warps[static_cast<std::size_t>(i)]);
  }
}

void CostWatch::complete(Block& block, const Sync& sync) {
  Kernel& kernel = kernels_.back();
  switch (sync.kind) {
    case SyncKind::kWarp: {
      const bool is_mma = sync.operation == Operation::kMma;
      if (is_mma || sync.operation == Operation::kMmaE4m3) {
        ++kernel.mma;
        kernel.flops += is_mma ? kFlopsOfMma : kFlopsOfMmaE4m3;
        work(block);
      }
      if (sync.mask == kAllLanes) close_warps(block, block.current().linear / kLanes, 1);
      return;
    }
    case SyncKind::kWarpgroup:
      close_warps(block, static_cast<int>(sync.object) * kWarpgroupThreads / kLanes,
                  kWarpgroupThreads / kLanes);
      return;
    case SyncKind::kBlock:
      ++kernel.barriers;
      work(block);
      close_warps(block, 0, block.num_threads() / kLanes + 1);
      return;
    case SyncKind::kNamedBarrier:
      ++kernel.barriers;
      return;
    default:
      return;
  }
}

void CostWatch::wgmma_issued(Block& block, int /*thread*/, int n, bool is_e4m3, Place /*place*/) {
  Kernel& kernel = kernels_.back();
  ++kernel.wgmma;
  kernel.flops += 2u * 64u * static_cast<std::uint64_t>(n) * (is_e4m3 ? 32u : 16u);
  work(block);
}

namespace {

void print_line(std::FILE* out, const CostWatch::Line& line) {
  static constexpr const char* kVia[] = {"load or store", "atomic", "cp.async", "ldmatrix",
                                         "stmatrix",      "wgmma",  "bulk copy"};
  std::fprintf(out, R"({"via":"%s","space":"%s","writes":%s,)",
               kVia[static_cast<std::size_t>(line.via)],
               line.space == Space::kShared ? "shared" : "global", line.writes ? "true" : "false");
  if (line.place.line != 0) {
    std::fprintf(out, R"("file":"%s","line":%d,)", line.place.file, line.place.line);
  } else {
    // The return address: the call itself stands before it.
    std::fprintf(out, R"("pc":%llu,)",
                 static_cast<unsigned long long>(program_offset(line.pc) - 1));
  }
  std::fprintf(
      out, R"("requests":%llu,"bytes":%llu,"units":%llu,"least":%llu})",
      static_cast<unsigned long long>(line.requests), static_cast<unsigned long long>(line.bytes),
      static_cast<unsigned long long>(line.units), static_cast<unsigned long long>(line.least));
}

void print_kernel(std::FILE* out, const CostWatch::Kernel& kernel) {
  const auto number = [out](const char* name, std::uint64_t value) {
    std::fprintf(out, R"("%s":%llu,)", name, static_cast<unsigned long long>(value));
  };
  std::fputs("{", out);
  number("function", program_offset(reinterpret_cast<std::uintptr_t>(kernel.function)));
  std::fprintf(out, R"("grid":[%u,%u,%u],"threads":%u,)", kernel.grid.x, kernel.grid.y,
               kernel.grid.z, kernel.block.x * kernel.block.y * kernel.block.z);
  number("smem_bytes", kernel.smem_bytes);
  number("blocks", kernel.blocks);
  number("blocks_at_work", kernel.blocks_at_work);
  number("barriers", kernel.barriers);
  number("mma", kernel.mma);
  number("wgmma", kernel.wgmma);
  number("flops", kernel.flops);
  number("dram_read", kernel.dram_read);
  number("dram_written", kernel.dram_written);
  std::fputs(R"("lines":[)", out);
  for (std::size_t i = 0; i < kernel.lines.size(); ++i) {
    if (i > 0) std::fputs(",", out);
    print_line(out, kernel.lines[i]);
  }
  std::fputs("]}", out);
}

constexpr std::size_t kDefaultCache = std::size_t{50} * 1000 * 1000;  // an H200's L2

}  // namespace

CostWatch::~CostWatch() {
  if (!kernels_.empty()) {
    const std::uint64_t before = cache_.bytes_written();
    cache_.flush();
    kernels_.back().dram_written += cache_.bytes_written() - before;
  }
  std::FILE* out = file_.empty() ? nullptr : std::fopen(file_.c_str(), "a");
  if (out == nullptr) return;
  std::fputs(R"({"version":1,"kernels":[)", out);
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (i > 0) std::fputs(",", out);
    print_kernel(out, kernels_[i]);
  }
  std::fputs("]}\n", out);
  std::fclose(out);
}

Observer* make_cost_watch(const std::string& argument) {
  const char* bytes = std::getenv("EMULATOR_COST_CACHE");
  return new CostWatch(argument,
                       bytes == nullptr ? kDefaultCache : std::strtoull(bytes, nullptr, 10));
}

}  // namespace emulator
