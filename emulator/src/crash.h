// Reports that are written while the process dies: signals inside a kernel, and hangs.
#pragma once

#include <pthread.h>

#include <string>

namespace emulator {

class Block;

// Once per process, before the first kernel runs.
void install_crash_handlers();

// Gives the calling OS thread a signal stack of its own, on which a stack overflow can be reported.
class SignalStack {
 public:
  SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;
  ~SignalStack();

 private:
  char* memory_ = nullptr;
};

// Stops the OS thread where it stands, writes the report and ends the process with status 86.
[[noreturn]] void die_of_hang(pthread_t thread, const Block& block, double seconds);

}  // namespace emulator
