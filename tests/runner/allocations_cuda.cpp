// What the code under test asks the CUDA runtime for. The linker leads every call from the runner's
// objects to these functions (--wrap): free memory as the driver tells it moves in steps of 2 MiB,
// which hide a leak. CMake reads the names from the lines that start with COUNTED.
#include <cuda_runtime_api.h>

#include <atomic>

#include "backend.h"

namespace moe::runner {
namespace {

std::atomic<uint32_t> requests{0};
std::atomic<int64_t> requested_bytes{0};

void note(size_t bytes) {
  ++requests;
  requested_bytes += static_cast<int64_t>(bytes);
}

size_t bytes_of(const cudaExtent& extent) {
  return extent.width * (extent.height + (extent.height == 0)) *
         (extent.depth + (extent.depth == 0));
}

}  // namespace

void forget_allocations() {
  requests = 0;
  requested_bytes = 0;
}

void note_allocations(protocol::Reply& reply) {
  reply.num_allocations = requests;
  reply.allocated_bytes = requested_bytes;
}

#define COUNTED(name, bytes, parameters, arguments) \
  extern "C" cudaError_t __real_##name parameters;  \
  extern "C" cudaError_t __wrap_##name parameters;  \
  extern "C" cudaError_t __wrap_##name parameters { \
    note(bytes);                                    \
    return __real_##name arguments;                 \
  }

// clang-format off
COUNTED(cudaMalloc, size, (void** p, size_t size), (p, size))
COUNTED(cudaMallocManaged, size, (void** p, size_t size, unsigned flags), (p, size, flags))
COUNTED(cudaMallocHost, size, (void** p, size_t size), (p, size))
COUNTED(cudaHostAlloc, size, (void** p, size_t size, unsigned flags), (p, size, flags))
COUNTED(cudaMallocAsync, size, (void** p, size_t size, cudaStream_t s), (p, size, s))
COUNTED(cudaMallocAsync_ptsz, size, (void** p, size_t size, cudaStream_t s), (p, size, s))
COUNTED(cudaMallocFromPoolAsync, size, (void** p, size_t size, cudaMemPool_t pool, cudaStream_t s), (p, size, pool, s))
COUNTED(cudaMallocFromPoolAsync_ptsz, size, (void** p, size_t size, cudaMemPool_t pool, cudaStream_t s), (p, size, pool, s))
COUNTED(cudaMallocPitch, width * height, (void** p, size_t* pitch, size_t width, size_t height), (p, pitch, width, height))
COUNTED(cudaMalloc3D, bytes_of(extent), (cudaPitchedPtr* p, cudaExtent extent), (p, extent))
COUNTED(cudaMallocArray, width, (cudaArray_t* a, const cudaChannelFormatDesc* d, size_t width, size_t height, unsigned flags), (a, d, width, height, flags))
COUNTED(cudaMalloc3DArray, bytes_of(extent), (cudaArray_t* a, const cudaChannelFormatDesc* d, cudaExtent extent, unsigned flags), (a, d, extent, flags))
COUNTED(cudaMallocMipmappedArray, bytes_of(extent), (cudaMipmappedArray_t* a, const cudaChannelFormatDesc* d, cudaExtent extent, unsigned levels, unsigned flags), (a, d, extent, levels, flags))
COUNTED(cudaGraphAddMemAllocNode, node->bytesize, (cudaGraphNode_t* n, cudaGraph_t g, const cudaGraphNode_t* from, size_t count, cudaMemAllocNodeParams* node), (n, g, from, count, node))
// clang-format on

}  // namespace moe::runner
