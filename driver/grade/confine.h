// Programs that touch a stranger's bytes (unzip, compiler, linker, the runner itself) start through
// this: limits always, and around them the strongest wall that works on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace moe::grade {

enum class Wall {
  kBubblewrap,  // its own file system, processes and network
  kUser,        // grading as root: another user for each worker
  kNone,        // limits only; the same user as the grader
};

struct Limits {
  std::uint64_t address_bytes = 0;  // 0: none. A runner maps far more than it uses.
  std::uint64_t file_bytes = 0;
  int cpu_seconds = 0;
  int processes = 0;  // counted inside bubblewrap only
};

// What a program gets to see, at the paths that it has outside.
struct Room {
  std::vector<std::filesystem::path> readable;
  std::vector<std::filesystem::path> writable;
  std::filesystem::path folder;  // where it starts; empty: /
  bool gpu = false;
  std::vector<std::string> environment = {};  // "NAME=value", besides what all get
};

class Confinement {
 public:
  explicit Confinement(Wall wall) : wall_(wall) {}

  // What every program may read besides the system: a compiler that stands elsewhere.
  void add_tools(const std::vector<std::filesystem::path>& folders);
  const std::vector<std::filesystem::path>& tools() const { return tools_; }

  Wall wall() const { return wall_; }
  const char* word() const;      // "bubblewrap", "user", "limits", for reports
  std::string phrase() const;    // for people
  bool guards_verdicts() const;  // false: a submission could change what the grader writes

  // The command that runs `command` inside. Workers that run at the same time have other numbers.
  std::vector<std::string> wrap(const std::vector<std::string>& command,
                                const Room& room,
                                const Limits& limits,
                                int worker) const;

  // Makes files that a confined program must read or write belong to it, where that matters.
  void hand_over(const std::filesystem::path& path, int worker) const;
  // Ends everything that a worker's programs left running.
  void sweep(int worker) const;

 private:
  std::string library_path() const;
  std::vector<std::string> environment_of(const Room& room) const;
  std::vector<std::string> in_bubblewrap(const std::vector<std::string>& command,
                                         const Room& room) const;

  Wall wall_;
  std::vector<std::filesystem::path> tools_;
};

// True for what a program prints first when its wall cannot be built.
bool is_of_wall(const std::string& output);

// The strongest wall that works here, by trying; `folder` is one that confined programs will use.
Confinement find_confinement(const std::filesystem::path& folder);

}  // namespace moe::grade
