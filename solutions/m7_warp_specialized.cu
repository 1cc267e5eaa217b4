// m7_warp_specialized: grouped GEMMs on wgmma, with warps that fetch and warps that multiply.
//
// A block of three warpgroups stays on its multiprocessor and takes every gridDim.x-th tile of 128
// x 256. The first warpgroup is the producer: it fills a ring of four stages (A 128 x 64, W 256 x
// 64) and owns few registers. The other two are consumers, 64 rows each: they wait for a stage,
// multiply, hand it back. Two mbarriers a stage carry all of that:
//   full[s]    the producer's arrivals and bytes     consumers wait
//   empty[s]   one arrival of each consumer warp     the producer waits
// Nobody waits for the whole block, so fetching runs ahead across tiles. Which tile a stage belongs
// to travels with the stage: only the producer knows the order of tiles.
//
// A finished tile is packed to bf16 and kept in registers; its 64-column slabs are stored by TMA
// during the first turns of the next tile, while the tensor cores are busy: the deferred store.
//
// The contract is drills/m7_warp_specialized.h; the note is content/m7_warp_specialized.md.
#include <drills/m7_warp_specialized.h>

#include <drills/launch.h>
#include <drills/wgmma.h>

namespace moe::DRILL_SIDE {
namespace {

constexpr int BLOCK_M = kHopperBlockM;
constexpr int BLOCK_N = 256;  // rows of W; with SwiGLU 128 of gate and 128 of up
constexpr int BLOCK_K = 64;   // 128 bytes: one row of a swizzled tile
constexpr int STAGES = 4;
constexpr int GROUP_M = 4;  // rows of tiles that are walked together, see m4
constexpr int kWarpgroup = 128;
constexpr int kThreads = 3 * kWarpgroup;
constexpr int kConsumerWarps = 8;
constexpr int kWRows = 128;   // rows of W in one bulk copy
constexpr int kSlab = 64;     // rows and columns in one bulk store
constexpr int kChunk = 8;     // bf16 values in one 16-byte cp.async
constexpr int kGathered = 8;  // rows of A whose chunks one producer thread copies

struct SharedTiles {
  __nv_bfloat16 a[STAGES][BLOCK_M][BLOCK_K];  // swizzled, as are all tiles here
  __nv_bfloat16 w[STAGES][BLOCK_N][BLOCK_K];
  __nv_bfloat16 slabs[2][2][kSlab][kSlab];  // two for each consumer warpgroup
  int2 tile[STAGES];  // whose data a stage holds: (m, n), or m = -1 after the last tile
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
};

struct Problem {
  const __nv_bfloat16* x;                 // [T, H]: rows of A to gather; GEMM1
  const float* topk_weights;              // [T*K]; GEMM2
  const int32_t* sorted_token_ids;        // [capacity]
  const int32_t* expert_ids;              // [capacity / BLOCK_M]
  const int32_t* num_tokens_post_padded;  // [1]
  int num_ids;                            // T*K, also the pad id
  int top_k;
  int num_experts;
  int columns;  // of the output, I or H
  int depth;    // the reduction, H or I
};

// The (m, n) of tile number pid, in m4's order.
__device__ int2 tile_of(int pid, int num_pid_m, int num_pid_n) {
  const int group = pid / (GROUP_M * num_pid_n);
  const int rows = min(GROUP_M, num_pid_m - group * GROUP_M);
  const int in_group = pid - group * GROUP_M * num_pid_n;
  return {group * GROUP_M + in_group % rows, in_group / rows};
}

// A place in the ring. `parity` is that of the phase to wait for; it flips when the ring starts
// over.
struct RingPlace {
  int stage = 0;
  uint32_t parity = 0;
  __device__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// silu(gate) * up for four pairs. The special function unit makes 16 results a clock, so the four
// reciprocals are made from one: 1/a = b*c*d * 1/(a*b*c*d). Gates below -20 count as -20, where
// SiLU is 4e-8: the product of four stays finite.
__device__ void silu_and_mul(const float (&gate)[4], const float (&up)[4], float (&h)[4]) {
  float g[4];
  float a[4];  // 1 + e^-gate
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    g[i] = gate[i] < -20.0f ? -20.0f : gate[i];  // NaN stays
    a[i] = 1.0f + exp2_approx(g[i] * -1.4426950408889634f);
  }
  const float ab = a[0] * a[1];
  const float cd = a[2] * a[3];
  const float all = reciprocal_approx(ab * cd);
  const float of_ab = all * cd;
  const float of_cd = all * ab;
  h[0] = g[0] * up[0] * (of_ab * a[1]);
  h[1] = g[1] * up[1] * (of_ab * a[0]);
  h[2] = g[2] * up[2] * (of_cd * a[3]);
  h[3] = g[3] * up[3] * (of_cd * a[2]);
}

__device__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// GATHER and SWIGLU make it GEMM1. a_map is not used when rows are gathered.
template <bool GEMM1>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_gemm_kernel(const __grid_constant__ CUtensorMap a_map,
                        const __grid_constant__ CUtensorMap w_map,
                        const __grid_constant__ CUtensorMap out_map,
                        Problem p) {
  constexpr int kColumns = GEMM1 ? BLOCK_N / 2 : BLOCK_N;  // of the output, in one tile
  constexpr int kSlabs = kColumns / kSlab;
  constexpr int kHeld = kSlabs * 16;  // packed pairs that a thread keeps of a tile

  auto& tiles = *dynamic_shared<SharedTiles>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warpgroup = thread / kWarpgroup;
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  const int num_pid_m = *p.num_tokens_post_padded / BLOCK_M;
  const int num_pid_n = (p.columns + kColumns - 1) / kColumns;
  const int num_tiles = num_pid_m * num_pid_n;
  const int step = static_cast<int>(gridDim.x);

  // full[s] expects one arrival with the bytes of TMA and, if A is gathered, one of each producer
  // thread for its copies; empty[s] one of each consumer warp.
  // BEGIN m7.barriers
  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(&tiles.full[s], GEMM1 ? 1 + kWarpgroup : 1);
      mbarrier_init(&tiles.empty[s], kConsumerWarps);
    }
    mbarrier_init_fence();
  }
  // END m7.barriers
  __syncthreads();

