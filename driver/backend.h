// Which way the kernels run: on a GPU, or on the emulator, and why.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace moe::driver {

struct Gpu {
  std::string name;        // "NVIDIA H200"
  std::string capability;  // "9.0"
};

struct Machine {
  std::optional<Gpu> gpu;
  std::filesystem::path nvcc;  // empty when there is none
};

enum class Wish { kAny, kCpu, kGpu };  // kCpu: --cpu, kGpu: --gpu

struct Backend {
  bool cuda = false;
  std::string phrase;          // for the header line: "emulator (no GPU found)"
  std::string refusal;         // why --gpu cannot be obeyed; empty when it can
  Gpu gpu;                     // the one that was chosen; empty on the emulator
  std::string architecture;    // for CMAKE_CUDA_ARCHITECTURES: "90a"
  std::filesystem::path nvcc;  // for CMAKE_CUDA_COMPILER

  const char* name() const { return cuda ? "cuda" : "cpu"; }  // also the build tree and preset
};

// Asks nvidia-smi for the first GPU that CUDA_VISIBLE_DEVICES leaves visible.
std::optional<Gpu> find_gpu();

// Looks in PATH, $CUDA_HOME/bin, $CUDA_PATH/bin and /usr/local/cuda/bin.
std::filesystem::path find_nvcc();

// The decision alone, for a machine that is known.
Backend choose_backend(Wish wish, const Machine& machine);

// "" where what requires `required` (Stage::capability) can run on the chosen backend, else the
// sentence behind "SKIP   m6: ". The emulator runs everything.
std::string refuse_backend(const Backend& backend,
                           std::string_view required,
                           const std::string& command);

// The decision here; looks only for what the wish needs.
Backend choose_backend(Wish wish);

// The first line of nvidia-smi's "name, compute_cap" list, or nothing.
std::optional<Gpu> parse_gpu_list(std::string_view text);

// "9.0" -> "90a", "8.6" -> "86".
std::string architecture_of(std::string_view capability);

}  // namespace moe::driver
