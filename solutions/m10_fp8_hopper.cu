// m10_fp8_hopper: the layer on 8-bit codes, on wgmma, with sums of two levels.
//
// A block of three warpgroups stays on its multiprocessor, as in m7: the first fetches into a ring
// of four stages, the others multiply, 64 rows of a tile each. A turn is one scale block: 128 of
// the reduction, a row of 128 bytes. A stage holds A (128 x 128 codes), W in two halves (128 x 128
// each, one scale for a half), the scales of A's rows, and a note with the tile and W's scales. The
// halves are gate and up in GEMM1, neighbouring columns of y in GEMM2.
//
// Registers are what is scarce: 128 sums in fp32 and as many partial sums would be all there are.
// So the two halves take turns with 64 partial sums. While one warpgroup promotes, the other's
// wgmma runs.
//
// A finished tile is kept packed and stored during the next tile's first turn, where the sums of
// the second half don't exist yet.
//
// While blanks are left run it with --cpu: on a GPU half a ring waits for ever.
//
// The contract is drills/m10_fp8_hopper.h; the note is content/m10_fp8_hopper.md.
#include <drills/m10_fp8_hopper.h>

#include <drills/launch.h>
#include <drills/m10_fp8_hopper.tiles.h>

#include <type_traits>

namespace moe::DRILL_SIDE::m10 {
namespace {

// ---- Between align and the GEMMs: one block of threads for each block of rows.

__global__ void __launch_bounds__(BLOCK_M)
    sort_kernel(Arrays a, int num_ids, int top_k, int k_blocks) {
  griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  const int row_in_block = static_cast<int>(threadIdx.x);
  const int64_t row = static_cast<int64_t>(blockIdx.x) * BLOCK_M + row_in_block;
  if (static_cast<int>(blockIdx.x) * BLOCK_M >= *a.num_tokens_post_padded) return;
  const int flat_id = a.sorted_token_ids[row];
  const bool is_real = flat_id < num_ids;
  // Where combine finds the slot, which token the producer fetches (-1: none), and how many rows of
  // the block are used, in whole units (__syncthreads_count: the real rows come first).
  // BEGIN m10.sort
  if (is_real) a.sorted_row[flat_id] = static_cast<int>(row);
  a.sorted_token[row] = is_real ? flat_id / top_k : -1;
  const int real_rows = __syncthreads_count(is_real);
  if (row_in_block == 0) a.used_rows[blockIdx.x] = (real_rows + kUnit - 1) / kUnit * kUnit;
  // END m10.sort
  // The workspace is dirty, and in a replay it holds what the call before left.
  if (blockIdx.x == 0 && row_in_block < 2) a.next_tile[row_in_block] = 0;
  if (row_in_block == 0) a.ready[blockIdx.x] = 0;
  // The scales of x in sorted order, a row for each scale block: the 128 scales that a turn of
  // GEMM1 needs then lie side by side. x_scales is [T, k_blocks], sorted_scales [k_blocks, rows].
  // BEGIN m10.sort_scales
  const int64_t token = is_real ? flat_id / top_k : 0;
#pragma unroll 8
  for (int block = 0; block < k_blocks; ++block) {
    const float scale = is_real ? __ldg(&a.x_scales[token * k_blocks + block]) : 0.0f;
    a.sorted_scales[block * static_cast<int64_t>(a.rows) + row] = scale;
  }
  // END m10.sort_scales
}

// ---- The GEMMs.

template <Output OUTPUT>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ CUtensorMap w_map,
                const __grid_constant__ CUtensorMap a_slab_map,  // GEMM2: boxes of kSlab rows
                const __grid_constant__ CUtensorMap a_map,       // and of kUnit
                const __grid_constant__ CUtensorMap out_map,     // codes of h, or y in bf16
                Problem p) {
  constexpr bool GEMM1 = OUTPUT == Output::kCodes;
  constexpr int kColumns = GEMM1 ? kHalf : BLOCK_N;  // of the output, in one tile
  constexpr int kHeld = GEMM1 ? 16 : OUTPUT == Output::kBf16 ? 64 : 1;
  constexpr int kProducers = GEMM1 ? kWarpgroup : kWarpSize;

  auto& tiles = *dynamic_shared<SharedTiles>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = static_cast<int>(threadIdx.x % kWarpSize);
  const int warpgroup = thread / kWarpgroup;
  const int turns = p.depth / BLOCK_K;
  const int w_blocks = GEMM1 ? 2 * p.columns / kHalf : p.columns / kHalf;  // rows of w_scales
  const int num_pid_n = (p.columns + kColumns - 1) / kColumns;

  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(&tiles.full[s], 1 + kProducers);
      mbarrier_init(&tiles.empty[s], kConsumerWarps);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  // GEMM1 waits for the end of sort. GEMM2 waits for the reports of GEMM1, whose blocks have
  // waited: so it starts where GEMM1 leaves room.
  if (GEMM1) griddepcontrol_wait();
  griddepcontrol_launch_dependents();
  const int num_pid_m = *p.num_tokens_post_padded / BLOCK_M;
  const int num_tiles = num_pid_m * num_pid_n;
  const int step = static_cast<int>(gridDim.x);

  if (warpgroup == 0) {
    // ---- Producer.
    setmaxnreg_dec<GEMM1 ? 56 : 40>();
    if (thread >= kProducers) return;
    RingPlace<STAGES> place;
    place.parity = 1;                            // the ring starts empty
    const int my_chunk = thread % kChunksOfRow;  // copies this chunk of rows my_row + 16 * i of A
    const int my_row = thread / kChunksOfRow;
    // Eight lanes copy the eight chunks of the same eight rows. Each looks one of their tokens up.
    int next_token = -1;
    const auto look_up = [&](int m) {
      if (GEMM1) next_token = p.sorted_token[m * BLOCK_M + my_row + 16 * my_chunk];
    };
    // The first row of W of half `side`: GEMM1's second half is `up`, I rows further on.
    const auto w_row = [&](int n, int side) {
      // BEGIN m10.halves
      return n * kColumns + side * (GEMM1 ? p.columns : kHalf);
      // END m10.halves
    };
    // The scale of half `side` of W in a turn, from w_scales [E, w_blocks, turns]. GEMM2's second
    // half may lie behind the last row of W, where any scale will do: but read inside the array.
    const auto w_scale = [&](int expert, int n, int side, int turn) {
      // BEGIN m10.w_scale
      const int64_t block = min(w_row(n, side) / kHalf, w_blocks - 1);
      return p.w_scales[(static_cast<int64_t>(expert) * w_blocks + block) * turns + turn];
      // STUB: return p.w_scales[expert + n + side + turn - turn];
      // END m10.w_scale
    };
    // Half of warp 0 has the scales of one half of W for 16 turns, and fetches the next 16
    // meanwhile.
    float scale = 0.0f;
    float next_scale = 0.0f;
    const auto fetch_scales = [&](int expert, int n, int first_turn) {
      const int turn = first_turn + lane % kScaleTurns;
      if (thread < kWarpSize && turn < turns) {
        next_scale = w_scale(expert, n, lane / kScaleTurns, turn);
      }
    };

    int pid = static_cast<int>(blockIdx.x);
    int expert = 0;
    int rows = 0;
    const auto tile_of = [&](int number) {
      return ordered_tile<GROUP_M>(number, num_pid_m, num_pid_n);
    };
    if (pid < num_tiles) {
      const int2 first = tile_of(pid);
      expert = p.expert_ids[first.x];
      rows = p.used_rows[first.x];
      look_up(first.x);
      fetch_scales(expert, first.y, 0);
    }
    while (pid < num_tiles) {
      const int2 tile = tile_of(pid);
      const int first_row = tile.x * BLOCK_M;
      const int my_token = next_token;
      // GEMM2 waits until all warps have reported the tile's rows of h, one for each column tile of
      // GEMM1, which is a turn here. They were stored by TMA, and will be read by TMA.
      if (!GEMM1) {
        while (load_acquire(&p.ready[tile.x]) < turns * (rows / kUnit)) {
        }
        fence_proxy_async_global();
      }
      unsigned claimed = 0;
      int next_pid = 0;
      int next_expert = 0;
      int next_rows = 0;
      for (int turn = 0; turn < turns; ++turn) {
        const int s = place.stage;
        const int k = turn * BLOCK_K;
        if (turn % kScaleTurns == 0) scale = next_scale;
        mbarrier_wait(&tiles.empty[s], place.parity);
        if (thread < kWarpSize) {
          if (lane % kScaleTurns == turn % kScaleTurns) {
            tiles.notes[s].w_scales[lane / kScaleTurns] = scale;
          }
          __syncwarp();  // before thread 0 arrives
        }
        // Thread 0 announces the bytes that TMA brings, whole boxes, and starts the copies: both
        // halves of W, and in GEMM2 the rows of A that are used, in boxes of kSlab rows and kUnit.
        // BEGIN m10.produce
        if (thread == 0) {
          tiles.notes[s].m = tile.x;
          tiles.notes[s].n = tile.y;
          tiles.notes[s].rows = rows;
          const int a_bytes = GEMM1 ? 0 : rows * BLOCK_K;
          mbarrier_arrive_expect_tx(&tiles.full[s], static_cast<int>(sizeof(tiles.w[0])) + a_bytes);
          tma_load(tiles.w[s], w_map, k, w_row(tile.y, 0), expert, &tiles.full[s]);
          tma_load(tiles.w[s][kHalf], w_map, k, w_row(tile.y, 1), expert, &tiles.full[s]);
          for (int row = 0; !GEMM1 && row < rows;) {
            const bool is_slab = rows - row >= kSlab;
            tma_load(tiles.a[s][row], is_slab ? a_slab_map : a_map, k, first_row + row,
                     &tiles.full[s]);
            row += is_slab ? kSlab : kUnit;
          }
        }
        // END m10.produce
        // Where this thread's chunks start, in codes from the start of x: 32 bits are enough. Asked
        // for anew in each turn, registers being scarce.
        uint32_t offsets[kGathered] = {};
        unsigned valid = 0;
        if (GEMM1) {
#pragma unroll
          for (int i = 0; i < kGathered; ++i) {
            const int token = __shfl_sync(0xffffffffu, my_token, i, kGathered);
            offsets[i] = static_cast<uint32_t>(max(token, 0)) * static_cast<uint32_t>(p.depth) +
                         static_cast<uint32_t>(my_chunk * kChunk);
            valid |= (token >= 0 ? 1u : 0u) << i;
          }
        }
        // GEMM1: codes k + 16 * my_chunk .. + 15 of the thread's rows, at chunk c ^ (row % 8);
        // padding arrives as zeros. Slabs of which no row is used aren't wanted.
        // BEGIN m10.gather
        if (GEMM1) {
          unsigned char* target = &tiles.a[s][my_row][(my_chunk ^ my_row % 8) * kChunk];
#pragma unroll
          for (int i = 0; i < kGathered; ++i) {
            if (i >= kGathered / 2 && rows <= kSlab) break;
            cp_async16(target + i * 16 * BLOCK_K, p.x_codes + offsets[i] + k,
                       (valid >> i & 1) != 0);
          }
        }
        // END m10.gather
        // The scales of the rows of A that are used, four by each thread, by cp.async. The others
        // become zeros.
        // BEGIN m10.a_scales
        if (thread < BLOCK_M / 4) {
          cp_async16(&tiles.a_scales[s][4 * thread],
                     p.a_scales + turn * p.rows + first_row + 4 * thread, 4 * thread < rows);
        }
        // END m10.a_scales
        cp_async_mbarrier_arrive_noinc(&tiles.full[s]);
        // What comes is asked for long before it is needed: a number from the counter by thread 0,
        // then the tile, its tokens, its scales. (Of atomicAdd nvcc would make one for the warp,
        // and wait for it at once.)
        if (turn == 0 && thread == 0) claimed = atomicInc(p.next_tile, INT_MAX);
        if (turn == min(2, turns - 1)) {
          if (GEMM1) {
            if (thread == 0) tiles.next_pid = step + static_cast<int>(claimed);
            named_barrier_sync(kProducerBarrier, kWarpgroup);
            next_pid = tiles.next_pid;
          } else {
            next_pid = step + static_cast<int>(__shfl_sync(0xffffffffu, claimed, 0));
          }
          if (next_pid < num_tiles) {
            const int m = tile_of(next_pid).x;
            next_expert = p.expert_ids[m];
            next_rows = p.used_rows[m];
            look_up(m);
          }
        }
        if (turn == min(turn / kScaleTurns * kScaleTurns + 6, turns - 1)) {
          const int first_turn = (turn / kScaleTurns + 1) * kScaleTurns;
          if (first_turn < turns) {
            fetch_scales(expert, tile.y, first_turn);
          } else if (next_pid < num_tiles) {
            fetch_scales(next_expert, tile_of(next_pid).y, 0);
          }
        }
        place.advance();
      }
      if (GEMM1) named_barrier_sync(kProducerBarrier, kWarpgroup);  // all have read next_pid
      pid = next_pid;
      expert = next_expert;
      rows = next_rows;
    }
    mbarrier_wait(&tiles.empty[place.stage], place.parity);
    if (thread == 0) {
      tiles.notes[place.stage] = {-1, 0, 0, {}};
      mbarrier_arrive(&tiles.full[place.stage]);
    }
    mbarrier_arrive(&tiles.full[place.stage]);
    return;
  }

  // ---- Consumers.
  setmaxnreg_inc<GEMM1 ? 224 : 232>();
  const int consumer = warpgroup - 1;  // computes rows 64 * consumer .. + 63 of every tile
  const int warp = thread / kWarpSize % 4;
  const int my_row = consumer * kSlab + warp * 16 + lane / 4;  // of the tile, and the one 8 further
  const int my_column = lane % 4 * 2;                          // of each eight, and the next
  const int warp_row = consumer * kSlab + warp * kUnit;        // of the tile: the warp's first
  RingPlace<STAGES> place;
  float sums[2 * kHalfSums];  // sums[64 * side + 4j + 2r + e]: row my_row + 8r, column 8j +
                              // my_column + e
  uint32_t held[kHeld];       // a finished tile, packed
  Note held_tile = {};
  bool pending = false;
  int report = -1;  // m of a tile that is stored, or being stored, and not yet reported
  int next_buffer = 0;

  // Stores this warp's 16 rows of one slab of the held tile, 128 bytes each: all of GEMM1's codes,
  // or columns 64 * slab .. + 63 of y. `fill` writes this thread's part. Rows that are not used
  // stay as they are.
  const auto store_slab = [&](int slab, auto fill) {
    if (warp_row >= held_tile.rows) return;
    unsigned char(&buffer)[kSlab][128] = tiles.slabs[consumer][next_buffer];
    next_buffer ^= 1;
    if (lane == 0) bulk_wait_read<1>();
    __syncwarp();
    fill(buffer);
    fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      tma_store(out_map, buffer[warp * kUnit], held_tile.n * kColumns + slab * 64,
                held_tile.m * BLOCK_M + warp_row);
      bulk_commit();
    }
    report = held_tile.m;
  };
  // GEMM1: tells GEMM2 that this warp's rows of that tile lie in memory: codes, which TMA stored,
  // and scales.
  const auto report_tile = [&] {
    if (!GEMM1 || report < 0) return;
    __syncwarp();
    if (lane == 0) {
      bulk_wait<0>();
      fence_proxy_async_global();
      add_release(&p.ready[report], 1);
    }
    report = -1;
  };
  // GEMM1: held[j] has the codes of columns 8j + my_column and the next, of row my_row in the low
  // half and of the row 8 further on in the high half. They go to the slab two bytes at a time; 16
  // codes are a chunk, and chunk c of row r lies at c ^ (r % 8).
  const auto store_codes = [&] {
    store_slab(0, [&](unsigned char(&buffer)[kSlab][128]) {
      // BEGIN m10.store_codes
      const int row = warp * 16 + lane / 4;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const int byte = ((j / 2) ^ (row % 8)) * kChunk + j % 2 * 8 + my_column;
        *reinterpret_cast<uint16_t*>(&buffer[row][byte]) = static_cast<uint16_t>(held[j]);
        *reinterpret_cast<uint16_t*>(&buffer[row + 8][byte]) = static_cast<uint16_t>(held[j] >> 16);
      }
      // END m10.store_codes
    });
  };
  // GEMM2: held[2j + r] has columns 8j + my_column and the next of row my_row + 8r, as in m7.
  const auto store_columns = [&](int slab) {
    store_slab(slab, [&](unsigned char(&buffer)[kSlab][128]) {
      const int row = warp * 16 + lane % 16;
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        const uint32_t* pairs = &held[(slab * 8 + j) * 2];
        const uint32_t quad[4] = {pairs[0], pairs[1], pairs[2], pairs[3]};
        stmatrix_x4(&buffer[row][((j + lane / 16) ^ row % 8) * kChunk], quad);
      }
    });
  };
  // Half of a pending tile is stored in each half of the next tile's first turn.
  const auto store_pending = [&](int side) {
    if (!pending) return;
    if constexpr (OUTPUT == Output::kCodes) {
      if (side == 0) store_codes();
    }
    if constexpr (OUTPUT == Output::kBf16) {
      store_columns(side == 0 ? 0 : 2);
      store_columns(side == 0 ? 1 : 3);
    }
  };

  // One scale block of the reduction; FIRST::value says that it is the tile's first.
  const auto run_turn = [&](auto first) {
    constexpr bool FIRST = decltype(first)::value;
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    if (GEMM1) fence_proxy_async();
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      // Level one: a fresh sum of 128 products of codes, in four steps of 32. A is this consumer's
      // 64 rows, W the half's 128. The first step overwrites.
      float partial[kHalfSums];
      // BEGIN m10.multiply
      const uint64_t a = wgmma_descriptor(tiles.a[place.stage][consumer * kSlab]);
      const uint64_t w = wgmma_descriptor(tiles.w[place.stage][side * kHalf]);
      wgmma_fence();
#pragma unroll
      for (int step_k = 0; step_k < BLOCK_K / 32; ++step_k) {
        wgmma_e4m3(partial, a + 2 * step_k, w + 2 * step_k, step_k > 0);
      }
      wgmma_commit();
      // STUB: for (float& value : partial) value = 0.0f;
      // END m10.multiply
      // For rows my_row and my_row + 8: the scale of A's row times that of this half of W. Both
      // came with the stage.
      float scales[2];
      // BEGIN m10.scales
      const float w_scale = tiles.notes[place.stage].w_scales[side];
      scales[0] = tiles.a_scales[place.stage][my_row] * w_scale;
      scales[1] = tiles.a_scales[place.stage][my_row + 8] * w_scale;
      // STUB: scales[0] = scales[1] = 1.0f;
      // END m10.scales
      if (FIRST) store_pending(side);
      // The products are there. After the second half each warp hands the stage back.
      wgmma_wait<0>();
      if (side == 1 && lane == 0) mbarrier_arrive(&tiles.empty[place.stage]);
        // Level two: partial[i] times its row's scale into sums[64 * side + i]. FIRST overwrites:
        // what the sums hold then belongs to the tile before.
        // BEGIN m10.promote
#pragma unroll
      for (int i = 0; i < kHalfSums; ++i) {
        float& sum = sums[side * kHalfSums + i];
        sum = FIRST ? partial[i] * scales[i / 2 % 2] : sum + partial[i] * scales[i / 2 % 2];
      }
      // STUB: for (float& sum : sums) sum = partial[0] * scales[0];
      // END m10.promote
    }
    place.advance();
  };

  // GEMM1's epilogue: h of this thread's two rows, their scales, their codes. The four lanes with
  // the same lane / 4 hold the 128 columns of a row.
  const auto requantize = [&](const Note& tile) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float h[32];
