// The parts of the grader: grading.toml, points, hand-ins, rules, the wall, reports.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "driver/grade/class_run.h"
#include "driver/grade/confine.h"
#include "driver/grade/examine.h"
#include "driver/grade/guard.h"
#include "driver/grade/recipe.h"
#include "driver/grade/reports.h"
#include "driver/grade/rules.h"
#include "driver/grade/score.h"
#include "driver/grade/submissions.h"
#include "driver/grade/usage.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;
using driver::CaseState;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("grade_test." + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  driver::Outcome shell(const std::string& script) const {
    driver::Command command;
    command.arguments = {"sh", "-c", script};
    command.folder = root_;
    command.limit_s = 60;
    return driver::run_process(command);
  }

  fs::path root_;
};

// ---- grading.toml

std::string error_of(const std::string& text) {
  try {
    parse_scheme(text, "grading.toml");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(SchemeTest, WhatInitWritesIsTheDefaults) {
  std::vector<const Stage*> stages;
  for (const Stage& stage : kStages) stages.push_back(&stage);
  const Scheme written = parse_scheme(scheme_text(stages), "grading.toml");
  const Scheme defaults = parse_scheme("version = 1", "grading.toml");
  EXPECT_EQ(written.points, defaults.points);
  EXPECT_EQ(written.groups, defaults.groups);
  EXPECT_EQ(written.gate, defaults.gate);
  EXPECT_EQ(written.full, defaults.full);
  EXPECT_EQ(written.build.seconds, defaults.build.seconds);
  EXPECT_EQ(written.memory_gib, defaults.memory_gib);
  EXPECT_EQ(written.processes, defaults.processes);
  EXPECT_EQ(written.no_points_ratio, defaults.no_points_ratio);
}

TEST(SchemeTest, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error_of(""), "grading.toml: the line `version = 1` is missing");
  EXPECT_EQ(error_of("version = 1\nsett = \"full\"\n"),
            "grading.toml:2: sett is not known. Did you mean set?");
  EXPECT_EQ(error_of("version = 1\n[points]\nm1 = -3\n"),
            "grading.toml:3: points.m1 must be at least 0 and at most 1e+06");
  EXPECT_EQ(error_of("version = 1\n[points]\nm99 = 3\n"),
            "grading.toml:3: points.m99 is not known. Did you mean points.m1?");
  EXPECT_EQ(error_of("version = 1\nset = \"fast\"\n"),
            "grading.toml:2: set must be one of: quick, full");
  EXPECT_EQ(error_of("version = 1\ngate = [\"tny\"]\n"),
            "grading.toml:2: gate knows only: edge, far, hidden, random, refused, tiny");
  EXPECT_EQ(error_of("version = 1\npoints = 3\n"),
            "grading.toml:2: points must be a table: [points]");
  EXPECT_NE(error_of("version = 1\n[points\n").find("grading.toml:2: "), std::string::npos);
  EXPECT_EQ(error_of("version = 1\n[performance]\nno_points_at = 1.0\n"),
            "grading.toml: performance.no_points_at must be above performance.full_points_at");
}

// ---- points

CaseResult one_case(const std::string& name, CaseState state) {
  CaseResult one;
  one.name = name;
  one.state = state;
  return one;
}

const std::vector<CaseResult>& four_cases() {
  static const std::vector<CaseResult> kCases{
      one_case("tiny/a", CaseState::kPass), one_case("edge/b", CaseState::kPass),
      one_case("edge/c", CaseState::kPass), one_case("far/d", CaseState::kSkip)};
  return kCases;
}

Scheme simple_scheme(const std::string& more = "") {
  return parse_scheme("version = 1\n" + more + "\n[groups]\ntiny = 1\nedge = 3\n", "grading.toml");
}

TEST(ScoreTest, GroupsShareThePointsByTheirWeights) {
  StageResult result;
  result.mark = Mark::kWrong;
  result.cases = four_cases();
  result.cases[2].state = CaseState::kWrong;
  const StageScore score = score_stage(result, four_cases(), simple_scheme(), "m1", false);
  EXPECT_DOUBLE_EQ(score.earned, 20 * (0.25 + 0.75 / 2));
  EXPECT_DOUBLE_EQ(score.maximum, 20);
  EXPECT_EQ(score.groups.size(), 2u) << "what our solution skips counts for nobody";
  const Scheme whole = simple_scheme("count = \"groups\"");
  EXPECT_DOUBLE_EQ(score_stage(result, four_cases(), whole, "m1", false).earned, 5);
}

TEST(ScoreTest, AClosedGateGivesNothing) {
  StageResult result;
  result.mark = Mark::kWrong;
  result.cases = four_cases();
  result.cases[0].state = CaseState::kWrong;
  const StageScore score = score_stage(result, four_cases(), simple_scheme(), "m1", false);
  EXPECT_EQ(score.earned, 0);
  EXPECT_EQ(score.reason, "no points: not every case of group tiny passes");
  EXPECT_DOUBLE_EQ(
      score_stage(result, four_cases(), simple_scheme("gate = []"), "m1", false).earned, 15);
}

TEST(ScoreTest, MissingIsZeroAndAFaultIsNoScore) {
  StageResult missing;
  missing.mark = Mark::kMissing;
  EXPECT_TRUE(score_stage(missing, four_cases(), simple_scheme(), "m1", false).scored);
  EXPECT_EQ(score_stage(missing, four_cases(), simple_scheme(), "m1", false).earned, 0);
  StageResult fault;
  fault.mark = Mark::kFault;
  fault.cases = four_cases();
  EXPECT_FALSE(score_stage(fault, four_cases(), simple_scheme(), "m1", false).scored);
}

TEST(ScoreTest, ABrokenRuleOrFullMemoryVoidsTheStage) {
  for (const Mark mark : {Mark::kRule, Mark::kMemory}) {
    StageResult result;
    result.mark = mark;
    result.cases = four_cases();
    EXPECT_EQ(score_stage(result, four_cases(), simple_scheme(), "m1", false).earned, 0);
  }
}

TEST(ScoreTest, TheCurveOfPerformance) {
  const Scheme scheme = parse_scheme("version = 1", "grading.toml");
  EXPECT_EQ(performance_curve(0.5, scheme), 1);
  EXPECT_EQ(performance_curve(1.2, scheme), 1);
  EXPECT_NEAR(performance_curve(5.6, scheme), 0.5, 1e-12);
  EXPECT_EQ(performance_curve(10, scheme), 0);
  EXPECT_EQ(performance_curve(0, scheme), 0) << "no time at all was measured";
  EXPECT_EQ(performance_curve(std::nan(""), scheme), 0);
}

TEST(ScoreTest, SpeedCountsOnlyWhereEveryCasePasses) {
  Scheme scheme = simple_scheme();
  scheme.performance_share = 0.5;
  StageResult result;
  result.mark = Mark::kPass;
  result.cases = four_cases();
  result.timing = {200, 100, ""};
  const double share = (10 - 2.0) / (10 - 1.2);
  EXPECT_NEAR(score_stage(result, four_cases(), scheme, "m1", true).earned, 10 + 10 * share, 0.006);
  EXPECT_EQ(score_stage(result, four_cases(), scheme, "m1", false).earned, 20) << "nothing timed";
  result.mark = Mark::kWrong;
  result.cases[1].state = CaseState::kWrong;
  EXPECT_LT(score_stage(result, four_cases(), scheme, "m1", true).earned, 10);
}

TEST(ScoreTest, ATimeCountsOnlyBesideARightReference) {
  const std::string ours = R"({"side":"solution","median_us":100,"verdict":"right"})";
  const std::string theirs = R"({"side":"mine","median_us":150,"verdict":"right"})";
  const std::string wrong = R"({"side":"mine","median_us":1,"verdict":"WRONG: zeros"})";
  EXPECT_EQ(timing_of(ours + "\n" + theirs + "\n").mine_us, 150);
  EXPECT_EQ(timing_of(ours + "\n" + theirs + "\n").problem, "");
  EXPECT_EQ(timing_of(ours + "\n" + wrong + "\n").problem, "a timed output was wrong");
  EXPECT_EQ(timing_of(ours + "\n").problem, "it could not be timed");
  EXPECT_EQ(timing_of("garbage\n").problem, "it could not be timed");
}

// ---- hand-ins

class HandInTest : public Folder {
 protected:
  HandIn read(const std::string& name) {
    const fs::path scratch = root_ / ("scratch." + name);
    fs::create_directories(scratch);
    const Confinement confinement = find_confinement(root_);
    return read_submission({name, root_ / name}, {"m1_align"}, scratch, confinement, 0);
  }
  std::string problem(const std::string& name) { return read(name).problems["m1_align"]; }
  std::string source(const std::string& name) { return read(name).sources["m1_align"]; }
};

TEST_F(HandInTest, FoldersAndZipFilesInOrder) {
  write("all/bob/mine/m1_align.cu", "x");
  write("all/alice.zip", "x");
  write("all/notes.txt", "x");
  write("all/.hidden/mine/m1_align.cu", "x");
  fs::create_symlink("/etc", root_ / "all" / "carol");
  const std::vector<Submission> found = find_submissions(root_ / "all");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].student, "alice");
  EXPECT_EQ(found[1].student, "bob");
  write("all/bob.zip", "x");
  EXPECT_THROW(find_submissions(root_ / "all"), UsageError);
  fs::create_directories(root_ / "none");
  EXPECT_THROW(find_submissions(root_ / "none"), UsageError);
}

