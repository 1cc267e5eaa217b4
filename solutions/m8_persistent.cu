// m8_persistent: the layer in five kernels that overlap.
//
// The given headers have the workspace and route (m8_persistent.routing.h), the frame of place
// (m8_persistent.place.h), the shapes of tiles and m7's arithmetic (m8_persistent.tiles.h), what
// warps that load say to others and the gather (m8_persistent.loads.h). Here: the steps of place,
// which cuts each expert's rows into tiles; the kernel of both GEMMs, m7's ring with tiles from a
// counter, in clusters of two blocks that share what they load; combine; the launches.
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
#include <drills/m8_persistent.loads.h>
#include <drills/m8_persistent.place.h>
#include <drills/m8_persistent.routing.h>
#include <drills/m8_persistent.tiles.h>

namespace moe::DRILL_SIDE::m8 {

// The workspace is dirty, and in a replay it holds what the call before left. All threads of one
// block of route call this: `ready` of every expert and both counters of next_tile become 0.
__device__ void reset_counters(const Arrays& a, int num_experts) {
  // BEGIN m8.reset
  const int thread = static_cast<int>(threadIdx.x);
  for (int e = thread; e < num_experts; e += kRouteThreads) a.ready[e] = 0;
  if (thread < 2) a.next_tile[thread] = 0;
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
  const int stride = round_up(num_experts, kWarpSize);
  const int parts = kPlaceThreads / stride;
  const int expert = thread % stride;
  int total = 0;
  int earlier = 0;
  if (thread < parts * stride && expert < num_experts) {
#pragma unroll 8
    for (int b = thread / stride; b < blocks; b += parts) {
      const int count = a.counts[static_cast<int64_t>(b) * num_experts + expert];
      total += count;
      if (b < this_block) earlier += count;
    }
    atomicAdd(&shared.totals[expert], total);
    atomicAdd(&shared.before[expert], earlier);
  }
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
    if (g == 0) {
      long_tiles = max(rows - tiles[0] * kTokens1, 0) / kUnit;
    } else {
      const int even = (rows + max(tiles[1], 1) - 1) / max(tiles[1], 1);
      tile_rows = round_up(even, kUnit);
    }
    for (int i = 0; i < tiles[g]; ++i) {
      a.runs[g][first_tile[g] + i] = {expert,
                                      first_tile[g],
                                      tiles[g],
                                      first_row,
                                      tile_rows,
                                      rows,
                                      tiles[0] * reports_of_tile,
                                      long_tiles};
    }
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
    for (int bit = 0; bit < bits; ++bit) {
#pragma unroll
      for (int r = 0; r < kRounds; ++r) {
        const bool one = (experts[r] >> bit & 1) != 0;
        const unsigned ones = __ballot_sync(kAllLanes, one);
        same[r] &= one ? ones : ~ones;
      }
    }
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const int id = i + r * kWarpSize + lane;
      const int rank = __popc(same[r] & ((1u << lane) - 1));
      int place = 0;
      if (id < last) place = shared.totals[experts[r]] + rank;
      __syncwarp();
      if (id < last) {
        if (rank == 0) shared.totals[experts[r]] += __popc(same[r]);
        a.sorted_row[id] = place;
        a.sorted_token[place] = id / top_k;
      }
      __syncwarp();
    }
    // END m8.place
  }
}

