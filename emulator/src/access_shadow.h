// What is remembered of each byte that a kernel can share: who wrote it last, who read it last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "happens_before.h"
#include "shared_lines.h"

namespace emulator {

struct PastAccess {
  Stamp stamp;              // clock 0: none
  std::uint32_t where = 0;  // a number that Findings gave
  bool atomic = false;
};

struct ShadowCell {
  PastAccess write;
  std::array<PastAccess, 2> reads;  // of different warps
  std::uint32_t owner = 0;          // launch or block that the accesses are of
  bool written = false;
  bool under_way = false;  // a copy to here has been asked for and has not arrived

  // Forgets accesses of an earlier launch, which are over.
  void belong_to(std::uint32_t launch) {
    if (owner == launch) return;
    write = {};
    reads = {};
    under_way = false;
    owner = launch;
  }
};

// Of device memory, in pages that are made when they are first touched.
class GlobalShadow {
 public:
  // The page starts as written, or not.
  ShadowCell& at(std::uintptr_t address, bool written) {
    const std::uintptr_t number = address / kPageBytes;
    if (number != last_number_ || last_ == nullptr) {
      std::unique_ptr<Page>& page = pages_[number];
      if (page == nullptr) {
        page = std::make_unique<Page>();
        for (ShadowCell& cell : *page) cell.written = written;
      }
      last_ = page.get();
      last_number_ = number;
    }
    return (*last_)[address % kPageBytes];
  }

 private:
  static constexpr std::uintptr_t kPageBytes = 256;  // allocations are multiples of it
  using Page = std::array<ShadowCell, kPageBytes>;

  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  Page* last_ = nullptr;
  std::uintptr_t last_number_ = 0;
};

// Of the shared memory of one block, by offset in its window. Made anew for each block by a number.
class SharedShadow {
 public:
  void begin_block(std::uint32_t number) {
    number_ = number;
    if (cells_.empty()) cells_.resize(kSharedWindowBytes);
  }
  ShadowCell& at(std::uint32_t offset) {
    ShadowCell& cell = cells_[offset];
    if (cell.owner != number_) {
      cell = {};
      cell.owner = number_;
    }
    return cell;
  }

 private:
  std::vector<ShadowCell> cells_;
  std::uint32_t number_ = 0;
};

}  // namespace emulator