TEST_F(HandInTest, FilesAreFoundWhereDownloadsPutThem) {
  write("plain/mine/m1_align.cu", "plain");
  write("github/course-main/mine/m1_align.cu", "github");
  write("copies/mine/m1_align.cu", "top");
  write("copies/backup/mine/m1_align.cu", "backup");
  write("twice/a/mine/m1_align.cu", "a");
  write("twice/b/mine/m1_align.cu", "b");
  fs::create_directories(root_ / "empty");
  EXPECT_EQ(source("plain"), "plain");
  EXPECT_EQ(source("github"), "github");
  EXPECT_EQ(source("copies"), "top");
  EXPECT_EQ(problem("twice"), "two folders called mine: a/mine and b/mine");
  EXPECT_EQ(problem("empty"), "there is no folder mine/");
}

TEST_F(HandInTest, NoLinkLeadsOutOfASubmission) {
  write("secret", "secret");
  fs::create_directories(root_ / "file_link" / "mine");
  fs::create_symlink("../../secret", root_ / "file_link" / "mine" / "m1_align.cu");
  write("other/mine/m1_align.cu", "other");
  fs::create_directories(root_ / "folder_link");
  fs::create_symlink("../other/mine", root_ / "folder_link" / "mine");
  EXPECT_EQ(problem("file_link"), "it cannot be read");
  EXPECT_EQ(problem("folder_link"), "there is no folder mine/");
}

