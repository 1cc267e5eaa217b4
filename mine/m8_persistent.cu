// m8_persistent: the layer in five kernels that overlap.
//
// The given headers have the workspace and route (m8_persistent.routing.h), the frame of place
// (m8_persistent.place.h), the shapes of tiles and m7's arithmetic (m8_persistent.tiles.h). Here:
// the steps of place, which cuts each expert's rows into tiles; the kernel of both GEMMs, m7's ring
// with tiles from a counter; combine; the launches.
//
// GEMM1 has tokens as wgmma's M: 128 by 256 rows of W; a last tile of at most 64 tokens needs one
// of the two consumer warpgroups; a long tile has 16 tokens more, as N. GEMM2 has W as M and tokens
// as N: any multiple of 16 tokens, so that little is padding.
//
// While blanks are left run it with --cpu: on a GPU half a ring waits for ever.
//
// The contract is drills/m8_persistent.h; the note is content/m8_persistent.md.
#include <drills/m8_persistent.h>

#include <drills/launch.h>
#include <drills/m8_persistent.place.h>
#include <drills/m8_persistent.routing.h>
#include <drills/m8_persistent.tiles.h>

namespace moe::DRILL_SIDE::m8 {

// The workspace is dirty, and in a replay it holds what the call before left. All threads of one
// block of route call this: `ready` of every expert and both counters of next_tile become 0.
__device__ void reset_counters(const Arrays& a, int num_experts) {
  // BEGIN m8.reset
  // about 3 lines
  DRILL_TODO("m8.reset");
  // END m8.reset
}

// ---- Place. place_kernel, in the given header, calls these four.

// totals[e]: counts[b][e] of all gridDim.x blocks b; before[e]: of those below blockIdx.x. Both are
// 0 so far. There are more threads than experts: let several add up for one expert (atomicAdd).
__device__ void add_up_counts(PlaceShared& shared, const Arrays& a, int num_experts) {
  const int thread = static_cast<int>(threadIdx.x);
  const int blocks = static_cast<int>(gridDim.x);
  const int this_block = static_cast<int>(blockIdx.x);
  // BEGIN m8.totals
  // about 15 lines
  DRILL_TODO("m8.totals");
  // END m8.totals
}

// Given. Whole tiles and a short last one; but one or two units that are left over are no tile of
// their own, for which W would be read, and multiplied as by 64 tokens: the first tiles, one or
// two, take one each. Three units fill most of a half tile.
__device__ int tiles_of_gemm1(int rows) {
  const int whole = rows / kTokens1;
  const int units = rows % kTokens1 / kUnit;
  return whole + (units > min(whole, 2) ? 1 : 0);
}

// The run of one expert in the tables of both GEMMs. GEMM1 wants tiles of kTokens1; rows that its
// tiles don't hold make as many of the first ones long by kUnit as it takes. GEMM2 wants tiles of
// the same length, a multiple of kUnit. GEMM1's tiles report reports_of_tile times each.
__device__ void write_runs(const Arrays& a,
                           int expert,
                           int rows,
                           const int (&tiles)[2],
                           int first_row,
                           const int (&first_tile)[2],
                           int reports_of_tile) {
#pragma unroll
  for (int g = 0; g < 2; ++g) {
    int tile_rows = kTokens1;
    int long_tiles = 0;
    // BEGIN m8.cut
    // about 16 lines
    DRILL_TODO("m8.cut");
    // END m8.cut
  }
}

// One warp gives the ids first .. last - 1, kRounds times 32 at a time, the rows totals[expert] and
// on, in ascending order of ids: who came first would change from run to run, and with it the last
// bits of SiLU. The loads of all rounds are asked for before the first is used.
__device__ void place_ids(
    PlaceShared& shared, const Arrays& a, int first, int last, int num_experts, int top_k) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int bits = kWarpSize - __clz(num_experts - 1);
  for (int i = first; i < last; i += kRounds * kWarpSize) {
    int experts[kRounds];
    unsigned same[kRounds];  // lanes with an id
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const int id = i + r * kWarpSize + lane;
      experts[r] = id < last ? a.topk_ids[id] : 0;
      same[r] = __ballot_sync(kAllLanes, id < last);
    }
    // Lanes whose expert is the same agree in every bit; rank is this lane's place among them.
    // Round r comes before round r + 1. The loops over rounds are unrolled: arrays in registers.
    // BEGIN m8.place
    // about 22 lines
    DRILL_TODO("m8.place");
    // END m8.place
  }
}

