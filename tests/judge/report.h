// report.h: the record of a run, one JSON object a line, on disk before the next case starts. The
// command `drill` prints it; a crash of anything later cannot lose what was judged.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "diagnosis.h"
#include "look.h"
#include "verdict.h"

namespace moe::judge {

struct RunStart {
  std::string stage;
  std::string side;
  std::string backend;
  std::string device;
  std::string set;
  uint64_t seed = 0;
  int cases = 0;
};

struct CaseRecord {
  std::string name;
  std::string shape;
  std::string step;  // which of the ways a case is run in showed it
  uint64_t seed = 0;
  double seconds = 0.0;
  bool composed = false;
  uint64_t digest = 0;  // of what it gave, when passed
  Look look = {};
};

class Report {
 public:
  // Writes to `path`, or nowhere where it is empty.
  explicit Report(const std::string& path);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void start(const RunStart& run);
  void add(const CaseRecord& record, const Verdict& verdict);
  // What explains most failed cases, and what explains exactly the same ones; nothing for none.
  void diagnosis(const std::vector<Diagnosis::Named>& best);
  void output(const std::string& text, bool truncated);
  void usage(const std::string& message);
  void end(const int (&counts)[7]);

 private:
  void line(const std::string& text);
  std::FILE* file_ = nullptr;
};

}  // namespace moe::judge
