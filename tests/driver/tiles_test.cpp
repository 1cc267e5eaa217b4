#include "driver/tiles.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr const char* kTable = "drills/m4_group_m.tiles.h";

std::string real_header() {
  return read_file(std::filesystem::path(DRILL_SOURCE_DIR) / kTable);
}

std::string header(const std::string& lines) {
  return "struct TunedTile {\n};\ninline constexpr TunedTile kTunedTiles[] = {\n" + lines +
         "};\n\n}  // namespace moe\n";
}

TunedLine line(std::array<int, 5> layer, const std::string& measured = "NVIDIA L4, 2027-01-02") {
  return {layer, "{64, {128, 64, 8}, {128, 64, 4}}", measured};
}

constexpr const char* kA =
    "    // NVIDIA H200, 2026-11-29\n"
    "    {64, 8, 2048, 768, 4096, {128, {128, 64, 16}, {128, 64, 8}}},\n";

TEST(Tiles, ALineGoesWhereItBelongs) {
  const std::string larger_t =
      "    // NVIDIA L4, 2027-01-02\n"
      "    {64, 8, 2048, 768, 8192, {64, {128, 64, 8}, {128, 64, 4}}},\n";
  const std::string smaller_e =
      "    // NVIDIA L4, 2027-01-02\n"
      "    {8, 2, 4096, 14336, 4096, {64, {128, 64, 8}, {128, 64, 4}}},\n";
  EXPECT_EQ(with_tuned_line(header(kA), line({64, 8, 2048, 768, 8192})), header(kA + larger_t));
  EXPECT_EQ(with_tuned_line(header(kA), line({8, 2, 4096, 14336, 4096})), header(smaller_e + kA));
  EXPECT_EQ(with_tuned_line(header(""), line({8, 2, 4096, 14336, 4096})), header(smaller_e));
  // The order of tuning is no matter.
  const std::string once = with_tuned_line(header(kA), line({8, 2, 4096, 14336, 4096}));
  const std::string other = with_tuned_line(header(kA), line({64, 8, 2048, 768, 8192}));
  EXPECT_EQ(with_tuned_line(once, line({64, 8, 2048, 768, 8192})),
            with_tuned_line(other, line({8, 2, 4096, 14336, 4096})));
}

TEST(Tiles, ALineReplacesTheOneOfTheSameLayer) {
  const std::string fresh = with_tuned_line(header(kA), line({64, 8, 2048, 768, 4096}));
  EXPECT_EQ(fresh, header("    // NVIDIA L4, 2027-01-02\n"
                          "    {64, 8, 2048, 768, 4096, {64, {128, 64, 8}, {128, 64, 4}}},\n"));
  EXPECT_EQ(with_tuned_line(fresh, line({64, 8, 2048, 768, 4096})), fresh);
  EXPECT_EQ(tuned_tile(fresh, {64, 8, 2048, 768, 4096}), "{64, {128, 64, 8}, {128, 64, 4}}");
  EXPECT_EQ(tuned_tile(fresh, {64, 8, 2048, 768, 4095}), "");
}

TEST(Tiles, ACommentHoldsForAllLinesBelowIt) {
  const std::string second = "    {64, 8, 2048, 768, 8192, {64, {128, 64, 8}, {128, 64, 4}}},\n";
  const std::string fresh = with_tuned_line(header(kA + second), line({8, 2, 8, 8, 16}));
  EXPECT_NE(fresh.find("// NVIDIA H200, 2026-11-29\n" + second), std::string::npos) << fresh;
}

TEST(Tiles, AFormThatIsNotKnownIsLeftAlone) {
  EXPECT_THROW(with_tuned_line("no table", line({})), TableError);
  EXPECT_THROW(with_tuned_line(header("    {64, 8, kHidden, 768, 4096, {1}},\n"), line({})),
               TableError);
  EXPECT_THROW(with_tuned_line("inline constexpr TunedTile kTunedTiles[] = {\n", line({})),
               TableError);
}

std::string without_comments(const std::string& text) {
  std::string rest;
  for (const std::string& one : split_lines(text)) {
    if (one.rfind("    // ", 0) != 0) rest += one + "\n";
  }
  return rest;
}

// Its lines are in the form and the order in which they are written, wherever they were measured.
TEST(Tiles, TheTableOfTheCourseIsWhatWouldBeWritten) {
  const std::array<int, 5> layer = {64, 8, 2048, 768, 4096};
  const std::string tile = tuned_tile(real_header(), layer);
  ASSERT_NE(tile, "");
  EXPECT_EQ(without_comments(with_tuned_line(real_header(), {layer, tile, ""})),
            without_comments(real_header()));
}

// From a report to the file: `drill tune` without the GPU.
class WriteTuned : public ::testing::Test {
 protected:
  WriteTuned() {
    std::filesystem::create_directories(course_.root / "drills");
    std::ofstream(course_.root / kTable) << real_header();
  }
  ~WriteTuned() override { std::filesystem::remove_all(course_.root); }

  static std::string report(int group_m) {
    return "{\"gpu\":\"NVIDIA L4\",\"num_experts\":64,\"top_k\":8,\"hidden_size\":2048,"
           "\"intermediate_size\":768,\"num_tokens\":4096,\"block_m\":128,\"gemm1\":[128,64," +
           std::to_string(group_m) + "],\"gemm2\":[128,64,8],\"us\":1000.5,\"us_before\":1023.0}";
  }
  std::string table() const { return read_file(course_.root / kTable); }
  std::size_t num_copies() const {
    const std::filesystem::path trash = course_.root / ".drill" / "trash";
    if (!std::filesystem::exists(trash)) return 0;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(trash), {}));
  }

  Course course_{std::filesystem::temp_directory_path() /
                 ("tiles_test_" + std::to_string(getpid()))};
};

TEST_F(WriteTuned, WritesTheLineAndKeepsTheOldTable) {
  ASSERT_EQ(write_tuned_line(course_, report(4), false), 0);
  EXPECT_EQ(tuned_tile(table(), {64, 8, 2048, 768, 4096}), "{128, {128, 64, 4}, {128, 64, 8}}");
  EXPECT_NE(table().find("// NVIDIA L4, 20"), std::string::npos);
  ASSERT_EQ(num_copies(), 1u);
  const auto copy = std::filesystem::directory_iterator(course_.root / ".drill" / "trash");
  EXPECT_EQ(read_file(copy->path()), real_header());
  ASSERT_EQ(write_tuned_line(course_, report(2), false), 0);
  EXPECT_EQ(num_copies(), 2u);
}

TEST_F(WriteTuned, ChangesNothingWhereThereIsNothingToChange) {
  EXPECT_EQ(write_tuned_line(course_, report(16), false), 0);  // what the table has
  EXPECT_EQ(write_tuned_line(course_, report(4), true), 0);    // --print
  EXPECT_EQ(write_tuned_line(course_, "no report", false), static_cast<int>(Verdict::kFault));
  EXPECT_EQ(table(), real_header());
  EXPECT_EQ(num_copies(), 0u);
}

}  // namespace
}  // namespace moe::driver
