// `drill` alone: where am I, and what is next. Runs nothing.
#include <algorithm>
#include <ctime>

#include "driver/state.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

Standing standing_without_run(const Standing& counted_blanks, bool missing) {
  Standing standing = counted_blanks;
  if (missing) {
    standing.word = "gone";
    standing.detail = "the file is missing";
  } else if (standing.open == standing.blanks) {
    standing.word = "new";
    standing.detail = counted(standing.blanks, "region") + " to write";
  } else {
    standing.word = "open";
    standing.detail = "not run yet";
  }
  return standing;
}

std::string painted(const std::string& word, const Standing& standing, const Paint& paint) {
  if (standing.word == "SLOW" || standing.word == "SKIP") return paint.open(word);
  if (standing.passed) return paint.good(word);
  if (standing.word == "WRONG" || standing.word == "CRASH" || standing.word == "HANG" ||
      standing.word == "BUILD") {
    return paint.bad(word);
  }
  return standing.word == "TODO" ? paint.open(word) : word;
}

}  // namespace

Standing standing_of(const Course& course, const Stage& stage) {
  Standing standing;
  const std::vector<Blank> blanks = blanks_of(course, stage);
  standing.blanks = blanks.size();
  for (const Blank& blank : blanks) standing.open += blank.written ? 0 : 1;

  const std::string mine = read_file(course.mine(stage));
  const States states = read_states(course.root);
  const auto found = states.find(stage.stem);
  if (mine.empty() || found == states.end()) return standing_without_run(standing, mine.empty());

  const StageState& state = found->second;
  const std::string age = age_text(state.time, std::time(nullptr));
  const std::string was = upper_case(state.verdict);
  if (state.hash != work_hash(course, stage, mine)) {
    standing.word = "edited";
    standing.detail = "was " + was + " " + age;
    return standing;
  }
  standing.word = was;
  // SLOW is right, too, but for the gate that was set.
  standing.passed = state.verdict == "pass" || state.verdict == "slow";
  standing.full = standing.passed && state.detail == "full";
  if (standing.passed) {
    standing.detail = standing.full ? "every case, " : "quick set, ";
  } else if (state.verdict == "todo") {
    standing.detail =
        std::to_string(standing.open) + " of " + std::to_string(standing.blanks) + " blank, ";
  } else if (state.detail != "-") {
    standing.detail = state.detail + ", ";
  }
  standing.detail += age;
  return standing;
}

std::string next_command(const Course& course, const Stage* after) {
  const std::size_t count = std::size(kStages);
  const std::size_t start = after == nullptr ? 0 : static_cast<std::size_t>(after - kStages) + 1;
  const Stage* not_full = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const Stage& stage = kStages[(start + i) % count];
    const Standing standing = standing_of(course, stage);
    if (!standing.passed) return "drill " + std::string(stage.id);
    if (!standing.full && (not_full == nullptr || &stage == after)) not_full = &stage;
  }
  if (not_full != nullptr) return "drill " + std::string(not_full->id) + " --full";
  return "drill list";
}

std::string standing_line(const Stage& stage, const Standing& standing, const Paint& paint) {
  std::size_t title_width = 0;
  for (const Stage& one : kStages) {
    title_width = std::max(title_width, std::string_view(one.title).size());
  }
  const std::string start = padded(stage.id, 5) + padded(stage.title, title_width + 2);
  const std::string word = padded(standing.word, 7);
  std::string line = wrapped(start + word, standing.detail);
  return line.replace(start.size(), word.size(), painted(word, standing, paint));
}

int show_where(const Course& course) {
  const Paint paint = Paint::for_stdout();
  for (const Stage& stage : kStages) {
    say(standing_line(stage, standing_of(course, stage), paint));
  }
  say("\nnext   " + paint.strong(next_command(course)) + "\n");
  return 0;
}

}  // namespace moe::driver
