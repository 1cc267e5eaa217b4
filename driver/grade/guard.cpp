#include "driver/grade/guard.h"

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "driver/terminal.h"

namespace moe::grade {
namespace {

// Children of every process, from /proc/PID/stat: "PID (name) state PPID ...".
std::multimap<pid_t, pid_t> children_of_all() {
  std::multimap<pid_t, pid_t> children;
  DIR* folder = opendir("/proc");
  if (folder == nullptr) return children;
  while (const dirent* entry = readdir(folder)) {
    const auto id = static_cast<pid_t>(std::atoi(entry->d_name));
    if (id <= 0) continue;
    const std::string text = driver::read_file("/proc/" + std::to_string(id) + "/stat");
    const std::size_t name_end = text.rfind(')');  // a name may hold anything
    if (name_end == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    if (std::sscanf(text.c_str() + name_end + 1, " %c %d", &state, &parent) == 2 && state != 'Z') {
      children.emplace(parent, id);
    }
  }
  closedir(folder);
  return children;
}

std::vector<pid_t> descendants(pid_t root) {
  const std::multimap<pid_t, pid_t> children = children_of_all();
  std::vector<pid_t> found;
  std::vector<pid_t> open{root};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      found.push_back(child->second);
      open.push_back(child->second);
    }
  }
  return found;
}

std::uint64_t resident_bytes(pid_t process) {
  const std::string text = driver::read_file("/proc/" + std::to_string(process) + "/statm");
  unsigned long long size = 0;
  unsigned long long resident = 0;
  if (std::sscanf(text.c_str(), "%llu %llu", &size, &resident) != 2) return 0;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

void Guard::look() {
  if (root_ <= 0) return;
  const std::vector<pid_t> all = descendants(root_);
  std::uint64_t bytes = 0;
  for (const pid_t process : all) bytes += resident_bytes(process);
  const bool memory = memory_bytes_ > 0 && bytes > memory_bytes_;
  const bool processes = processes_ > 0 && static_cast<int>(all.size()) > processes_;
  memory_exceeded_ = memory_exceeded_ || memory;
  processes_exceeded_ = processes_exceeded_ || processes;
  if (!memory && !processes) return;
  for (const pid_t process : all) kill(process, SIGKILL);
}

}  // namespace moe::grade
