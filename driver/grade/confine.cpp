#include "driver/grade/confine.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "driver/process.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

constexpr int kFirstUser = 61'000;  // of the worker users: no account has them
constexpr int kStranger = 65'534;   // what a program in bubblewrap sees itself as
constexpr const char* kTmpBytes = "67108864";
constexpr int kOpenFiles = 256;

void add(std::vector<std::string>& words, std::initializer_list<std::string> more) {
  words.insert(words.end(), more);
}

// Limits stand inside the wall: the count of processes is then the wall's own.
std::vector<std::string> with_limits(const std::vector<std::string>& command,
                                     const Limits& limits,
                                     bool count_processes) {
  std::vector<std::string> words{"prlimit", "--core=0", "--nofile=" + std::to_string(kOpenFiles)};
  if (limits.address_bytes > 0) words.push_back("--as=" + std::to_string(limits.address_bytes));
  if (limits.file_bytes > 0) words.push_back("--fsize=" + std::to_string(limits.file_bytes));
  if (limits.cpu_seconds > 0) words.push_back("--cpu=" + std::to_string(limits.cpu_seconds));
  if (count_processes && limits.processes > 0) {
    words.push_back("--nproc=" + std::to_string(limits.processes));
  }
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

// Programs and libraries only: nobody's home, no /etc, no course, no results.
void add_system(std::vector<std::string>& words) {
  add(words, {"--ro-bind", "/usr", "/usr"});
  for (const char* link : {"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code ignored;
    if (fs::is_symlink(link, ignored)) {
      add(words, {"--symlink", fs::read_symlink(link, ignored).string(), link});
    } else if (fs::exists(link, ignored)) {
      add(words, {"--ro-bind", link, link});
    }
  }
  add(words, {"--ro-bind-try", "/etc/alternatives", "/etc/alternatives", "--ro-bind-try",
              "/etc/ld.so.cache", "/etc/ld.so.cache"});
}

std::vector<std::string> as_user(const std::vector<std::string>& command,
                                 int worker,
                                 const std::vector<std::string>& environment = {}) {
  const std::string user = std::to_string(kFirstUser + worker);
  std::vector<std::string> words{"env",
                                 "-i",
                                 "PATH=/usr/local/bin:/usr/bin:/bin",
                                 "LC_ALL=C.UTF-8",
                                 "HOME=/tmp",
                                 "EMULATOR_WORKERS=1",
                                 "EMULATOR_HANG=4"};
  words.insert(words.end(), environment.begin(), environment.end());
  add(words, {"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs"});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

bool works(Wall wall, const fs::path& folder) {
  driver::Command command;
  Room room;
  room.readable = {folder};
  room.folder = folder;
  // Reading the folder shows that another user may enter it.
  command.arguments =
      Confinement(wall).wrap({"ls", folder.string()}, room, {0, 1 << 20, 10, 16}, 0);
  command.limit_s = 20;
  return driver::run_process(command).exit_code == 0;
}

}  // namespace

void Confinement::add_tools(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    if (std::find(tools_.begin(), tools_.end(), folder) == tools_.end()) tools_.push_back(folder);
  }
}

// The folders that LD_LIBRARY_PATH names and a compiler outside of the system has.
std::string Confinement::library_path() const {
  const char* value = std::getenv("LD_LIBRARY_PATH");
  std::istringstream stream(value != nullptr ? value : "");
  std::string kept;
  for (std::string folder; std::getline(stream, folder, ':');) {
    const bool known = std::any_of(tools_.begin(), tools_.end(), [&](const fs::path& tool) {
      return (folder + "/").rfind(tool.string() + "/", 0) == 0;
    });
    if (known) kept += (kept.empty() ? "" : ":") + folder;
  }
  return kept;
}

// What a runner on a GPU must be told: which GPU the grader chose, and where the driver's library
// stands on machines whose linker cache does not know it.
std::vector<std::string> Confinement::environment_of(const Room& room) const {
  std::vector<std::string> environment = room.environment;
  const std::string libraries = library_path();
  if (!room.gpu && !libraries.empty()) environment.push_back("LD_LIBRARY_PATH=" + libraries);
  if (!room.gpu) return environment;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"}) {
    if (const char* value = std::getenv(name)) {
      environment.push_back(std::string(name) + "=" + value);
    }
  }
  return environment;
}

