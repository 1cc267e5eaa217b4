#include "driver/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stdexcept>

namespace moe::driver {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTickMs = 100;
constexpr double kGraceSeconds = 0.5;  // between the polite and the final signal

volatile sig_atomic_t interrupt_signal = 0;

std::mutex starting;  // a child has all our open files until its program begins

void note_interrupt(int signal) {
  interrupt_signal = signal;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A pipe whose ends are closed with it; both close on exec.
struct Pipe {
  std::array<int, 2> ends{-1, -1};

  Pipe() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(std::size_t which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
};

std::vector<std::string> merged_environment(const std::vector<std::string>& additions) {
  std::vector<std::string> merged = additions;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string variable = *entry;
    const std::string name_and_equals = variable.substr(0, variable.find('=') + 1);
    bool replaced = false;
    for (const std::string& addition : additions) {
      replaced = replaced || addition.rfind(name_and_equals, 0) == 0;
    }
    if (!replaced) merged.push_back(variable);
  }
  return merged;
}

std::vector<char*> as_pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Returns the child's id, or -1 with the reason in `why`.
pid_t spawn(const Command& command, int output, std::string& why) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  if (!command.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, command.folder.c_str());
  }

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attributes, 0);

  std::vector<std::string> arguments = command.arguments;
  std::vector<std::string> environment = merged_environment(command.environment);
  pid_t child = -1;
  const std::lock_guard<std::mutex> until_it_runs(starting);
  const int error = posix_spawnp(&child, arguments.front().c_str(), &actions, &attributes,
                                 as_pointers(arguments).data(), as_pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return child;
  why = command.arguments.front() + ": " + std::strerror(error) + "\n";
  return -1;
}

// True when the child has ended. It is not reaped yet, so its group id cannot be reused.
bool has_ended(pid_t child) {
  siginfo_t info{};
  const int result = waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
  return result != 0 || info.si_pid == child;
}

// Ends the whole group: politely, so that the child can clean up, then surely.
void end_group(pid_t child) {
  kill(-child, SIGTERM);
  const Clock::time_point start = Clock::now();
  while (!has_ended(child) && seconds_since(start) < kGraceSeconds) usleep(10'000);
  kill(-child, SIGKILL);
}

// Reads what is there, at most one buffer; false at the end of the pipe.
bool read_some(
    int descriptor, int wait_ms, const Command& command, Outcome& outcome, const Watcher& watcher) {
  pollfd waited{descriptor, POLLIN, 0};
  if (poll(&waited, 1, wait_ms) <= 0) return true;  // nothing came, or a signal did
  std::array<char, 65536> buffer;
  const ssize_t count = read(descriptor, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (count == 0) return false;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  const std::size_t kept = outcome.output.size();
  outcome.output += command.keep_bytes == 0
                        ? text
                        : text.substr(0, command.keep_bytes - std::min(kept, command.keep_bytes));
  if (watcher.on_output) watcher.on_output(text);
  return true;
}

void reap(pid_t child, Outcome& outcome) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    outcome.signal = WTERMSIG(status);
    outcome.exit_code = 128 + outcome.signal;
  } else {
    outcome.exit_code = WEXITSTATUS(status);
  }
}

// Collects output until the child ends, the limit is reached or the user interrupts.
void follow(
    pid_t child, int descriptor, const Command& command, Outcome& outcome, const Watcher& watcher) {
  const Clock::time_point start = Clock::now();
  Clock::time_point last_tick = start;
  bool open = true;
  while (interrupt_signal == 0) {
    if (open) {
      open = read_some(descriptor, kTickMs, command, outcome, watcher);
    } else {
      usleep(1'000);
    }
    if (has_ended(child)) break;
    if (command.limit_s > 0 && seconds_since(start) > command.limit_s) {
      outcome.timed_out = true;
      break;
    }
    if (watcher.on_tick && seconds_since(last_tick) * 1000 >= kTickMs) {
      last_tick = Clock::now();
      watcher.on_tick();
    }
  }
}

// The rest of the output of a child that has ended; a stray grandchild may hold the pipe open,
// so this stops as soon as the pipe is empty.
void drain(int descriptor, const Command& command, Outcome& outcome, const Watcher& watcher) {
  std::size_t before = 0;
  bool open = true;
  do {
    before = outcome.output.size();
    open = read_some(descriptor, 0, command, outcome, watcher);
  } while (open && outcome.output.size() > before);
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action {};
  action.sa_handler = note_interrupt;  // no SA_RESTART: poll must return
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, nullptr);
}

void throw_if_interrupted() {
  if (interrupt_signal != 0) throw Interrupted{interrupt_signal};
}

Outcome run_process(const Command& command, const Watcher& watcher) {
  throw_if_interrupted();
  Outcome outcome;
  const Clock::time_point start = Clock::now();
  Pipe pipe;
  const pid_t child = spawn(command, pipe.ends[1], outcome.output);
  if (child < 0) {
    outcome.exit_code = 127;
    return outcome;
  }
  pipe.close_end(1);
  if (watcher.on_start) watcher.on_start(child);
  follow(child, pipe.ends[0], command, outcome, watcher);
  if (interrupt_signal != 0 || outcome.timed_out) end_group(child);
  kill(-child, SIGKILL);  // whatever the child left running
  drain(pipe.ends[0], command, outcome, watcher);
  reap(child, outcome);
  outcome.seconds = seconds_since(start);
  throw_if_interrupted();
  return outcome;
}

void write_program(const std::filesystem::path& file, const std::string& text) {
  const std::lock_guard<std::mutex> no_child_starts(starting);
  std::ofstream(file, std::ios::binary) << text;
  chmod(file.c_str(), 0755);
}

std::filesystem::path find_program(const std::string& name,
                                   const std::vector<std::filesystem::path>& extra_folders) {
  std::vector<std::filesystem::path> folders;
  if (const char* path = std::getenv("PATH")) {
    std::istringstream entries(path);
    for (std::string entry; std::getline(entries, entry, ':');) {
      if (!entry.empty()) folders.emplace_back(entry);
    }
  }
  folders.insert(folders.end(), extra_folders.begin(), extra_folders.end());
  for (const std::filesystem::path& folder : folders) {
    std::filesystem::path candidate = folder / name;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(candidate, ignored) &&
        access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
  }
  return {};
}

}  // namespace moe::driver
