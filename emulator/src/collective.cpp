// Warp collectives: meeting, checking and the shuffles, votes and reductions.
#include <bit>
#include <cstdio>
#include <cstring>
#include <utility>

#include "block.h"

namespace emulator {

namespace {

std::string lanes_text(unsigned lanes) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", lanes);
  return text;
}

}  // namespace

const char* name_of(Operation operation) {
  static constexpr const char* kNames[] = {
      "nothing",           "__syncthreads",     "__syncthreads_count", "__syncthreads_and",
      "__syncthreads_or",  "__nanosleep",       "load_acquire",        "mbarrier_wait",
      "mbarrier_try_wait", "a named barrier",   "wgmma_wait",          "setmaxnreg_inc",
      "cluster_sync",      "__syncwarp",        "__shfl_sync",         "__shfl_up_sync",
      "__shfl_down_sync",  "__shfl_xor_sync",   "__ballot_sync",       "__any_sync",
      "__all_sync",        "__match_any_sync",  "__match_all_sync",    "__reduce_add_sync",
      "__reduce_min_sync", "__reduce_max_sync", "__reduce_min_sync",   "__reduce_max_sync",
      "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync",   "ldmatrix.x1",
      "ldmatrix.x2",       "ldmatrix.x4",       "ldmatrix.x1.trans",   "ldmatrix.x2.trans",
      "ldmatrix.x4.trans", "mma.m16n8k16",      "mma.m16n8k32.e4m3",   "stmatrix.x4",
      "stmatrix.x4.trans", "elect.sync",
  };
  static_assert(sizeof kNames / sizeof kNames[0] ==
                static_cast<std::size_t>(Operation::kElect) + 1);
  return kNames[static_cast<std::size_t>(operation)];
}

void Block::refuse_arrival(const Collective& collective,
                           Operation operation,
                           unsigned mask,
                           Place place) {
  wait_at(operation, place);
  std::string sentence = "lanes of one warp execute different warp functions: ";
  if (collective.operation == operation && collective.mask != mask) {
    sentence = std::string("lanes of one warp call ") + name_of(operation) +
               " with masks that overlap and differ: " + lanes_text(collective.mask) + " and " +
               lanes_text(mask);
  } else if (collective.operation == operation) {
    sentence =
        std::string("lanes of one warp execute ") + name_of(operation) + " at different places";
  } else {
    sentence += std::string(name_of(collective.operation)) + " and " + name_of(operation);
  }
  fail("divergence", std::move(sentence), place, true);
}

void Block::refuse_mask(Operation operation, unsigned mask, Place place) {
  if ((mask & 1u << lane()) == 0) {
    fail("divergence",
         std::string(name_of(operation)) + ": mask " + lanes_text(mask) +
             " leaves out the calling lane " + std::to_string(lane()),
         place);
  }
  wait_at(operation, place);
  fail("divergence",
       std::string(name_of(operation)) + " needs all 32 lanes of the warp; lanes " +
           lanes_text(~warp().live) + " returned or never existed",
       place, true);
}

void Block::finish_collective(Warp& w, Collective& collective) {
  if (collective.operation != Operation::kSyncWarp) {
    touching = collective.place;
    compute_collective(w, collective);
    touching = {};
  }
  if (Observer* o = observer()) {
    o->complete(*this,
                {SyncKind::kWarp, collective.operation, 0, collective.arrived, collective.place});
  }
  ready_.splice_front(collective.waiting);
  Collective& last = w.collectives[static_cast<std::size_t>(--w.num_collectives)];
  if (&last != &collective) collective = last;
  advance();
}

// A lane that returned is no longer waited for.
void Block::leave_warp(Fiber& fiber) {
  Warp& w = warps_[static_cast<std::size_t>(fiber.linear / kLanes)];
  const unsigned lane_bit = 1u << fiber.linear % kLanes;
  w.live &= ~lane_bit;
  for (int i = w.num_collectives - 1; i >= 0; --i) {
    Collective& collective = w.collectives[static_cast<std::size_t>(i)];
    if ((collective.mask & lane_bit) == 0) continue;
    if (is_aligned(collective.operation)) {
      set_fault("divergence", std::string("a lane returned while others of its warp wait at ") +
                                  name_of(collective.operation));
      fault_.text += "\n  in " + describe_thread(blockIdx, fiber.index) + describe_states();
      abandon();
    }
    if (collective.arrived == (collective.mask & w.live)) finish_collective(w, collective);
  }
}

namespace {

constexpr int kSourceSlot = 2;  // of a shuffle; the words are in slots 0 and 1

void compute_shuffle(Warp& warp, unsigned lanes) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) == 0) continue;
    const std::uint32_t source = warp.in[kSourceSlot][lane];
    warp.out[0][lane] = warp.in[0][source];
    warp.out[1][lane] = warp.in[1][source];
    warp.out[2][lane] = lanes >> source & 1u;  // did the source lane take part?
  }
}

void compute_match(Warp& warp, unsigned lanes, bool all) {
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) == 0) continue;
    unsigned equal = 0;
    for (int other = 0; other < kLanes; ++other) {
      const bool same =
          warp.in[0][other] == warp.in[0][lane] && warp.in[1][other] == warp.in[1][lane];
      if ((lanes >> other & 1u) != 0 && same) equal |= 1u << other;
    }
    warp.out[0][lane] = !all || equal == lanes ? equal : 0;
  }
}

