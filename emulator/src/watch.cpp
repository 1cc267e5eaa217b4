#include "watch.h"

#include <emulator/control.h>

#include <cstdlib>
#include <cstring>

namespace emulator {

namespace {

struct Watch {
  const char* name;
  MakeWatch make;
};

// EMULATOR_WATCH=NAME or NAME:ARGUMENT
#ifdef EMULATOR_TRACED
constexpr Watch kWatches[] = {
    {"check", make_checker},
    {"cost", make_cost_watch},
};

const Watch* find(const std::string& name) {
  for (const Watch& watch : kWatches) {
    if (name == watch.name) return &watch;
  }
  return nullptr;
}
#else
const Watch* find(const std::string& /*name*/) {
  return nullptr;
}
#endif

Observer* g_watching = nullptr;

}  // namespace

bool can_watch() {
  return kTraced;
}

void begin_watch() {
  if (!kTraced || g_watching != nullptr) return;
  const char* wanted = std::getenv("EMULATOR_WATCH");
  if (wanted == nullptr) return;
  const char* colon = std::strchr(wanted, ':');
  const std::string name = colon == nullptr ? wanted : std::string(wanted, colon);
  const Watch* watch = find(name);
  if (watch == nullptr) return;
  g_watching = watch->make(colon == nullptr ? "" : colon + 1);
  observe(g_watching);
}

void end_watch() {
  observe(nullptr);
  delete g_watching;
  g_watching = nullptr;
}

}  // namespace emulator