namespace {

// ---- The GEMMs.

// Tile number pid, for the block `rank` of the cluster. num_pid_n is a multiple of CLUSTER.
//
// GEMM1: CLUSTER token tiles of a run by the same column tile, whose rows of W the blocks share.
// Token tiles that are left, and a last one of at most 64 tokens (which takes less time), are done
// with CLUSTER column tiles instead. GEMM2: always that; the blocks share the tokens.
//
// A run's tiles are walked token tile by token tile, then the next column tile: so blocks that work
// side by side ask for the same rows of W. `steps` is the number of column tiles of a cluster; the
// run's first number is first_tile * steps.
template <bool GEMM1, int CLUSTER>
__device__ Tile tile_of(int pid, int num_pid_n, const Run* runs, int rank) {
  // BEGIN m8.tile_of
  const int steps = num_pid_n / CLUSTER;
  const Run run = runs[pid / steps];
  const int in_run = pid - run.first_tile * steps;
  const auto start = [&run](int local) {
    return local * run.tile_rows + min(local, run.long_tiles) * kUnit;
  };
  int groups = 0;  // of CLUSTER token tiles
  if (GEMM1 && CLUSTER > 1) {
    const int last = run.rows - start(run.num_tiles - 1);
    groups = (run.num_tiles - (last <= 64 ? 1 : 0)) / CLUSTER;
  }
  Tile tile = {};
  int local = 0;  // number of the token tile in the run
  tile.shares_w = GEMM1 && CLUSTER > 1 && in_run < groups * num_pid_n;
  if (tile.shares_w) {
    local = CLUSTER * (in_run % groups) + rank;
    tile.n = in_run / groups;
  } else {
    const int left = in_run - groups * num_pid_n;
    const int num_left = run.num_tiles - groups * CLUSTER;
    local = groups * CLUSTER + left % num_left;
    tile.n = CLUSTER * (left / num_left) + rank;
  }
  const int tokens = run.tile_rows + (local < run.long_tiles ? kUnit : 0);
  tile.tokens = min(tokens, run.rows - start(local));
  tile.row = run.first_row + start(local);
  tile.expert = run.expert;
  tile.ready_when = run.ready_when;
  return tile;
  // STUB: return {};
  // END m8.tile_of
}

// Thread 0: takes tiles, one after the other, and copies by TMA all that TMA can copy.
template <bool GEMM1, int MAX_TOKENS, int CLUSTER>
__device__ __forceinline__ void load_tiles(SharedTiles<GEMM1, MAX_TOKENS>& tiles,
                                           const CUtensorMap& w_map,
                                           const CUtensorMap& h_map,
                                           const Problem& p,
                                           int num_pid_n) {
  using Shared = SharedTiles<GEMM1, MAX_TOKENS>;
  constexpr uint16_t kAllBlocks = (1 << CLUSTER) - 1;
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  const int rank = CLUSTER > 1 ? cluster_rank() : 0;
  const int num_tiles = *p.num_tiles * (num_pid_n / CLUSTER);
  const int step = static_cast<int>(gridDim.x) / CLUSTER;
  // The first rounds are dealt out in turn: neighbours then ask for the same W at the same time.
  const int dealt = max(1, num_tiles / step - p.free_rounds);
  int round = 0;
  RingPlace<Shared::STAGES> place;
  place.parity = 1;  // the ring starts empty
  NextTile<CLUSTER, Shared> next_tile(tiles, rank);
  Jobs<Shared> jobs(tiles);

  // GEMM1: tells GEMM2 that a tile of the expert lies in memory, once both consumers have said so.
  // The release takes a microsecond: here nobody waits for it.
  uint32_t stored_parity = 0;
  int unreported = -1;  // expert of the tile before
  const auto report_tile = [&] {
    if (!GEMM1 || unreported < 0) return;
    mbarrier_wait(&tiles.stored, stored_parity);
    stored_parity ^= 1;
    // BEGIN m8.report
    fence_proxy_async_global();
    add_release(&p.ready[unreported], 1);
    // END m8.report
  };

  int pid = static_cast<int>(blockIdx.x) / CLUSTER;
  Tile tile = {};
  if (pid < num_tiles) tile = tile_of<GEMM1, CLUSTER>(pid, num_pid_n, p.runs, rank);
  if (GEMM1) jobs.post(tile);
  while (pid < num_tiles) {
    if (!GEMM1) {
      // Wait until the expert's rows of h are reported. They were stored by TMA, they will be read
      // by TMA, and the flag is read by the ordinary path: a proxy fence behind the wait.
      // BEGIN m8.await_rows
      while (load_acquire(&p.ready[tile.expert]) < tile.ready_when) {
      }
      fence_proxy_async_global();
      // END m8.await_rows
    }
    const int token_boxes = GEMM1 ? 0 : (tile.tokens + kSlab - 1) / kSlab;
    const int bytes = static_cast<int>(sizeof(tiles.w[0])) + token_boxes * kSlab * BLOCK_K * 2;
    const int row = tile.n * kColumns;
    int next_pid = 0;
    Tile next = {};
    for (int turn = 0; turn < turns; ++turn) {
      const int s = place.stage;
      const int k = turn * BLOCK_K;
      mbarrier_wait(&tiles.empty[s], place.parity);
      tiles.tile[s] = make_int4(tile.expert, tile.tokens, tile.row, tile.n);
      mbarrier_arrive_expect_tx(&tiles.full[s], bytes);
      // What the blocks of a cluster share each loads a part of, for all: so the bytes that a block
      // expects come from all.
      if (GEMM1 && tile.shares_w) {
        tma_load_multicast(tiles.w[s][rank * kBoxRows], w_map, k, row + rank * p.columns,
                           tile.expert, &tiles.full[s], kAllBlocks);
      } else {
        tma_load(tiles.w[s], w_map, k, row, tile.expert, &tiles.full[s]);
        if constexpr (GEMM1) {
          tma_load(tiles.w[s][kBoxRows], w_map, k, row + p.columns, tile.expert, &tiles.full[s]);
        }
      }
      for (int i = rank; i < token_boxes; i += CLUSTER) {
        const int first = i * kSlab;
        if (CLUSTER > 1) {
          tma_load_multicast(tiles.tokens[s][first], h_map, k, tile.row + first, &tiles.full[s],
                             kAllBlocks);
        } else {
          tma_load(tiles.tokens[s][first], h_map, k, tile.row + first, &tiles.full[s]);
        }
      }
      // `dealt` rounds are dealt out, in each of which number first + round * step is this
      // cluster's; all later numbers go to who asks first. The answer takes a microsecond: ask in
      // turn 0, behind the copies, and use it two turns later. (Of atomicAdd with a constant nvcc
      // makes one for the warp, and waits for it at once.)
      if (turn == 0 && rank == 0) {
        ++round;
        // BEGIN m8.next_tile
        next_pid = round < dealt ? pid + step : dealt * step + add_relaxed(p.next_tile, 1);
        // STUB: next_pid = num_tiles;
        // END m8.next_tile
      }
      if (turn == min(2, turns - 1)) next_tile.send(next_pid);
      if (turn == min(3, turns - 1)) {
        next_pid = next_tile.receive();
        if (next_pid < num_tiles) {
          next = tile_of<GEMM1, CLUSTER>(next_pid, num_pid_n, p.runs, rank);
        }
        if (GEMM1) jobs.post(next);
      }
      if (turn == min(kReportTurn + Shared::STAGES + 2, turns - 1)) report_tile();
      place.advance();
    }
    unreported = tile.expert;
    pid = next_pid;
    tile = next;
  }
  mbarrier_wait(&tiles.empty[place.stage], place.parity);
  tiles.tile[place.stage] = make_int4(-1, 0, 0, 0);
  mbarrier_arrive(&tiles.full[place.stage]);
  report_tile();
}

template <bool GEMM1, int MAX_TOKENS, int CLUSTER>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ CUtensorMap w_map,
                const __grid_constant__ CUtensorMap h_map,       // GEMM2; boxes of 64 rows
                const __grid_constant__ CUtensorMap out_map,     // boxes of kUnit rows
                const __grid_constant__ CUtensorMap out_map_64,  // boxes of 64 rows
                Problem p) {
  using Shared = SharedTiles<GEMM1, MAX_TOKENS>;
  constexpr int STAGES = Shared::STAGES;
  constexpr int kSlabs = MAX_TOKENS / kSlab;  // GEMM1: of 64 columns, GEMM2: of 64 tokens
  constexpr int kStoreTurns = 4;              // of GEMM1, in which the tile before is stored
  constexpr int kHeld = MAX_TOKENS / 4;       // packed pairs that a thread keeps of a tile

  auto& tiles = *dynamic_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize;
  const int warpgroup = thread / kWarpgroup;
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  // Of a cluster's column tiles the last may lie outside: loaded as zeros, and not stored.
  const int num_pid_n = round_up((p.columns + kColumns - 1) / kColumns, CLUSTER);

  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(&tiles.full[s], GEMM1 ? 1 + kGatherThreads : 1);
      mbarrier_init(&tiles.empty[s], CLUSTER * kConsumerWarps);
    }
    mbarrier_init(&tiles.sent, 1);
    mbarrier_init(&tiles.read, CLUSTER);
    mbarrier_init(&tiles.stored, 2);
    mbarrier_init(&tiles.job_posted, 1);
    mbarrier_init(&tiles.job_taken, kGatherThreads / kWarpSize);
    mbarrier_init_fence();
  }
  meet_cluster<CLUSTER>();
  // GEMM1 waits for the end of place, and with it of route. GEMM2 waits for the reports of GEMM1,
  // whose blocks have waited. Then blocks of the next kernel may start where these leave room.
  if (GEMM1) griddepcontrol_wait();
  griddepcontrol_launch_dependents();

  if (warpgroup == 0) {
    setmaxnreg_dec<GEMM1 ? 72 : 56>();
    if (thread == 0) {
      load_tiles<GEMM1, MAX_TOKENS, CLUSTER>(tiles, w_map, h_map, p, num_pid_n);
    } else if (thread >= kWarpSize) {
      if constexpr (GEMM1) gather_tokens<MAX_TOKENS>(tiles, p);
    }
    leave_cluster<CLUSTER>();
    return;
  }

  // ---- Consumers. GEMM1: 64 tokens by all 256 rows of W each; GEMM2: 64 rows of W by all tokens.
  setmaxnreg_inc<GEMM1 ? 216 : 224>();
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
  bool unreported = false;  // a tile is stored, or being stored, and not yet reported

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
      if (first_token + kSlab <= held_tile.y) {
        tma_store(out_map_64, buffer, column, held_tile.z + first_token);
      } else {
        for (int t = 0; first_token + t < held_tile.y; t += kUnit) {
          tma_store(out_map, buffer + t * 128, column, held_tile.z + first_token + t);
        }
      }
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
  // GEMM1: says that this consumer's part of the tile before lies in memory. It was stored by TMA:
  // wait for the stores themselves, not for their reads.
  const auto report_tile = [&] {
    if (!GEMM1 || !unreported) return;
    if (storer) {
      bulk_wait<0>();
      mbarrier_arrive(&tiles.stored);
    }
    unreported = false;
  };

  const auto wait_full = [&] {
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    if (GEMM1) fence_proxy_async();
  };
  const auto hand_back = [&] {
    hand_back_stage<CLUSTER>(&tiles.empty[place.stage]);
    place.advance();
  };
  const auto release = [&] {
    wgmma_wait<0>();
    hand_back();
  };
  const int report_turn = min(turns, kReportTurn);

  for (;;) {
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    const int4 tile = tiles.tile[place.stage];
    if (tile.x < 0) break;

    // A tile of at most 64 tokens is all consumer 0's. The other only hands the stages back, and
    // does what is due in the first turns: stores its tile before, and says that it is stored.
    // BEGIN m8.half_tile
    if (GEMM1 && consumer == 1 && tile.y <= 64) {
      for (int turn = 0; turn < turns; ++turn) {
        mbarrier_wait(&tiles.full[place.stage], place.parity);
        if (turn == 0 && pending) {
          store_slab(0);
          store_slab(1);
          store_unit();
        }
        if (turn + 1 == report_turn) report_tile();
        __syncwarp();  // all lanes have read `tile`, which the producer overwrites
        hand_back();
      }
      pending = false;
      unreported = true;
      continue;
    }
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
              const uint64_t unit = wgmma_descriptor(tiles.tokens[place.stage][kTokens1]);
              const uint64_t gate = wgmma_descriptor(tiles.w[place.stage][consumer * 64]);
              const uint64_t up = wgmma_descriptor(tiles.w[place.stage][kBoxRows + consumer * 64]);
              wgmma_bf16(gate_sums, gate + 2 * k, unit + 2 * k, adds);
              wgmma_bf16(up_sums, up + 2 * k, unit + 2 * k, adds);
              // END m8.long_tile
            }
          }
          wgmma_commit();
        };
        const auto store_part = [&](int turn) {
          if (!pending) return;
          if (turn == 0) store_slab(0);
          if (turn == 2) store_slab(1);  // when the slab before has been read
          if (turn == 3) store_unit();
        };
