#include "driver/backend.h"

#include <cctype>
#include <cstdlib>
#include <vector>

#include "driver/capability.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {

std::optional<Gpu> parse_gpu_list(std::string_view text) {
  const std::string line(text.substr(0, text.find('\n')));
  const std::size_t comma = line.rfind(", ");
  if (comma == std::string::npos) return std::nullopt;
  Gpu gpu{line.substr(0, comma), line.substr(comma + 2)};
  while (!gpu.capability.empty() &&
         std::isspace(static_cast<unsigned char>(gpu.capability.back()))) {
    gpu.capability.pop_back();
  }
  const bool number = gpu.capability.find_first_not_of("0123456789.") == std::string::npos;
  if (!number || gpu.capability.find('.') == std::string::npos) return std::nullopt;
  return gpu;
}

std::string architecture_of(std::string_view capability) {
  std::string architecture;
  for (const char c : capability) {
    if (c != '.') architecture += c;
  }
  // wgmma and TMA of the last stages exist for sm_90a only.
  return architecture == "90" ? "90a" : architecture;
}

std::optional<Gpu> find_gpu() {
  // On WSL nvidia-smi may stand outside of PATH.
  const std::filesystem::path program = find_program("nvidia-smi", {"/usr/lib/wsl/lib"});
  if (program.empty()) return std::nullopt;
  Command command;
  command.arguments = {program, "--query-gpu=name,compute_cap", "--format=csv,noheader"};
  command.limit_s = 10;  // it can hang when the kernel driver is broken
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    const std::string first = std::string(visible).substr(0, std::string(visible).find(','));
    if (first.empty() || first.front() == '-') return std::nullopt;
    command.arguments.push_back("--id=" + first);
  }
  const Outcome outcome = run_process(command);
  if (outcome.exit_code != 0) return std::nullopt;
  return parse_gpu_list(outcome.output);
}

std::filesystem::path find_nvcc() {
  std::vector<std::filesystem::path> folders;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* folder = std::getenv(variable)) {
      folders.push_back(std::filesystem::path(folder) / "bin");
    }
  }
  folders.emplace_back("/usr/local/cuda/bin");
  return find_program("nvcc", folders);
}

Backend choose_backend(Wish wish, const Machine& machine) {
  const bool has_nvcc = !machine.nvcc.empty();
  Backend backend;
  if (wish == Wish::kCpu) {
    backend.phrase = "emulator (--cpu)";
  } else if (machine.gpu && has_nvcc) {
    backend.cuda = true;
    backend.gpu = *machine.gpu;
    backend.architecture = architecture_of(machine.gpu->capability);
    backend.nvcc = machine.nvcc;
    backend.phrase = machine.gpu->name + " (sm_" + backend.architecture + ")";
  } else if (machine.gpu) {
    backend.phrase = "emulator (a GPU, but no nvcc)";
    backend.refusal = "there is a GPU (" + machine.gpu->name + ") but no CUDA Toolkit: nvcc is " +
                      "neither in PATH nor in CUDA_HOME, CUDA_PATH or /usr/local/cuda";
  } else {
    backend.phrase = "emulator (no GPU found)";
    backend.refusal = "nvidia-smi sees no GPU here";
  }
  return backend;
}

std::string refuse_backend(const Backend& backend,
                           std::string_view required,
                           const std::string& command) {
  if (!backend.cuda) return {};
  return refuse_device(required, backend.gpu.name, backend.gpu.capability, command);
}

Backend choose_backend(Wish wish) {
  Machine machine;
  if (wish != Wish::kCpu) {
    machine.gpu = find_gpu();
    if (machine.gpu) machine.nvcc = find_nvcc();
  }
  return choose_backend(wish, machine);
}

}  // namespace moe::driver
