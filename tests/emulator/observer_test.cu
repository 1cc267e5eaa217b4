// What a traced build tells its observer: each access once, of the right size and kind, and the
// order of synchronisation. Compiled with the kernel files' flags.
#include "emulator_test.h"

#include <drills/ptx.h>

#include <algorithm>
#include <string>
#include <vector>

#include "block.h"
#include "observer.h"

namespace {

using emulator::Access;
using emulator::Block;
using emulator::Space;
using emulator::Sync;
using emulator::Via;

// "r4 global 0": a read of 4 bytes at the start of an array.
class Recorder : public emulator::Observer {
 public:
  void launch_begins(const emulator::Grid& /*grid*/) override { note("launch"); }
  void launch_ends(bool faulted) override { note(faulted ? "fault" : "end"); }
  void block_begins(Block& /*block*/) override { note("block"); }
  void access(Block& block, int thread, const Access& access) override {
    static constexpr const char* kVia[] = {"",          " atomic", " cp.async", " ldmatrix",
                                           " stmatrix", " wgmma",  " bulk"};
    std::string text = "t" + std::to_string(thread) + " ";
    if (access.reads) text += "r";
    if (access.writes) text += "w";
    text += std::to_string(access.bytes);
    const auto place = reinterpret_cast<std::uintptr_t>(access.address);
    if (access.space == Space::kShared) {
      const auto low = reinterpret_cast<std::uintptr_t>(block.dynamic_shared);
      text += " shared";
      if (place - low < block.dynamic_shared_bytes) text += " " + std::to_string(place - low);
    } else {
      text += " global " + std::to_string(place - emulator::device_range(access.address)->low);
    }
    text += kVia[static_cast<int>(access.via)];
    note(text);
    if (access.place.line == 0 && access.pc == 0) note("  without a place");
  }
  void arrive(Block& /*block*/, int thread, const Sync& /*sync*/) override {
    note("t" + std::to_string(thread) + " arrives");
  }
  void complete(Block& /*block*/, const Sync& /*sync*/) override { note("complete"); }
  void pass(Block& /*block*/, int thread, const Sync& /*sync*/) override {
    note("t" + std::to_string(thread) + " passes");
  }

  // A compiler may tell of `*to = *from` in either order.
  std::vector<std::string> sorted() const {
    std::vector<std::string> all = heard;
    std::sort(all.begin(), all.end());
    return all;
  }

  std::vector<std::string> heard;

 private:
  void note(const std::string& text) { heard.push_back(text); }
};

class ObserverTest : public EmulatorTest {
 protected:
  ObserverTest() { emulator::observe(&recorder_); }
  ~ObserverTest() override { emulator::observe(nullptr); }

  Recorder recorder_;
};

__global__ void four_sizes(uint4* wide, float* narrow, const float2* pair) {
  auto* shared = moe::dynamic_shared<float>();
  float mine[4] = {};  // registers are not told
  const float2 two = *pair;
  mine[threadIdx.x] = two.x;
  shared[1] = mine[threadIdx.x];
  wide[1] = wide[0];
  *reinterpret_cast<char*>(narrow + 1) = 1;
}

TEST_F(ObserverTest, EachAccessOnceWithItsSize) {
  DeviceArray<uint4> wide(2);
  DeviceArray<float> narrow(2);
  DeviceArray<float2> pair(1);
  ASSERT_EQ(moe::launch(four_sizes, 1, 1, 16, nullptr, wide.get(), narrow.get(), pair.get()),
            cudaSuccess);
  const std::vector<std::string> expected = {"block",
                                             "end",
                                             "launch",
                                             "t0 r16 global 0",
                                             "t0 r8 global 0",
                                             "t0 w1 global 4",
                                             "t0 w16 global 16",
                                             "t0 w4 shared 4"};
  EXPECT_EQ(recorder_.sorted(), expected);
}

__global__ void meets(int* sum) {
  __shared__ int word;
  if (threadIdx.x == 1) word = 1;
  __syncthreads();
  atomicAdd(sum, word);
}

TEST_F(ObserverTest, BarriersAndAtomics) {
  DeviceArray<int> sum(1);
  ASSERT_EQ(moe::launch(meets, 1, 2, 0, nullptr, sum.get()), cudaSuccess);
  const std::vector<std::string> expected = {
      "launch",       "block",        "t0 arrives",
      "t1 w4 shared", "t1 arrives",   "complete",
      "t1 passes",    "t1 r4 shared", "t1 rw4 global 0 atomic",
      "t0 passes",    "t0 r4 shared", "t0 rw4 global 0 atomic",
      "end"};
  EXPECT_EQ(recorder_.heard, expected);
}

__global__ void copies(const uint4* from, float* to) {
  auto* shared = moe::dynamic_shared<uint4>();
  moe::cp_async16(shared, from);
  moe::cp_async16(shared + 1, from, false);
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
  to[0] = reinterpret_cast<float*>(shared)[5];
}

TEST_F(ObserverTest, CopiesAtTheIssue) {
  DeviceArray<uint4> from(1);
  DeviceArray<float> to(1);
  ASSERT_EQ(moe::launch(copies, 1, 1, 32, nullptr, static_cast<const uint4*>(from.get()), to.get()),
            cudaSuccess);
  const std::vector<std::string> expected = {"launch",
                                             "block",
                                             "t0 r16 global 0 cp.async",
                                             "t0 w16 shared 0 cp.async",
                                             "t0 w16 shared 16 cp.async",
                                             "t0 r4 shared 20",
                                             "t0 w4 global 0",
                                             "end"};
  EXPECT_EQ(recorder_.heard, expected);
}

}  // namespace
