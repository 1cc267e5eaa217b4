#include "driver/fault.h"

#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr std::string_view kCounter = "  pc 0x";

std::string source_line(const std::filesystem::path& runner,
                        const std::string& counter,
                        const std::filesystem::path& root) {
  Command command;
  command.arguments = {"addr2line", "-i", "-e", runner, counter};
  command.limit_s = 20;
  const Outcome outcome = run_process(command);
  return outcome.exit_code == 0 ? pick_frame(outcome.output, root) : std::string();
}

}  // namespace

std::string pick_frame(std::string_view frames, const std::filesystem::path& root) {
  std::string innermost;
  bool in_library = true;  // so far, only frames of the emulator's headers
  for (std::string frame : split_lines(frames)) {
    frame = frame.substr(0, frame.find(" (discriminator"));
    frame = std::filesystem::path(frame).lexically_normal().string();  // build/cpu/../../mine
    const std::string prefix = root.string() + "/";
    if (frame.rfind(prefix, 0) == 0) frame.erase(0, prefix.size());
    if (frame.rfind("./", 0) == 0) frame.erase(0, 2);
    const std::size_t colon = frame.rfind(':');
    if (colon == std::string::npos || frame.rfind("??", 0) == 0) continue;
    if (frame[colon + 1] == '?' || frame.substr(colon) == ":0") continue;
    if (frame.rfind("mine/", 0) == 0 || frame.rfind("solutions/", 0) == 0) return frame;
    const bool library = frame.rfind("emulator/", 0) == 0 || frame.front() == '/';
    if (innermost.empty() || (in_library && !library)) {
      innermost = frame;
      in_library = library;
    }
  }
  return innermost;
}

std::string resolve_fault(std::string_view fault,
                          const std::filesystem::path& runner,
                          const std::filesystem::path& root) {
  std::string resolved;
  for (const std::string& line : split_lines(fault)) {
    if (line.rfind(kCounter, 0) != 0) {
      resolved += line + "\n";
      continue;
    }
    const std::string counter = line.substr(line.find("0x"));
    const std::string where = source_line(runner, counter, root);
    if (!where.empty()) resolved += "  at " + where + "\n";
  }
  return resolved;
}

}  // namespace moe::driver
