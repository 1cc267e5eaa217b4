#include "driver/compute_sanitizer.h"

#include <regex>

#include "driver/process.h"

namespace moe::driver {
namespace {

constexpr std::string_view kMark = "========= ";

struct Phrase {
  std::regex pattern;
  const char* kind;      // as the emulator says it
  const char* sentence;  // with $1 of the pattern
};

// The first lines of reports, as the manual of compute-sanitizer shows them.
const std::vector<Phrase>& phrases() {
  static const std::vector<Phrase> kPhrases{
      {std::regex(R"(Invalid __(\w+)__ (read|write|atomic).* of size (\d+).*)"), "out of bounds",
       "$2 of $3 bytes in $1 memory"},
      {std::regex(R"((?:Error|Warning): (?:Potential )?(?:Race|\w+ hazard).*)"), "race",
       "two threads use the same shared memory, and nothing orders them"},
      {std::regex(R"(Race reported between.*)"), "race",
       "two threads use the same shared memory, and nothing orders them"},
      {std::regex(R"(Uninitialized __(\w+)__ memory read of size (\d+).*)"), "uninitialised read",
       "$2 bytes of $1 memory are read, and nothing was ever written there"},
      {std::regex(R"(Barrier error detected\. Divergent thread\(s\) in (\w+).*)"), "divergence",
       "not all threads of the $1 come to the same barrier"},
      {std::regex(R"(Barrier error detected\. Missing wait.*)"), "missing wait",
       "a barrier is used again before its phase was waited for"},
      {std::regex(R"(Barrier error detected\. (.*?)\.?)"), "mbarrier", "$1"},
      {std::regex(R"(Program hit (\w+).*)"), "exception", "the program hit $1"},
  };
  return kPhrases;
}

// The first line of a finding, or an empty kind.
Finding finding_of_headline(const std::string& text) {
  Finding finding;
  for (const Phrase& phrase : phrases()) {
    std::smatch match;
    if (!std::regex_match(text, match, phrase.pattern)) continue;
    finding.kind = phrase.kind;
    finding.sentence = match.format(phrase.sentence);
    return finding;
  }
  return finding;
}

std::string relative_place(const std::string& file,
                           const std::string& line,
                           const std::filesystem::path& root) {
  const std::string prefix = root.string() + "/";
  const std::string name = file.rfind(prefix, 0) == 0 ? file.substr(prefix.size()) : file;
  return name + ":" + line;
}

// "at kernel(int *)+0x90 in /course/mine/x.cu:13" and "at 0x278 in /course/mine/x.cu:113:kernel"
std::string place_of(const std::string& text, const std::filesystem::path& root) {
  static const std::regex kPlace(R"( in (.+?\.(?:cu|cuh|h|hpp|inl)):(\d+))");
  std::smatch match;
  if (!std::regex_search(text, match, kPlace)) return {};
  return relative_place(match[1].str(), match[2].str(), root);
}

std::string who_of(const std::string& text) {
  static const std::regex kWho(R"(by thread (\([^)]*\)) in block (\([^)]*\)))");
  static const std::regex kAccess(R"((Read|Write|Atomic) access at)");
  std::smatch match;
  if (std::regex_search(text, match, kWho)) {
    return "in block " + match[2].str() + " thread " + match[1].str();
  }
  if (!std::regex_search(text, match, kAccess)) return {};
  const std::string word = match[1].str();
  return word == "Read" ? "one thread reads" : word == "Write" ? "one thread writes" : "an atomic";
}

// Two lines of one report about the same thread: where, then who.
void add_line(const std::string& text, const std::filesystem::path& root, Finding& finding) {
  static const std::regex kAddress(R"(Address (0x\w+) is (misaligned).*)");
  if (std::regex_search(text, kAddress)) finding.kind = "misaligned";
  const std::string who = who_of(text);
  const std::string place = place_of(text, root);
  // Frames below the innermost only say who called it.
  const bool frame = text.rfind("Device Frame", 0) == 0 || text.rfind("Host Frame", 0) == 0;
  if (frame || (who.empty() && place.empty())) return;
  const bool open = !finding.details.empty() && finding.details.back().rfind("at ", 0) == 0;
  if (!who.empty() && place.empty() && open) {
    finding.details.back() = who + " " + finding.details.back();
    return;
  }
  finding.details.push_back(place.empty() ? who : (who.empty() ? "" : who + " ") + "at " + place);
  if (!place.empty()) finding.places.push_back(place);
}

}  // namespace

std::filesystem::path find_compute_sanitizer(const std::filesystem::path& nvcc) {
  return find_program("compute-sanitizer", {nvcc.parent_path(), "/usr/local/cuda/bin"});
}

bool write_sanitizer_script(const std::filesystem::path& script,
                            const std::filesystem::path& sanitizer,
                            const std::string& tool,
                            const std::filesystem::path& log,
                            const std::filesystem::path& runner) {
  std::error_code error;
  std::filesystem::create_directories(script.parent_path(), error);
  std::filesystem::remove(log, error);
  const std::string text = "#!/bin/sh\nexec " + shell_quoted(sanitizer) + " --tool " + tool +
                           " --log-file " + shell_quoted(log) + " " + shell_quoted(runner) + "\n";
  if (!write_file(script, text)) return false;
  std::filesystem::permissions(script, std::filesystem::perms::owner_all, error);
  return !error;
}

std::vector<Finding> findings_of_sanitizer(std::string_view log,
                                           const std::filesystem::path& root) {
  std::vector<Finding> findings;
  Finding current;
  const auto close = [&] {
    if (!current.kind.empty()) add_finding(findings, current);
    current = {};
  };
  for (const std::string& line : split_lines(log)) {
    if (line.rfind(kMark, 0) != 0) continue;  // what the program printed
    const std::string marked = line.substr(kMark.size());
    const std::string text = marked.substr(std::min(marked.find_first_not_of(' '), marked.size()));
    const Finding next = text == marked ? finding_of_headline(text) : Finding();
    if (!next.kind.empty()) {
      close();
      current = next;
    }
    if (!current.kind.empty()) add_line(text, root, current);
  }
  close();
  return findings;
}

bool is_complete_report(std::string_view log) {
  return log.find(" SUMMARY: ") != std::string_view::npos;
}

}  // namespace moe::driver