TEST_F(HandInTest, OddFilesCostThemselvesOnly) {
  fs::create_directories(root_ / "folder" / "mine" / "m1_align.cu");
  fs::create_directories(root_ / "pipe" / "mine");
  ASSERT_EQ(shell("mkfifo pipe/mine/m1_align.cu").exit_code, 0);
  write("large/mine/m1_align.cu", std::string((1 << 20) + 1, 'x'));
  write("binary/mine/m1_align.cu", std::string("a\0b", 3));
  EXPECT_EQ(problem("folder"), "it is no regular file");
  EXPECT_EQ(problem("pipe"), "it is no regular file");
  EXPECT_EQ(problem("large"), "it is larger than 1 MiB");
  EXPECT_EQ(problem("binary"), "it is no text");
}

TEST_F(HandInTest, ZipFiles) {
  write("in/dave/mine/m1_align.cu", "from a zip");
  write("in/dave/CMakeLists.txt", "x");
  ASSERT_EQ(shell("cd in && zip -qr ../good.zip dave").exit_code, 0);
  EXPECT_EQ(source("good.zip"), "from a zip");
  write("bad.zip", "no zip at all");
  EXPECT_EQ(problem("bad.zip"), "the zip file is broken");
  // A bomb: 64 MiB of zeros in a few KiB; the file is cut off, which is not a source of 1 MiB.
  ASSERT_EQ(shell("mkdir -p bomb/mine && truncate -s 64M bomb/mine/m1_align.cu && "
                  "zip -qr bomb.zip bomb && rm -r bomb")
                .exit_code,
            0);
  EXPECT_NE(problem("bomb.zip"), "");
  // A path and a link that lead out.
  ASSERT_EQ(
      shell("mkdir -p w/x/mine && echo evil > w/mine_target && "
            "ln -s /etc/passwd w/x/mine/m1_align.cu && cd w/x && zip -qry ../../link.zip . && "
            "mkdir -p ../y && cd ../y && mkdir -p ../../up/mine && "
            "echo evil > ../../up/mine/m1_align.cu && zip -q ../../slip.zip "
            "../../up/mine/m1_align.cu; true")
          .exit_code,
      0);
  EXPECT_NE(problem("link.zip"), "");
  const std::string slipped = source("slip.zip");
  EXPECT_TRUE(slipped.empty() || slipped == "evil\n");
  EXPECT_FALSE(fs::exists(root_ / "scratch.slip.zip" / ".." / ".." / "up" / "slipped"));
}

