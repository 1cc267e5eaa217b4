#include "driver/build_advice.h"

#include <regex>
#include <set>
#include <vector>

#include "driver/course.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The line of the learner's file that an error line points at, or "".
std::string pointed_line(const std::string& error, const BuildFailure& failure) {
  static const std::regex kPlace(R"(([A-Za-z0-9_]+)\.cu[:(]([0-9]+))");
  std::smatch place;
  if (!std::regex_search(error, place, kPlace) || place[1].str() != failure.stem) return {};
  const std::vector<std::string> lines = split_lines(failure.source);
  const std::size_t number = std::stoul(place[2]);
  return number >= 1 && number <= lines.size() ? lines[number - 1] : std::string();
}

// The name that a compiler does not know (g++, clang++, nvcc), or "".
std::string unknown_name(const std::string& error) {
  static const std::regex kForms(
      "'([A-Za-z_0-9]+)' (?:was not declared|has not been declared)|"
      "undeclared identifier '([A-Za-z_0-9]+)'|"
      "identifier \"([A-Za-z_0-9]+)\" is undefined");
  // g++ quotes with typographic marks where the locale is UTF-8.
  const std::string plain = std::regex_replace(error, std::regex("\xe2\x80\x98|\xe2\x80\x99"), "'");
  std::smatch match;
  if (!std::regex_search(plain, match, kForms)) return {};
  for (std::size_t i = 1; i < match.size(); ++i) {
    if (match[i].matched) return match[i];
  }
  return {};
}

std::vector<std::string> names_in(std::string_view text) {
  static const std::regex kName("[A-Za-z_][A-Za-z_0-9]*");
  const std::string copy(text);
  std::set<std::string> names;
  for (std::sregex_iterator at(copy.begin(), copy.end(), kName), end; at != end; ++at) {
    if (at->str().size() > 2) names.insert(at->str());
  }
  return {names.begin(), names.end()};
}

std::string about_name(const std::string& name, const BuildFailure& failure) {
  if (name.rfind("__", 0) == 0) {
    return name +
           " is not among the device functions that the emulator knows. Check the spelling; "
           "what it knows is listed in emulator/README.md.";
  }
  const std::string near = nearest(name, names_in(failure.contract), 2);
  if (near.empty() || near == name) return {};
  return "the contract, drills/" + std::string(failure.stem) + ".h, calls it " + near + ".";
}

constexpr const char* kAsmAdvice =
    "inline PTX is not emulated: it stands behind <drills/ptx.h>, which the emulator has a twin "
    "of. "
    "Call its functions instead of asm, and one file runs on a GPU and without.";

// Libraries of CUDA that a kernel could do without, by what an include or a name shows of them.
std::string about_library(std::string_view text) {
  struct Library {
    const char* mark;
    const char* advice;
  };
  static constexpr Library kLibraries[] = {
      {"cooperative_groups",
       "cooperative groups are not emulated: __syncthreads(), __syncwarp() and the _sync shuffles "
       "do "
       "what the drills need."},
      {"cub",
       "CUB is not emulated, and the drills are about what it does inside: a sum over a warp is "
       "five "
       "__shfl_xor_sync, one over a block goes through shared memory."},
      {"thrust",
       "Thrust is not emulated; the drills work on raw pointers in kernels of their own."},
      {"wmma",
       "wmma is not emulated; tensor cores are reached by mma_m16n8k16() and ldmatrix_x4() of "
       "<drills/ptx.h>."},
      {"cutlass",
       "CUTLASS and CuTe are not used here: what they hide is what the drills practise."},
      {"cute", "CUTLASS and CuTe are not used here: what they hide is what the drills practise."},
  };
  for (const Library& library : kLibraries) {
    if (std::regex_search(std::string(text),
                          std::regex("\\b" + std::string(library.mark) + "\\b"))) {
      return library.advice;
    }
  }
  return {};
}

// A quotation mark or dash that an editor or a web page made pretty.
std::string about_character(const std::string& error) {
  const bool stray = contains(error, "stray '\\") || contains(error, "extended character") ||
                     contains(error, "non-ASCII") || contains(error, "unexpected character <U+") ||
                     contains(error, "unrecognized token");
  if (!stray) return {};
  return "there is a character that is no ASCII outside of a comment: often a curly quotation mark "
         "or "
         "a long dash that came along with a copied text. Type it anew.";
}

std::string about_include(const std::string& error) {
  static const std::regex kForms(
      "fatal error: '?([^':]+?)'?:? (?:No such file|file not found)|"
      "cannot open source file \"([^\"]+)\"");
  std::smatch match;
  if (!std::regex_search(error, match, kForms)) return {};
  const std::string header = match[1].matched ? match[1] : match[2];
  std::string library = about_library(header == "mma.h" ? "wmma" : header);
  if (!library.empty()) return library;
  return "<" + header +
         "> is not there. A kernel file needs its contract, <drills/launch.h> and, " +
         "for PTX, <drills/ptx.h>; CUDA's other libraries are not used in the drills.";
}

std::string about_signature(const std::string& error, const BuildFailure& failure) {
  const bool undefined =
      contains(error, "undefined reference to") || contains(error, "undefined symbol");
  const bool ours = contains(error, "moe::mine::") || contains(error, "moe::solution::");
  const bool conflict = contains(error, "ambiguating new declaration") ||
                        contains(error, "conflicting declaration") ||
                        contains(error, "conflicting types") ||
                        contains(error, "differ only in their return type") ||
                        contains(error, "only by return type") || contains(error, "is ambiguous");
  if (!(undefined && ours) && !conflict) return {};
  return "the function must have exactly the signature that drills/" + std::string(failure.stem) +
         ".h declares, and stand in the namespace that the file opens with.";
}

std::string about_line(const std::string& error, const BuildFailure& failure) {
  const std::string line = pointed_line(error, failure);
  if (contains(line, "<<<")) {
    return "kernels are started by launch(kernel, grid, block, smem_bytes, stream, arguments...) "
           "of <drills/launch.h>, not by <<<...>>>, so that one file runs on a GPU and without.";
  }
  const bool extern_shared = contains(line, "__shared__") && contains(line, "extern");
  if (extern_shared ||
      (contains(error, "undefined reference") &&
       std::regex_search(std::string(failure.source), std::regex(R"(extern\s+__shared__)")))) {
    return "dynamic shared memory is dynamic_shared<T>() of <drills/launch.h>, not extern "
           "__shared__; its size is launch()'s smem_bytes.";
  }
  static const std::regex kAsm(R"(\basm\b)");
  const bool assembler = contains(error, "Error: ") || contains(error, "impossible constraint") ||
                         contains(error, "invalid 'asm'");
  if (std::regex_search(line, kAsm) ||
      (assembler && std::regex_search(std::string(failure.source), kAsm)) ||
      contains(error, "Error: no such instruction")) {
    return kAsmAdvice;
  }
  return about_library(line);
}

bool is_error(const std::string& line) {
  return contains(line, "error") || contains(line, "Error") || contains(line, "undefined");
}

}  // namespace

std::string advice_for(const BuildFailure& failure) {
  for (const std::string& line : split_lines(failure.compiler_text)) {
    if (!is_error(line)) continue;
    std::string advice = about_line(line, failure);
    if (advice.empty()) advice = about_include(line);
    if (advice.empty()) advice = about_character(line);
    if (advice.empty()) advice = about_signature(line, failure);
    const std::string name = advice.empty() ? unknown_name(line) : std::string();
    if (!name.empty()) advice = about_name(name, failure);
    if (!advice.empty()) return advice;
  }
  return {};
}

}  // namespace moe::driver
