// Child processes: the only place of the driver that starts, waits for and ends them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct Command {
  std::vector<std::string> arguments;    // the program first, looked up in PATH
  std::filesystem::path folder;          // where it runs; empty: here
  std::vector<std::string> environment;  // "NAME=value", added to ours
  double limit_s = 0;                    // ended after that long; 0: never
  std::size_t keep_bytes = 0;            // of the output, what comes after is dropped; 0: all
};

struct Outcome {
  int exit_code = 0;  // 127 when the program could not be started, 128 + signal when one ended it
  int signal = 0;     // what ended it, or 0
  bool timed_out = false;  // limit_s was reached
  double seconds = 0;
  std::string output;  // stdout and stderr, as they came
};

// What to do while a child runs; all may be empty.
struct Watcher {
  std::function<void(pid_t)> on_start;
  std::function<void(std::string_view)> on_output;
  std::function<void()> on_tick;  // about ten times a second
};

// Thrown out of run_process() when the user asked to stop; the child is gone by then.
struct Interrupted {
  int signal;
};

// Ctrl-C, SIGTERM and SIGHUP end the running child and then throw Interrupted, instead of
// leaving children behind. Call once, at the start of main.
void install_interrupt_handlers();

// For loops that wait without a child.
void throw_if_interrupted();

// Runs the command in a process group of its own, with no input and none of our open files, and
// waits for its end.
Outcome run_process(const Command& command, const Watcher& watcher = {});

// Writes a file that will be run. A child that another thread starts meanwhile does not get hold of
// the open file: while one has it, it cannot be run ("text file busy").
void write_program(const std::filesystem::path& file, const std::string& text);

// The full path of a program: in PATH, else in one of the extra folders; empty when nowhere.
std::filesystem::path find_program(const std::string& name,
                                   const std::vector<std::filesystem::path>& extra_folders = {});

}  // namespace moe::driver
