// device_buffers.h: the device side of one request.
#pragma once

#include <cuda_runtime.h>

#include <vector>

#include "protocol.h"

namespace moe::runner {

// Ends the process where the runner itself (not the code under test) can't go on.
void check(cudaError_t status, const char* what);

class DeviceBuffers {
 public:
  explicit DeviceBuffers(const protocol::Request& request);
  ~DeviceBuffers();
  DeviceBuffers(const DeviceBuffers&) = delete;
  DeviceBuffers& operator=(const DeviceBuffers&) = delete;

  // Fills every buffer: from the images, by the generator, or with poison.
  void upload(const unsigned char* images);
  // False when a fault of the code under test shows only here.
  bool download(unsigned char* images);
  bool download_samples(unsigned char* results);
  void* const* pointers() const { return pointers_.data(); }

 private:
  const protocol::Request& request_;
  std::vector<unsigned char*> allocations_;
  std::vector<void*> pointers_;
};

}  // namespace moe::runner