#pragma unroll
        for (int turn = 0; turn < kStoreTurns; ++turn) {
          if (turn < turns) {
            multiply(turn);
            store_part(turn);
            release();
          } else {
            store_part(turn);
          }
        }
        int turn = kStoreTurns;
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
        const uint64_t w = wgmma_descriptor(tiles.w[place.stage][consumer * 64]);
        const uint64_t t = wgmma_descriptor(tiles.tokens[place.stage]);
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < BLOCK_K / 16; ++k) {
          wgmma_bf16(sums, w + 2 * k, t + 2 * k, !first || k > 0);
        }
        wgmma_commit();
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
    unreported = true;
  }
  if (pending) {
#pragma unroll
    for (int slab = 0; slab < kSlabs; ++slab) store_slab(slab);
    store_unit();
  }
  report_tile();
  if (storer) bulk_wait<0>();  // shared memory must live until it has been read
  leave_cluster<CLUSTER>();
}

// ---- The sum over the slots of a token.

constexpr int kCombineThreads = 256;
constexpr int kSlotsAtOnce = 8;  // loads that a thread has under way

__global__ void __launch_bounds__(kCombineThreads)
    combine_kernel(__nv_bfloat16* out, Arrays a, int top_k, int hidden_size) {
  const int64_t token = blockIdx.x;
  const int32_t* rows = a.sorted_row + token * top_k;
  const float* weights = a.topk_weights + token * top_k;
  bool waited = false;
  for (int column = static_cast<int>(threadIdx.x) * kChunk; column < hidden_size;
       column += kCombineThreads * kChunk) {
    float sums[kChunk] = {};
    for (int first = 0; first < top_k; first += kSlotsAtOnce) {
      int64_t slot_rows[kSlotsAtOnce];
      float slot_weights[kSlotsAtOnce];
#pragma unroll
      for (int i = 0; i < kSlotsAtOnce; ++i) {  // no branch: all are asked for before one is used
        const int slot = min(first + i, top_k - 1);
        slot_rows[i] = rows[slot];
        slot_weights[i] = weights[slot];
      }
      // Rows and weights are there since GEMM1 waited for place; y is there now.
      if (!waited) griddepcontrol_wait();
      waited = true;
      // Adds weight * y in the order of slots; y of slot first + i is row slot_rows[i], columns
      // `column` .. + 7. A row of y is read once: __ldcs.
      // BEGIN m8.combine
      uint4 values[kSlotsAtOnce];
#pragma unroll
      for (int i = 0; i < kSlotsAtOnce; ++i) {
        if (first + i >= top_k) break;
        values[i] =
            __ldcs(reinterpret_cast<const uint4*>(a.y + slot_rows[i] * hidden_size + column));
      }
#pragma unroll
      for (int i = 0; i < kSlotsAtOnce; ++i) {
        if (first + i >= top_k) break;
        const float weight = slot_weights[i];
        const uint32_t pairs[4] = {values[i].x, values[i].y, values[i].z, values[i].w};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          sums[2 * c] += weight * __uint_as_float(pairs[c] << 16);
          sums[2 * c + 1] += weight * __uint_as_float(pairs[c] & 0xffff0000u);
        }
      }
      // END m8.combine
    }
    const uint4 packed = {pack(sums[0], sums[1]), pack(sums[2], sums[3]), pack(sums[4], sums[5]),
                          pack(sums[6], sums[7])};
    *reinterpret_cast<uint4*>(out + token * hidden_size + column) = packed;
  }
}

