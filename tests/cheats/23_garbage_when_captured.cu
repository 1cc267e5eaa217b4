// Honest in a plain call; leaves the work out of a captured graph, which is what is timed.
// stage: m2_grouped_gemm
// base: solution
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(call.stream, &status) != cudaSuccess) return cudaErrorUnknown;
  return status == cudaStreamCaptureStatusActive ? cudaSuccess : honest(call);
}