TEST_F(HandInTest, CommitsAreReadWithoutGit) {
  write("repo/mine/m1_align.cu", "x");
  ASSERT_EQ(shell("cd repo && git init -q && git add -A && git -c user.name=a -c user.email=a@b "
                  "commit -qm x && git config core.fsmonitor 'touch ../ran'")
                .exit_code,
            0);
  const std::string commit = shell("git -C repo -c core.fsmonitor=false rev-parse HEAD").output;
  EXPECT_EQ(read("repo").commit + "\n", commit);
  shell("git -C repo -c core.fsmonitor=false pack-refs --all");
  EXPECT_EQ(read("repo").commit + "\n", commit);
  EXPECT_FALSE(fs::exists(root_ / "ran"));
  write("repo/.git/HEAD", "ref: refs/../../../../etc/passwd\n");
  EXPECT_EQ(read("repo").commit, "");
}

TEST(NameTest, EveryStudentGetsASafeFileOfTheirOwn) {
  EXPECT_EQ(file_name_of("alice_b-2"), "alice_b-2");
  EXPECT_EQ(file_name_of("a b").rfind("a_b-", 0), 0u);
  EXPECT_NE(file_name_of("a b"), file_name_of("a\nb"));
  EXPECT_LT(file_name_of(std::string(300, 'x')).size(), 100u);
}

// ---- rules

std::string first_break(const std::string& text) {
  const std::vector<RuleBreak> broken = check_source(text, "f.cu");
  return broken.empty() ? "" : broken.front().sentence;
}

TEST(RulesTest, CommentsAndStringsAreNoCode) {
  EXPECT_EQ(code_only("a // asm\nb /* asm\n*/ c \"asm\\\"\" d 'x' 1'000 R\"(asm\n)\" e\n"),
            "a \nb \n  c \"\" d '' 1'000 \"\" e\n\n");
  EXPECT_EQ(first_break("// asm\n/* #pragma x */ const char* s = \"asm\"; int asm_like;\n"), "");
  EXPECT_EQ(first_break("const char* s = R\"x(\" )\" asm(\"\"); )x\";\n"), "");
}

TEST(RulesTest, FindsWhatIsForbidden) {
  EXPECT_EQ(first_break("int x;\nasm(\"nop\");\n"),
            "f.cu:2: inline assembly is not allowed; drills/ptx.h has what the stages need");
  EXPECT_NE(first_break("as\\\nm(\"nop\");\n"), "");
  EXPECT_NE(first_break("  # /* x */ pragma weak x\n"), "");
  EXPECT_EQ(first_break("#pragma unroll 4\n#pragma once\n"), "");
  EXPECT_NE(first_break("_Pragma(\"weak x\")\n"), "");
  EXPECT_NE(first_break("#include \"/etc/passwd\"\n"), "");
  EXPECT_NE(first_break("%: include <../solutions/m1_align.cu>\n"), "");
  EXPECT_EQ(first_break("#include <cmath>\n#include \"drills/m1_align.h\"\n"), "");
  EXPECT_NE(first_break("#line 3 \"x\"\n"), "");
  EXPECT_NE(first_break("# 3 \"x\"\n"), "");
}

TEST(RulesTest, OurOwnSolutionsKeepThem) {
  for (const Stage& stage : kStages) {
    const std::string name = driver::source_name(stage, "solution");
    const std::string text = driver::read_file(std::string(DRILL_SOURCE_DIR) + "/" + name);
    ASSERT_FALSE(text.empty());
    EXPECT_TRUE(check_source(text, name).empty()) << first_break(text);
  }
}

TEST(RulesTest, Dependencies) {
  const std::string depends =
      "/w/a.o: /w/mine/m1.cu /c/drills/m1.h \\\n /usr/include/c++/x \\\n /c/y\n";
  EXPECT_TRUE(check_depends(depends, {"/w/", "/c/", "/usr/"}).empty());
  EXPECT_EQ(check_depends(depends, {"/w/", "/usr/"}).size(), 2u);
  EXPECT_EQ(check_depends("a: /c/../x/solutions/m1.cu\n", {"/c/"}).front().sentence,
            "solutions/ is not available while grading");
}

