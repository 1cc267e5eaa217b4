// Who can watch a kernel, by the name that EMULATOR_WATCH gives.
#pragma once

#include <string>

#include "observer.h"

namespace emulator {

// One call under watch: made by begin_watch(), destroyed by end_watch(). What it found it writes to
// its own file or makes a fault of the block (Block::fail).
using MakeWatch = Observer* (*)(const std::string& argument);

// The functions that make the observers; each stands in the observer's own file. watch.cpp lists
// them.
Observer* make_checker(const std::string& argument);     // checker.cpp
Observer* make_cost_watch(const std::string& argument);  // cost_watch.cpp

}  // namespace emulator