#pragma unroll
      for (int j = 0; j < 16; j += 2) {
        const float* g = &sums[4 * j + 2 * r];
        const float* u = g + kHalfSums;
        const float gate[4] = {g[0], g[1], g[4], g[5]};
        const float up[4] = {u[0], u[1], u[4], u[5]};
        float four[4];
        silu_and_mul(gate, up, four);
#pragma unroll
        for (int i = 0; i < 4; ++i) h[2 * j + i] = four[i];
      }
      // The largest magnitude of the row, by m5's rules: NaN does not count.
      float amax = 0.0f;
      // BEGIN m10.amax
#pragma unroll
      for (float value : h) amax = fmaxf(amax, fabsf(value));
      amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 1));
      amax = fmaxf(amax, __shfl_xor_sync(0xffffffffu, amax, 2));
      // END m10.amax
      const float scale = fmaxf(fminf(amax, kLargestBf16), kSmallestAmax) / kLargestCode;
      // One lane stores the scale: h_scales is [I/128, rows], a column tile is one scale block.
      // Then the codes of h / scale, of row r of the two into half r of held[j].
      // BEGIN m10.requantize
      if (lane % 4 == 0) {
        const int64_t row = static_cast<int64_t>(tile.m) * BLOCK_M + my_row + 8 * r;
        p.h_scales[tile.n * p.rows + row] = scale;
      }
      const float inverse = 1.0f / scale;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        const uint32_t codes = codes_of(h[2 * j] * inverse, h[2 * j + 1] * inverse);
        held[j] = r == 0 ? codes : held[j] | codes << 16;
      }
      // STUB: for (uint32_t& codes : held) codes = codes_of(h[0] * scale, h[1]);
      // END m10.requantize
    }
  };
  // GEMM2 with fp32 output: the sums go out at once, without a slab.
  const auto store_fp32 = [&](const Note& tile) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int64_t row = static_cast<int64_t>(tile.m) * BLOCK_M + my_row + 8 * r;
