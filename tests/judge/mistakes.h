// mistakes.h: the mistakes that any stage can show, and the list of all that a test program knows.
#pragma once

#include <deque>
#include <functional>

#include "verdict.h"

namespace moe::judge {

extern const Mistake kOutOfBounds;  // a write outside of a buffer
extern const Mistake kModified;     // a write into an input
extern const Mistake kSync;         // host work during a capture
extern const Mistake kAllocates;    // memory asked for in a call
extern const Mistake kKept;         // state kept between calls
extern const Mistake kReplay;       // values read on the host
extern const Mistake kDirty;        // a workspace that is not cleared
extern const Mistake kUnstable;     // a fresh process decides otherwise
extern const Mistake kRace;         // the order of threads decides

// Every mistake that was made so far, in order, each sentence once.
const std::deque<Mistake>& known_mistakes();

// `--mistakes`: prints all as JSON, one a line. `make_tables` makes the stage's tables of bug
// models, which are otherwise made when first used.
void list_mistakes(const std::function<void()>& make_tables);

}  // namespace moe::judge
