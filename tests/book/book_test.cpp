// The site of `drill read`, looked at in headless Chromium by site_test.js.
#include <gtest/gtest.h>

#include <fstream>

#include "driver/book/book.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver::book {
namespace {

namespace fs = std::filesystem;

class Site : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = Tools::find().missing();
    if (!missing.empty()) GTEST_SKIP() << "not installed: " << missing << " (setup.sh --ci)";
    static const std::string kFault = write_site(course_, site_);  // once for all tests
    ASSERT_EQ(kFault, "");
  }

  // Links of the site lead to files of the course from there.
  Course course_{DRILL_SOURCE_DIR};
  fs::path site_ = course_.root / "build" / "site";
};

std::string between(const std::string& text, const std::string& open, const std::string& close) {
  const std::size_t start = text.find(open);
  if (start == std::string::npos) return "";
  const std::size_t from = start + open.size();
  return text.substr(from, text.find(close, from) - from);
}

TEST_F(Site, UsesNothingFromOutside) {
  for (const auto& entry : fs::recursive_directory_iterator(site_)) {
    if (!entry.is_regular_file()) continue;
    const std::string text = read_file(entry.path());
    for (const char* outside :
         {"src=\"http", "url(http", "@import", "fetch(", "<link rel=\"stylesheet\" href=\"http"}) {
      EXPECT_EQ(text.find(outside), std::string::npos) << entry.path() << " has " << outside;
    }
  }
}

TEST_F(Site, BadgesNameTheLinesOfTheSolution) {
  const Stage& stage = *find_stage("m2");
  const Region region = regions_of(course_, stage).front();
  const std::string page = read_file(site_ / "m2_grouped_gemm.html");
  const std::string lines =
      "lines " + std::to_string(region.begin_line) + "-" + std::to_string(region.end_line);
  EXPECT_NE(page.find("title=\"solutions/m2_grouped_gemm.cu, " + lines), std::string::npos);
}

TEST_F(Site, WorksInABrowser) {
  const fs::path chromium = find_program("chromium");
  if (chromium.empty()) GTEST_SKIP() << "not installed: chromium (setup.sh --ci)";
  std::string pages;
  for (const Source& source : sources_of(course_)) pages += "\"" + source.html + "\", ";
  const fs::path folder = fs::path(DRILL_BUILD_DIR) / "book";
  fs::create_directories(folder);
  std::ofstream(folder / "test.html")
      << "<!doctype html><meta charset=\"utf-8\"><pre id=\"result\">not finished</pre><script>\n"
      << "const PAGES = [" << pages << "\"index.html\"];\nconst SITE = \"file://" << site_.string()
      << "/\";\n</script><script src=\"file://" << DRILL_SOURCE_DIR
      << "/tests/book/site_test.js\"></script>\n";
  Command command;
  command.arguments = {chromium,
                       "--headless",
                       "--no-sandbox",
                       "--disable-gpu",
                       "--allow-file-access-from-files",
                       "--enable-logging=stderr",
                       "--user-data-dir=" + (folder / "profile").string(),
                       "--virtual-time-budget=120000",
                       "--dump-dom",
                       "file://" + (folder / "test.html").string()};
  command.limit_s = 300;
  const Outcome outcome = run_process(command);
  const std::string result = between(outcome.output, "<pre id=\"result\">", "</pre>");
  EXPECT_TRUE(result.starts_with("0 failures in ")) << result << "\n"
                                                    << outcome.output.substr(0, 2000);
  EXPECT_EQ(outcome.output.find(":CONSOLE"), std::string::npos)
      << "a page wrote to the console:\n"
      << between(outcome.output, ":CONSOLE", "\n");
  std::printf("%s\n", result.c_str());
}

}  // namespace
}  // namespace moe::driver::book