#pragma unroll
      for (int j = 0; j < 32; ++j) {
        const int column = tile.n * kColumns + 8 * j + my_column;
        if (column >= p.columns) break;
        *reinterpret_cast<float2*>(p.y + row * p.columns + column) =
            make_float2(sums[4 * j + 2 * r], sums[4 * j + 2 * r + 1]);
      }
    }
  };

  for (;;) {
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    const Note tile = tiles.notes[place.stage];
    __syncwarp();   // all lanes have read it, before one hands the stage back
    report_tile();  // stored in the turns of the tile before
    if (tile.m < 0) break;
    // Of a tile that uses 64 rows consumer 1 has none. It hands each stage back once it is full,
    // and stores what is pending.
    // BEGIN m10.half_tile
    if (tile.rows <= kSlab && consumer == 1) {
      store_pending(0);
      store_pending(1);
      pending = false;
      for (int turn = 0; turn < turns; ++turn) {
        mbarrier_wait(&tiles.full[place.stage], place.parity);
        if (lane == 0) mbarrier_arrive(&tiles.empty[place.stage]);
        place.advance();
      }
      continue;
    }
    // END m10.half_tile
    run_turn(std::true_type{});
    for (int turn = 1; turn < turns; ++turn) run_turn(std::false_type{});
    if constexpr (OUTPUT == Output::kCodes) requantize(tile);
    if constexpr (OUTPUT == Output::kFp32) store_fp32(tile);
    if constexpr (OUTPUT == Output::kBf16) {
#pragma unroll
      for (int i = 0; i < kHeld; ++i) held[i] = pack(sums[2 * i], sums[2 * i + 1]);
    }
    held_tile = tile;
    pending = OUTPUT != Output::kFp32;
  }
  store_pending(0);
  store_pending(1);
  report_tile();
  if (lane == 0) bulk_wait<0>();  // shared memory must live until it has been read
}

