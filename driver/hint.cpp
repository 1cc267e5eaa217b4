// `drill hint mN`: one step of a hint ladder a call. What the last run diagnosed comes first.
#include <algorithm>

#include "driver/hints.h"
#include "driver/journal.h"
#include "driver/last_run.h"
#include "driver/markdown.h"
#include "driver/state.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

class Hint {
 public:
  Hint(const Course& course, const HintOptions& options)
      : course_(course), options_(options), stage_(*find_stage(options.stage)) {
    const std::string file = "content/" + std::string(stage_.stem) + ".hints.md";
    ladders_ = ladders_of(read_file(course.root / file));
    events_ = read_journal(course.root);
    last_ = last_run(course, stage_);
  }

  int run();

 private:
  const Ladder* ladder_of(const std::string& region) const;
  const Ladder* choose();
  void say_diagnosis(const Ladder& ladder) const;
  void say_step(const Ladder& ladder, std::size_t number) const;
  int say_regions(const std::string& why) const;

  const Course& course_;
  const HintOptions& options_;
  const Stage& stage_;
  std::vector<Ladder> ladders_;
  std::vector<Event> events_;
  std::optional<LastRun> last_;
  Paint paint_ = Paint::for_stdout();
};

// "m2.gather" or "gather".
const Ladder* Hint::ladder_of(const std::string& region) const {
  for (const Ladder& ladder : ladders_) {
    if (ladder.region == region || ladder.region == std::string(stage_.id) + "." + region) {
      return &ladder;
    }
  }
  return nullptr;
}

// The region that was asked for, else the diagnosed one, else the first that is blank.
const Ladder* Hint::choose() {
  if (!options_.region.empty()) return ladder_of(options_.region);
  if (last_) {
    const CaseRecord* failure = last_->failure();
    if (failure != nullptr && ladder_of(failure->region) != nullptr) {
      return ladder_of(failure->region);
    }
    if (failure != nullptr) return nullptr;  // known to be wrong, but not where
  }
  for (const Blank& blank : blanks_of(course_, stage_)) {
    if (!blank.written) return ladder_of(blank.label);
  }
  return nullptr;
}

int Hint::say_regions(const std::string& why) const {
  say(wrapped("drill: ", why));
  for (const Ladder& ladder : ladders_) {
    const std::size_t taken = hints_taken(events_, stage_.stem, ladder.region);
    say("  drill hint " + std::string(stage_.id) + " " +
        padded(ladder.region.substr(ladder.region.find('.') + 1), 14) +
        std::to_string(std::min(taken, ladder.steps.size())) + " of " +
        std::to_string(ladder.steps.size()) + " taken\n");
  }
  return static_cast<int>(Verdict::kUsage);
}

void Hint::say_diagnosis(const Ladder& ladder) const {
  const CaseRecord* failure = last_ ? last_->failure() : nullptr;
  if (failure == nullptr || failure->region != ladder.region || failure->sentence.empty()) return;
  const std::string when =
      last_->current ? "the last run" : "the last run (before you saved again)";
  say(wrapped("found   ", failure->sentence));
  say(wrapped("        ", "in " + failure->name + " of " + when +
                              (failure->code.empty() ? "" : "; " + failure->code)));
  say("\n");
}

void Hint::say_step(const Ladder& ladder, std::size_t number) const {
  const std::string title = "hint " + std::to_string(number) + " of " +
                            std::to_string(ladder.steps.size()) + "   " + ladder.region;
  say(paint_.strong(title) + "\n\n");
  RenderOptions render;
  render.indent = 2;
  say(rendered(ladder.steps[number - 1], paint_, render));
}

int Hint::run() {
  const std::string id = stage_.id;
  if (ladders_.empty()) {
    say("drill: there are no hints for " + id + "\n");
    return static_cast<int>(Verdict::kUsage);
  }
  const Ladder* ladder = choose();
  if (ladder == nullptr || ladder->steps.empty()) {
    if (!options_.region.empty()) {
      return say_regions(id + " has no region " + shell_quoted(options_.region) + ". It has:");
    }
    const CaseRecord* failure = last_ ? last_->failure() : nullptr;
    if (failure != nullptr) {
      const std::string found = failure->code.empty()
                                    ? "the last run was wrong, but in no way that is known"
                                    : "the last run says " + failure->code + " (drill explain " +
                                          failure->code + "), which is a mistake of no one region";
      return say_regions(found + ". Look at it first (drill " + id + " --map, drill " + id +
                         " --print 0,0); then choose the region:");
    }
    return say_regions("no region of " + id + " is blank and no run has failed. Choose one:");
  }
  const std::size_t steps = ladder->steps.size();
  const std::size_t taken = std::min(hints_taken(events_, stage_.stem, ladder->region), steps);
  say_diagnosis(*ladder);
  if (options_.all) {
    if (taken == 0) say("no hint for " + ladder->region + " has been taken yet\n");
    for (std::size_t number = 1; number <= taken; ++number) say_step(*ladder, number);
    return 0;
  }
  if (taken == steps) {
    say_step(*ladder, steps);
    say(wrapped("That was the last one (again). ", "All of them: drill hint " + id + " " +
                                                       ladder->region +
                                                       " --all. The reference "
                                                       "is no hint: drill solution " +
                                                       id));
    return 0;
  }
  say_step(*ladder, taken + 1);
  write_event(course_.root, stage_.stem, "hint", ladder->region + " " + std::to_string(taken + 1));
  const std::size_t all = hints_taken(events_, stage_.stem) + 1;
  say("taken  " + counted(all, "hint") + " in " + id + "; they are counted, not punished\n");
  return 0;
}

}  // namespace

int show_hint(const Course& course, const HintOptions& options) {
  return Hint(course, options).run();
}

}  // namespace moe::driver
