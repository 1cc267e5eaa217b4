#include "driver/state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <set>
#include <sstream>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr const char* kHeader = "drill state 1";

bool parse_line(const std::string& line, States& states) {
  static const std::set<std::string> kVerdicts{"pass", "wrong", "todo", "crash",
                                               "hang", "build", "slow", "skip"};
  std::istringstream words(line);
  std::string stem;
  std::string hash;
  std::string time;
  StageState state;
  if (!(words >> stem >> hash >> state.verdict >> time >> state.detail)) return false;
  std::string rest;
  if (words >> rest) return false;
  int used = 0;
  if (hash.size() != 16) return false;
  if (std::sscanf(hash.c_str(), "%16" SCNx64 "%n", &state.hash, &used) != 1 || used != 16) {
    return false;
  }
  if (kVerdicts.count(state.verdict) == 0 || !parse_time(time, state.time)) return false;
  states[stem] = state;
  return true;
}

}  // namespace

std::string time_text(std::int64_t time) {
  const std::time_t seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool parse_time(const std::string& text, std::int64_t& time) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return false;
  time = timegm(&parts);
  return true;
}

States parse_states(std::string_view text) {
  States states;
  const std::vector<std::string> lines = split_lines(text);
  if (lines.empty() || lines.front() != kHeader) return states;
  for (std::size_t i = 1; i < lines.size(); ++i) parse_line(lines[i], states);
  return states;
}

std::string format_states(const States& states) {
  std::string text = std::string(kHeader) + "\n";
  for (const auto& [stem, state] : states) {
    char hash[17];
    std::snprintf(hash, sizeof hash, "%016" PRIx64, state.hash);
    text += stem + " " + hash + " " + state.verdict + " " + time_text(state.time) + " " +
            (state.detail.empty() ? "-" : state.detail) + "\n";
  }
  return text;
}

States read_states(const std::filesystem::path& root) {
  return parse_states(read_file(root / ".drill" / "state"));
}

bool write_states(const std::filesystem::path& root, const States& states) {
  std::error_code error;
  std::filesystem::create_directories(root / ".drill", error);
  return write_file((root / ".drill" / "state").string(), format_states(states));
}

StateLock::StateLock(const std::filesystem::path& root) {
  std::error_code error;
  std::filesystem::create_directories(root / ".drill", error);
  descriptor_ = open((root / ".drill" / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) flock(descriptor_, LOCK_EX);
}

StateLock::~StateLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a: for noticing edits, not for security
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

std::string age_text(std::int64_t then, std::int64_t now) {
  constexpr std::int64_t kMinute = 60;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  const std::int64_t age = now - then;
  const auto ago = [](std::int64_t count, const char* unit) {
    return counted(static_cast<std::size_t>(count), unit) + " ago";
  };
  if (age < kMinute) return "just now";
  if (age < kHour) return ago(age / kMinute, "minute");
  if (age < kDay) return ago(age / kHour, "hour");
  return ago(age / kDay, "day");
}

}  // namespace moe::driver