// ---- The sum over the slots of a token.

constexpr int kCombineThreads = 256;

template <class Value>
__global__ void __launch_bounds__(kCombineThreads)
    combine_kernel(Value* out, Arrays a, int top_k, int hidden_size) {
  griddepcontrol_wait();
  const int64_t token = blockIdx.x;
  const auto* y = static_cast<const Value*>(a.y);
  for (int column = static_cast<int>(threadIdx.x) * kCombined; column < hidden_size;
       column += kCombineThreads * kCombined) {
    // Adds weight * y of the token's slots, in the order of slots.
    float sums[kCombined] = {};
    // BEGIN m10.combine
#pragma unroll 8
    for (int slot = 0; slot < top_k; ++slot) {
      const int64_t row = a.sorted_row[token * top_k + slot];
      const float weight = a.topk_weights[token * top_k + slot];
      float values[kCombined];
      load_values(values, y + row * hidden_size + column);
#pragma unroll
      for (int i = 0; i < kCombined; ++i) sums[i] += weight * values[i];
    }
    // END m10.combine
    store_values(out + token * hidden_size + column, sums);
  }
}

// ---- Launches.

template <Output OUTPUT>
cudaError_t launch_gemm(
    const Maps& maps, const Arrays& a, const float* w_scales, const Sizes& s, cudaStream_t stream) {
  constexpr bool GEMM1 = OUTPUT == Output::kCodes;
  int blocks = 0;  // one for each multiprocessor
  const cudaError_t status = count_multiprocessors(&blocks);
  if (status != cudaSuccess) return status;
  Problem p = {};
  p.x_codes = a.x_codes;
  p.sorted_token = a.sorted_token;
  p.a_scales = GEMM1 ? a.sorted_scales : a.h_scales;
  p.w_scales = w_scales;
  p.expert_ids = a.expert_ids;
  p.num_tokens_post_padded = a.num_tokens_post_padded;
  p.used_rows = a.used_rows;
  p.h_scales = a.h_scales;
  p.y = static_cast<float*>(a.y);
  p.next_tile = a.next_tile + (GEMM1 ? 0 : 1);
  p.ready = a.ready;
  p.rows = static_cast<int64_t>(a.rows);
  p.columns = GEMM1 ? s.intermediate_size : s.hidden_size;
  p.depth = GEMM1 ? s.hidden_size : s.intermediate_size;
  LaunchOptions after;
  after.programmatic = true;
  return launch(after, gemm_kernel<OUTPUT>, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                sizeof(SharedTiles), stream, GEMM1 ? maps.w13 : maps.w2, maps.h_slab, maps.h,
                GEMM1 ? maps.h : maps.y, p);
}

