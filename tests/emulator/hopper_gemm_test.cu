// A warp-specialised GEMM with gathered rows, a ring of stages and bulk stores, persistent blocks:
// right in every order, and each of its typical mistakes is noticed.
#include "emulator_test.h"

#include <drills/wgmma.h>

#include <cstring>

namespace {

using HopperGemmTest = EmulatorTest;

enum Mistake : int {
  kNone,
  kWrongPhase,        // the consumers' parity never changes
  kNoExpectTx,        // the producer arrives without bytes
  kFewBytes,          // and with too few
  kLinear,            // the gathered chunks aren't swizzled
  kEarlyRelease,      // a stage is released before wgmma_wait
  kNoReaderFence,     // fence_proxy_async after the gather
  kNoWriterFence,     // fence_proxy_async before the bulk store
  kNoReadWait,        // the slab is written again before bulk_wait_read
  kReleaseCount,      // the empty barriers count one arrival too many
  kDescriptorStride,  // 512 bytes from 8 rows to the next
};

constexpr int kBm = 128;
constexpr int kBn = 64;
constexpr int kBk = 64;
constexpr int kStages = 2;
constexpr int kConsumers = 2;  // warpgroups; one more produces
constexpr int kABytes = kBm * 128;
constexpr int kStageBytes = kABytes + kBn * 128;
constexpr int kSlabs = kStages * kStageBytes;  // where the output is staged
constexpr int kBarriers = kSlabs + kBm * 128;
constexpr int kSharedBytes = kBarriers + 2 * kStages * 8;

struct Shape {
  int m;
  int k;
  int mistake;
};

__device__ void produce(unsigned char* shared,
                        const CUtensorMap& b_map,
                        const __nv_bfloat16* a,
                        const int* rows,
                        Shape shape) {
  auto* full = reinterpret_cast<std::uint64_t*>(shared + kBarriers);
  auto* empty = full + kStages;
  const int thread = static_cast<int>(threadIdx.x) - kConsumers * 128;
  int step = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile * kBm < shape.m;
       tile += static_cast<int>(gridDim.x)) {
    for (int k = 0; k < shape.k; k += kBk, ++step) {
      unsigned char* stage = shared + step % kStages * kStageBytes;
      std::uint64_t* ready = &full[step % kStages];
      moe::mbarrier_wait(&empty[step % kStages], (step / kStages % 2) ^ 1);
      if (thread == 0) {
        if (shape.mistake == kNoExpectTx) {
          moe::mbarrier_arrive(ready);
        } else {
          moe::mbarrier_arrive_expect_tx(ready, shape.mistake == kFewBytes ? 1024 : kBn * 128);
        }
        moe::tma_load(stage + kABytes, b_map, k, 0, ready);
      }
      for (int i = thread; i < kBm * 8; i += 128) {
        const int row = i / 8;
        const int chunk = i % 8;
        const int place = row * 128 + (shape.mistake == kLinear ? chunk : chunk ^ (row % 8)) * 16;
        const int from = rows[tile * kBm + row];
        moe::cp_async16(stage + place, a + (from < 0 ? 0 : from) * shape.k + k + chunk * 8,
                        from >= 0);
      }
      moe::cp_async_mbarrier_arrive_noinc(ready);
    }
  }
}

__device__ void store_tile(unsigned char* slab,
                           const CUtensorMap& out_map,
                           const float (&d)[kBn / 2],
                           int row,
                           int mistake) {
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const int thread = static_cast<int>(threadIdx.x) % 128;
  if (thread == 0 && mistake != kNoReadWait) moe::bulk_wait_read<0>();
  moe::named_barrier_sync(1 + warpgroup, 128);
  const int lane = thread % 32;
  for (int c = 0; c < kBn / 16; ++c) {  // 16 rows by 16 columns a warp
    std::uint32_t r[4];
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(d[8 * c + 2 * i], d[8 * c + 2 * i + 1]);
      memcpy(&r[i], &pair, sizeof pair);
    }
    const int in_slab = thread / 32 * 16 + lane % 16;
    const int chunk = 2 * c + lane / 16;
    moe::stmatrix_x4(slab + in_slab * 128 + (chunk ^ (in_slab % 8)) * 16, r);
  }
  if (mistake != kNoWriterFence) moe::fence_proxy_async();
  moe::named_barrier_sync(1 + warpgroup, 128);
  if (thread == 0) {
    moe::tma_store(out_map, slab, 0, row);
    moe::bulk_commit();
  }
}

