// `drill worklog`: what was tried and when, from .drill/log.
#include <ctime>

#include "driver/journal.h"
#include "driver/report.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

std::string local_time(std::int64_t time, const char* format) {
  const std::time_t seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

std::string upper_case(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

// "run wrong M2-SLOT0 edge/k1" -> "WRONG  M2-SLOT0  edge/k1".
std::string words_of(const Event& event) {
  if (event.kind == "hint") return "hint   " + event.text;
  if (event.kind == "solution") return "looked at the reference";
  if (event.kind == "reset") return "reset  the old file: " + event.text;
  if (event.kind == "note") return "note   " + event.text;
  std::string rest = event.text;
  std::string text;
  for (int word = 0; word < 3 && !rest.empty(); ++word) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string part = rest.substr(0, end);
    rest.erase(0, end + 1);
    if (word == 0) {
      text = padded(upper_case(part), 7);
    } else if (part != "-") {
      text += part + "  ";
    }
  }
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string id_of(const std::string& stem) {
  return stem.substr(0, stem.find('_'));
}

}  // namespace

int show_worklog(const Course& course, const WorklogOptions& options) {
  const Stage* stage = options.stage.empty() ? nullptr : find_stage(options.stage);
  if (!options.note.empty()) {
    const char* stem = stage == nullptr ? "-" : stage->stem;
    if (write_event(course.root, stem, "note", options.note)) return 0;
    say("drill: .drill/log cannot be written\n");
    return static_cast<int>(Verdict::kFault);
  }
  std::string day;
  std::size_t shown = 0;
  for (const Event& event : read_journal(course.root)) {
    if (stage != nullptr && event.stem != stage->stem) continue;
    const std::string this_day = local_time(event.time, "%A %Y-%m-%d");
    if (this_day != day) say((shown == 0 ? "" : "\n") + this_day + "\n");
    day = this_day;
    ++shown;
    say(wrapped("  " + local_time(event.time, "%H:%M") + "  " + padded(id_of(event.stem), 4),
                words_of(event)));
  }
  if (shown == 0) {
    say("nothing has been tried yet" +
        (stage == nullptr ? std::string() : " in " + std::string(stage->id)) + "\n");
  }
  return 0;
}

}  // namespace moe::driver