cudaError_t launch_sort(const Arrays& a, const Sizes& s, cudaStream_t stream) {
  LaunchOptions after;
  after.programmatic = true;
  return launch(after, sort_kernel, dim3(static_cast<unsigned>(a.rows / BLOCK_M)), dim3(BLOCK_M), 0,
                stream, a, s.num_tokens * s.top_k, s.top_k, s.hidden_size / kScaleBlock);
}

cudaError_t launch_combine(
    void* out, bool out_fp32, const Arrays& a, const Sizes& s, cudaStream_t stream) {
  LaunchOptions after;
  after.programmatic = true;
  const auto start = [&](auto* values, auto kernel) {
    return launch(after, kernel, dim3(static_cast<unsigned>(s.num_tokens)), dim3(kCombineThreads),
                  0, stream, values, a, s.top_k, s.hidden_size);
  };
  if (out_fp32) return start(static_cast<float*>(out), combine_kernel<float>);
  return start(static_cast<__nv_bfloat16*>(out), combine_kernel<__nv_bfloat16>);
}

}  // namespace

size_t moe_layer_fp8_workspace_bytes(int num_tokens,
                                     int num_experts,
                                     int top_k,
                                     int hidden_size,
                                     int intermediate_size,
                                     bool out_fp32) {
  const Sizes sizes = {num_tokens, num_experts, top_k, hidden_size, intermediate_size};
  return arrays_of(nullptr, sizes, out_fp32).bytes;
}

