// What a check has found: each pair of lines once, in words of CUDA.
#pragma once

#include <emulator/place.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace emulator {

class Findings {
 public:
  // One thread at one line of the program.
  struct Actor {
    uint3 block{};
    uint3 thread{};
    const char* verb = "";  // "reads"
    std::uint32_t where = 0;
  };

  // A number for a line: a place, or the pc where that has none.
  std::uint32_t where(Place place, std::uintptr_t pc);

  // Is it worth to put this into words? Only the first time for these two lines. (What is read
  // too early is told as one kind of mistake alone, though others follow from it.)
  bool is_new(const char* group, std::uint32_t where, std::uint32_t other);
  void add(const char* kind, const std::string& sentence, const std::vector<Actor>& actors);

  bool empty() const { return text_.empty(); }
  // As fault() gives it: "kind: sentence", then indented lines; one finding behind the other.
  const std::string& text() const { return text_; }

 private:
  struct Line {
    Place place;
    std::uintptr_t pc = 0;
  };

  // What two lines have in common is one mistake, however often it happens.
  static constexpr std::size_t kMost = 12;

  std::vector<Line> lines_ = {Line{}};
  std::map<std::pair<std::uintptr_t, int>, std::uint32_t> numbers_;
  std::set<std::pair<std::string, std::pair<std::uint32_t, std::uint32_t>>> seen_;
  std::string text_;
};

}  // namespace emulator