TEST(RulesTest, Symbols) {
  const auto check = [](const std::string& nm) {
    return check_symbols(parse_symbols(nm), {"_ZN8emulator5faultEv", "clock_gettime", "recvmsg"},
                         "mine/m1.cu");
  };
  EXPECT_TRUE(check("0000 T _ZN3moe4mine5alignEPi\n0000 u blockIdx\n     U memcpy\n"
                    "0000 W _ZNSt6vectorIiE9push_backEi\n")
                  .broken.empty());
  EXPECT_EQ(check("0000 T main\n").broken.front().sentence, "mine/m1.cu must not define main");
  EXPECT_EQ(check("0000 T clock_gettime\n").broken.front().sentence,
            "symbol clock_gettime belongs to the test harness");
  EXPECT_EQ(check("0000 W _ZN8emulator5faultEv\n").broken.size(), 1u);
  EXPECT_EQ(check("     U _Z15cudaDeviceResetv\n").broken.front().sentence,
            "cudaDeviceReset is used; the device belongs to the test harness");
  const SymbolCheck helper = check("0000 T my_helper\n");
  EXPECT_TRUE(helper.broken.empty()) << "a visible helper is careless, not a cheat";
  EXPECT_EQ(helper.to_hide, std::vector<std::string>{"my_helper"});
}

TEST(RecipeTest, WordsOfACommand) {
  const std::vector<std::string> words{"c++", "-D=a b", "it's", "x y"};
  EXPECT_EQ(shell_words("c++  \"-D=a b\" it\\'s 'x y'"), words);
}

// ---- the wall

class WallTest : public Folder {
 protected:
  driver::Outcome confined(const std::string& script, const Limits& limits = {0, 0, 20, 64}) {
    Room room;
    room.writable = {root_ / "box"};
    room.folder = root_ / "box";
    fs::create_directories(root_ / "box");
    confinement_.hand_over(root_ / "box", 1);
    driver::Command command;
    command.arguments = confinement_.wrap({"sh", "-c", script}, room, limits, 1);
    command.limit_s = 30;
    return driver::run_process(command);
  }
  void SetUp() override {
    Folder::SetUp();
    if (find_confinement(root_).wall() != Wall::kBubblewrap) {
      GTEST_SKIP() << "bubblewrap does not work here";
    }
  }

  Confinement confinement_{Wall::kBubblewrap};
};

TEST_F(WallTest, OnlyItsOwnFilesAreThere) {
  write("secret", "secret");
  const std::string secret = (root_ / "secret").string();
  EXPECT_NE(confined("cat " + secret).exit_code, 0);
  EXPECT_NE(confined("cat /etc/passwd").exit_code, 0);
  EXPECT_NE(confined("ls /root /home").exit_code, 0);
  EXPECT_NE(confined("touch /usr/x").exit_code, 0);
  EXPECT_NE(confined("touch /x").exit_code, 0);
  EXPECT_EQ(confined("touch made && touch /tmp/own").exit_code, 0);
  EXPECT_TRUE(fs::exists(root_ / "box" / "made"));
  EXPECT_FALSE(fs::exists("/tmp/own"));
}

TEST_F(WallTest, NoNetworkAndNoOtherProcess) {
  EXPECT_EQ(confined("tail -n +3 /proc/net/dev | grep -v ' lo:'").output, "");
  EXPECT_NE(confined("kill -0 " + std::to_string(getpid())).exit_code, 0);
  EXPECT_EQ(confined("ls -d /proc/[0-9]* | wc -l").output.substr(0, 1), "4")
      << "bwrap, sh, ls and wc";
}

TEST_F(WallTest, NothingOfTheEnvironmentComesIn) {
  setenv("DRILL_SECRET", "42", 1);
  const std::string inside = confined("env").output;
  unsetenv("DRILL_SECRET");
  EXPECT_EQ(inside.find("DRILL_SECRET"), std::string::npos) << inside;
}

TEST_F(WallTest, WhatIsLeftRunningDies) {
  confined("setsid sleep 864122 >/dev/null 2>&1 & sleep 0.2");
  EXPECT_EQ(shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").output.find("sleep 864122 "),
            std::string::npos);
}

TEST_F(WallTest, FilesHaveALimit) {
  EXPECT_NE(confined("head -c 3000000 /dev/zero > big", {0, 1 << 20, 20, 64}).exit_code, 0);
  EXPECT_LE(fs::file_size(root_ / "box" / "big"), std::uintmax_t{1} << 20);
}