namespace {

// ---- The GEMMs.

// Tile number pid. A run's tiles are walked token tile by token tile, then the next column tile: so
// blocks that work side by side ask for the same rows of W. The run's first number is
// first_tile * num_pid_n.
__device__ Tile tile_of(int pid, int num_pid_n, const Run* runs) {
  // BEGIN m8.tile_of
  // about 7 lines
  DRILL_TODO("m8.tile_of");
  return {};
  // END m8.tile_of
}

template <bool GEMM1, int MAX_TOKENS>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ CUtensorMap w_map,
                const __grid_constant__ CUtensorMap h_map,       // GEMM2; boxes of 64 rows
                const __grid_constant__ CUtensorMap out_map,     // boxes of kUnit rows
                const __grid_constant__ CUtensorMap out_map_64,  // boxes of 64 rows
                Problem p) {
  using Shared = SharedTiles<GEMM1, MAX_TOKENS>;
  constexpr int STAGES = Shared::STAGES;
  constexpr int kSlabs = MAX_TOKENS / kSlab;  // GEMM1: of 64 columns, GEMM2: of 64 tokens
  constexpr int kHeld = MAX_TOKENS / 4;       // packed pairs that a thread keeps of a tile
  constexpr int kRowsOfThread = GEMM1 ? kMaxTokens1 / 16 : 1;  // of x, of a tile

  auto& tiles = *dynamic_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize;
  const int warpgroup = thread / kWarpgroup;
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  const int num_pid_n = (p.columns + kColumns - 1) / kColumns;

  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(&tiles.full[s], GEMM1 ? 1 + kWarpgroup : 1);
      mbarrier_init(&tiles.empty[s], kConsumerWarps);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  // GEMM1 waits for the end of place, and with it of route. GEMM2 waits for the reports of GEMM1,
  // whose blocks have waited. Then blocks of the next kernel may start where these leave room.
  if (GEMM1) griddepcontrol_wait();
  griddepcontrol_launch_dependents();

  if (warpgroup == 0) {
    // ---- Producer.
    setmaxnreg_dec<GEMM1 ? 56 : 40>();
    if (!GEMM1 && thread != 0) return;  // TMA needs one thread
    RingPlace<STAGES> place;
    place.parity = 1;  // the ring starts empty
    const int num_tiles = *p.num_tiles * num_pid_n;
    const int step = static_cast<int>(gridDim.x);
    // The first rounds are dealt out in turn: neighbours then ask for the same W at the same time.
    const int dealt = max(1, num_tiles / step - p.free_rounds);
    int round = 0;
    const int my_chunk = thread % kChunk;
    const int my_row = thread / kChunk;
    // Eight lanes copy the eight chunks of the same rows; each knows the tokens of two of them.
    int next_tokens[2] = {-1, -1};  // of rows my_row + 16 * my_chunk, and 128 rows further
    const auto look_up = [&](const Tile& tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = my_row + 16 * my_chunk + 128 * i;
        next_tokens[i] = GEMM1 && row < tile.tokens ? p.sorted_token[tile.row + row] : -1;
      }
    };

    int pid = static_cast<int>(blockIdx.x);
    Tile tile = {};
    if (pid < num_tiles) {
      tile = tile_of(pid, num_pid_n, p.runs);
      look_up(tile);
    }
    while (pid < num_tiles) {
      // Where the chunks that this thread copies start, in bytes from the start of x: 32 bits.
      uint32_t offsets[kRowsOfThread];
      unsigned valid = 0;
      bool all_valid = true;
      if (GEMM1) {
#pragma unroll
        for (int i = 0; i < kRowsOfThread; ++i) {
          const int token = __shfl_sync(kAllLanes, next_tokens[i / kChunk], i % kChunk, kChunk);
          offsets[i] = static_cast<uint32_t>(max(token, 0)) * static_cast<uint32_t>(p.depth) * 2u +
                       static_cast<uint32_t>(my_chunk) * 16u;
          valid |= (token >= 0 ? 1u : 0u) << i;
        }
        all_valid = tile.tokens >= kTokens1 &&  // but for a long tile's last unit
                    __all_sync(kAllLanes, (valid & 0xff) == 0xff) != 0;
      } else {
        // Wait until the expert's rows of h are reported. They were stored by TMA, they will be
        // read by TMA, and the flag is read by the ordinary path: a proxy fence behind the wait.
        // BEGIN m8.await_rows
        // about 3 lines
        DRILL_TODO("m8.await_rows");
        // END m8.await_rows
      }
      const int token_boxes = (tile.tokens + kSlab - 1) / kSlab;
      int next_pid = 0;
      Tile next = tile;
      for (int turn = 0; turn < turns; ++turn) {
        const int s = place.stage;
        const int k = turn * BLOCK_K;
        mbarrier_wait(&tiles.empty[s], place.parity);
        if (thread == 0) {
          tiles.tile[s] = make_int4(tile.expert, tile.tokens, tile.row, tile.n);
          const int bytes_of_tokens = GEMM1 ? 0 : token_boxes * kSlab * BLOCK_K * 2;
          mbarrier_arrive_expect_tx(&tiles.full[s],
                                    static_cast<int>(sizeof(tiles.w[0])) + bytes_of_tokens);
          const int row = tile.n * kColumns;
          tma_load(tiles.w[s], w_map, k, row, tile.expert, &tiles.full[s]);
          if (GEMM1) {
            tma_load(tiles.w[s][kBoxRows], w_map, k, p.columns + row, tile.expert, &tiles.full[s]);
          } else {
            for (int i = 0; i < token_boxes; ++i) {
              tma_load(tiles.tokens[s][i * kSlab], h_map, k, tile.row + i * kSlab, &tiles.full[s]);
            }
          }
        }
        if (GEMM1) {
          const char* source = reinterpret_cast<const char*>(p.x) + turn * 128;
          __nv_bfloat16* target = &tiles.tokens[s][my_row][(my_chunk ^ my_row % 8) * kChunk];
          if (all_valid && k + BLOCK_K <= p.depth) {
#pragma unroll
            for (int i = 0; i < kTokens1 / 16; ++i) {
              cp_async16(target + i * 16 * BLOCK_K, source + offsets[i]);
            }
            if (tile.tokens > kTokens1) {
              cp_async16(target + kTokens1 * BLOCK_K, source + offsets[kTokens1 / 16],
                         valid >> (kTokens1 / 16) != 0);
            }
          } else {
            const bool in_row = k + my_chunk * kChunk < p.depth;
#pragma unroll
            for (int i = 0; i < kRowsOfThread; ++i) {
              if (i >= 4 && tile.tokens <= 64) break;
              if (i >= 8 && tile.tokens <= kTokens1) break;
              // Where nothing is read the address may lie behind x.
              cp_async16(target + i * 16 * BLOCK_K, source + offsets[i],
                         in_row && (valid >> i & 1) != 0);
            }
          }
          cp_async_mbarrier_arrive_noinc(&tiles.full[s]);
        }
        // Thread 0 fetches the number of the next tile. `dealt` rounds are dealt out, in each of
        // which tile blockIdx.x + round * step is this block's; all later numbers go to who asks
        // first. The answer takes a microsecond, so ask behind the copies of turn 0 and look two
        // turns later. p.claim is 1: of a constant nvcc makes one atomicAdd for the warp, and waits
        // for it at once.
        if (turn == 0 && thread == 0) {
          ++round;
          // BEGIN m8.next_tile
          // about 1 line
          DRILL_TODO("m8.next_tile");
          next_pid = num_tiles;
          // END m8.next_tile
        }
        if (turn == min(2, turns - 1)) {
          if (GEMM1) {
            if (thread == 0) tiles.next_pid = next_pid;
            named_barrier_sync(3, kWarpgroup);
            next_pid = tiles.next_pid;
          }
          if (next_pid < num_tiles) next = tile_of(next_pid, num_pid_n, p.runs);
        }
        if (turn == min(4, turns - 1) && next_pid < num_tiles) look_up(next);
        place.advance();
      }
      if (GEMM1) named_barrier_sync(3, kWarpgroup);  // all have read tiles.next_pid
      pid = next_pid;
      tile = next;
    }
    mbarrier_wait(&tiles.empty[place.stage], place.parity);
    if (thread == 0) {
      tiles.tile[place.stage] = make_int4(-1, 0, 0, 0);
      mbarrier_arrive(&tiles.full[place.stage]);
    }
    if (GEMM1) mbarrier_arrive(&tiles.full[place.stage]);
    return;
  }

  // ---- Consumers. GEMM1: 64 tokens by all 256 rows of W each; GEMM2: 64 rows of W by all tokens.
  setmaxnreg_inc<GEMM1 ? 224 : 232>();
  const int consumer = warpgroup - 1;
  const int warp = thread / kWarpSize % 4;
  const int barrier = 1 + consumer;  // of the threads of this warpgroup
  const bool storer = thread % kWarpgroup == 0;
  RingPlace<STAGES> place;
  float accumulators[GEMM1 ? 128 : MAX_TOKENS / 2] = {};
  uint32_t held[kHeld] = {};   // a finished tile
  uint32_t held_unit[4] = {};  // GEMM1: of tokens behind kTokens1, this consumer's 64 columns
  int4 held_tile = {};
  bool pending = false;
  int next_buffer = 0;
  int report = -1;  // expert of a tile that is stored, or being stored, and not yet reported

  const auto store_slab = [&](int slab) {
    const int first = slab * kSlab;
    if (!GEMM1 && first >= held_tile.y) return;
    // GEMM2's tiles may have an odd number of slabs: the buffers take turns all the same.
    unsigned char* buffer = tiles.slabs[consumer][GEMM1 ? 0 : next_buffer];
    next_buffer ^= 1;
    if (storer) bulk_wait_read<Shared::kSlabBuffers - 1>();
    named_barrier_sync(barrier, kWarpgroup);
#pragma unroll
    for (int i = 0; i < kSlab / 16; ++i) {
      const uint32_t* pairs = &held[slab * kSlab / 4 + 4 * i];
      const uint32_t quad[4] = {pairs[0], pairs[1], pairs[2], pairs[3]};
      if (GEMM1) {
        const int row = warp * 16 + lane % 16;
        stmatrix_x4(buffer + row * 128 + (((2 * i + lane / 16) ^ (row % 8)) * 16), quad);
        continue;
      }
      write_unit(buffer + i * kUnit * 128, quad);
    }
    fence_proxy_async();
    named_barrier_sync(barrier, kWarpgroup);
    // Stores columns `column` .. + 63 of the slab's tokens, of which the first is first_token of
    // the tile: one box of 64 rows if the tile has them all, else boxes of kUnit rows. The row
    // behind the tile's last is the next expert's.
    if (storer) {
      const int column = held_tile.w * kColumns + (GEMM1 ? slab : consumer) * 64;
      const int first_token = GEMM1 ? consumer * 64 : first;
      // BEGIN m8.store
      // about 7 lines
      DRILL_TODO("m8.store");
      // END m8.store
      bulk_commit();
    }
  };
  // GEMM1: stores a long tile's last unit, behind store_slab(1), which has waited for all that was
  // read from here before.
  const auto store_unit = [&] {
    if constexpr (GEMM1) {
      if (held_tile.y <= kTokens1) return;
      write_unit(tiles.units[consumer], held_unit);
      fence_proxy_async();
      named_barrier_sync(barrier, kWarpgroup);
      if (storer) {
        tma_store(out_map, tiles.units[consumer], held_tile.w * kColumns + consumer * 64,
                  held_tile.z + kTokens1);
        bulk_commit();
      }
    }
  };
  // GEMM1: tells GEMM2 that this consumer's part of the reported tile lies in memory. It was stored
  // by TMA: wait for the stores themselves, not for their reads; fence; then add 1 with release.
  const auto report_tile = [&] {
    if (GEMM1 && report >= 0) {
      if (storer) {
        // BEGIN m8.report
        // about 3 lines
        DRILL_TODO("m8.report");
        // END m8.report
      }
      report = -1;
    }
  };

  const auto wait_full = [&] {
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    if (GEMM1) fence_proxy_async();
  };
  const auto release = [&] {
    wgmma_wait<0>();
    if (lane == 0) mbarrier_arrive(&tiles.empty[place.stage]);
    place.advance();
  };
  const int report_turn = min(turns, 8);

  for (;;) {
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    const int4 tile = tiles.tile[place.stage];
    if (tile.x < 0) break;

    // A tile of at most 64 tokens is all consumer 0's. The other only hands the stages back, and
    // does what is due in the first turns: the two slabs of its tile before, that tile's report,
    // then this tile's own.
    // BEGIN m8.half_tile
    // about 18 lines
    DRILL_TODO("m8.half_tile");
    // END m8.half_tile

    if constexpr (GEMM1) {
      // LONG: the tile has a unit behind kTokens1. A loop for each kind: no turn asks which it is.
      const auto all_turns = [&](auto is_long) {
        constexpr bool LONG = decltype(is_long)::value;
        float gate_sums[8] = {};  // of the unit
        float up_sums[8] = {};
        const auto multiply = [&](int turn) {
          wait_full();
          const uint64_t t = wgmma_descriptor(tiles.tokens[place.stage][consumer * 64]);
          const uint64_t w = wgmma_descriptor(tiles.w[place.stage]);
          wgmma_fence();
#pragma unroll
          for (int k = 0; k < BLOCK_K / 16; ++k) {
            const bool adds = turn > 0 || k > 0;
            wgmma_bf16(accumulators, t + 2 * k, w + 2 * k, adds);
            if constexpr (LONG) {
              // The unit's tokens are N. M are 64 rows of W for each consumer, of gate and,
              // kBoxRows further, of up: so each has both of the same columns.
              // BEGIN m8.long_tile
              // about 5 lines
              DRILL_TODO("m8.long_tile");
              // END m8.long_tile
            }
          }
          wgmma_commit();
        };
#pragma unroll
        for (int turn = 0; turn < kSlabs; ++turn) {
          if (turn < turns) {
            multiply(turn);
            if (pending) store_slab(turn);
            if (pending && turn == 1) store_unit();
            release();
          } else if (pending) {
            store_slab(turn);
            if (turn == 1) store_unit();
          }
        }
        int turn = kSlabs;
        for (; turn < report_turn; ++turn) {
          multiply(turn);
          release();
        }
        report_tile();
        for (; turn < turns; ++turn) {
          multiply(turn);
          release();
        }
        if constexpr (LONG) {
          pack_pairs<true>(&held_unit[0], &gate_sums[0], &up_sums[0]);
          pack_pairs<true>(&held_unit[2], &gate_sums[4], &up_sums[4]);
        }
      };
      if (tile.y > kTokens1) {
        all_turns(std::true_type{});
      } else {
        all_turns(std::false_type{});
      }
    } else {
      // This consumer's 64 rows of W by the first N rows of tokens, width::value being N, into the
      // first N / 2 accumulators. A tile's first product overwrites.
      const auto multiply = [&](auto width, bool first) {
        constexpr int N = decltype(width)::value;
        auto& sums = reinterpret_cast<float(&)[N / 2]>(accumulators);
        // BEGIN m8.multiply
        // about 8 lines
        DRILL_TODO("m8.multiply");
        // END m8.multiply
      };
      const auto store_pending = [&](int slab) {  // a constant for store_slab: held is in registers
        if (!pending) return;
        if (slab == 0) store_slab(0);
        if (slab == 1 && kSlabs > 1) store_slab(1);
        if (slab == 2 && kSlabs > 2) store_slab(2);
        if (slab == 3 && kSlabs > 3) store_slab(3);
      };
      // The first turns, with a slab each; then a loop for each number of tokens.
      const int units = tile.y / kUnit;
      const int first_turns = min(turns, kSlabs);
#pragma unroll 1
      for (int turn = 0; turn < first_turns; ++turn) {
        wait_full();
        with_width<MAX_TOKENS>(units, [&](auto width) { multiply(width, turn == 0); });
        store_pending(turn);
        release();
      }
      for (int slab = first_turns; slab < kSlabs; ++slab) store_pending(slab);
      with_width<MAX_TOKENS>(units, [&](auto width) {
        for (int turn = kSlabs; turn < turns; ++turn) {
          wait_full();
          multiply(width, false);
          release();
        }
      });
    }
#pragma unroll
    for (int j = 0; j < kHeld / 2; ++j) {
      if (!GEMM1 && 8 * j >= tile.y) break;
      pack_pairs<GEMM1>(&held[2 * j], &accumulators[4 * j], &accumulators[GEMM1 ? 64 + 4 * j : 0]);
    }
    held_tile = tile;
    pending = true;
    report = tile.x;
  }
  if (pending) {
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) store_slab(slab);
    store_unit();
  }
  report_tile();
  if (storer) bulk_wait<0>();  // shared memory must live until it has been read
}

