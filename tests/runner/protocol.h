// protocol.h: what the tests (parent) and the runner (child) say to each other.
//
// One SOCK_SEQPACKET socket carries a Request with two file descriptors (the sealed images of all
// buffers before the call, and a memory file of exact size for the images after it) and, back, a
// Reply. Nothing in a Reply is a verdict: the parent judges the bytes. A second memory file,
// `report`, is where the child may leave a last sentence when it dies.
#pragma once

#include <cstdint>
#include <type_traits>

namespace moe::protocol {

inline constexpr uint32_t kMagic = 0x316c7264;  // "drl1"
inline constexpr int kSocketFd = 3;
inline constexpr int kReportFd = 4;
inline constexpr uint32_t kReportBytes = 64 * 1024;
inline constexpr int kMaxIntegers = 16;
inline constexpr int kMaxBuffers = 12;
inline constexpr int kMaxSamples = 64;
inline constexpr int kMaxTimes = 256;
inline constexpr int kMaxTodos = 16;
inline constexpr int kTodoNameBytes = 48;

enum class Kind : uint32_t {
  kHello,   // who are you: device name and capability, nothing runs
  kValue,   // a host helper that returns a number (Reply::value)
  kCall,    // one call on fresh buffers
  kReplay,  // capture the call on the first images, replay the graph on the second
  kTime,    // time replays of the captured call on generated data; GPU only
};

enum class ThreadOrder : uint32_t { kForward, kReverse };

// How a buffer gets its first contents. Big inputs are generated on the device: runner/generated.h.
enum class Fill : uint32_t { kImage, kGeneratedBf16, kGeneratedFloat, kGeneratedE4m3, kPoison };

// One device allocation. A range of it, [filled_offset, filled_offset + image_bytes), comes from
// and goes back to the images; for ordinary buffers that is all of it, red zones included.
struct Buffer {
  uint64_t allocation_bytes;
  uint64_t payload_offset;  // the pointer that the function gets
  uint64_t filled_offset;
  uint64_t image_bytes;
  uint64_t image_offset;  // in the image files
  Fill fill;
  float scale;  // of generated values: their standard deviation
  uint64_t seed;
  // For reports of what is read and written outside: x[row 9 of 4][col 0].
  char name[32];  // "": not told
  uint64_t payload_bytes;
  uint32_t element_bytes;
  uint32_t columns;    // 0: one dimension
  uint32_t rows;       // of each matrix, where there are several; else 0
  uint32_t unwritten;  // 1: outputs and workspaces, whose first contents say nothing
};

// A range of a buffer that is sent back after timing, so that timed outputs are judged too.
struct Sample {
  uint64_t buffer;
  uint64_t offset;
  uint64_t bytes;
  uint64_t result_offset;
};

struct Request {
  uint32_t magic;
  uint32_t sequence;
  Kind kind;
  uint32_t operation;  // which function of the stage
  ThreadOrder order;   // emulator only
  uint32_t num_buffers;
  uint64_t image_file_bytes;
  int64_t integers[kMaxIntegers];
  Buffer buffers[kMaxBuffers];
  // kTime
  uint32_t num_samples;
  uint32_t num_times;
  uint64_t result_file_bytes;
  Sample samples[kMaxSamples];
};

// kTime: what one kernel of the call takes of a multiprocessor.
inline constexpr int kMaxKernels = 12;
struct KernelUse {
  char name[96];
  int32_t registers;      // a thread
  int32_t local_bytes;    // a thread: spilled registers, and arrays that are indexed
  int32_t static_bytes;   // of shared memory, a block
  int32_t dynamic_bytes;  // of shared memory, a block
  int32_t threads;        // a block
  int32_t blocks_per_multiprocessor;
  int64_t blocks;
};

struct Reply {
  uint32_t magic;
  uint32_t sequence;
  int32_t call_status;     // cudaError_t that the function returned
  int32_t device_status;   // cudaError_t of the synchronize after it
  int32_t capture_status;  // kReplay: of begin, end and instantiate
  uint32_t multiprocessors;
  uint32_t capability_major;  // of the device: 9 and 0
  uint32_t capability_minor;
  int64_t value;
  int64_t allocated_bytes;  // what the call asked the runtime for, given back or not
  uint32_t num_allocations;
  float times_us[kMaxTimes];  // kTime: of each replay, L2 flushed before it
  uint32_t num_kernels;
  KernelUse kernels[kMaxKernels];
  uint32_t num_todos;
  uint32_t todo_hashes[kMaxTodos];             // CUDA: names are hashed on the device
  char todo_names[kMaxTodos][kTodoNameBytes];  // emulator
  char status_names[3][48];                    // of the three statuses above
  char refusal[160];                           // what refuse_X said
  char device[96];
  char fault[8192];  // the emulator's report
};

static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Reply>);

}  // namespace moe::protocol