  if (warpgroup == 0) {
    // ---- Producer. Registers go to the consumers, who hold 128 accumulators a thread.
    setmaxnreg_dec<GEMM1 ? 72 : 40>();
    if (!GEMM1 && thread != 0) return;  // TMA needs one thread
    RingPlace place;
    place.parity = 1;  // the ring starts empty

    const int my_chunk = thread % kChunk;  // copies this chunk of rows my_row + 16 * i of A
    const int my_row = thread / kChunk;

    // Eight lanes copy the eight chunks of the same eight rows. Each looks one of the rows up, row
    // my_row + 16 * my_chunk, for the tile that this block works on as number pid.
    int flat_id = p.num_ids;
    const auto load_flat_id = [&](int pid) {
      if (!GEMM1 || pid >= num_tiles) return;
      const int first_row = tile_of(pid, num_pid_m, num_pid_n).x * BLOCK_M;
      flat_id = p.sorted_token_ids[first_row + my_row + my_chunk * 16];
    };

    load_flat_id(static_cast<int>(blockIdx.x));
    for (int pid = static_cast<int>(blockIdx.x); pid < num_tiles; pid += step) {
      const int2 tile = tile_of(pid, num_pid_m, num_pid_n);
      const int expert = p.expert_ids[tile.x];
      // Where the rows of A start: sources[i] is row my_row + 16 * i, nullptr for padding. GEMM1.
      const __nv_bfloat16* sources[kGathered] = {};
      // BEGIN m7.gather_rows
      if (GEMM1) {
        const int token = flat_id < p.num_ids ? flat_id / p.top_k : -1;
#pragma unroll
        for (int i = 0; i < kGathered; ++i) {
          const int of_row = __shfl_sync(0xffffffffu, token, i, kGathered);
          if (of_row >= 0) sources[i] = p.x + static_cast<int64_t>(of_row) * p.depth;
        }
      }
      // END m7.gather_rows
      if (expert < 0 || expert >= p.num_experts) {
        load_flat_id(pid + step);
        continue;
      }
      for (int turn = 0; turn < turns; ++turn) {
        const int s = place.stage;
        const int k = turn * BLOCK_K;
        // Wait until the stage is free. One thread then says which tile it is for, announces the
        // bytes that TMA will bring and starts its copies: 256 rows of W (with SwiGLU 128 of gate,
        // 128 of up), and in GEMM2 the 128 rows of A. A row of W behind the expert's last is
        // harmless: it is not stored.
        // BEGIN m7.produce
        mbarrier_wait(&tiles.empty[s], place.parity);
        if (thread == 0) {
          tiles.tile[s] = tile;
          constexpr int kBytes = sizeof(tiles.w[0]) + (GEMM1 ? 0 : sizeof(tiles.a[0]));
          mbarrier_arrive_expect_tx(&tiles.full[s], kBytes);
          const int row = tile.y * kColumns;
          const int second = GEMM1 ? p.columns + row : row + kWRows;
          tma_load(tiles.w[s][0], w_map, k, row, expert, &tiles.full[s]);
          tma_load(tiles.w[s][kWRows], w_map, k, second, expert, &tiles.full[s]);
          if (!GEMM1) tma_load(tiles.a[s][0], a_map, k, tile.x * BLOCK_M, &tiles.full[s]);
        }
        // END m7.produce
        // In GEMM1 every thread copies its chunk of eight rows. Row r of a tile is 128 bytes long
        // and swizzled: chunk c lies at c ^ (r % 8). Padding rows and chunks behind column D arrive
        // as zeros. The barrier counts the thread in when its copies have landed.
        // BEGIN m7.gather
        if (GEMM1) {
          const bool in_row = k + my_chunk * kChunk < p.depth;
#pragma unroll
          for (int i = 0; i < kGathered; ++i) {
            const int row = my_row + i * 16;
            const bool valid = sources[i] != nullptr && in_row;
            cp_async16(&tiles.a[s][row][(my_chunk ^ row % 8) * kChunk],
                       valid ? sources[i] + k + my_chunk * kChunk : p.x, valid);
          }
          cp_async_mbarrier_arrive_noinc(&tiles.full[s]);
        }
        // END m7.gather
        if (turn == min(2, turns - 1)) load_flat_id(pid + step);  // long before it is needed
        place.advance();
      }
    }
    // The stage that ends the loop of the consumers.
    // BEGIN m7.last
    mbarrier_wait(&tiles.empty[place.stage], place.parity);
    if (thread == 0) {
      tiles.tile[place.stage] = {-1, 0};
      mbarrier_arrive(&tiles.full[place.stage]);
    }
    if (GEMM1) mbarrier_arrive(&tiles.full[place.stage]);
    // END m7.last
    return;
  }