std::uint32_t combine(Operation operation, std::uint32_t a, std::uint32_t b) {
  switch (operation) {
    case Operation::kReduceAdd:
      return a + b;
    case Operation::kReduceMin:
      return a < b ? a : b;
    case Operation::kReduceMax:
      return a > b ? a : b;
    case Operation::kReduceMinSigned:
      return std::bit_cast<std::int32_t>(a) < std::bit_cast<std::int32_t>(b) ? a : b;
    case Operation::kReduceMaxSigned:
      return std::bit_cast<std::int32_t>(a) > std::bit_cast<std::int32_t>(b) ? a : b;
    case Operation::kAll:
    case Operation::kReduceAnd:
      return a & b;
    case Operation::kReduceXor:
      return a ^ b;
    default:  // kAny, kBallot (each lane's own bit) and kReduceOr
      return a | b;
  }
}

void compute_vote(Warp& warp, Operation operation, unsigned lanes) {
  std::uint32_t result = 0;
  bool first = true;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) == 0) continue;
    result = first ? warp.in[0][lane] : combine(operation, result, warp.in[0][lane]);
    first = false;
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1u) != 0) warp.out[0][lane] = result;
  }
}

}  // namespace

void compute_collective(Warp& warp, const Collective& collective) {
  switch (collective.operation) {
    case Operation::kShuffle:
    case Operation::kShuffleUp:
    case Operation::kShuffleDown:
    case Operation::kShuffleXor:
      return compute_shuffle(warp, collective.arrived);
    case Operation::kMatchAny:
    case Operation::kMatchAll:
      return compute_match(warp, collective.arrived, collective.operation == Operation::kMatchAll);
    case Operation::kLdmatrix1:
      return compute_ldmatrix(warp, 1, false);
    case Operation::kLdmatrix2:
      return compute_ldmatrix(warp, 2, false);
    case Operation::kLdmatrix4:
      return compute_ldmatrix(warp, 4, false);
    case Operation::kLdmatrixTrans1:
      return compute_ldmatrix(warp, 1, true);
    case Operation::kLdmatrixTrans2:
      return compute_ldmatrix(warp, 2, true);
    case Operation::kLdmatrixTrans4:
      return compute_ldmatrix(warp, 4, true);
    case Operation::kMma:
      return compute_mma(warp);
    case Operation::kMmaE4m3:
      return compute_mma_e4m3(warp);
    case Operation::kStmatrix4:
      return compute_stmatrix(warp, false);
    case Operation::kStmatrixTrans4:
      return compute_stmatrix(warp, true);
    case Operation::kElect:
      return compute_elect(warp);
    default:
      return compute_vote(warp, collective.operation, collective.arrived);
  }
}

// ---- What device code calls.

void sync_warp(unsigned mask, Place place) {
  t_block->collective(Operation::kSyncWarp, mask, place);
}

namespace {

// The lane that a shuffle reads; its own one where the wanted one lies outside its segment.
int source_lane(Operation operation, int lane, int operand, int width) {
  const int first = lane & ~(width - 1);
  const int last = lane | (width - 1);
  switch (operation) {
    case Operation::kShuffle:
      return first | (operand & (width - 1));
    case Operation::kShuffleUp:
      return operand <= lane - first ? lane - operand : lane;
    case Operation::kShuffleDown:
      return operand <= last - lane ? lane + operand : lane;
    default: {
      // Lower segments may be read, higher ones not.
      const int source = (lane ^ operand) & (kLanes - 1);
      return source <= last ? source : lane;
    }
  }
}

}  // namespace

void shuffle(Operation operation,
             unsigned mask,
             std::uint32_t* words,
             int num_words,
             int operand,
             int width,
             Place place) {
  Block& block = *t_block;
  if (width < 1 || width > kLanes || (width & (width - 1)) != 0) {
    block.fail("out of bounds",
               std::string(name_of(operation)) + ": width " + std::to_string(width) +
                   " is not 1, 2, 4, 8, 16 or 32",
               place);
  }
  Warp& warp = block.warp();
  const int lane = block.lane();
  // Deltas are unsigned in CUDA: a negative one is a large one, and leaves the segment.
  const bool is_delta = operation == Operation::kShuffleUp || operation == Operation::kShuffleDown;
  const int bounded = is_delta && (operand < 0 || operand > kLanes) ? kLanes : operand;
  const int source = source_lane(operation, lane, bounded, width);
  for (int i = 0; i < num_words; ++i) warp.in[i][lane] = words[i];
  warp.in[kSourceSlot][lane] = static_cast<std::uint32_t>(source);
  block.collective(operation, mask, place);
  if (warp.out[2][lane] == 0) {
    const bool named = (mask >> source & 1u) != 0;
    block.fail("divergence",
               std::string(name_of(operation)) + " reads lane " + std::to_string(source) +
                   (named ? ", which has returned" : ", which the mask leaves out"),
               place);
  }
  for (int i = 0; i < num_words; ++i) words[i] = warp.out[i][lane];
}

std::uint32_t vote(Operation operation, unsigned mask, std::uint32_t value, Place place) {
  Block& block = *t_block;
  Warp& warp = block.warp();
  const int lane = block.lane();
  warp.in[0][lane] = operation == Operation::kBallot ? value << lane : value;
  block.collective(operation, mask, place);
  return warp.out[0][lane];
}

std::uint32_t match(Operation operation, unsigned mask, std::uint64_t value, Place place) {
  Block& block = *t_block;
  Warp& warp = block.warp();
  const int lane = block.lane();
  warp.in[0][lane] = static_cast<std::uint32_t>(value);
  warp.in[1][lane] = static_cast<std::uint32_t>(value >> 32);
  block.collective(operation, mask, place);
  return warp.out[0][lane];
}

}  // namespace emulator
