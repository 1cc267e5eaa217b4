// What was tried and when: .drill/log, one event a line, only ever appended to and safe to commit.
//
//   2026-02-03T10:20:30Z m2_grouped_gemm run wrong M2-SLOT0 edge/top2_mixed
//   2026-02-03T10:21:05Z m2_grouped_gemm hint m2.gather 1
//   2026-02-03T10:40:00Z m2_grouped_gemm note tried a second buffer; no difference
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct Event {
  std::int64_t time = 0;  // seconds since 1970
  std::string stem;
  std::string kind;  // run, hint, solution, reset, note
  std::string text;  // the rest of the line
};

// Lines that make no sense are left out; a missing file has no events.
std::vector<Event> read_journal(const std::filesystem::path& root);

// Appends an event of now. The same run twice in a row is written once. False when it could not be
// written.
bool write_event(const std::filesystem::path& root,
                 std::string_view stem,
                 std::string_view kind,
                 std::string_view text);

// How many hints of a region, or of all regions of a stage where `region` is "", were given.
std::size_t hints_taken(const std::vector<Event>& events,
                        std::string_view stem,
                        std::string_view region = "");

// Has the learner been shown the solution before passing?
bool solution_seen(const std::vector<Event>& events, std::string_view stem);

// The text form, for the functions above and their tests.
std::vector<Event> parse_journal(std::string_view text);
std::string format_event(const Event& event);

}  // namespace moe::driver
