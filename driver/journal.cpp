#include "driver/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "driver/state.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

std::filesystem::path journal_path(const std::filesystem::path& root) {
  return root / ".drill" / "log";
}

// Cuts the first word off a line.
std::string take_word(std::string& line) {
  const std::size_t end = line.find(' ');
  std::string word = line.substr(0, end);
  line.erase(0, end == std::string::npos ? end : end + 1);
  return word;
}

// The region of "m2.gather 3".
std::string region_of(const Event& event) {
  return event.text.substr(0, event.text.find(' '));
}

}  // namespace

std::vector<Event> parse_journal(std::string_view text) {
  static const std::set<std::string> kKinds{"run", "hint", "solution", "reset", "note"};
  std::vector<Event> events;
  for (std::string line : split_lines(text)) {
    Event event;
    const bool timed = parse_time(take_word(line), event.time);
    event.stem = take_word(line);
    event.kind = take_word(line);
    event.text = line;
    if (timed && !event.stem.empty() && kKinds.count(event.kind) != 0) events.push_back(event);
  }
  return events;
}

std::string format_event(const Event& event) {
  std::string line = time_text(event.time) + " " + event.stem + " " + event.kind + " " + event.text;
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line + "\n";
}

std::vector<Event> read_journal(const std::filesystem::path& root) {
  return parse_journal(read_file(journal_path(root)));
}

bool write_event(const std::filesystem::path& root,
                 std::string_view stem,
                 std::string_view kind,
                 std::string_view text) {
  const std::vector<Event> before = read_journal(root);
  const Event event{std::time(nullptr), std::string(stem), std::string(kind), std::string(text)};
  if (kind == "run" && !before.empty()) {
    const Event& last = before.back();
    if (last.stem == stem && last.kind == kind && last.text == text) return true;
  }
  std::error_code error;
  std::filesystem::create_directories(root / ".drill", error);
  const int file =
      open(journal_path(root).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return false;
  // One write: lines of two commands never mix.
  const std::string line = format_event(event);
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  close(file);
  return written;
}

std::size_t hints_taken(const std::vector<Event>& events,
                        std::string_view stem,
                        std::string_view region) {
  return static_cast<std::size_t>(
      std::count_if(events.begin(), events.end(), [&](const Event& event) {
        return event.kind == "hint" && event.stem == stem &&
               (region.empty() || region_of(event) == region);
      }));
}

bool solution_seen(const std::vector<Event>& events, std::string_view stem) {
  return std::any_of(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == "solution" && event.stem == stem;
  });
}

}  // namespace moe::driver
