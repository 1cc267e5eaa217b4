// The pages of content/ against the repository: regions, links, paths, cases, codes, figures, the
// fixed template of the notes, and what is generated in them. Each fault is "file:line: what".
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "content/blocks.h"
#include "content/figures.h"
#include "content/transcripts.h"
#include "driver/terminal.h"

namespace moe::content {
namespace {

namespace fs = std::filesystem;
using driver::Course;
using driver::Heading;

const Course& course() {
  static const Course kCourse{DRILL_SOURCE_DIR};
  return kCourse;
}

const std::vector<NoteFile>& pages() {
  static const std::vector<NoteFile> kPages = [] {
    std::vector<fs::path> paths{course().root / "README.md", course().root / "emulator/README.md"};
    for (const auto& entry : fs::recursive_directory_iterator(course().root / "content")) {
      if (entry.path().extension() == ".md") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<NoteFile> files;
    for (const fs::path& path : paths) {
      NoteFile file;
      file.name = path.lexically_relative(course().root).string();
      file.text = driver::read_file(path);
      file.page = driver::scan_markdown(file.text);
      files.push_back(std::move(file));
    }
    return files;
  }();
  return kPages;
}

const NoteFile* page_named(const std::string& name) {
  for (const NoteFile& page : pages()) {
    if (page.name == name) return &page;
  }
  return nullptr;
}

std::string at(const NoteFile& page, int line) {
  return page.name + ":" + std::to_string(line) + ": ";
}

// All text of the files of a folder with one of the extensions.
std::string all_text(const std::string& folder, const std::set<std::string>& extensions) {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(course().root / folder)) {
    if (extensions.contains(entry.path().extension())) text += driver::read_file(entry.path());
  }
  return text;
}

// ---- what a page points to

TEST(Content, HasPages) {
  EXPECT_GE(pages().size(), 20u) << "else little would be checked";
}

std::string region_fault(const std::string& label) {
  for (const Stage& stage : kStages) {
    for (const driver::Region& region : driver::regions_of(course(), stage)) {
      if (region.label == label) return "";
    }
  }
  return "no solution has a region " + label;
}

TEST(Content, CitedRegionsExist) {
  for (const NoteFile& page : pages()) {
    for (const driver::Citation& citation : page.page.citations) {
      EXPECT_EQ(region_fault(citation.label), "") << at(page, citation.line);
    }
  }
}

std::string link_fault(const NoteFile& page, const driver::Link& link) {
  const std::string& target = link.target;
  if (link.image && link.text.empty()) return "image " + target + " has no alternative text";
  if (target.starts_with("http://") || target.starts_with("https://")) return "";
  const std::size_t hash = std::min(target.find('#'), target.size());
  std::string file = page.name;
  if (hash > 0) {
    const fs::path path =
        (fs::path(page.name).parent_path() / target.substr(0, hash)).lexically_normal();
    if (!fs::exists(course().root / path)) return "no file " + path.string();
    file = path.string();
  }
  if (hash == target.size()) return "";
  const NoteFile* goal = page_named(file);
  if (goal == nullptr) return file + " is no page that has anchors";
  const std::vector<Heading>& headings = goal->page.headings;
  const std::string slug = target.substr(hash + 1);
  const bool found = std::any_of(headings.begin(), headings.end(),
                                 [&](const Heading& heading) { return heading.slug == slug; });
  return found ? "" : "no heading #" + slug + " in " + file;
}

TEST(Content, LinksLeadSomewhereAndImagesHaveText) {
  for (const NoteFile& page : pages()) {
    for (const driver::Link& link : page.page.links) {
      EXPECT_EQ(link_fault(page, link), "") << at(page, link.line);
    }
  }
}

// Cases are rows {"group", "name", ...} of the tests, literals "group/name", or values of a suite
// that is instantiated under the group's name: (group, Suite, testing::Values("name", ...)).
bool is_case(const std::string& tests, const std::string& group, const std::string& name) {
  if (tests.find("\"" + group + "\", \"" + name + "\"") != std::string::npos) return true;
  if (tests.find("\"" + group + "/" + name + "\"") != std::string::npos) return true;
  if (group == "far" && tests.find("{\"" + name + "\"") != std::string::npos) return true;
  const std::regex instance(R"(INSTANTIATE_TEST_SUITE_P\()" + group +
                            R"(,\s+\w+,\s+testing::Values\([^)]*")" + name + R"("[,)])");
  return std::regex_search(tests, instance);
}

// A check that cannot fail is none.
TEST(Content, FaultsAreSeen) {
  NoteFile page{"content/m1_align.md", "", {}};
  const auto fault = [&](const std::string& text) {
    page.page = driver::scan_markdown(text);
    return page.page.links.empty() ? "no link" : link_fault(page, page.page.links.front());
  };
  EXPECT_EQ(fault("[a](m2_grouped_gemm.md#gather)"), "");
  EXPECT_EQ(fault("[a](#top-k)"), "");
  EXPECT_EQ(fault("[a](https://example.com/#x)"), "");
  EXPECT_EQ(fault("[a](m99.md)"), "no file content/m99.md");
  EXPECT_EQ(fault("[a](m2_grouped_gemm.md#nothing)"),
            "no heading #nothing in content/m2_grouped_gemm.md");
  EXPECT_EQ(fault("![](figures/sorting.svg)"), "image figures/sorting.svg has no alternative text");
  EXPECT_EQ(fault("<img src=\"figures/sorting.svg\">"),
            "image figures/sorting.svg has no alternative text");
  EXPECT_EQ(region_fault("m2.gather"), "");
  EXPECT_EQ(region_fault("m2.gathers"), "no solution has a region m2.gathers");

  // Made-up names: these lines are themselves among the tests that are searched.
  const std::string tests =
      R"(INSTANTIATE_TEST_SUITE_P(near, Suite, testing::Values("one_name", "another"));)";
  EXPECT_TRUE(is_case(tests, "near", "one_name"));
  EXPECT_TRUE(is_case(tests, "near", "another"));
  EXPECT_FALSE(is_case(tests, "near", "one"));
  EXPECT_FALSE(is_case(tests, "farther", "another"));

  const driver::Page blocks = driver::scan_markdown(
      "<!-- BEGIN measured m99 -->\n<!-- END measured -->\n<!-- BEGIN measured m2 -->\n"
      "<!-- END measured -->\n");
  EXPECT_THROW(generated_body(course(), page, blocks.blocks.at(0)), std::runtime_error);
  EXPECT_NE(generated_body(course(), page, blocks.blocks.at(1)).find("| GEMM1"), std::string::npos);
}

TEST(Content, PathsInCodeExist) {
  static const std::regex kPath(
      R"(\b(content|drills|driver|emulator|mine|solutions|tests|cmake)/[\w./]*\w)");
  const std::regex skipped(R"(mN_|\{|\*)");  // patterns, not paths
  for (const NoteFile& page : pages()) {
    for (const driver::Citation& code : page.page.code) {
      if (std::regex_search(code.label, skipped)) continue;
      std::smatch match;
      if (!std::regex_search(code.label, match, kPath) || match.prefix().str().ends_with('/')) {
        continue;
      }
      const bool header = fs::exists(course().root / "emulator/include" / match.str());
      EXPECT_TRUE(header || fs::exists(course().root / match.str()))
          << at(page, code.line) << "no file " << match.str();
    }
  }
}

TEST(Content, NamedCasesExist) {
  const std::string tests = all_text("tests", {".cpp", ".h"});
  static const std::regex kCase(R"(\b(tiny|edge|rows|tiles|ring|random|refused|far)/(\w+))");
  for (const NoteFile& page : pages()) {
    for (const driver::Citation& code : page.page.code) {
      std::smatch match;
      if (!std::regex_search(code.label, match, kCase)) continue;
      EXPECT_TRUE(is_case(tests, match.str(1), match.str(2)))
          << at(page, code.line) << "no test has a case " << match.str();
    }
  }
}

TEST(Content, NamedCodesExist) {
  const std::string tests = all_text("tests", {".cpp", ".h"});
  static const std::regex kCode(R"(\bM\d+-[A-Z0-9][A-Z0-9-]*[A-Z0-9]\b)");
  for (const NoteFile& page : pages()) {
    for (std::sregex_iterator code(page.text.begin(), page.text.end(), kCode), end; code != end;
         ++code) {
      EXPECT_NE(tests.find("\"" + code->str() + "\""), std::string::npos)
          << page.name << ": no test gives the code " << code->str();
    }
  }
}

// ---- what is generated

TEST(Content, GeneratedBlocksAreUpToDate) {
  const bool update = std::getenv("DRILL_UPDATE_CONTENT") != nullptr;
  for (const NoteFile& page : pages()) {
    std::string text = page.text;
    const std::vector<driver::Block>& blocks = page.page.blocks;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      ASSERT_TRUE(block->closed) << at(page, block->line) << "BEGIN without END";
      std::string body;
      ASSERT_NO_THROW(body = generated_body(course(), page, *block)) << at(page, block->line);
      if (body.empty()) continue;
      if (update) {
        text.replace(block->body, block->size, body);
      } else {
        EXPECT_EQ(text.substr(block->body, block->size), body)
            << at(page, block->line) << "stale; DRILL_UPDATE_CONTENT=1 writes it";
      }
    }
    if (text != page.text) {
      std::ofstream(course().root / page.name, std::ios::binary) << text;
      std::printf("%s written\n", page.name.c_str());
    }
  }
}

TEST(Content, FiguresAreUpToDate) {
  const bool update = std::getenv("DRILL_UPDATE_CONTENT") != nullptr;
  std::set<std::string> names;
  for (const Figure& figure : all_figures()) {
    const fs::path path = course().root / "content/figures" / (figure.name + ".svg");
    names.insert(path.filename());
    if (update) {
      fs::create_directories(path.parent_path());
      std::ofstream(path, std::ios::binary) << figure.svg;
    }
    EXPECT_EQ(driver::read_file(path), figure.svg)
        << path << ": stale; DRILL_UPDATE_CONTENT=1 writes it";
  }
  for (const auto& entry : fs::directory_iterator(course().root / "content/figures")) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(names.contains(name)) << name << " is not drawn by figures.cpp";
    const bool used = std::any_of(pages().begin(), pages().end(), [&](const NoteFile& page) {
      return page.text.find("figures/" + name) != std::string::npos;
    });
    EXPECT_TRUE(used) << name << " is in no page";
  }
}

