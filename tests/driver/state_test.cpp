#include "driver/state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr const char* kGood =
    "drill state 1\n"
    "m1_align 8c5d2f1e0a7b9c34 pass 2026-02-03T10:20:30Z quick\n"
    "m2_grouped_gemm 01234567deadbeef wrong 2026-02-03T10:25:00Z edge/top2_mixed\n";

TEST(State, RoundTrip) {
  const States states = parse_states(kGood);
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states.at("m2_grouped_gemm").hash, 0x01234567deadbeefu);
  EXPECT_EQ(states.at("m2_grouped_gemm").verdict, "wrong");
  EXPECT_EQ(states.at("m2_grouped_gemm").detail, "edge/top2_mixed");
  EXPECT_EQ(states.at("m1_align").time, 1770114030);
  EXPECT_EQ(format_states(states), kGood);
}

TEST(State, DamagedLinesAreDropped) {
  const std::string header = "drill state 1\n";
  for (const char* line :
       {"garbage", "m1 123 pass 2026-02-03T10:20:30Z quick",
        "m1 8c5d2f1e0a7b9cXX pass 2026-02-03T10:20:30Z quick",
        "m1 8c5d2f1e0a7b9c34 good 2026-02-03T10:20:30Z quick",
        "m1 8c5d2f1e0a7b9c34 pass yesterday quick", "m1 8c5d2f1e0a7b9c34 pass 2026-02-03T10:20:30Z",
        "m1 8c5d2f1e0a7b9c34 pass 2026-02-03T10:20:30Z quick more", "<<<<<<< HEAD"}) {
    const States states = parse_states(header + line + "\n" + (kGood + header.size()));
    EXPECT_EQ(states.size(), 2u) << line;
  }
}

TEST(State, AnotherVersionOrNoFileIsEmpty) {
  EXPECT_TRUE(parse_states("").empty());
  EXPECT_TRUE(parse_states("drill state 2\n" + std::string(kGood)).empty());
  EXPECT_TRUE(parse_states(std::string("\0\xff\n\n", 4)).empty());
  EXPECT_TRUE(read_states("/nowhere/at/all").empty());
}

TEST(State, WritesAndReplacesTheFile) {
  std::string folder = ::testing::TempDir() + "drill state XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::filesystem::create_directories(folder + "/.drill");
  std::ofstream(folder + "/.drill/state") << "garbage";
  States states = parse_states(kGood);
  EXPECT_TRUE(write_states(folder, states));
  EXPECT_EQ(read_file(folder + "/.drill/state"), kGood);
  states.erase("m1_align");
  EXPECT_TRUE(write_states(folder, states));
  EXPECT_EQ(read_states(folder).size(), 1u);
  std::filesystem::remove_all(folder);
}

TEST(State, HashNoticesEveryEdit) {
  EXPECT_EQ(hash_of(""), 0xcbf29ce484222325u);
  EXPECT_EQ(hash_of("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_NE(hash_of("int a;"), hash_of("int b;"));
}

TEST(State, Ages) {
  EXPECT_EQ(age_text(1000, 1000), "just now");
  EXPECT_EQ(age_text(2000, 1000), "just now") << "a clock may have been set back";
  EXPECT_EQ(age_text(0, 60), "1 minute ago");
  EXPECT_EQ(age_text(0, 7200), "2 hours ago");
  EXPECT_EQ(age_text(0, 3 * 86400), "3 days ago");
}

}  // namespace
}  // namespace moe::driver