__device__ void consume(unsigned char* shared, const CUtensorMap& out_map, Shape shape) {
  auto* full = reinterpret_cast<std::uint64_t*>(shared + kBarriers);
  auto* empty = full + kStages;
  const int warpgroup = static_cast<int>(threadIdx.x) / 128;
  const bool speaks = threadIdx.x % 32 == 0;
  const int stride = shape.mistake == kDescriptorStride ? 512 : 1024;
  int step = 0;
  for (int tile = static_cast<int>(blockIdx.x); tile * kBm < shape.m;
       tile += static_cast<int>(gridDim.x)) {
    float d[kBn / 2];
    for (int k = 0; k < shape.k; k += kBk, ++step) {
      const unsigned char* stage = shared + step % kStages * kStageBytes;
      const int phase = shape.mistake == kWrongPhase ? 0 : step / kStages % 2;
      moe::mbarrier_wait(&full[step % kStages], static_cast<std::uint32_t>(phase));
      if (shape.mistake != kNoReaderFence) moe::fence_proxy_async();
      const auto a = moe::wgmma_descriptor(stage + warpgroup * 64 * 128, 16, stride);
      const auto b = moe::wgmma_descriptor(stage + kABytes, 16, stride);
      moe::wgmma_fence();
      for (int i = 0; i < kBk / 16; ++i) moe::wgmma_bf16(d, a + 2 * i, b + 2 * i, k + i != 0);
      moe::wgmma_commit();
      if (shape.mistake == kEarlyRelease) {
        if (speaks) moe::mbarrier_arrive(&empty[step % kStages]);
        __nanosleep(10);
      }
      moe::wgmma_wait<0>();
      if (speaks && shape.mistake != kEarlyRelease) moe::mbarrier_arrive(&empty[step % kStages]);
    }
    store_tile(shared + kSlabs + warpgroup * 64 * 128, out_map, d, tile * kBm + warpgroup * 64,
               shape.mistake);
  }
  if (threadIdx.x % 128 == 0) moe::bulk_wait<0>();
}

__global__ void __launch_bounds__((kConsumers + 1) * 128, 1)
    gemm(const __grid_constant__ CUtensorMap b_map,
         const __grid_constant__ CUtensorMap out_map,
         const __nv_bfloat16* a,
         const int* rows,
         Shape shape) {
  unsigned char* shared = moe::dynamic_shared();
  auto* full = reinterpret_cast<std::uint64_t*>(shared + kBarriers);
  if (threadIdx.x == 0) {
    for (int i = 0; i < kStages; ++i) {
      moe::mbarrier_init(&full[i], 1 + 128);
      moe::mbarrier_init(&full[kStages + i],
                         kConsumers * 4 + (shape.mistake == kReleaseCount ? 1 : 0));
    }
    moe::mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x >= kConsumers * 128) {
    moe::setmaxnreg_dec<56>();
    produce(shared, b_map, a, rows, shape);
  } else {
    moe::setmaxnreg_inc<224>();
    consume(shared, out_map, shape);
  }
}