TEST_F(WallTest, TheGuardEndsWhatIsTooLarge) {
  fs::create_directories(root_ / "box");
  Room room;
  room.writable = {root_ / "box"};
  driver::Command command;
  command.arguments = {"sh", "-c", "\"$@\"; true", "sh"};
  for (const std::string& word : confinement_.wrap(
           {"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 30 & done; wait"}, room, {}, 1)) {
    command.arguments.push_back(word);
  }
  command.limit_s = 20;
  Guard guard(0, 6);
  driver::Watcher watcher;
  watcher.on_start = [&guard](pid_t process) { guard.watch(process); };
  watcher.on_tick = [&guard] { guard.look(); };
  const driver::Outcome outcome = driver::run_process(command, watcher);
  EXPECT_TRUE(guard.processes_exceeded());
  EXPECT_LT(outcome.seconds, 10);
  EXPECT_EQ(outcome.exit_code, 0) << "the test program itself is left alone";
}

// ---- reports

TEST(ReportTest, HostileTextStaysText) {
  EXPECT_EQ(clean_text("a\x1b[2Jb\tc\r\n\xff\xc0\x80z\n"),
            "a [2Jb c \n\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(clean_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(clean_text("\xef\xbf\xbe"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") << "not in XML";
}

ClassReport report_of(const std::string& student, CaseResult one) {
  ClassReport report;
  report.run_id = "0000000000000000";
  report.set = "full";
  report.device = "emulator";
  report.wall = "bubblewrap";
  report.scheme = parse_scheme("version = 1", "grading.toml");
  report.stages = {&kStages[0]};
  CaseResult passing = one;
  passing.state = CaseState::kPass;
  report.expected[kStages[0].stem] = {passing};
  StudentResult result;
  result.student = student;
  result.stages[kStages[0].stem].mark = Mark::kWrong;
  result.stages[kStages[0].stem].sentence = one.sentence;
  result.stages[kStages[0].stem].cases = {std::move(one)};
  report.students = {result};
  return report;
}

TEST(ReportTest, CellsAreNoFormulasAndPagesNoScripts) {
  CaseResult one = one_case("edge/x", CaseState::kWrong);
  one.sentence = "=HYPERLINK(\"x\"),<script>alert(1)</script>";
  const ClassReport report = report_of("=cmd,\"x\"", one);
  const std::string csv = results_csv(report);
  EXPECT_NE(csv.find(",\"'=cmd,\"\"x\"\"\","), std::string::npos) << csv;
  EXPECT_EQ(csv.find(",=HYPERLINK"), std::string::npos) << csv;
  for (const std::string& text : {student_page(report, report.students[0]), junit_xml(report)}) {
    EXPECT_EQ(text.find("<script>"), std::string::npos) << text;
  }
}

TEST(ReportTest, HiddenCasesGiveNothingAway) {
  CaseResult one = one_case("hidden/t37", CaseState::kWrong);
  one.sentence = "The pad id is wrong.";
  one.shape = "T=37";
  one.evidence = {"got 3, want 4"};
  one.fault = "line with a value";
  const ClassReport report = report_of("eve", one);
  for (const std::string& text :
       {student_page(report, report.students[0]), gradescope_json(report, report.students[0]),
        actions_json(report, report.students[0])}) {
    EXPECT_NE(text.find("The pad id is wrong."), std::string::npos);
    for (const char* word : {"want 4", "T=37", "hidden/t37", "line with a value"}) {
      EXPECT_EQ(text.find(word), std::string::npos) << word << "\n" << text;
    }
  }
}

TEST(ReportTest, ARecordSurvivesItsFile) {
  StageResult result;
  result.key = "k";
  result.mark = Mark::kHang;
  result.sentence = "bad \xff byte";
  result.flaky = true;
  result.attempts = 2;
  result.cases = {one_case("edge/x", CaseState::kNotRun)};
  result.cases[0].evidence = {"one", "two"};
  const StageResult read = stage_from_text(to_text(result));
  EXPECT_EQ(read.mark, Mark::kHang);
  EXPECT_EQ(read.cases[0].state, CaseState::kNotRun);
  EXPECT_EQ(read.cases[0].evidence.size(), 2u);
  EXPECT_TRUE(read.flaky);
  EXPECT_THROW(stage_from_text("{\"version\": 2}"), std::exception);
  EXPECT_THROW(stage_from_text("half a fi"), std::exception);
}

}  // namespace
}  // namespace moe::grade
