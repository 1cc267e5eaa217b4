#include "driver/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr const char* kLog =
    "2026-02-03T10:20:30Z m2_grouped_gemm run wrong M2-SLOT0 edge/top2_mixed\n"
    "2026-02-03T10:21:05Z m2_grouped_gemm hint m2.gather 1\n"
    "2026-02-03T10:22:05Z m2_grouped_gemm hint m2.gather 2\n"
    "2026-02-03T10:23:05Z m2_grouped_gemm hint m2.store 1\n"
    "2026-02-03T10:24:05Z m1_align solution seen\n"
    "2026-02-03T10:40:00Z - note a longer line of words\n";

class JournalFolder : public ::testing::Test {
 protected:
  JournalFolder() {
    root = ::testing::TempDir() + "drill journal XXXXXX";
    EXPECT_NE(mkdtemp(root.data()), nullptr);
  }
  ~JournalFolder() override { std::filesystem::remove_all(root); }
  std::string root;
};

TEST(Journal, RoundTrip) {
  std::string text;
  for (const Event& event : parse_journal(kLog)) text += format_event(event);
  EXPECT_EQ(text, kLog);
}

TEST(Journal, DamagedLinesAreLeftOut) {
  EXPECT_EQ(parse_journal("garbage\n\n<<<<<<< HEAD\n" + std::string(kLog)).size(), 6u);
  EXPECT_TRUE(parse_journal("yesterday m2_grouped_gemm hint m2.gather 1\n").empty());
  EXPECT_TRUE(parse_journal("2026-02-03T10:20:30Z m2_grouped_gemm dance\n").empty());
  EXPECT_TRUE(parse_journal(std::string("\0\xff\n", 3)).empty());
}

TEST(Journal, CountsHintsOfARegionAndOfAStage) {
  const std::vector<Event> events = parse_journal(kLog);
  EXPECT_EQ(hints_taken(events, "m2_grouped_gemm", "m2.gather"), 2u);
  EXPECT_EQ(hints_taken(events, "m2_grouped_gemm"), 3u);
  EXPECT_EQ(hints_taken(events, "m1_align"), 0u);
  EXPECT_TRUE(solution_seen(events, "m1_align"));
  EXPECT_FALSE(solution_seen(events, "m2_grouped_gemm"));
}

TEST_F(JournalFolder, AppendsButNotTheSameRunTwice) {
  EXPECT_TRUE(write_event(root, "m1_align", "run", "wrong - tiny/a"));
  EXPECT_TRUE(write_event(root, "m1_align", "run", "wrong - tiny/a"));
  EXPECT_TRUE(write_event(root, "m1_align", "note", "two\nlines\x1b[31m"));
  EXPECT_TRUE(write_event(root, "m1_align", "run", "wrong - tiny/a"));
  const std::vector<Event> events = read_journal(root);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].text, "two lines [31m") << "one line, nothing that moves a cursor";
}

TEST_F(JournalFolder, SaysWhenItCannotWrite) {
  EXPECT_FALSE(write_event("/dev/null/nowhere", "m1_align", "note", "x"));
}

}  // namespace
}  // namespace moe::driver
