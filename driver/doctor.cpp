// `drill doctor`: what runs here, and what to install for the rest.
#include <cstdio>
#include <regex>
#include <sstream>
#include <thread>

#include "driver/backend.h"
#include "driver/process.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

struct Need {
  std::string name;     // "CMake"
  std::string version;  // "" when it is missing
  std::string package;  // of Debian and Ubuntu
};

// The first version number in a program's answer, or "".
std::string version_of(const std::vector<std::string>& arguments, const std::string& pattern) {
  Command command;
  command.arguments = arguments;
  command.limit_s = 20;
  const Outcome outcome = run_process(command);
  std::smatch match;
  if (outcome.exit_code != 0) return {};
  return std::regex_search(outcome.output, match, std::regex(pattern)) ? match[1].str() : "";
}

// What the compiler finds under a header's name: the value of a macro, or "found".
std::string header_version(const std::string& header, const std::string& macro) {
  Command command;
  command.arguments = {"g++", "-E", "-dM", "-include", header, "-x", "c++", "/dev/null"};
  command.limit_s = 20;
  const Outcome outcome = run_process(command);
  if (outcome.exit_code != 0) return {};
  std::smatch match;
  const std::regex definition("#define " + macro + " \"?([0-9][0-9._]*)");
  if (macro.empty() || !std::regex_search(outcome.output, match, definition)) return "found";
  return std::regex_replace(match[1].str(), std::regex("_"), ".");
}

std::string json_version() {
  const std::string header = "nlohmann/json.hpp";
  std::string major = header_version(header, "NLOHMANN_JSON_VERSION_MAJOR");
  if (major.empty() || major == "found") return major;
  return major + "." + header_version(header, "NLOHMANN_JSON_VERSION_MINOR") + "." +
         header_version(header, "NLOHMANN_JSON_VERSION_PATCH");
}

std::vector<Need> find_needs() {
  const std::string number = "([0-9]+\\.[0-9.]+)";
  return {
      {"g++", version_of({"g++", "-dumpfullversion"}, number), "g++"},
      {"CMake", version_of({"cmake", "--version"}, number), "cmake"},
      {"Ninja", version_of({"ninja", "--version"}, number), "ninja-build"},
      {"GoogleTest", header_version("gtest/gtest.h", ""), "libgtest-dev"},
      {"Boost.Context",
       header_version("boost/context/detail/fcontext.hpp", "").empty()
           ? ""
           : header_version("boost/version.hpp", "BOOST_LIB_VERSION"),
       "libboost-context-dev"},
      {"nlohmann-json", json_version(), "nlohmann-json3-dev"},
      {"CLI11", header_version("CLI/Version.hpp", "CLI11_VERSION"), "libcli11-dev"},
  };
}

// Is version "3.25.1" at least major.minor?
bool at_least(const std::string& version, int major, int minor) {
  int has_major = 0;
  int has_minor = 0;
  std::sscanf(version.c_str(), "%d.%d", &has_major, &has_minor);
  return has_major > major || (has_major == major && has_minor >= minor);
}

void say_row(const std::string& name, const std::string& what) {
  say(wrapped("  " + padded(name, 15), what));
}

// Returns the packages that are missing.
std::vector<std::string> say_needs(const std::vector<Need>& needs) {
  std::vector<std::string> missing;
  for (const Need& need : needs) {
    const bool old = need.name == "CMake" && !at_least(need.version, 3, 25);
    if (need.version.empty()) {
      say_row(need.name, "missing (package " + need.package + ")");
    } else {
      say_row(need.name, need.version + (old ? "; 3.25 or newer is needed" : ""));
    }
    if (need.version.empty() || old) missing.push_back(need.package);
  }
  return missing;
}

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes / 1e9);
  return text;
}

void say_machine(const Course& course) {
  double available = 0;
  std::istringstream memory(read_file("/proc/meminfo"));
  for (std::string line; std::getline(memory, line);) {
    if (line.rfind("MemAvailable:", 0) == 0) std::sscanf(line.c_str(), "%*s %lf", &available);
  }
  available *= 1024;
  say_row("processors", std::to_string(std::thread::hardware_concurrency()));
  say_row("memory",
          gigabytes(available) + " free" + (available < 1.5e9 ? "; builds may need 1.5 GB" : ""));
  std::error_code error;
  const std::filesystem::space_info disk = std::filesystem::space(course.root, error);
  if (!error) {
    const double free_bytes = static_cast<double>(disk.available);
    say_row("disk",
            gigabytes(free_bytes) + " free" + (free_bytes < 1e9 ? "; builds may need 1 GB" : ""));
  }
}

// What the GPU side has, as one sentence about whether it works.
std::string say_cuda() {
  const std::filesystem::path nvcc = find_nvcc();
  std::string version;
  if (!nvcc.empty()) version = version_of({nvcc, "--version"}, "release ([0-9]+\\.[0-9]+)");
  const std::optional<Gpu> gpu = find_gpu();
  say_row("nvcc", nvcc.empty() ? "not in PATH, CUDA_HOME, CUDA_PATH or /usr/local/cuda"
                               : version + " (" + nvcc.string() + ")");
  say_row("GPU", gpu ? gpu->name + ", compute capability " + gpu->capability
                     : "none that nvidia-smi sees");
  if (!gpu) return "On a GPU: not here.";
  if (nvcc.empty()) return "On a GPU: install the CUDA Toolkit, 12.9 or newer; then drill uses it.";
  if (!at_least(version, 12, 9)) {
    return "On a GPU: works, but the FP8 stages need CUDA Toolkit 12.9 or newer.";
  }
  return "On a GPU: works; drill uses it unless told --cpu.";
}

}  // namespace

int run_doctor(const Course& course) {
  const Paint paint = Paint::for_stdout();
  const std::vector<std::string> missing = say_needs(find_needs());
  const std::string cuda = say_cuda();
  say_machine(course);
  say("\n");
  if (missing.empty()) {
    say(paint.good("On the emulator: works.") +
        " Every stage can be written and tested without a GPU.\n");
  } else {
    std::string packages;
    for (const std::string& package : missing) packages += " " + package;
    say(paint.bad("On the emulator: not yet.") + " ./setup.sh installs what is missing, or:\n");
    say("  sudo apt-get install" + packages + "\n");
  }
  say(cuda + "\n");
  return missing.empty() ? 0 : 1;
}

}  // namespace moe::driver
