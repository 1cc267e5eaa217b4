#include "driver/grade/rules.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "driver/grade/source_text.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

bool has_word(const std::string& line, const std::string& word) {
  for (std::size_t at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    const bool starts = at == 0 || !is_word_char(line[at - 1]);
    const std::size_t end = at + word.size();
    if (starts && (end == line.size() || !is_word_char(line[end]))) return true;
  }
  return false;
}

std::string first_word(const std::string& text) {
  const std::size_t start = text.find_first_not_of(" \t");
  if (start == std::string::npos) return {};
  std::size_t end = start;
  while (end < text.size() && is_word_char(text[end])) ++end;
  return text.substr(start, end - start);
}

std::string about_include(const std::string& rest) {
  if (rest.find("solutions/") != std::string::npos) {
    return "solutions/ is not available while grading";
  }
  const bool outside = rest.find("</") != std::string::npos ||
                       rest.find("\"/") != std::string::npos ||
                       rest.find("..") != std::string::npos;
  return outside ? "files outside of the course cannot be included" : "";
}

std::string about_directive(const std::string& directive, const std::string& rest) {
  if (directive == "include" || directive == "include_next" || directive == "import") {
    return about_include(rest);
  }
  if (directive == "pragma") {
    static const std::set<std::string> kAllowed{"unroll", "once", "nv_diag_suppress",
                                                "nv_diag_default"};
    return kAllowed.count(first_word(rest)) != 0 ? "" : "of all pragmas only unroll is allowed";
  }
  const bool line =
      directive == "line" ||
      (!directive.empty() && std::isdigit(static_cast<unsigned char>(directive[0])) != 0);
  return line ? "line directives are not allowed: messages must name the true line" : "";
}

const std::map<std::string, std::string>& forbidden_words() {
  static const std::string kAssembly =
      "inline assembly is not allowed; drills/ptx.h has what the stages need";
  static const std::map<std::string, std::string> kWords{
      {"asm", kAssembly},
      {"__asm", kAssembly},
      {"__asm__", kAssembly},
      {"_Pragma", "of all pragmas only unroll is allowed"},
      {"__pragma", "of all pragmas only unroll is allowed"},
  };
  return kWords;
}

struct Forbidden {
  const char* reason;
  std::vector<std::string> names;     // exactly these
  std::vector<std::string> prefixes;  // or anything that starts so
};

const std::vector<Forbidden>& forbidden_symbols() {
  static const std::vector<Forbidden> kForbidden{
      {"this stage asks for your own kernel",
       {},
       {"cublas", "cudnn", "cusparse", "cusolver", "nvrtc", "nvJitLink", "cblas_", "sgemm_"}},
      {"code is not loaded at run time",
       {"dlopen", "dlsym", "dlmopen", "dlvsym", "dl_iterate_phdr"},
       {"cuModule", "cuLibrary", "cuLink", "cuGetProcAddress", "cudaGetDriverEntryPoint",
        "cudaLibrary"}},
      {"a kernel file starts no process",
       {"fork", "vfork", "clone", "system", "popen", "execve", "execv", "execvp", "execl", "execlp",
        "execle", "execvpe", "fexecve", "posix_spawn", "posix_spawnp", "daemon", "setsid"},
       {}},
      {"a kernel file starts no thread",
       {"pthread_create", "thrd_create",
        "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14"
        "default_deleteIS1_EEPFvvE"},
       {}},
      {"a kernel file uses no network",
       {"socket", "connect", "bind", "listen", "accept", "getaddrinfo", "gethostbyname"},
       {}},
      {"other processes and the process itself are not a kernel file's business",
       {"ptrace", "process_vm_readv", "process_vm_writev", "kill", "prctl", "syscall", "mprotect",
        "signal", "sigaction", "raise", "setrlimit", "prlimit", "setenv", "putenv"},
       {}},
      {"the device belongs to the test harness",
       {"cudaDeviceReset", "cudaSetDevice", "cudaDeviceSetLimit", "cudaDeviceSetCacheConfig",
        "cudaCtxResetPersistingL2Cache", "cudaSetDeviceFlags"},
       {"cudaProfiler"}},
      // How a GPU's runner counts what a call allocates: the linker's names for it.
      {"it belongs to the test harness", {}, {"__real_", "__wrap_"}},
  };
  return kForbidden;
}

bool is_ours(const std::string& mangled) {
  return mangled.rfind("_ZN8emulator", 0) == 0 || mangled.rfind("_ZN3moe6runner", 0) == 0;
}

// "_Z15cudaDeviceResetv" -> "cudaDeviceReset": a function outside of any namespace. Else as it is.
std::string plain_name(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  std::size_t at = 2;
  std::size_t length = 0;
  for (; at < name.size() && std::isdigit(static_cast<unsigned char>(name[at])) != 0; ++at) {
    length = 10 * length + static_cast<std::size_t>(name[at] - '0');
    if (length > name.size()) return name;
  }
  return length > 0 && at + length <= name.size() ? name.substr(at, length) : name;
}