// Two blocks of two tiles each, three steps of k. Returns how many elements are wrong, -1: a fault,
// whose text is kept.
int wrong_elements(int mistake, std::string* report = nullptr) {
  constexpr int kM = 4 * kBm;
  constexpr int kK = 3 * kBk;
  constexpr int kTokens = 50;
  const auto small = [](int i) { return __float2bfloat16(static_cast<float>(i * 37 % 11 - 5)); };
  std::vector<__nv_bfloat16> a(kTokens * kK);
  std::vector<__nv_bfloat16> b(kBn * kK);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = small(static_cast<int>(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = small(static_cast<int>(i) * 3 + 1);
  std::vector<int> rows(kM);
  for (int i = 0; i < kM; ++i)
    rows[static_cast<std::size_t>(i)] = i % 7 == 6 ? -1 : i * 13 % kTokens;
  DeviceArray<__nv_bfloat16> a_array(a);
  DeviceArray<__nv_bfloat16> b_array(b);
  DeviceArray<int> row_array(rows);
  DeviceArray<__nv_bfloat16> out(std::size_t{kM} * kBn);
  CUtensorMap b_map;
  CUtensorMap out_map;
  EXPECT_EQ(moe::make_tensor_map(&b_map, b_array.get(), {kK, kBn}, kBn), cudaSuccess);
  EXPECT_EQ(moe::make_tensor_map(&out_map, out.get(), {kBn, kM}, 64), cudaSuccess);
  const cudaError_t error =
      moe::launch(gemm, 2, (kConsumers + 1) * 128, kSharedBytes, nullptr, b_map, out_map,
                  static_cast<const __nv_bfloat16*>(a_array.get()),
                  static_cast<const int*>(row_array.get()), Shape{kM, kK, mistake});
  if (report != nullptr) *report = emulator::fault();
  if (error != cudaSuccess) return -1;
  const auto got = out.host();
  int wrong = 0;
  for (int row = 0; row < kM; ++row) {
    const int from = rows[static_cast<std::size_t>(row)];
    for (int column = 0; column < kBn; ++column) {
      float sum = 0;
      for (int k = 0; k < kK && from >= 0; ++k) {
        sum += __bfloat162float(a[static_cast<std::size_t>(from * kK + k)]) *
               __bfloat162float(b[static_cast<std::size_t>(column * kK + k)]);
      }
      const auto value = got[static_cast<std::size_t>(row * kBn + column)];
      wrong += __bfloat162float(value) == __bfloat162float(__float2bfloat16(sum)) ? 0 : 1;
    }
  }
  return wrong;
}

constexpr emulator::Order kOrders[] = {emulator::Order::kForward, emulator::Order::kReverse,
                                       emulator::Order::kShuffle};

TEST_F(HopperGemmTest, RightInEveryOrder) {
  for (const auto order : kOrders) {
    emulator::options().order = order;
    std::string report;
    EXPECT_EQ(wrong_elements(kNone, &report), 0) << report;
  }
}

// Wrong numbers will do for these; the order of the threads decides how they show.
TEST_F(HopperGemmTest, MistakesGiveAFaultOrWrongNumbers) {
  for (const auto order : kOrders) {
    emulator::options().order = order;
    for (const int mistake : {kWrongPhase, kLinear, kEarlyRelease, kDescriptorStride}) {
      EXPECT_NE(wrong_elements(mistake), 0) << mistake;
    }
  }
}

TEST_F(HopperGemmTest, MistakesAreNamed) {
  const std::pair<int, const char*> expected[] = {
      {kNoExpectTx, "8192 bytes more in a phase than expect_tx announced"},
      {kFewBytes, "7168 bytes more in a phase than expect_tx announced"},
      {kNoReaderFence, "missing fence: wgmma reads"},
      {kNoWriterFence, "missing fence: tma_store reads"},
      {kNoReadWait, "missing wait: shared memory was written while a bulk store"},
      {kReleaseCount, "1 of 9 arrivals missing"},
  };
  for (const auto order : kOrders) {
    emulator::options().order = order;
    for (const auto& [mistake, sentence] : expected) {
      std::string report;
      EXPECT_EQ(wrong_elements(mistake, &report), -1) << mistake;
      EXPECT_TRUE(holds(report, {sentence}));
    }
  }
}

}  // namespace
