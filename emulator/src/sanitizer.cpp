// AddressSanitizer and UBSan write reports of their own, for C++ programmers. This adds one in
// CUDA's terms: which array, which element, which thread, which line of the kernel.
#include "block.h"
#include "crash_report.h"
#include "named_arrays.h"

#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

#include <cctype>
#include <cstring>

extern "C" {
// No header declares the two. UBSan calls the first, if there is one, before it ends the process.
void __ubsan_on_report();
__attribute__((weak)) void __ubsan_get_current_report_data(const char** kind,
                                                           const char** message,
                                                           const char** file,
                                                           unsigned* line,
                                                           unsigned* column,
                                                           char** address);
}

namespace emulator {

namespace {

// Where the kernel was: the line that called into the library, else an instruction.
void add_place(Report& report, std::uintptr_t pc) {
  report.add_thread();
  const Place place = t_block->touching;
  if (place.line != 0) report.add(" at %s:%d", short_path(place.file), place.line);
  report.add("\n");
  if (pc != 0 && place.line == 0) report.add("  pc 0x%zx\n", static_cast<std::size_t>(pc));
}

// A report from inside memcpy has its caller somewhere up the stack.
__attribute__((no_sanitize("address"))) std::uintptr_t find_caller() {
  constexpr int kWords = 4096;
  const auto pc = reinterpret_cast<std::uintptr_t>(__asan_get_report_pc());
  if (const std::uintptr_t own = offset_in_program(pc)) return own - 1;  // it returns to there
  const auto* words = static_cast<const std::uintptr_t*>(__asan_get_report_sp());
  if (words == nullptr) return 0;  // of a signal it tells neither
  const auto* end = static_cast<const char*>(t_block->current().context.stack_low) +
                    t_block->current().context.stack_bytes;
  for (int i = 0; i < kWords && reinterpret_cast<const char*>(words + i + 1) <= end; ++i) {
    if (const std::uintptr_t caller = offset_in_program(words[i])) return caller - 1;
  }
  return 0;
}

// A __shared__ or local variable that AddressSanitizer knows by name.
void add_variable(Report& report, const char* address) {
  char name[96] = "";
  void* start = nullptr;
  std::size_t bytes = 0;
  const char* kind =
      __asan_locate_address(const_cast<char*>(address), name, sizeof name, &start, &bytes);
  const auto offset = address - static_cast<const char*>(start);
  if (name[0] != '\0' && bytes > 0 && std::strcmp(kind, "heap") != 0) {
    report.add("byte %lld of `%s`, which has %zu", static_cast<long long>(offset), name, bytes);
  } else if (t_block->in_window(address)) {
    report.add(
        "byte %lld of dynamic shared memory; the launch asked for %zu",
        static_cast<long long>(address - reinterpret_cast<const char*>(t_block->dynamic_shared)),
        t_block->dynamic_shared_bytes);
  } else {
    report.add("address %p, which belongs to no array", static_cast<const void*>(address));
  }
}

void on_sanitizer_death() {
  if (t_block == nullptr || __asan_report_present() == 0) return;
  const auto* address = static_cast<const char*>(__asan_get_report_address());
  // Of what the library touches for a kernel, the size is not the kernel's.
  char verb[48];
  const char* name = __asan_get_report_access_type() != 0 ? "write" : "read";
  const std::size_t bytes = __asan_get_report_access_size();
  if (t_block->touching.line != 0) {
    std::snprintf(verb, sizeof verb, "%s", name);
  } else {
    std::snprintf(verb, sizeof verb, "%s of %zu byte%s", name, bytes, bytes == 1 ? "" : "s");
  }
  Report report;
  ElementText element{};
  // Of a signal it tells nothing, not even the address.
  if (__asan_get_report_pc() == nullptr) {
    report.add("memory fault: null or wild address, or more stack than %zu bytes",
               options().stack_bytes);
  } else if (t_block->in_window(address) || !describe_element(address, &element)) {
    report.add("out of bounds: %s at ", verb);
    add_variable(report, address);
  } else {
    report.add("out of bounds: %s at %s", verb, element.text);
    // A wide access may begin inside.
    if (element.inside) report.add(", which reaches behind its end");
  }
  report.add("\n");
  add_place(report, find_caller());
  report.write_out();
}

// UBSan's words begin with a capital where they don't begin with a name.
void on_undefined_behaviour() {
  if (t_block == nullptr || __ubsan_get_current_report_data == nullptr) return;
  const char* kind = "";
  const char* message = "";
  const char* file = "";
  unsigned line = 0;
  unsigned column = 0;
  char* address = nullptr;
  __ubsan_get_current_report_data(&kind, &message, &file, &line, &column, &address);
  Report report;
  report.add("undefined behaviour: %c%s\n",
             static_cast<char>(std::tolower(static_cast<unsigned char>(message[0]))),
             message[0] == '\0' ? "" : message + 1);
  report.add_thread();
  if (line != 0) report.add(" at %s:%u", short_path(file), line);
  report.add("\n");
  report.write_out();
}

}  // namespace

void install_sanitizer_reports() {
  __sanitizer_set_death_callback(&on_sanitizer_death);
}

}  // namespace emulator

void __ubsan_on_report() {
  emulator::on_undefined_behaviour();
}

#else

namespace emulator {
void install_sanitizer_reports() {}
}  // namespace emulator

#endif