std::vector<std::string> Confinement::in_bubblewrap(const std::vector<std::string>& command,
                                                    const Room& room) const {
  std::vector<std::string> words{"bwrap",          "--unshare-all",
                                 "--unshare-user", "--die-with-parent",
                                 "--new-session",  "--clearenv"};
  const std::string stranger = std::to_string(kStranger);
  add(words, {"--uid", stranger, "--gid", stranger, "--cap-drop", "ALL"});
  add(words, {"--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "LC_ALL", "C.UTF-8"});
  add(words, {"--setenv", "HOME", "/tmp", "--setenv", "EMULATOR_WORKERS", "1", "--setenv",
              "EMULATOR_HANG", "4"});
  for (const std::string& variable : environment_of(room)) {
    const std::size_t equals = variable.find('=');
    add(words, {"--setenv", variable.substr(0, equals), variable.substr(equals + 1)});
  }
  add_system(words);
  add(words, {"--dev", "/dev", "--proc", "/proc", "--size", kTmpBytes, "--tmpfs", "/tmp"});
  if (room.gpu) {
    for (const fs::directory_entry& entry : fs::directory_iterator("/dev")) {
      const std::string path = entry.path();
      if (path.rfind("/dev/nvidia", 0) == 0) add(words, {"--dev-bind", path, path});
    }
  }
  for (const fs::path& folder : tools_) add(words, {"--ro-bind", folder, folder});
  for (const fs::path& path : room.readable) {
    // What is in /usr is there already, and bwrap refuses a place behind a symlink in it: a CUDA
    // Toolkit's library.
    if (path.string().rfind("/usr/", 0) != 0) add(words, {"--ro-bind", path, path});
  }
  for (const fs::path& path : room.writable) add(words, {"--bind", path, path});
  add(words, {"--remount-ro", "/dev", "--remount-ro", "/"});
  if (!room.folder.empty()) add(words, {"--chdir", room.folder});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

const char* Confinement::word() const {
  return wall_ == Wall::kBubblewrap ? "bubblewrap" : wall_ == Wall::kUser ? "user" : "limits";
}

std::string Confinement::phrase() const {
  if (wall_ == Wall::kBubblewrap) {
    return "bubblewrap: no network, no files but their own, processes of their own";
  }
  if (wall_ == Wall::kUser) return "another user for each worker (bubblewrap does not work here)";
  return "limits only (bubblewrap does not work here)";
}

bool Confinement::guards_verdicts() const {
  return wall_ != Wall::kNone;
}

std::vector<std::string> Confinement::wrap(const std::vector<std::string>& command,
                                           const Room& room,
                                           const Limits& limits,
                                           int worker) const {
  const std::vector<std::string> limited = with_limits(command, limits, wall_ == Wall::kBubblewrap);
  if (wall_ == Wall::kBubblewrap) return in_bubblewrap(limited, room);
  std::vector<std::string> words =
      wall_ == Wall::kUser ? as_user(limited, worker, environment_of(room))
                           : std::vector<std::string>{"env", "EMULATOR_WORKERS=1",
                                                      "EMULATOR_HANG=4", "LC_ALL=C.UTF-8"};
  if (wall_ == Wall::kNone) {
    words.insert(words.end(), room.environment.begin(), room.environment.end());
    words.insert(words.end(), limited.begin(), limited.end());
  }
  if (!room.folder.empty()) {
    words.insert(words.begin(), {"env", "--chdir=" + room.folder.string()});
  }
  return words;
}

void Confinement::hand_over(const fs::path& path, int worker) const {
  if (wall_ != Wall::kUser) return;
  const auto user = static_cast<uid_t>(kFirstUser + worker);
  std::error_code ignored;
  if (lchown(path.c_str(), user, user) != 0) return;
  for (fs::recursive_directory_iterator entry(path, ignored), end; entry != end;
       entry.increment(ignored)) {
    if (lchown(entry->path().c_str(), user, user) != 0) return;
  }
}

void Confinement::sweep(int worker) const {
  if (wall_ != Wall::kUser) return;  // bubblewrap's processes die with it
  driver::Command command;
  command.arguments = as_user({"kill", "-9", "-1"}, worker);
  command.limit_s = 10;
  driver::run_process(command);
}

bool is_of_wall(const std::string& output) {
  for (const char* program : {"bwrap: ", "setpriv: ", "prlimit: ", "env: "}) {
    if (output.rfind(program, 0) == 0) return true;
  }
  return false;
}

Confinement find_confinement(const fs::path& folder) {
  if (works(Wall::kBubblewrap, folder)) return Confinement(Wall::kBubblewrap);
  if (geteuid() == 0 && works(Wall::kUser, folder)) return Confinement(Wall::kUser);
  return Confinement(Wall::kNone);
}

}  // namespace moe::grade