  // ---- Consumers.
  setmaxnreg_inc<GEMM1 ? 216 : 232>();
  const int consumer = warpgroup - 1;  // computes rows 64 * consumer .. + 63 of every tile
  const int warp = thread / 32 % 4;
  const int barrier = 1 + consumer;  // of the threads of this warpgroup
  const bool storer = thread % kWarpgroup == 0;
  RingPlace place;
  float accumulators[BLOCK_N / 2];
  uint32_t held[kHeld];  // a finished tile: pair 2j + h is columns 8j + 2t, + 1 of row g + 8h
  int2 held_tile = {};
  bool pending = false;

  // Stores columns 64 * slab .. + 63 of the held tile: registers to shared memory, then one TMA.
  // The buffer was last read by the store before the previous one.
  const auto store_slab = [&](int slab) {
    // BEGIN m7.store_slab
    __nv_bfloat16(&buffer)[kSlab][kSlab] = tiles.slabs[consumer][slab % 2];
    if (storer) bulk_wait_read<1>();
    named_barrier_sync(barrier, kWarpgroup);
    const int row = warp * 16 + lane % 16;
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
      const uint32_t* pairs = &held[(slab * 8 + j) * 2];
      const uint32_t quad[4] = {pairs[0], pairs[1], pairs[2], pairs[3]};
      stmatrix_x4(&buffer[row][((j + lane / 16) ^ row % 8) * 8], quad);
    }
    fence_proxy_async();
    named_barrier_sync(barrier, kWarpgroup);
    if (storer) {
      tma_store(out_map, buffer, held_tile.y * kColumns + slab * kSlab,
                held_tile.x * BLOCK_M + consumer * kSlab);
      bulk_commit();
    }
    // END m7.store_slab
  };

  // One turn: wait for the stage, four wgmma of depth 16, hand the stage back.
  const auto multiply = [&](int turn) {
    // BEGIN m7.consume
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    if (GEMM1) fence_proxy_async();  // A came by cp.async, wgmma reads by the async proxy
    const uint64_t a = wgmma_descriptor(tiles.a[place.stage][consumer * kSlab]);
    const uint64_t w = wgmma_descriptor(tiles.w[place.stage][0]);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < BLOCK_K / 16; ++k) {
      wgmma_bf16(accumulators, a + 2 * k, w + 2 * k, turn > 0 || k > 0);
    }
    wgmma_commit();
    // END m7.consume
  };
  const auto release = [&] {
    // BEGIN m7.release
    wgmma_wait<0>();
    if (lane == 0) mbarrier_arrive(&tiles.empty[place.stage]);
    place.advance();
    // END m7.release
  };

  for (;;) {
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    const int2 tile = tiles.tile[place.stage];
    if (tile.x < 0) break;

    // What else happens in one of the first turns, while wgmma runs: a slab of the tile before is
    // stored, and rows g and g + 8 find their weights (one load after the other: a turn each).
    int flat_ids[2] = {};
    float weights[2] = {};
    const auto meanwhile = [&](int turn) {
      if (!GEMM1 && turn == 0) {
        const int row = tile.x * BLOCK_M + consumer * kSlab + warp * 16 + lane / 4;
        flat_ids[0] = p.sorted_token_ids[row];
        flat_ids[1] = p.sorted_token_ids[row + 8];
      }
      if (!GEMM1 && turn == 1) {
        if (flat_ids[0] < p.num_ids) weights[0] = p.topk_weights[flat_ids[0]];
        if (flat_ids[1] < p.num_ids) weights[1] = p.topk_weights[flat_ids[1]];
      }
      if (pending) store_slab(turn);
    };

    // BEGIN m7.mainloop
#pragma unroll
    for (int turn = 0; turn < kSlabs; ++turn) {
      if (turn < turns) {
        multiply(turn);
        meanwhile(turn);
        release();
      } else {
        meanwhile(turn);
      }
    }
    for (int turn = kSlabs; turn < turns; ++turn) {
      multiply(turn);
      release();
    }
    // END m7.mainloop

    // Accumulator 4j + 2h + e is row g + 8h, column 8j + 2t + e. With SwiGLU, column c of the tile
    // is gate and column 128 + c up.
    // BEGIN m7.pack
#pragma unroll
    for (int j = 0; j < kHeld / 2; ++j) {
      const float* c = &accumulators[4 * j];
      if (GEMM1) {
        const float* u = &accumulators[4 * j + BLOCK_N / 4];
        const float gate[4] = {c[0], c[1], c[2], c[3]};
        const float up[4] = {u[0], u[1], u[2], u[3]};
        float h[4];
        silu_and_mul(gate, up, h);
        held[2 * j] = pack(h[0], h[1]);
        held[2 * j + 1] = pack(h[2], h[3]);
      } else {
        held[2 * j] = pack(c[0] * weights[0], c[1] * weights[0]);
        held[2 * j + 1] = pack(c[2] * weights[1], c[3] * weights[1]);
      }
    }
    // END m7.pack
    held_tile = tile;
    pending = true;
  }
  if (pending) {
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) store_slab(slab);
  }
  if (storer) bulk_wait<0>();  // shared memory must live until it has been read
}