TEST(Content, ShownCommandsPrintWhatIsShown) {
  std::size_t shown = 0;
  for (const NoteFile& page : pages()) {
    shown += check_transcripts(
                 course().root / page.name, "./drill padding",
                 [](const std::string& command) {
                   return output_of(std::string("'") + DRILL_COMMAND + "'" + command.substr(7));
                 })
                 .size();
  }
  EXPECT_GE(shown, 2u);
}

// ---- the template

const std::vector<std::string> kSections{"In one sentence",
                                         "Map",
                                         "Contract",
                                         "Tiny example by hand",
                                         "Same and different",
                                         "How the work maps",
                                         "Lower bound first",
                                         "Regions",
                                         "Look inside",
                                         "Pitfalls",
                                         "Self-check",
                                         "After you pass",
                                         "Sources"};
const std::vector<std::string> kChineseSections{
    "一句话",   "全貌",   "契约",     "手算小例子", "相同与不同", "工作如何划分", "先算下限",
    "代码区域", "看内部", "常见的坑", "自测",       "通过之后",   "资料来源"};

std::vector<std::string> sections_of(const NoteFile& page) {
  std::vector<std::string> sections;
  for (const Heading& heading : page.page.headings) {
    if (heading.level == 2) sections.push_back(heading.text);
  }
  return sections;
}

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t i = text.find(word); i != std::string::npos; i = text.find(word, i + 1)) ++count;
  return count;
}