// ---- The sum over the slots of a token.

constexpr int kCombineThreads = 256;
constexpr int kSlotsAtOnce = 8;  // loads that a thread has under way

__global__ void __launch_bounds__(kCombineThreads)
    combine_kernel(__nv_bfloat16* out, Arrays a, int top_k, int hidden_size) {
  griddepcontrol_wait();
  const int64_t token = blockIdx.x;
  const int32_t* rows = a.sorted_row + token * top_k;
  const float* weights = a.topk_weights + token * top_k;
  for (int column = static_cast<int>(threadIdx.x) * kChunk; column < hidden_size;
       column += kCombineThreads * kChunk) {
    float sums[kChunk] = {};
    // Adds weight * y in the order of slots; y of the slot is row rows[slot], columns `column` ..
    // + 7. A row of y is read once: __ldcs.
    // BEGIN m8.combine
    // about 20 lines
    DRILL_TODO("m8.combine");
    // END m8.combine
    const uint4 packed = {pack(sums[0], sums[1]), pack(sums[2], sums[3]), pack(sums[4], sums[5]),
                          pack(sums[6], sums[7])};
    *reinterpret_cast<uint4*>(out + token * hidden_size + column) = packed;
  }
}

// ---- Launches.

template <bool GEMM1, int MAX_TOKENS>
cudaError_t launch_gemm(const Maps& maps,
                        const Arrays& a,
                        const __nv_bfloat16* x,
                        const Sizes& s,
                        cudaStream_t stream) {
  int blocks = 0;  // one for each multiprocessor
  const cudaError_t status = count_multiprocessors(&blocks);
  if (status != cudaSuccess) return status;
  constexpr int kIndex = GEMM1 ? 0 : 1;
  Problem p = {};
  p.x = x;
  p.sorted_token = a.sorted_token;
  p.runs = a.runs[kIndex];
  p.num_tiles = a.num_tiles + kIndex;
  p.next_tile = a.next_tile + kIndex;
  p.ready = a.ready;
  p.claim = 1;
  p.free_rounds = GEMM1 ? INT_MAX : 2;  // measured
  p.columns = GEMM1 ? s.intermediate_size : s.hidden_size;
  p.depth = GEMM1 ? s.hidden_size : s.intermediate_size;
  LaunchOptions after;
  after.programmatic = true;
  return launch(after, gemm_kernel<GEMM1, MAX_TOKENS>, dim3(static_cast<unsigned>(blocks)),
                dim3(kThreads), sizeof(SharedTiles<GEMM1, MAX_TOKENS>), stream,
                GEMM1 ? maps.w13 : maps.w2, maps.h_64, GEMM1 ? maps.h : maps.y,
                GEMM1 ? maps.h_64 : maps.y_64, p);
}

