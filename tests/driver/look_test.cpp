#include "driver/look.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

WrongMap map_of(std::size_t rows, std::size_t columns, const std::string& cells) {
  return {"out", rows, columns, cells};
}

TEST(Look, DrawsEveryValueWhereTheyFit) {
  EXPECT_EQ(map_text(map_of(2, 3, "010122"), Paint(false), 80),
            "  map     out: 2 rows, 3 columns\n"
            "       0 |.#.|\n"
            "       1 |#  |\n"
            "          . right # wrong (blank: not judged)\n");
}

TEST(Look, OneCharacterForSeveralValuesWhereTheyDoNot) {
  std::string cells(64 * 140, '0');
  for (std::size_t i = 0; i < 140; ++i) cells[i] = '1';  // the first row of two
  const std::string text = map_text(map_of(64, 140, cells), Paint(false), 80);
  EXPECT_NE(text.find("       0 |" + std::string(47, '+') + "|\n"), std::string::npos) << text;
  EXPECT_NE(text.find("      62 |" + std::string(47, '.') + "|\n"), std::string::npos) << text;
  EXPECT_NE(text.find("one character is 2 x 3 values"), std::string::npos) << text;
  for (const std::string& line : split_lines(text)) EXPECT_LE(line.size(), 80u);
}

TEST(Look, NothingToShowIsNothing) {
  EXPECT_EQ(map_text({}, Paint(false), 80), "");
  EXPECT_EQ(look_text({}, Paint(false)), "");
  CaseRecord one;
  one.trace = {"a\x1b[31m"};
  EXPECT_EQ(look_text(one, Paint(false)), "\n  a\\x1b[31m\n");
}

}  // namespace
}  // namespace moe::driver