cudaError_t moe_layer_fp8(void* out,
                          bool out_fp32,
                          const __nv_bfloat16* x,
                          const float* logits,
                          const __nv_fp8_e4m3* w13_codes,
                          const float* w13_scales,
                          const __nv_fp8_e4m3* w2_codes,
                          const float* w2_scales,
                          int num_tokens,
                          int num_experts,
                          int top_k,
                          int hidden_size,
                          int intermediate_size,
                          bool renormalize,
                          void* workspace,
                          size_t workspace_bytes,
                          cudaStream_t stream) {
  const char* rule = refuse_moe_layer_fp8(
      out, out_fp32, x, logits, w13_codes, w13_scales, w2_codes, w2_scales, num_tokens, num_experts,
      top_k, hidden_size, intermediate_size, renormalize, workspace, workspace_bytes, stream);
  if (rule != nullptr) return cudaErrorInvalidValue;
  if (num_tokens == 0) return cudaSuccess;
  const Sizes sizes = {num_tokens, num_experts, top_k, hidden_size, intermediate_size};
  const Arrays a = arrays_of(workspace, sizes, out_fp32);
  Maps maps;
  cudaError_t status = make_maps(&maps, a, w13_codes, w2_codes, sizes, out_fp32);
  if (status != cudaSuccess) return status;
  // upstream::route, upstream::align, upstream::quantize_rows of x (scales of any value), sort,
  // both GEMMs, combine. The first error is returned.
  // BEGIN m10.launches
  status = upstream::route(a.topk_ids, a.topk_weights, logits, num_tokens, num_experts, top_k,
                           renormalize, stream);
  if (status != cudaSuccess) return status;
  status = upstream::align(a.sorted_token_ids, a.expert_ids, a.num_tokens_post_padded, a.topk_ids,
                           num_tokens, top_k, num_experts, BLOCK_M, a.align_workspace,
                           a.align_bytes, stream);
  if (status != cudaSuccess) return status;
  status =
      upstream::quantize_rows(a.x_codes, a.x_scales, x, num_tokens, hidden_size, false, stream);
  if (status != cudaSuccess) return status;
  status = launch_sort(a, sizes, stream);
  if (status != cudaSuccess) return status;
  status = launch_gemm<Output::kCodes>(maps, a, w13_scales, sizes, stream);
  if (status != cudaSuccess) return status;
  status = out_fp32 ? launch_gemm<Output::kFp32>(maps, a, w2_scales, sizes, stream)
                    : launch_gemm<Output::kBf16>(maps, a, w2_scales, sizes, stream);
  if (status != cudaSuccess) return status;
  return launch_combine(out, out_fp32, a, sizes, stream);
  // STUB: return cudaSuccess;
  // END m10.launches
}

}  // namespace moe::DRILL_SIDE::m10