std::set<std::string> blocks_of(const NoteFile& page) {
  std::set<std::string> names;
  for (const driver::Block& block : page.page.blocks) {
    if (block.kind != "pitfalls") names.insert(block.kind + " " + block.arguments);
  }
  return names;
}

std::set<std::string> citations_of(const NoteFile& page) {
  std::set<std::string> labels;
  for (const driver::Citation& citation : page.page.citations) labels.insert(citation.label);
  return labels;
}

class Note : public testing::TestWithParam<Stage> {};

TEST_P(Note, FollowsTheTemplate) {
  const std::string stem = GetParam().stem;
  const NoteFile* note = page_named("content/" + stem + ".md");
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(sections_of(*note), kSections) << note->name;
  const std::string id = GetParam().id;
  for (const std::string kind : {"tiny ", "regions ", "measured "}) {
    EXPECT_TRUE(blocks_of(*note).contains(kind + id))
        << note->name << " has no block " << kind + id;
  }
  EXPECT_EQ(count_of(note->text.substr(note->text.find("## Self-check")), "<details>"), 5u)
      << note->name << ": five questions, answers folded";
}

TEST_P(Note, SpeaksOfEveryBlank) {
  const std::string stem = GetParam().stem;
  const NoteFile* note = page_named("content/" + stem + ".md");
  const NoteFile* hints = page_named("content/" + stem + ".hints.md");
  ASSERT_NE(note, nullptr);
  ASSERT_NE(hints, nullptr);
  std::vector<std::string> blanks;
  for (const driver::Region& region : driver::regions_of(course(), GetParam())) {
    if (region.given) continue;
    blanks.push_back(region.label);
    EXPECT_TRUE(citations_of(*note).contains(region.label))
        << note->name << " does not speak of region " << region.label;
  }
  std::vector<std::string> hinted = sections_of(*hints);
  std::sort(hinted.begin(), hinted.end());
  std::sort(blanks.begin(), blanks.end());
  EXPECT_EQ(hinted, blanks) << hints->name;
}