// "cublasGemmEx is used; this stage asks for your own kernel", or "".
std::string about_use(const std::string& name) {
  const auto matches = [&](const Forbidden& forbidden) {
    const auto starts = [&](const std::string& prefix) { return name.rfind(prefix, 0) == 0; };
    return std::count(forbidden.names.begin(), forbidden.names.end(), name) > 0 ||
           std::any_of(forbidden.prefixes.begin(), forbidden.prefixes.end(), starts);
  };
  for (const Forbidden& forbidden : forbidden_symbols()) {
    if (!matches(forbidden)) continue;
    const std::string shown = name.rfind("_ZNSt6thread", 0) == 0 ? "std::thread" : name;
    return shown + " is used; " + forbidden.reason;
  }
  return {};
}

}  // namespace

std::vector<RuleBreak> check_source(std::string_view text, const std::string& file) {
  std::vector<RuleBreak> broken;
  int number = 0;
  for (const std::string& line : driver::split_lines(code_only(text))) {
    ++number;
    std::string rest;
    std::string problem = about_directive(directive_of(line, rest), rest);
    for (const auto& [word, sentence] : forbidden_words()) {
      if (problem.empty() && has_word(line, word)) problem = sentence;
    }
    if (!problem.empty()) {
      std::string sentence = file;
      sentence.append(":").append(std::to_string(number)).append(": ").append(problem);
      broken.push_back({number, sentence});
    }
  }
  return broken;
}

std::vector<RuleBreak> check_depends(std::string_view depends,
                                     const std::vector<std::string>& allowed) {
  std::vector<RuleBreak> broken;
  std::string text(depends);
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(0, text.find(": ") == std::string::npos ? 0 : text.find(": ") + 2);
  std::string path;
  const auto check = [&] {
    const std::string clean = std::filesystem::path(path).lexically_normal();
    const auto under = [&](const std::string& folder) { return clean.rfind(folder, 0) == 0; };
    if (!path.empty() && std::none_of(allowed.begin(), allowed.end(), under)) {
      const bool solution = clean.find("/solutions/") != std::string::npos;
      broken.push_back({0, solution ? "solutions/ is not available while grading"
                                    : "files outside of the course cannot be included"});
    }
    path.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool ends_here = i + 1 >= text.size() || text[i + 1] == ' ';
    if (text[i] == '\\' && ends_here) {
      // An escaped blank belongs to the name; a line's end was a blank too, and ends it.
      const bool line_end = i + 2 < text.size() && text[i + 2] == ' ';
      if (line_end) {
        check();
      } else {
        path += ' ';
      }
      ++i;
    } else if (text[i] == ' ') {
      check();
    } else {
      path += text[i];
    }
  }
  check();
  return broken;
}

std::vector<Symbol> parse_symbols(std::string_view nm_output) {
  std::vector<Symbol> symbols;
  for (const std::string& line : driver::split_lines(nm_output)) {
    const std::size_t type = line.find_first_not_of("0123456789abcdef ");
    if (type == std::string::npos || type + 2 >= line.size() || line[type + 1] != ' ') continue;
    symbols.push_back({line[type], line.substr(type + 2)});
  }
  return symbols;
}

SymbolCheck check_symbols(const std::vector<Symbol>& symbols,
                          const std::vector<std::string>& harness,
                          const std::vector<std::string>& given,
                          const std::string& file) {
  SymbolCheck check;
  for (const Symbol& symbol : symbols) {
    if (symbol.type == 'U' || symbol.type == 'w' || symbol.type == 'v') {
      if (std::binary_search(given.begin(), given.end(), symbol.name)) continue;
      const std::string sentence = about_use(plain_name(symbol.name));
      if (!sentence.empty()) check.broken.push_back({0, sentence});
      continue;
    }
    const bool theirs = symbol.name.find("3moe4mine") != std::string::npos;
    const bool known = std::binary_search(harness.begin(), harness.end(), symbol.name);
    // Inline functions of headers are defined in every file that uses them, weakly; the variables
    // of the emulator (blockIdx) are unique ones.
    const bool weak = std::string("WVu").find(symbol.type) != std::string::npos;
    const bool inlined =
        weak && symbol.name.rfind("_Z", 0) == 0 && !(known && is_ours(symbol.name));
    if (theirs || inlined || symbol.type == 'u') continue;
    if (symbol.name == "main") {
      check.broken.push_back({0, file + " must not define main"});
    } else if (known) {
      check.broken.push_back(
          {0, "symbol " + plain_name(symbol.name) + " belongs to the test harness"});
    }
    check.to_hide.push_back(symbol.name);
  }
  return check;
}

}  // namespace moe::grade