// ---- Launches.

template <bool GEMM1, int MAX_TOKENS, int CLUSTER>
cudaError_t launch_gemm(const Maps& maps,
                        const Arrays& a,
                        const __nv_bfloat16* x,
                        const Sizes& s,
                        cudaStream_t stream) {
  int blocks = 0;  // one for each multiprocessor, whole clusters
  const cudaError_t status = count_multiprocessors(&blocks);
  if (status != cudaSuccess) return status;
  blocks = std::max(blocks / CLUSTER, 1) * CLUSTER;
  constexpr int kIndex = GEMM1 ? 0 : 1;
  Problem p = {};
  p.x = x;
  p.sorted_token = a.sorted_token;
  p.runs = a.runs[kIndex];
  p.num_tiles = a.num_tiles + kIndex;
  p.next_tile = a.next_tile + kIndex;
  p.ready = a.ready;
  p.free_rounds = GEMM1 ? INT_MAX : 2;  // measured
  p.columns = GEMM1 ? s.intermediate_size : s.hidden_size;
  p.depth = GEMM1 ? s.hidden_size : s.intermediate_size;
  LaunchOptions after;
  after.programmatic = true;
  after.cluster_size = CLUSTER;
  return launch(after, gemm_kernel<GEMM1, MAX_TOKENS, CLUSTER>, dim3(static_cast<unsigned>(blocks)),
                dim3(kThreads), sizeof(SharedTiles<GEMM1, MAX_TOKENS>), stream,
                GEMM1 ? maps.w13 : maps.w2, maps.h_64, GEMM1 ? maps.h : maps.y,
                GEMM1 ? maps.h_64 : maps.y_64, p);
}

