// What the device says about itself, and the names of errors.
#include <cstring>

#include "block.h"
#include "fault.h"
#include "shared_memory.h"
#include "stream.h"

namespace {

using emulator::report_error;

// A small Hopper: a grid larger than four blocks needs a second wave.
constexpr int kNumSms = 4;
constexpr int kL2Bytes = 50 * 1024 * 1024;
constexpr int kSharedBytesPerBlock = 48 * 1024;
constexpr int kSharedBytesPerSm = 228 * 1024;
constexpr int kReservedSharedBytes = 1024;
constexpr int kThreadsPerSm = 2048;
constexpr int kBlocksPerSm = 32;
constexpr int kRegisters = 65536;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

#define EMULATOR_ERROR(NAME, TEXT) \
  { NAME, #NAME, TEXT }

constexpr ErrorText kErrors[] = {
    EMULATOR_ERROR(cudaSuccess, "no error"),
    EMULATOR_ERROR(cudaErrorInvalidValue, "invalid argument"),
    EMULATOR_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    EMULATOR_ERROR(cudaErrorInitializationError, "initialization error"),
    EMULATOR_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    EMULATOR_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    EMULATOR_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    EMULATOR_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    EMULATOR_ERROR(cudaErrorInsufficientDriver,
                   "CUDA driver version is insufficient for CUDA runtime version"),
    EMULATOR_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    EMULATOR_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    EMULATOR_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    EMULATOR_ERROR(cudaErrorNoKernelImageForDevice,
                   "no kernel image is available for execution on the device"),
    EMULATOR_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    EMULATOR_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    EMULATOR_ERROR(cudaErrorNotReady, "device not ready"),
    EMULATOR_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    EMULATOR_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    EMULATOR_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    EMULATOR_ERROR(cudaErrorAssert, "device-side assert triggered"),
    EMULATOR_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    EMULATOR_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    EMULATOR_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    EMULATOR_ERROR(cudaErrorNotPermitted, "operation not permitted"),
    EMULATOR_ERROR(cudaErrorNotSupported, "operation not supported"),
    EMULATOR_ERROR(cudaErrorStreamCaptureUnsupported,
                   "operation not permitted when stream is capturing"),
    EMULATOR_ERROR(cudaErrorStreamCaptureInvalidated,
                   "operation failed due to a previous error during capture"),
    EMULATOR_ERROR(cudaErrorStreamCaptureMerge,
                   "operation would result in a merge of separate capture sequences"),
    EMULATOR_ERROR(cudaErrorStreamCaptureUnmatched,
                   "capture was not ended in the same stream as it began"),
    EMULATOR_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    EMULATOR_ERROR(cudaErrorStreamCaptureIsolation,
                   "dependency created on uncaptured work in another stream"),
    EMULATOR_ERROR(cudaErrorStreamCaptureImplicit,
                   "operation would make the legacy stream depend on a capturing blocking stream"),
    EMULATOR_ERROR(cudaErrorCapturedEvent,
                   "operation not permitted on an event last recorded in a capturing stream"),
    EMULATOR_ERROR(cudaErrorStreamCaptureWrongThread,
                   "attempt to terminate a thread-local capture sequence from another thread"),
    EMULATOR_ERROR(cudaErrorUnknown, "unknown error"),
};

#undef EMULATOR_ERROR

const ErrorText* find_error(cudaError_t error) {
  for (const ErrorText& entry : kErrors) {
    if (entry.error == error) return &entry;
  }
  return nullptr;
}

constexpr int kShared = static_cast<int>(emulator::kMaxSharedBytes);

int attribute_value(cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return emulator::kMaxThreads;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return kSharedBytesPerBlock;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return kShared;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return kSharedBytesPerSm;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return kReservedSharedBytes;
    case cudaDevAttrWarpSize:
      return emulator::kLanes;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return kRegisters;
    case cudaDevAttrMultiProcessorCount:
      return kNumSms;
    case cudaDevAttrL2CacheSize:
      return kL2Bytes;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return kThreadsPerSm;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return kBlocksPerSm;
    case cudaDevAttrComputeCapabilityMajor:
      return emulator::options().capability_major;
    case cudaDevAttrComputeCapabilityMinor:
      return emulator::options().capability_minor;
    case cudaDevAttrConcurrentKernels:
      return 1;
    default:  // clocks and bus width unknown, no cooperative or cluster launch
      return 0;
  }
}

}  // namespace

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* found = find_error(error);
  return found != nullptr ? found->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* found = find_error(error);
  return found != nullptr ? found->text : "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return report_error(cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return report_error(cudaSuccess);
}

cudaError_t cudaSetDevice(int device) {
  return report_error(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize() {
  return report_error(emulator::enter_device());
}

cudaError_t cudaDeviceReset() {
  emulator::clear_fault();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device != 0) return report_error(cudaErrorInvalidDevice);
  *value = attribute_value(attribute);
  return report_error(cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return report_error(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "emulator");
  (void)cudaMemGetInfo(nullptr, &properties->totalGlobalMem);
  properties->sharedMemPerBlock = kSharedBytesPerBlock;
  properties->sharedMemPerBlockOptin = emulator::kMaxSharedBytes;
  properties->sharedMemPerMultiprocessor = kSharedBytesPerSm;
  properties->reservedSharedMemPerBlock = kReservedSharedBytes;
  properties->regsPerBlock = kRegisters;
  properties->regsPerMultiprocessor = kRegisters;
  properties->warpSize = emulator::kLanes;
  properties->maxThreadsPerBlock = emulator::kMaxThreads;
  properties->maxThreadsDim[0] = emulator::kMaxThreads;
  properties->maxThreadsDim[1] = emulator::kMaxThreads;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = 65535;
  properties->maxGridSize[2] = 65535;
  properties->totalConstMem = 65536;
  properties->major = emulator::options().capability_major;
  properties->minor = emulator::options().capability_minor;
  properties->multiProcessorCount = kNumSms;
  properties->concurrentKernels = 1;
  properties->l2CacheSize = kL2Bytes;
  properties->maxThreadsPerMultiProcessor = kThreadsPerSm;
  properties->maxBlocksPerMultiProcessor = kBlocksPerSm;
  return report_error(cudaSuccess);
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return report_error(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int* version) {
  return cudaRuntimeGetVersion(version);
}

namespace emulator {

cudaError_t set_function_attribute(cudaFuncAttribute attribute, int value) {
  const bool is_shared = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize;
  if (is_shared && (value < 0 || value > kShared)) return report_error(cudaErrorInvalidValue);
  return report_error(cudaSuccess);
}

// One block on each multiprocessor, if it fits at all.
cudaError_t occupancy(int* blocks, int block_size, size_t smem_bytes) {
  if (blocks == nullptr || block_size < 1) return report_error(cudaErrorInvalidValue);
  *blocks = block_size <= kMaxThreads && smem_bytes <= kMaxSharedBytes ? 1 : 0;
  return report_error(cudaSuccess);
}

}  // namespace emulator