INSTANTIATE_TEST_SUITE_P(All, Note, testing::ValuesIn(kStages), [](const auto& one) {
  return std::string(one.param.id);
});

// The notes of the mission, m1 to m5, are also in Chinese; the Hopper stages behind them are in
// English only. A list and not what lies in content/zh: there a lost note would go unnoticed.
const std::vector<std::string> kTranslated{"m1_align", "m2_grouped_gemm", "m3_weighted_epilogue",
                                           "m4_group_m", "m5_block_fp8"};

class ChineseNote : public testing::TestWithParam<std::string> {};

TEST_P(ChineseNote, SaysTheSame) {
  const std::string& stem = GetParam();
  const NoteFile* english = page_named("content/" + stem + ".md");
  const NoteFile* chinese = page_named("content/zh/" + stem + ".md");
  ASSERT_NE(english, nullptr);
  ASSERT_NE(chinese, nullptr) << stem;
  EXPECT_EQ(sections_of(*chinese), kChineseSections) << chinese->name;
  EXPECT_EQ(citations_of(*chinese), citations_of(*english)) << chinese->name;
  EXPECT_EQ(blocks_of(*chinese), blocks_of(*english)) << chinese->name;
  EXPECT_EQ(count_of(chinese->text, "<details>"), count_of(english->text, "<details>"))
      << chinese->name;
}

INSTANTIATE_TEST_SUITE_P(All, ChineseNote, testing::ValuesIn(kTranslated), [](const auto& one) {
  return one.param.substr(0, one.param.find('_'));
});

TEST(Content, ChinesePagesAreTheTranslatedNotes) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(course().root / "content/zh")) {
    found.push_back(entry.path().stem());
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, kTranslated) << "another one belongs in kTranslated";
}

}  // namespace
}  // namespace moe::content