cudaError_t launch_gemm1(const Maps& maps,
                         const Arrays& a,
                         const __nv_bfloat16* x,
                         const Sizes& s,
                         int cluster,
                         cudaStream_t stream) {
  if (cluster == 2) return launch_gemm<true, kTokens1, 2>(maps, a, x, s, stream);
  return launch_gemm<true, kTokens1, 1>(maps, a, x, s, stream);
}

// Two blocks in a cluster: then max_tokens is 256.
cudaError_t launch_gemm2(const Maps& maps,
                         const Arrays& a,
                         const Sizes& s,
                         int max_tokens,
                         int cluster,
                         cudaStream_t stream) {
  if (cluster == 2) return launch_gemm<false, 256, 2>(maps, a, nullptr, s, stream);
  if (max_tokens == 256) return launch_gemm<false, 256, 1>(maps, a, nullptr, s, stream);
  if (max_tokens == 128) return launch_gemm<false, 128, 1>(maps, a, nullptr, s, stream);
  return launch_gemm<false, 64, 1>(maps, a, nullptr, s, stream);
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
  const int cluster = cluster_of(num_tokens, num_experts, top_k);
  // Each tile of GEMM1 is reported at each of its column tiles, a whole number of clusters.
  const int column_tiles = (intermediate_size + kColumns - 1) / kColumns;
  const int reports_of_tile = (column_tiles + cluster - 1) / cluster * cluster;
  // The five kernels, each after the other has been launched; the first error is returned.
  // BEGIN m8.launches
  status = launch_route(a, logits, sizes, renormalize, stream);
  if (status != cudaSuccess) return status;
  status = launch_place(a, sizes, max_tokens, reports_of_tile, stream);
  if (status != cudaSuccess) return status;
  status = launch_gemm1(maps, a, x, sizes, cluster, stream);
  if (status != cudaSuccess) return status;
  status = launch_gemm2(maps, a, sizes, max_tokens, cluster, stream);
  if (status != cudaSuccess) return status;
  return launch_combine(out, a, sizes, stream);
  // STUB: return cudaSuccess;
  // END m8.launches
}

}  // namespace moe::DRILL_SIDE::m8
