#include "device_buffers.h"

#include <unistd.h>

#include <cstdio>

#include "backend.h"
#include "generated.h"

namespace moe::runner {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "runner: %s: %s\n", what, cudaGetErrorString(status));
  _exit(70);
}

DeviceBuffers::DeviceBuffers(const protocol::Request& request) : request_(request) {
  for (uint32_t i = 0; i < request.num_buffers; ++i) {
    const protocol::Buffer& buffer = request.buffers[i];
    void* allocation = nullptr;
    if (buffer.allocation_bytes > 0) {
      check(cudaMalloc(&allocation, buffer.allocation_bytes), "cudaMalloc");
    }
    allocations_.push_back(static_cast<unsigned char*>(allocation));
    pointers_.push_back(allocation == nullptr ? nullptr : allocations_[i] + buffer.payload_offset);
  }
}

DeviceBuffers::~DeviceBuffers() {
  release_buffers();
  for (unsigned char* allocation : allocations_) (void)cudaFree(allocation);
}

void DeviceBuffers::upload(const unsigned char* images) {
  release_buffers();
  for (uint32_t i = 0; i < request_.num_buffers; ++i) {
    const protocol::Buffer& b = request_.buffers[i];
    if (b.allocation_bytes == 0) continue;
    if (b.fill == protocol::Fill::kPoison) {
      check(cudaMemset(allocations_[i], 0xff, b.allocation_bytes), "poison");
    } else if (b.fill != protocol::Fill::kImage) {
      check(generate(allocations_[i], b), "generate");
    } else if (b.image_bytes > 0) {
      check(cudaMemcpy(allocations_[i] + b.filled_offset, images + b.image_offset, b.image_bytes,
                       cudaMemcpyHostToDevice),
            "upload");
    }
  }
  check(cudaDeviceSynchronize(), "upload");
  guard_buffers(request_, pointers());
}

bool DeviceBuffers::download(unsigned char* images) {
  release_buffers();
  for (uint32_t i = 0; i < request_.num_buffers; ++i) {
    const protocol::Buffer& b = request_.buffers[i];
    if (b.image_bytes == 0) continue;
    if (cudaMemcpy(images + b.image_offset, allocations_[i] + b.filled_offset, b.image_bytes,
                   cudaMemcpyDeviceToHost) != cudaSuccess) {
      return false;
    }
  }
  return true;
}

bool DeviceBuffers::download_samples(unsigned char* results) {
  release_buffers();
  for (uint32_t i = 0; i < request_.num_samples; ++i) {
    const protocol::Sample& sample = request_.samples[i];
    if (cudaMemcpy(results + sample.result_offset, allocations_[sample.buffer] + sample.offset,
                   sample.bytes, cudaMemcpyDeviceToHost) != cudaSuccess) {
      return false;
    }
  }
  return true;
}

}  // namespace moe::runner
