#include "driver/repeats.h"

#include <map>
#include <set>

namespace moe::driver {
namespace {

constexpr int kRuns = 5;
constexpr int kShuffle = 7;
constexpr std::size_t kAloneEach = 12;  // every twelfth case runs alone too

class Repeater {
 public:
  Repeater(const Course& course, const Stage& stage, const Backend& backend, bool full)
      : course_(course), stage_(stage), backend_(backend) {
    options_.side = "solution";
    options_.full = full;
    options_.seed = fresh_seed();
  }

  // Notes where a run differs from the first.
  void run(const std::string& what, int shuffle, const std::string& case_name) {
    TestOptions options = options_;
    options.shuffle = shuffle;
    options.case_name = case_name;
    const TestRun run = run_tests(course_, stage_, backend_, options, [](const CaseRecord&) {});
    std::size_t seen = 0;
    for (const CaseRecord& one : run.report.cases) {
      if (!case_name.empty() && one.name != case_name) continue;
      ++seen;
      const auto known = first_.emplace(one.name, one).first;
      const CaseRecord& before = known->second;
      if (before.state == one.state && before.digest == one.digest) continue;
      differ(one.name, what + " gives another " +
                           (before.state == one.state ? "output" : "verdict") + ", seed " +
                           std::to_string(*options_.seed));
    }
    const std::size_t wanted = case_name.empty() ? first_.size() : 1;
    if (seen != wanted) differ(case_name.empty() ? "all" : case_name, what + " misses cases");
  }

  void run_some_alone() {
    std::size_t index = 0;
    for (const auto& [name, record] : std::map(first_)) {
      if (index++ % kAloneEach == 0 && record.state == CaseState::kPass) run("alone", 0, name);
    }
  }

  Repeats result() const {
    Repeats repeats;
    repeats.tally.passed = first_.size() - std::min(first_.size(), different_.size());
    repeats.tally.failed = different_.size();
    repeats.details = details_;
    return repeats;
  }

 private:
  void differ(const std::string& name, const std::string& how) {
    if (different_.insert(name).second) details_ += "  " + name + ": " + how + "\n";
  }

  const Course& course_;
  const Stage& stage_;
  const Backend& backend_;
  TestOptions options_;
  std::map<std::string, CaseRecord> first_;
  std::set<std::string> different_;
  std::string details_;
};

}  // namespace

Repeats check_repeats(const Course& course,
                      const Stage& stage,
                      const Backend& backend,
                      bool full,
                      const std::function<void(const std::string&)>& show) {
  Repeater repeater(course, stage, backend, full);
  for (int run = 1; run <= kRuns; ++run) {
    show("run " + std::to_string(run));
    repeater.run("run " + std::to_string(run), 0, "");
  }
  show("shuffled");
  repeater.run("shuffled", kShuffle, "");
  show("alone");
  repeater.run_some_alone();
  return repeater.result();
}

}  // namespace moe::driver
