#include "crash.h"

#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "block.h"
#include "crash_report.h"
#include "named_arrays.h"

namespace emulator {

namespace {

constexpr int kHangStatus = 86;
constexpr int kStopSignal = SIGURG;  // ignored by default, and hardly ever used

struct sigaction g_previous[NSIG];

// Where the executable's code lies.
std::uintptr_t g_load_address = 0;
std::uintptr_t g_code_low = 0;
std::uintptr_t g_code_high = 0;

void find_code() {
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void*) {
        g_load_address = object->dlpi_addr;
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const auto& header = object->dlpi_phdr[i];
          if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
          g_code_low = object->dlpi_addr + header.p_vaddr;
          g_code_high = g_code_low + header.p_memsz;
        }
        return 1;  // the first object is the executable
      },
      nullptr);
}

bool in_code(std::uintptr_t address) {
  return address >= g_code_low && address < g_code_high;
}

struct Registers {
  std::uintptr_t pc;
  std::uintptr_t stack;
};

Registers registers_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
          static_cast<std::uintptr_t>(machine.gregs[REG_RSP])};
#elif defined(__aarch64__)
  return {static_cast<std::uintptr_t>(machine.pc), static_cast<std::uintptr_t>(machine.sp)};
#else
#error "emulator: x86-64 and aarch64 only"
#endif
}

// The program's own instruction nearest to the fault, as an offset for addr2line. A fault inside a
// library (memcpy, say) is traced to the first word on the stack that points into the program.
std::uintptr_t program_counter(Registers registers, bool stack_is_readable) {
  if (in_code(registers.pc)) return registers.pc - g_load_address;
  if (!stack_is_readable) return 0;
  const auto* words = reinterpret_cast<const std::uintptr_t*>(registers.stack);
  for (int i = 0; i < 64; ++i) {
    if (in_code(words[i])) return words[i] - 1 - g_load_address;
  }
  return 0;
}

void describe_signal(Report& report, int signal_number, const siginfo_t& info, bool overflow) {
  switch (signal_number) {
    case SIGFPE:
      report.add("arithmetic: integer division by zero, or its quotient is too large\n");
      break;
    case SIGILL:
      report.add("exception: illegal instruction\n");
      break;
    case SIGABRT:
      report.add("exception: the kernel called abort()\n");
      break;
    default:
      if (overflow) {
        report.add("stack overflow: local arrays or recursion need more than %zu bytes\n",
                   options().stack_bytes);
      } else if (info.si_code == SI_KERNEL) {  // which one the kernel doesn't say
        report.add("memory fault: wild address\n");
      } else {
        const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);  // %p says (nil)
        ElementText element{};
        const bool known = describe_element(info.si_addr, &element);
        report.add("memory fault: address 0x%zx%s%s\n", address, known ? ", " : "",
                   known ? element.text : "");
      }
  }
}

void on_fatal_signal(int signal_number, siginfo_t* info, void* context) {
  if (t_block == nullptr) {  // not in a kernel: as if this handler were not there
    sigaction(signal_number, &g_previous[signal_number], nullptr);
    raise(signal_number);
    return;
  }
  const bool overflow =
      (signal_number == SIGSEGV || signal_number == SIGBUS) && t_block->in_guard(info->si_addr);
  Report report;
  describe_signal(report, signal_number, *info, overflow);
  report.add_thread();
  const Place place = t_block->touching;
  if (place.line != 0) report.add(" at %s:%d", short_path(place.file), place.line);
  report.add("\n");
  const std::uintptr_t pc = program_counter(registers_of(context), !overflow);
  if (pc != 0 && place.line == 0) report.add("  pc 0x%zx\n", static_cast<std::size_t>(pc));
  report.write_out();
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

// What a stopped OS thread says about itself.
struct Stopped {
  std::uintptr_t pc = 0;
  uint3 block{};
  uint3 thread{};
};
Stopped g_stopped;
std::atomic<bool> g_is_stopped{false};

void on_stop(int, siginfo_t*, void* context) {
  if (t_block == nullptr) return;
  g_stopped.pc = program_counter(registers_of(context), true);
  g_stopped.block = blockIdx;
  g_stopped.thread = threadIdx;
  g_is_stopped.store(true);
  for (;;) pause();
}

void catch_signal(int signal_number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(signal_number, &action, &g_previous[signal_number]);
}

}  // namespace

void install_crash_handlers() {
  find_code();
  (void)options();  // read the environment now, not in a handler
  catch_signal(kStopSignal, &on_stop);
  install_sanitizer_reports();
  if (kAsan) return;
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    catch_signal(signal_number, &on_fatal_signal);
}

std::uintptr_t offset_in_program(std::uintptr_t pc) {
  return in_code(pc) ? pc - g_load_address : 0;
}

namespace {
constexpr std::size_t kSignalStackBytes = std::size_t{64} * 1024;
}

SignalStack::SignalStack() {
  if (kAsan) return;  // it has set one up itself
  void* memory =
      mmap(nullptr, kSignalStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  memory_ = static_cast<char*>(memory);
  stack_t stack{};
  stack.ss_sp = memory_;
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
}

SignalStack::~SignalStack() {
  if (memory_ == nullptr) return;
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  munmap(memory_, kSignalStackBytes);
}

void die_of_hang(pthread_t thread, const Block& block, double seconds) {
  pthread_kill(thread, kStopSignal);
  for (int i = 0; i < 200 && !g_is_stopped.load(); ++i) usleep(1000);
  Report head;
  head.add("hang: no thread made progress for %.3g s: a loop that never ends?\n", seconds);
  if (g_is_stopped.load()) {
    const Stopped& at = g_stopped;
    head.add("  in block (%u,%u,%u) thread (%u,%u,%u)\n", at.block.x, at.block.y, at.block.z,
             at.thread.x, at.thread.y, at.thread.z);
    if (at.pc != 0) head.add("  pc 0x%zx\n", static_cast<std::size_t>(at.pc));
  }
  head.write_out();
  const std::string states = block.describe_states().substr(1) + "\n";
  (void)!write(options().report_fd, states.data(), states.size());
  _exit(kHangStatus);
}

}  // namespace emulator
