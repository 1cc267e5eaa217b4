// A kernel with its arguments, copied by value as a launch does, behind one virtual call.
#pragma once

#include <emulator/runtime_api.h>

#include <cstddef>
#include <tuple>

namespace emulator {

class KernelCall {
 public:
  KernelCall() = default;
  KernelCall(const KernelCall&) = default;
  KernelCall& operator=(const KernelCall&) = delete;
  virtual ~KernelCall() = default;

  virtual void run_thread() const = 0;
  virtual const void* function() const = 0;  // the kernel's code
  virtual KernelCall* clone() const = 0;     // the caller owns it
};

template <class... P>
class BoundKernel final : public KernelCall {
 public:
  explicit BoundKernel(void (*kernel)(P...), P... arguments)
      : kernel_(kernel), arguments_(arguments...) {}

  // Each thread gets copies of its own: parameters may be written.
  void run_thread() const override { std::apply(kernel_, std::tuple<P...>(arguments_)); }
  const void* function() const override { return reinterpret_cast<const void*>(kernel_); }
  KernelCall* clone() const override { return new BoundKernel(*this); }

 private:
  void (*kernel_)(P...);
  std::tuple<P...> arguments_;
};

// Runs the grid to its end, or records the call if the stream captures.
cudaError_t launch(const KernelCall& call,
                   dim3 grid,
                   dim3 block,
                   std::size_t smem_bytes,
                   cudaStream_t stream,
                   int cluster_size);

}  // namespace emulator
