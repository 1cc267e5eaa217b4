// buffers.h: the device buffers of one call, as the parent sees them: exact bytes before and after.
//
// In memory a buffer is [red zone][payload][tail][red zone]. Outputs start as poison, workspaces as
// garbage. The tail is what a careless kernel finds right behind an array (rows of NaN behind x). A
// buffer too big to send is sparse: only the range that matters is filled and read back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "../runner/protocol.h"
#include "verdict.h"

namespace moe::judge {

enum class Role { kInput, kOutput, kWorkspace };

using Bytes = std::vector<unsigned char>;

struct HostBuffer {
  std::string name;
  Role role = Role::kInput;
  Bytes payload;  // the filled range of it, when sparse
  Bytes tail;
  Bytes poison;                // pattern that repeats over an output, one element long
  uint64_t sparse_bytes = 0;   // whole payload, when sparse
  uint64_t sparse_offset = 0;  // where in it the filled range starts
  bool null = false;           // the function gets nullptr
  // For reports alone.
  size_t element_bytes = 1;
  size_t columns = 0;  // 0: one dimension
  size_t rows = 0;     // of each matrix, where there are several; else 0
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
HostBuffer input(std::string name, const std::vector<T>& values, const std::vector<T>& tail = {}) {
  return {std::move(name),
          Role::kInput,
          bytes_of(values),
          bytes_of(tail),
          {},
          0,
          0,
          false,
          sizeof(T),
          0,
          0};
}

// An output of `count` elements, each poisoned with `poison`.
template <class T>
HostBuffer output(std::string name, size_t count, T poison) {
  const std::vector<T> one = {poison};
  return {std::move(name),
          Role::kOutput,
          bytes_of(std::vector<T>(count, poison)),
          {},
          bytes_of(one),
          0,
          0,
          false,
          sizeof(T),
          0,
          0};
}

// A buffer of rows, or of matrices of `rows` rows each: reports then name the element.
template <class Size>
HostBuffer shaped(HostBuffer buffer, Size columns, Size rows = 0) {
  buffer.columns = static_cast<size_t>(columns);
  buffer.rows = static_cast<size_t>(rows);
  return buffer;
}

HostBuffer workspace(std::string name, size_t bytes, uint64_t seed);

// One call of a function under test.
struct Call {
  uint32_t operation = 0;
  std::vector<int64_t> integers;
  std::vector<HostBuffer> buffers;
};

// The images of all buffers of a call, ready to be sent.
struct Images {
  std::vector<protocol::Buffer> places;
  Bytes bytes;
};
Images images_of(const Call& call, uint64_t seed);

// Compares the images after a call with those before: red zones, tails and inputs must be
// unchanged.
Verdict check_untouched(const Call& call, const Images& before, const Bytes& after);

// The payload of buffer `index` (its filled range) after the call.
Bytes payload_after(const Call& call, const Images& images, const Bytes& after, size_t index);

}  // namespace moe::judge
