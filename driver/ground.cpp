#include "driver/ground.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr std::size_t kLargestSource = std::size_t{2} << 20;
constexpr double kLeastDisk = 30e6;  // a runner and its objects

std::string megabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f MB", bytes / 1e6);
  return text;
}

std::string missing_tool() {
  for (const char* tool : {"cmake", "ninja", "g++"}) {
    if (find_program(tool).empty()) {
      return std::string(tool) + " is not installed, and nothing can be built without it. Run: " +
             "./setup.sh (or see: drill doctor)";
    }
  }
  return {};
}

}  // namespace

std::string ground_trouble(const Course& course) {
  if (std::string tool = missing_tool(); !tool.empty()) return tool;
  std::error_code error;
  const std::filesystem::path build = course.root / "build";
  std::filesystem::create_directories(build, error);
  if (error || access(build.c_str(), W_OK) != 0) {
    return build.string() +
           " cannot be written, so nothing can be built here. Copy the course to a folder of your "
           "own, or ask for the right to write. Your files were not touched";
  }
  const std::filesystem::space_info disk = std::filesystem::space(build, error);
  if (!error && static_cast<double>(disk.available) < kLeastDisk) {
    return "the disk is full: " + megabytes(static_cast<double>(disk.available)) + " left under " +
           build.string() + ". Make room (build/ itself can be deleted), then run this again. " +
           "Your files were not touched";
  }
  return {};
}

std::string cmake_trouble() {
  Command command;
  command.arguments = {"cmake", "--version"};
  command.limit_s = 20;
  const std::string output = run_process(command).output;
  int major = 0;
  int minor = 0;
  int patch = 0;
  if (std::sscanf(output.c_str(), "cmake version %d.%d.%d", &major, &minor, &patch) < 2) {
    return "cmake does not say its version";
  }
  if (major > 3 || (major == 3 && minor >= 25)) return {};
  return "CMake " + std::to_string(major) + "." + std::to_string(minor) + "." +
         std::to_string(patch) + " is too old: 3.25 or newer is needed. Run: ./setup.sh";
}

std::string source_trouble(std::string_view source) {
  if (source.size() > kLargestSource) {
    return "is " + megabytes(static_cast<double>(source.size())) +
           "; no kernel file is longer than a few KB, so it was not compiled. Did something else "
           "land in it? `drill reset` keeps it and gives you the blank file again.";
  }
  if (source.find('\0') != std::string_view::npos) {
    return "is no text: it holds zero bytes (saved as UTF-16?). Save it as UTF-8.";
  }
  return {};
}

}  // namespace moe::driver
