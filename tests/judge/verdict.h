// verdict.h: what is known about one case after it ran.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moe::judge {

enum class State { kPass, kWrong, kTodo, kCrash, kHang, kSkip, kNotRun };

constexpr const char* name_of(State state) {
  constexpr const char* kNames[] = {"pass", "wrong", "todo", "crash", "hang", "skip", "not_run"};
  return kNames[static_cast<int>(state)];
}

// A known mistake; the stages' tables of bug models are made of these. Each that is made is noted,
// so that `drill explain` knows what the tests know (mistakes.h).
struct Mistake {
  Mistake(const char* its_code,
          const char* its_region,
          const char* its_note,
          const char* its_sentence);
  const char* code;
  const char* region;
  const char* note;
  const char* sentence;
};

struct Verdict {
  State state = State::kPass;
  std::string sentence;               // the diagnosis
  std::string code;                   // of the mistake, such as M2-FLATROW
  std::string region;                 // where to look
  std::string note;                   // section of the stage's note
  std::vector<std::string> evidence;  // what was seen
  std::string fault;                  // the emulator's report
  std::vector<std::string> todo;      // blanks that the case reached
  bool nothing_written = false;       // every buffer is as it was before the call
  // Code OOB: bytes changed at these distances behind the end of a buffer (negative: before its
  // start).
  std::string outside_of;
  int64_t outside_first = 0;
  int64_t outside_last = 0;
  // Other mistakes that explain this case just as well; the whole run tells them apart.
  std::vector<Mistake> also;

  bool pass() const { return state == State::kPass; }
};

inline Verdict wrong(std::string sentence, std::vector<std::string> evidence = {}) {
  Verdict verdict;
  verdict.state = State::kWrong;
  verdict.sentence = std::move(sentence);
  verdict.evidence = std::move(evidence);
  return verdict;
}

// No known mistake, but only one region can make it.
inline Verdict wrong_in(const char* region,
                        const char* note,
                        std::string sentence,
                        std::vector<std::string> evidence) {
  Verdict verdict = wrong(std::move(sentence), std::move(evidence));
  verdict.region = region;
  verdict.note = note;
  return verdict;
}

inline Verdict wrong(const Mistake& mistake, std::vector<std::string> evidence) {
  Verdict verdict = wrong(mistake.sentence, std::move(evidence));
  verdict.code = mistake.code;
  verdict.region = mistake.region;
  verdict.note = mistake.note;
  return verdict;
}

// The first of `mistakes` (which must not be empty), with the others beside it.
inline Verdict wrong(const std::vector<Mistake>& mistakes, std::vector<std::string> evidence) {
  Verdict verdict = wrong(mistakes.front(), std::move(evidence));
  verdict.also.assign(mistakes.begin() + 1, mistakes.end());
  return verdict;
}

}  // namespace moe::judge