cudaError_t launch_gemm2(
    const Maps& maps, const Arrays& a, const Sizes& s, int max_tokens, cudaStream_t stream) {
  if (max_tokens == 256) return launch_gemm<false, 256>(maps, a, nullptr, s, stream);
  if (max_tokens == 128) return launch_gemm<false, 128>(maps, a, nullptr, s, stream);
  return launch_gemm<false, 64>(maps, a, nullptr, s, stream);
}

cudaError_t launch_combine(__nv_bfloat16* out,
                           const Arrays& a,
                           const Sizes& s,
                           cudaStream_t stream) {
  LaunchOptions after;
  after.programmatic = true;
  return launch(after, combine_kernel, dim3(static_cast<unsigned>(s.num_tokens)),
                dim3(kCombineThreads), 0, stream, out, a, s.top_k, s.hidden_size);
}

}  // namespace

size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  return arrays_of(nullptr, num_tokens, num_experts, top_k, hidden_size, intermediate_size).bytes;
}

cudaError_t moe_layer(__nv_bfloat16* out,
                      const __nv_bfloat16* x,
                      const float* logits,
                      const __nv_bfloat16* w13,
                      const __nv_bfloat16* w2,
                      int num_tokens,
                      int num_experts,
                      int top_k,
                      int hidden_size,
                      int intermediate_size,
                      bool renormalize,
                      void* workspace,
                      size_t workspace_bytes,
                      cudaStream_t stream) {
  if (refuse_moe_layer(out, x, logits, w13, w2, num_tokens, num_experts, top_k, hidden_size,
                       intermediate_size, renormalize, workspace, workspace_bytes,
                       stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  const Arrays a =
      arrays_of(workspace, num_tokens, num_experts, top_k, hidden_size, intermediate_size);
  const Sizes sizes = {num_tokens, num_experts, top_k, hidden_size, intermediate_size};
  const int max_tokens = max_tokens_of(num_tokens, num_experts, top_k);
  Maps maps;
  cudaError_t status = make_maps(&maps, a, w13, w2, sizes);
  if (status != cudaSuccess) return status;
  // Each consumer reports each tile of GEMM1 at each of its column tiles.
  const int reports_of_tile = 2 * ((intermediate_size + kColumns - 1) / kColumns);
  // The five kernels, each after the other has been launched; the first error is returned.
  // BEGIN m8.launches
  // about 9 lines
  DRILL_TODO("m8.launches");
  return cudaSuccess;
  // END m8.launches
}

}  // namespace moe::DRILL_SIDE::m8
