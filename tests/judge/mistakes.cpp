#include "mistakes.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

namespace moe::judge {
namespace {

// A function's own, so that it exists before the tables that are made before main().
std::deque<Mistake>& registry() {
  static std::deque<Mistake> all;
  return all;
}

}  // namespace

Mistake::Mistake(const char* its_code,
                 const char* its_region,
                 const char* its_note,
                 const char* its_sentence)
    : code(its_code), region(its_region), note(its_note), sentence(its_sentence) {
  std::deque<Mistake>& all = registry();
  const bool known = std::any_of(all.begin(), all.end(), [&](const Mistake& other) {
    return std::string_view(other.code) == code && std::string_view(other.sentence) == sentence;
  });
  if (!known) all.push_back(*this);
}

const Mistake kOutOfBounds = {"OOB", "", "", "Memory outside of a buffer was written."};
const Mistake kModified = {"MODIFIED", "", "", "An input was changed; inputs are never written."};
const Mistake kSync = {
    "SYNC", "", "",
    "The call broke the capture of its stream: it waits, allocates, copies to the host or uses "
    "another stream."};
const Mistake kAllocates = {"ALLOC", "", "",
                            "The call allocates memory; it must use the memory that it is given."};
const Mistake kKept = {
    "STATE", "", "",
    "Right in a fresh process, wrong after another call: something is kept between calls; reset it "
    "in every call."};
const Mistake kReplay = {
    "REPLAY", "", "",
    "Right when called, wrong when the captured graph is replayed with other data: values were "
    "read, or work was done, on the host."};
const Mistake kDirty = {
    "DIRTY", "", "",
    "The result depends on what was in the workspace before: clear your counters in every call."};
const Mistake kUnstable = {"UNSTABLE", "", "",
                           "Wrong in one run, right in the next with the same data: threads race "
                           "(an atomic or a barrier is "
                           "missing), or something is kept from an earlier case."};
const Mistake kRace = {
    "RACE", "", "",
    "The result depends on the order of threads: a barrier is missing, or two threads write the "
    "same place."};

const std::deque<Mistake>& known_mistakes() {
  return registry();
}

void list_mistakes(const std::function<void()>& make_tables) {
  if (make_tables) make_tables();
  for (const Mistake& mistake : known_mistakes()) {
    const nlohmann::ordered_json line = {{"code", mistake.code},
                                         {"region", mistake.region},
                                         {"note", mistake.note},
                                         {"sentence", mistake.sentence}};
    std::printf("%s\n", line.dump().c_str());
  }
}

}  // namespace moe::judge
