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
// While blanks are left run it with --cpu: on a GPU half a ring waits for ever.
//
// The contract is drills/m7_warp_specialized.h; the note is content/m7_warp_specialized.md.
#include <drills/m7_warp_specialized.h>

#include <drills/launch.h>
#include <drills/persistent.h>
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

// h = silu(gate) * up for four pairs, silu(g) = g / (1 + e^-g). exp2_approx and reciprocal_approx
// run on the special function unit, which makes 16 results a clock: two for each value would take
// 2048 clocks a tile. So make the four reciprocals from one, 1/a = b*c*d * 1/(a*b*c*d). For that
// product to stay finite let gates below -20 count as -20, where SiLU is 4e-8.
__device__ void silu_and_mul(const float (&gate)[4], const float (&up)[4], float (&h)[4]) {
  // BEGIN m7.silu
  float g[4];
  float a[4];  // 1 + e^-gate
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    // NaN stays. NOLINTNEXTLINE(clang-analyzer-core.*): a tile has at least one turn
    g[i] = gate[i] < -20.0f ? -20.0f : gate[i];
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
  // STUB: for (float& value : h) value = gate[0] * up[0];
  // END m7.silu
}

__device__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

template <bool GEMM1>
__global__ void __launch_bounds__(kThreads, 1)
    grouped_gemm_kernel(const __grid_constant__ CUtensorMap a_map,  // GEMM2
                        const __grid_constant__ CUtensorMap w_map,
                        const __grid_constant__ CUtensorMap out_map,
                        SortedGemm gemm) {
  constexpr int kColumns = GEMM1 ? BLOCK_N / 2 : BLOCK_N;  // of the output, in one tile
  constexpr int kSlabs = kColumns / kSlab;
  constexpr int kHeld = kSlabs * 16;  // packed pairs that a thread keeps of a tile

  auto& tiles = *dynamic_shared<SharedTiles>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warpgroup = thread / kWarpgroup;
  const int num_ids = gemm.num_tokens * gemm.top_k;                       // also the pad id
  const int columns = GEMM1 ? gemm.intermediate_size : gemm.hidden_size;  // of the output
  const int depth = GEMM1 ? gemm.hidden_size : gemm.intermediate_size;    // the reduction
  const int turns = (depth + BLOCK_K - 1) / BLOCK_K;
  const int num_pid_m = *gemm.num_tokens_post_padded / BLOCK_M;
  const int num_pid_n = (columns + kColumns - 1) / kColumns;
  const int num_tiles = num_pid_m * num_pid_n;
  const int step = static_cast<int>(gridDim.x);

  // One thread initialises the barriers of all stages. full[s] expects one arrival with the bytes
  // of TMA and, in GEMM1, one of each producer thread for its copies; empty[s] one of each consumer
  // warp. TMA sees them after mbarrier_init_fence().
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
    RingPlace<STAGES> place;
    place.parity = 1;  // the ring starts empty

    const int my_chunk = thread % kChunk;  // copies this chunk of rows my_row + 16 * i of A
    const int my_row = thread / kChunk;

    // Eight lanes copy the eight chunks of the same eight rows. Each looks one of the rows up, row
    // my_row + 16 * my_chunk, for the tile that this block works on as number pid.
    int flat_id = num_ids;
    const auto load_flat_id = [&](int pid) {
      if (!GEMM1 || pid >= num_tiles) return;
      const int first_row = ordered_tile<GROUP_M>(pid, num_pid_m, num_pid_n).x * BLOCK_M;
      flat_id = gemm.sorted_token_ids[first_row + my_row + my_chunk * 16];
    };

    load_flat_id(static_cast<int>(blockIdx.x));
    for (int pid = static_cast<int>(blockIdx.x); pid < num_tiles; pid += step) {
      const int2 tile = ordered_tile<GROUP_M>(pid, num_pid_m, num_pid_n);
      const int expert = gemm.expert_ids[tile.x];
      // GEMM1: sources[i] is where row my_row + 16 * i of A starts, its token's row of x; nullptr
      // for padding. flat_id, of row my_row + 16 * my_chunk, is there by now: the eight lanes tell
      // each other (__shfl_sync of width kGathered).
      const __nv_bfloat16* sources[kGathered] = {};
      // BEGIN m7.gather_rows
      if (GEMM1) {
        const int token = flat_id < num_ids ? flat_id / gemm.top_k : -1;
#pragma unroll
        for (int i = 0; i < kGathered; ++i) {
          const int of_row = __shfl_sync(0xffffffffu, token, i, kGathered);
          if (of_row >= 0) sources[i] = gemm.a + static_cast<int64_t>(of_row) * depth;
        }
      }
      // END m7.gather_rows
      if (expert < 0 || expert >= gemm.num_experts) {
        load_flat_id(pid + step);
        continue;
      }
      for (int turn = 0; turn < turns; ++turn) {
        const int s = place.stage;
        const int k = turn * BLOCK_K;
        // Wait until the stage is free. Thread 0 then notes its tile in tiles.tile[s], announces
        // the bytes that TMA will bring, whole boxes, and starts its copies: 256 rows of W in boxes
        // of kWRows (GEMM1: 128 of gate, the same 128 of up, which begins at row I) and in GEMM2
        // the 128 rows of A. A row of W behind the last is harmless: its column is not stored.
        // BEGIN m7.produce
        mbarrier_wait(&tiles.empty[s], place.parity);
        if (thread == 0) {
          tiles.tile[s] = tile;
          constexpr int kBytes = sizeof(tiles.w[0]) + (GEMM1 ? 0 : sizeof(tiles.a[0]));
          mbarrier_arrive_expect_tx(&tiles.full[s], kBytes);
          const int row = tile.y * kColumns;
          const int second = GEMM1 ? columns + row : row + kWRows;
          tma_load(tiles.w[s][0], w_map, k, row, expert, &tiles.full[s]);
          tma_load(tiles.w[s][kWRows], w_map, k, second, expert, &tiles.full[s]);
          if (!GEMM1) tma_load(tiles.a[s][0], a_map, k, tile.x * BLOCK_M, &tiles.full[s]);
        }
        // END m7.produce
        // GEMM1: copy columns k + 8 * my_chunk .. + 7 of the eight rows. Row r of a tile is 128
        // bytes long and swizzled: chunk c lies at c ^ (r % 8). Padding rows and chunks at or
        // behind column D arrive as zeros. full[s] counts this thread in when all have landed.
        // BEGIN m7.gather
        if (GEMM1) {
          const bool in_row = k + my_chunk * kChunk < depth;
#pragma unroll
          for (int i = 0; i < kGathered; ++i) {
            const int row = my_row + i * 16;
            const bool valid = sources[i] != nullptr && in_row;
            cp_async16(&tiles.a[s][row][(my_chunk ^ row % 8) * kChunk],
                       valid ? sources[i] + k + my_chunk * kChunk : gemm.a, valid);
          }
          cp_async_mbarrier_arrive_noinc(&tiles.full[s]);
        }
        // END m7.gather
        if (turn == min(2, turns - 1)) load_flat_id(pid + step);  // long before it is needed
        place.advance();
      }
    }
    // One more stage, of tile (-1, 0), ends the loop of the consumers. It brings no bytes, but
    // full[] wants all its arrivals.
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
  RingPlace<STAGES> place;
  float accumulators[BLOCK_N / 2];
  uint32_t held[kHeld];  // a finished tile: pair 2j + h is columns 8j + 2t, + 1 of row g + 8h
  int2 held_tile = {};
  bool pending = false;

  // Stores columns 64 * slab .. + 63 of the held tile through one of two buffers. The storer waits
  // until the store before the previous one has read the buffer; everyone waits for the storer
  // (`barrier`), writes its part, swizzled, by stmatrix_x4 (four matrices: rows lane % 16 of the
  // warp's 16, chunks j and j + 1), makes it seen by TMA, waits again; the storer stores the box.
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

  // The first half of a turn: wait for the stage, start four wgmma of depth 16 on this consumer's
  // rows of A and on W, as one group. A tile's first one overwrites. GEMM1's A came by cp.async,
  // and wgmma reads by the async proxy.
  const auto multiply = [&](int turn) {
    // BEGIN m7.consume
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    if (GEMM1) fence_proxy_async();
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
  // The second half: when the products are there each warp hands the stage back. On to the next.
  const auto release = [&] {
    // BEGIN m7.release
    wgmma_wait<0>();
    if (lane == 0) mbarrier_arrive(&tiles.empty[place.stage]);
    place.advance();
    // END m7.release
  };

  for (;;) {
    // Which tile comes next? Its first stage says so in tiles.tile[] once it is full.
    // BEGIN m7.next_tile
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    const int2 tile = tiles.tile[place.stage];
    // STUB: const int2 tile = {-1, 0};
    // END m7.next_tile
    if (tile.x < 0) break;

    // What else happens in one of the first turns, while wgmma runs: a slab of the tile before is
    // stored, and rows g and g + 8 find their weights (one load after the other: a turn each).
    int flat_ids[2] = {};
    float weights[2] = {};
    const auto meanwhile = [&](int turn) {
      if (!GEMM1 && turn == 0) {
        const int row = tile.x * BLOCK_M + consumer * kSlab + warp * 16 + lane / 4;
        flat_ids[0] = gemm.sorted_token_ids[row];
        flat_ids[1] = gemm.sorted_token_ids[row + 8];
      }
      if (!GEMM1 && turn == 1) {
        if (flat_ids[0] < num_ids) weights[0] = gemm.topk_weights[flat_ids[0]];
        if (flat_ids[1] < num_ids) weights[1] = gemm.topk_weights[flat_ids[1]];
      }
      if (pending) store_slab(turn);
    };

    // All turns: multiply, meanwhile, release. meanwhile(turn) is due for turn 0 .. kSlabs - 1,
    // written out (held[] is in registers), even where the reduction has fewer turns.
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

    // Fill held[]. Accumulator 4j + 2h + e is row g + 8h, column 8j + 2t + e of the product; that
    // row's weight is weights[h]. In GEMM1 column c is gate and column 128 + c up.
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

template <bool GEMM1>
cudaError_t launch_gemm(const SortedGemm& gemm, cudaStream_t stream) {
  if (gemm.num_tokens == 0) return cudaSuccess;
  const uint64_t rows = align_capacity(gemm.num_tokens, gemm.top_k, gemm.num_experts, BLOCK_M);
  const auto hidden = static_cast<uint64_t>(gemm.hidden_size);
  const auto inter = static_cast<uint64_t>(gemm.intermediate_size);
  const auto experts = static_cast<uint64_t>(gemm.num_experts);
  int blocks = 0;  // one for each multiprocessor
  CUtensorMap a_map = {};
  CUtensorMap w_map = {};
  CUtensorMap out_map = {};
  cudaError_t status = count_multiprocessors(&blocks);
  if (status != cudaSuccess) return status;
  if (!GEMM1) status = make_tensor_map(&a_map, gemm.a, {inter, rows}, BLOCK_M);
  if (status != cudaSuccess) return status;
  const TensorShape w_shape = {GEMM1 ? hidden : inter, GEMM1 ? 2 * inter : hidden, experts};
  status = make_tensor_map(&w_map, gemm.w, w_shape, kWRows);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&out_map, gemm.out, {GEMM1 ? inter : hidden, rows}, kSlab);
  if (status != cudaSuccess) return status;
  return launch(grouped_gemm_kernel<GEMM1>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                sizeof(SharedTiles), stream, a_map, w_map, out_map, gemm);
}

}  // namespace

cudaError_t gemm1_swiglu(const SortedGemm& gemm, cudaStream_t stream) {
  if (refuse_gemm1_swiglu(gemm, stream) != nullptr) return cudaErrorInvalidValue;
  return launch_gemm<true>(gemm, stream);
}

cudaError_t gemm2_sorted(const SortedGemm& gemm, cudaStream_t stream) {
  if (refuse_gemm2_sorted(gemm, stream) != nullptr) return cudaErrorInvalidValue;
  return launch_gemm<false>(gemm, stream);
}

}  // namespace moe::DRILL_SIDE