// One block for each multiprocessor.
template <bool GEMM1>
cudaError_t launch_gemm(const CUtensorMap& a_map,
                        const CUtensorMap& w_map,
                        const CUtensorMap& out_map,
                        const Problem& p,
                        cudaStream_t stream) {
  int device = 0;
  int multiprocessors = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  return launch(grouped_gemm_kernel<GEMM1>, dim3(static_cast<unsigned>(multiprocessors)),
                dim3(kThreads), sizeof(SharedTiles), stream, a_map, w_map, out_map, p);
}

}  // namespace

cudaError_t gemm1_swiglu(__nv_bfloat16* h,
                         const __nv_bfloat16* x,
                         const __nv_bfloat16* w13,
                         const int32_t* sorted_token_ids,
                         const int32_t* expert_ids,
                         const int32_t* num_tokens_post_padded,
                         int num_tokens,
                         int top_k,
                         int num_experts,
                         int hidden_size,
                         int intermediate_size,
                         cudaStream_t stream) {
  if (refuse_gemm1_swiglu(h, x, w13, sorted_token_ids, expert_ids, num_tokens_post_padded,
                          num_tokens, top_k, num_experts, hidden_size, intermediate_size,
                          stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  const uint64_t capacity = align_capacity(num_tokens, top_k, num_experts, BLOCK_M);
  const auto depth = static_cast<uint64_t>(hidden_size);
  const auto columns = static_cast<uint64_t>(intermediate_size);
  CUtensorMap w_map;
  CUtensorMap h_map;
  cudaError_t status = make_tensor_map(
      &w_map, w13, {depth, 2 * columns, static_cast<uint64_t>(num_experts)}, kWRows);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&h_map, h, {columns, capacity}, kSlab);
  if (status != cudaSuccess) return status;
  const Problem p = {
      x,     nullptr,     sorted_token_ids,  expert_ids, num_tokens_post_padded, num_tokens * top_k,
      top_k, num_experts, intermediate_size, hidden_size};
  return launch_gemm<true>(w_map, w_map, h_map, p, stream);
}

cudaError_t gemm2_sorted(__nv_bfloat16* y,
                         const __nv_bfloat16* h,
                         const __nv_bfloat16* w2,
                         const float* topk_weights,
                         const int32_t* sorted_token_ids,
                         const int32_t* expert_ids,
                         const int32_t* num_tokens_post_padded,
                         int num_tokens,
                         int top_k,
                         int num_experts,
                         int hidden_size,
                         int intermediate_size,
                         cudaStream_t stream) {
  if (refuse_gemm2_sorted(y, h, w2, topk_weights, sorted_token_ids, expert_ids,
                          num_tokens_post_padded, num_tokens, top_k, num_experts, hidden_size,
                          intermediate_size, stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  const uint64_t capacity = align_capacity(num_tokens, top_k, num_experts, BLOCK_M);
  const auto depth = static_cast<uint64_t>(intermediate_size);
  const auto columns = static_cast<uint64_t>(hidden_size);
  CUtensorMap h_map;
  CUtensorMap w_map;
  CUtensorMap y_map;
  cudaError_t status = make_tensor_map(&h_map, h, {depth, capacity}, BLOCK_M);
  if (status != cudaSuccess) return status;
  status =
      make_tensor_map(&w_map, w2, {depth, columns, static_cast<uint64_t>(num_experts)}, kWRows);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&y_map, y, {columns, capacity}, kSlab);
  if (status != cudaSuccess) return status;
  const Problem p = {nullptr,
                     topk_weights,
                     sorted_token_ids,
                     expert_ids,
                     num_tokens_post_padded,
                     num_tokens * top_k,
                     top_k,
                     num_experts,
                     hidden_size,
                     intermediate_size};
  return launch_gemm<false>(h_map, w_map, y_map, p, stream);
}

}  // namespace moe::DRILL_SIDE
