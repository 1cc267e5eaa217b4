// What is remembered between runs: .drill/state, a small text file that is safe to commit.
//
//   drill state 1
//   m1_align 8c5d2f1e0a7b9c34 pass 2026-02-03T10:20:30Z quick
//   m2_grouped_gemm 01234567deadbeef wrong 2026-02-03T10:25:00Z edge/top2_mixed
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace moe::driver {

struct StageState {
  std::uint64_t hash = 0;  // work_hash() of mine/STEM.cu as it was then
  std::string verdict;     // lower case: pass, wrong, todo, crash, hang, build, slow, skip
  std::int64_t time = 0;   // seconds since 1970
  std::string detail;      // the set that passed (quick, full), the case that failed, or "-"
};

using States = std::map<std::string, StageState>;  // by stem

// A missing file is no state; lines that make no sense are dropped, so that a damaged file heals
// with the next run.
States read_states(const std::filesystem::path& root);

// Replaces the file in one step. False when it could not be written.
bool write_states(const std::filesystem::path& root, const States& states);

// Two commands may run at once: while this lives, no other one changes the state.
class StateLock {
 public:
  explicit StateLock(const std::filesystem::path& root);
  ~StateLock();
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;

 private:
  int descriptor_ = -1;
};

// The two text forms, for the functions above and their tests.
States parse_states(std::string_view text);
std::string format_states(const States& states);

std::uint64_t hash_of(std::string_view text);

// "2026-02-03T10:20:30Z", and back; false when the text is no such time.
std::string time_text(std::int64_t time);
bool parse_time(const std::string& text, std::int64_t& time);

// "just now", "5 minutes ago", "2 days ago".
std::string age_text(std::int64_t then, std::int64_t now);

}  // namespace moe::driver
