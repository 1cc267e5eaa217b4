#include "findings.h"

#include <algorithm>
#include <cstdio>

#include "fault.h"
#include "observer.h"

namespace emulator {

std::uint32_t Findings::where(Place place, std::uintptr_t pc) {
  const bool has_place = place.line != 0;
  const auto file = reinterpret_cast<std::uintptr_t>(place.file);
  const auto key = has_place ? std::make_pair(file, place.line) : std::make_pair(pc, 0);
  const auto [found, is_new] = numbers_.emplace(key, static_cast<std::uint32_t>(lines_.size()));
  if (is_new) lines_.push_back({place, has_place ? 0 : pc});
  return found->second;
}

bool Findings::is_new(const char* group, std::uint32_t where, std::uint32_t other) {
  if (seen_.size() >= kMost) return false;
  return seen_.insert({group, std::minmax(where, other)}).second;
}

void Findings::add(const char* kind,
                   const std::string& sentence,
                   const std::vector<Actor>& actors) {
  text_ += (text_.empty() ? "" : "\n") + std::string(kind) + ": " + sentence;
  for (const Actor& actor : actors) {
    text_ += "\n  " + describe_thread(actor.block, actor.thread) + " " + actor.verb;
    const Line& line = lines_[actor.where];
    if (line.place.line != 0) {
      text_ += " at " + describe(line.place);
    } else if (line.pc != 0) {
      char counter[40];  // of the call, which returns behind it
      std::snprintf(counter, sizeof counter, "\n  pc 0x%zx",
                    static_cast<std::size_t>(program_offset(line.pc) - 1));
      text_ += counter;
    }
  }
}

}  // namespace emulator
