#include "driver/ground.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

TEST(Ground, RefusesWhatIsNoSource) {
  EXPECT_EQ(source_trouble("int a;\n"), "");
  EXPECT_EQ(source_trouble(""), "");
  EXPECT_NE(source_trouble(std::string(10 << 20, '/')).find("is 10.5 MB"), std::string::npos);
  EXPECT_NE(source_trouble(std::string("i\0n\0t\0", 6)).find("UTF-16"), std::string::npos);
}

TEST(Ground, AFolderThatCannotBeWritten) {
  const std::string trouble = ground_trouble(Course{"/proc"});
  EXPECT_NE(trouble.find("/proc/build cannot be written"), std::string::npos) << trouble;
}

}  // namespace
}  // namespace moe::driver
