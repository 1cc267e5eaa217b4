// Bad days: what `drill` says and keeps when the machine, the folder or the file is not as it
// should be. Each ends with a clear sentence, and no learner loses work.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <regex>
#include <vector>

#include "course_copy.h"
#include "driver/course.h"
#include "driver/process.h"
#include "driver/skeleton.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr const char* kSolution = "solutions/m2_grouped_gemm.cu";
constexpr const char* kMine = "mine/m2_grouped_gemm.cu";
constexpr const char* kOneCase = "./drill m2 --cpu --case tiny/t4k2";

using Transcript = CourseCopy::Transcript;

class BadDay : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    course = new CourseCopy(DRILL_SOURCE_DIR, DRILL_COPY_DIR);
    course->write(kMine, course->read(kSolution));
    const Transcript first = course->run_shell("./drill m2 --cpu");  // everything is built
    ASSERT_EQ(first.exit_code, 0) << first.text;
  }
  static void TearDownTestSuite() {
    delete course;
    course = nullptr;
  }
  void SetUp() override { course->write(kMine, course->read(kSolution)); }

  static std::string folder() { return DRILL_COPY_DIR; }

  static Transcript shell(const std::string& script) { return course->run_shell(script); }

  // Ends with that code and says something; the learner's file is as it was.
  static void expect_said(const std::string& script, int code, const std::string& sentence) {
    const std::string before = course->read(kMine);
    const Transcript transcript = shell(script);
    EXPECT_EQ(transcript.exit_code, code) << script << "\n" << transcript.text;
    // Wherever the lines break.
    const std::string text = std::regex_replace(transcript.text, std::regex("\\s+"), " ");
    EXPECT_NE(text.find(sentence), std::string::npos) << script << "\n" << transcript.text;
    EXPECT_EQ(text.find("fault of the course"), std::string::npos) << transcript.text;
    EXPECT_EQ(course->read(kMine), before);
  }

  static void expect_passes() {
    const Transcript transcript = shell(kOneCase);
    EXPECT_EQ(transcript.exit_code, 0) << transcript.text;
  }

  static CourseCopy* course;
};

CourseCopy* BadDay::course = nullptr;

// A folder with links to these programs only.
std::string path_with(const std::string& programs) {
  return "tools=$(mktemp -d); for tool in " + programs +
         "; do ln -s \"$(command -v $tool)\" \"$tools/$tool\"; done; PATH=$tools ";
}
constexpr const char* kShellTools = "bash env readlink dirname mkdir cat grep sed sort head df awk";

// ---- the folder

// Somebody else's checkout: root can write anywhere, so root becomes nobody first.
std::string as_stranger(const std::string& command) {
  if (geteuid() != 0) {
    return "chmod -R a-w . && { " + command + "; code=$?; chmod -R u+w .; exit $code; }";
  }
  return "setpriv --reuid 65534 --regid 65534 --clear-groups " + command;
}

TEST_F(BadDay, ReadOnlyCheckout) {
  if (shell(as_stranger("test -r drill")).exit_code != 0) {
    GTEST_SKIP() << "another user cannot even look into " << folder();
  }
  expect_said(as_stranger(kOneCase), 70, "build cannot be written, so nothing can be built here");
  for (const char* command : {"./drill", "./drill list", "./drill notes m2 gather",
                              "./drill hint m2 gather", "./drill solution m2 gather --yes"}) {
    const Transcript transcript = shell(as_stranger(command));
    EXPECT_EQ(transcript.exit_code, 0) << command << "\n" << transcript.text;
  }
  expect_said(as_stranger("./drill reset m2 --yes"), 70, "so nothing was changed");
  expect_passes();
}

// Mounts a tiny file system over a folder for one command, where that is permitted.
std::string on_full_disk(const std::string& where, const std::string& command) {
  return "mkdir -p " + where + " && mount -t tmpfs -o size=64k drill-test " + where +
         " 2>/dev/null || exit 99; dd if=/dev/zero of=" + where + "/filler bs=1k 2>/dev/null; " +
         command + "; code=$?; umount " + where + "; exit $code";
}

TEST_F(BadDay, FullDisk) {
  if (shell(on_full_disk(".drill-mount-test", "true")).exit_code != 0) {
    shell("rmdir .drill-mount-test");
    GTEST_SKIP() << "a small file system cannot be mounted here";
  }
  shell("rmdir .drill-mount-test");
  // The state cannot be written: the verdict stands all the same.
  expect_said(on_full_disk(".drill", "./drill m2 --cpu"), 0, "this result is not remembered");
  expect_said(on_full_disk(".drill", "./drill reset m2 --yes"), 70, "so nothing was changed");
  // No room for the objects, or for what the compiler puts aside.
  course->write(kMine, course->read(kSolution) + "// " + std::to_string(getpid()) + "\n");
  expect_said(on_full_disk("full", "CCACHE_DISABLE=1 TMPDIR=$PWD/full ./drill m2 --cpu"), 70,
              "the disk is full");
  shell("rmdir full");
  shell("mv build build.aside");
  expect_said(on_full_disk("build", "\"$PWD/build.aside/host/drill_command\" m2 --cpu"), 70,
              "the disk is full");
  shell("rmdir build && mv build.aside build");
  expect_passes();
}

// Each makes the command build much anew: all of them only in `drill selftest --long`, which sets
// DRILL_LONG.
TEST_F(BadDay, HalfDeletedBuildTree) {
  std::vector<const char*> losses = {
      "rm build/cpu/m2_grouped_gemm.mine.hash build/cpu/*.log build/cpu/.lock"};
  if (std::getenv("DRILL_LONG") != nullptr) {
    losses.insert(losses.end(),
                  {"rm -r build/cpu/runners", "rm -r build/cpu/CMakeFiles",
                   "rm build/cpu/CMakeCache.txt", "rm -r build/cpu/CMakeFiles/rules.ninja",
                   "rm build/host/.ninja_deps build/host/.ninja_log"});
  }
  for (const char* remove : losses) {
    shell(remove);
    const Transcript transcript = shell(kOneCase);
    EXPECT_EQ(transcript.exit_code, 0) << remove << "\n" << transcript.text;
  }
  if (std::getenv("DRILL_LONG") != nullptr) shell("rm -r build/host/CMakeFiles/rules.ninja");
  expect_passes();
}

TEST_F(BadDay, TwoCommandsAtOnce) {
  course->write(kMine, course->read(kSolution) + "// two at once\n");
  const Transcript both = shell(
      "./drill m2 --cpu >first.txt & one=$!; ./drill m2 --cpu >second.txt & two=$!;"
      "wait $one; a=$?; wait $two; b=$?; cat first.txt second.txt; rm first.txt second.txt;"
      "exit $((a + b))");
  EXPECT_EQ(both.exit_code, 0) << both.text;
  const std::string state = course->read(".drill/state");
  EXPECT_NE(state.find("m2_grouped_gemm"), std::string::npos) << state;
}

// ---- the tools

TEST_F(BadDay, MissingCompiler) {
  const std::string no_compiler = path_with(std::string(kShellTools) + " cmake ninja");
  expect_said(no_compiler + kOneCase, 70, "g++ is not installed");
  expect_said(no_compiler + "./drill notes m2 gather", 0, "row addresses");
  // Before the command was ever built.
  shell("mv build build.aside");
  expect_said(no_compiler + kOneCase, 70, "g++ is not installed. Run:");
  shell("rm -rf build; mv build.aside build");
}

TEST_F(BadDay, WrongCMake) {
  // Answers as an old one does, but for a tree that is there already.
  const std::string old_cmake =
      "tools=$(mktemp -d); real=$(command -v cmake); printf '%s\\n' '#!/bin/sh' 'case $1 in' "
      "\"--build) exec $real \\\"\\$@\\\" ;;\" '--version) echo cmake version 3.16.3 ;;' "
      "'*) echo CMake Error: Could not read presets; exit 1 ;;' 'esac' >$tools/cmake;"
      "chmod +x $tools/cmake; PATH=$tools:$PATH ";
  shell("mv build/cpu cpu.aside");
  expect_said(old_cmake + kOneCase, 70, "CMake 3.16.3 is too old: 3.25 or newer is needed");
  shell("rm -rf build/cpu; mv cpu.aside build/cpu; mv build build.aside");
  expect_said(old_cmake + kOneCase, 70, "CMake 3.16.3 is too old; 3.25 or newer is needed");
  shell("rm -rf build; mv build.aside build");
  expect_passes();
}

TEST_F(BadDay, NoLinux) {
  // bash keeps what it is given, so this looks like a Mac.
  expect_said("OSTYPE=darwin23 " + std::string(kOneCase), 70, "runs on Linux only");
  expect_said("OSTYPE=darwin23 ./setup.sh", 1, "runs on Linux only");
}

// ---- Ctrl-C

// Sends SIGINT after some seconds; nothing of the command may be left behind.
std::string interrupted(const std::string& command, const std::string& seconds) {
  return command + " & pid=$!; sleep " + seconds +
         "; kill -INT $pid; wait $pid; code=$?; sleep 1;"
         "left=$(for link in /proc/[0-9]*/exe /proc/[0-9]*/cwd; do readlink $link; done "
         "2>/dev/null |"
         "grep -cF \"$PWD/build\"); echo \"left $left\"; exit $code";
}

TEST_F(BadDay, InterruptedInTheBuild) {
  course->write(kMine, course->read(kSolution) + "// for the build\n");
  const std::string slow_compiler =
      "rm -f build/cpu/CMakeFiles/slow; export CPATH=$PWD/slow; mkdir -p slow; mkfifo "
      "slow/drills_wait.h 2>/dev/null;";
  course->write(kMine, "#include <drills_wait.h>\n" + course->read(kSolution));
  const Transcript transcript = shell(slow_compiler + interrupted(kOneCase, "3"));
  shell("rm -r slow");
  EXPECT_EQ(transcript.exit_code, 130) << transcript.text;
  EXPECT_NE(transcript.text.find("stopped"), std::string::npos) << transcript.text;
  EXPECT_NE(transcript.text.find("left 0"), std::string::npos) << transcript.text;
  course->write(kMine, course->read(kSolution));
  expect_passes();
}

TEST_F(BadDay, InterruptedInATest) {
  std::string text = course->read(kSolution);
  const std::string snippet = "const int turns = ";
  text.replace(text.find(snippet), snippet.size(),
               "for (volatile bool again = true; again;) {\n  }\n  const int turns = ");
  course->write(kMine, text);
  shell(kOneCase);  // builds it
  const std::string state = course->read(".drill/state");
  // The emulator may look on for a minute: the interrupt must come first.
  const Transcript transcript = shell("EMULATOR_HANG=60 " + interrupted(kOneCase, "3"));
  EXPECT_EQ(transcript.exit_code, 130) << transcript.text;
  EXPECT_NE(transcript.text.find("left 0"), std::string::npos) << transcript.text;
  EXPECT_EQ(course->read(".drill/state"), state);
  EXPECT_EQ(course->read(kMine), text);
}

TEST_F(BadDay, InterruptedInABench) {
  // A GPU that only says its name, and a compiler that takes its time.
  const std::string gpu =
      "tools=$(mktemp -d); printf '#!/bin/sh\\necho Some GPU, 9.0\\n' >$tools/nvidia-smi;"
      "printf '#!/bin/sh\\nsleep 30\\n' >$tools/nvcc; chmod +x $tools/*;"
      "export CUDA_VISIBLE_DEVICES=0 PATH=$tools:$PATH; ";
  const Transcript transcript = shell(gpu + interrupted("./drill bench m2", "3"));
  EXPECT_EQ(transcript.exit_code, 130) << transcript.text;
  EXPECT_NE(transcript.text.find("stopped"), std::string::npos) << transcript.text;
  EXPECT_NE(transcript.text.find("left 0"), std::string::npos) << transcript.text;
  shell("rm -rf build/cuda");
}

// ---- the learner's file

std::string with_crlf(const std::string& text) {
  return std::regex_replace(text, std::regex("\n"), "\r\n");
}

TEST_F(BadDay, FileWithCrLf) {
  course->write(kMine, with_crlf(course->read(kSolution)));
  expect_passes();
  const std::string blank = make_skeleton(course->read(kSolution), kSolution, "m2");
  course->write(kMine, with_crlf(blank));
  expect_said("./drill m2 --cpu", 3, "6 of 6 regions to write");
  expect_said("./drill diff m2", 0, "is the same as the blank");
}

TEST_F(BadDay, FileWithAByteOrderMark) {
  course->write(kMine, "\xef\xbb\xbf" + course->read(kSolution));
  expect_passes();
}

TEST_F(BadDay, FileWithOtherCharacters) {
  course->write(kMine,
                "// gr\xc3\xbc\xc3\x9f dich \xe4\xb8\x93\xe5\xae\xb6\n" + course->read(kSolution));
  expect_passes();
  course->write(kMine, course->read(kSolution) + "const char* name = \xe2\x80\x9cx\xe2\x80\x9d;\n");
  expect_said(kOneCase, 4, "a character that is no ASCII outside of a comment");
  course->write(kMine, std::string("i\0n\0t\0", 6));
  expect_said(kOneCase, 4, "is no text: it holds zero bytes");
}

TEST_F(BadDay, FileOfTenMegabytes) {
  course->write(kMine, course->read(kSolution) + std::string(10 << 20, ' ') + "\n");
  expect_said("./drill m2 --cpu", 4, "is 10.5 MB; no kernel file is longer than a few KB");
  expect_said("./drill list", 0, kMine);
}

TEST_F(BadDay, FileThatIsGone) {
  shell("rm mine/m2_grouped_gemm.cu");
  const Transcript listed = shell("./drill list");
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.text.find("the file is missing"), std::string::npos) << listed.text;
  const Transcript transcript = shell("./drill m2 --cpu");
  EXPECT_EQ(transcript.exit_code, 3) << transcript.text;
  EXPECT_NE(transcript.text.find("was missing; it is there again, blank"), std::string::npos);
}

TEST_F(BadDay, EmptyFile) {
  course->write(kMine, "");
  expect_said("./drill m2 --cpu", 4, "exactly the signature");
}

// ---- the terminal

// What a terminal of so many columns gets to see, as a script.
std::string on_terminal(const std::string& command, int columns) {
  const std::string quoted = shell_quoted("stty cols " + std::to_string(columns) + "; " + command);
  return "command -v script >/dev/null || exit 99; script -qec " + quoted + " /dev/null";
}

bool has_escape(const std::string& text) {
  return text.find('\033') != std::string::npos;
}

TEST_F(BadDay, TerminalsOfAllKinds) {
  std::string text = course->read(kSolution);
  const std::string row = "p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id";
  course->write(kMine, text.replace(text.find(row), row.size(), "flat_id"));
  const Transcript colored = shell(on_terminal("unset NO_COLOR; TERM=xterm ./drill m2 --cpu", 80));
  if (colored.exit_code == 99) GTEST_SKIP() << "no program script to make a terminal";
  EXPECT_EQ(colored.exit_code, 1) << colored.text;
  EXPECT_NE(colored.text.find("\033[1;31mWRONG"), std::string::npos) << colored.text;
  // NO_COLOR: the line that is overwritten may stay, colours may not.
  const Transcript plain = shell(on_terminal("NO_COLOR=1 TERM=xterm ./drill m2 --cpu", 80));
  EXPECT_EQ(plain.text.find("\033[1"), std::string::npos) << plain.text;
  const Transcript dumb = shell(on_terminal("unset NO_COLOR; TERM=dumb ./drill m2 --cpu", 80));
  EXPECT_FALSE(has_escape(dumb.text)) << dumb.text;
  EXPECT_NE(dumb.text.find("WRONG  tiny/t4k2"), std::string::npos) << dumb.text;
  // No terminal at all, neither for input nor for output.
  const Transcript none = shell("./drill m2 --cpu </dev/null 2>&1 | cat");
  EXPECT_FALSE(has_escape(none.text)) << none.text;
  EXPECT_EQ(none.text.find('\r'), std::string::npos);
}

TEST_F(BadDay, SixtyColumns) {
  std::string text = course->read(kSolution);
  const std::string row = "p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id";
  course->write(kMine, text.replace(text.find(row), row.size(), "flat_id"));
  for (const char* command : {"./drill m2 --cpu", "./drill m2 --cpu --map", "./drill list",
                              "./drill", "./drill hint m2 gather", "./drill notes m2 pitfalls"}) {
    const Transcript narrow = shell(on_terminal("TERM=dumb " + std::string(command), 60));
    if (narrow.exit_code == 99) GTEST_SKIP() << "no program script to make a terminal";
    for (std::string line : split_lines(narrow.text)) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      EXPECT_LE(line.size(), 60u) << command << ": " << line;
    }
  }
}

// A shell function: waits until watch.txt says so many times that the file is waited for.
constexpr const char* kAwait =
    "await() { for i in $(seq 900); do [ \"$(grep -c '^waiting for' watch.txt)\" -ge $1 ] && "
    "return; "
    "sleep 0.1; done; }; : >watch.txt; ";

int lines_with(const std::string& text, const std::string& begin) {
  int count = 0;
  for (const std::string& line : split_lines(text)) count += line.rfind(begin, 0) == 0 ? 1 : 0;
  return count;
}

TEST_F(BadDay, WatchNoticesASaveWithoutATerminal) {
  const Transcript watched =
      shell(kAwait +
            std::string("./drill watch m2 --cpu >watch.txt </dev/null & pid=$!; await 1; "
                        "echo '// saved' >>") +
            kMine + "; await 2; kill -INT $pid; wait $pid; cat watch.txt; rm watch.txt");
  EXPECT_NE(watched.text.find("no keys here"), std::string::npos) << watched.text;
  // A case that failed last is tried alone first, so that there may be more verdicts than rounds.
  EXPECT_GE(lines_with(watched.text, "PASS"), 2) << watched.text;
  EXPECT_EQ(lines_with(watched.text, "waiting for"), 2) << watched.text;
}

// On a terminal, where keys work: 'r' tests what was just saved, which then isn't tested again.
TEST_F(BadDay, WatchTakesKeys) {
  const Transcript watched =
      shell(kAwait +
            std::string("command -v script >/dev/null || exit 99; { await 1; "
                        "echo '// saved' >>") +
            kMine + "; printf r; await 2; sleep 2; printf h; await 3; printf q; sleep 1; } | { " +
            on_terminal("TERM=dumb ./drill watch m2 --cpu", 80) +
            " >watch.txt; }; code=$?; cat watch.txt; rm watch.txt; exit $code");
  if (watched.exit_code == 99) GTEST_SKIP() << "no program script to make a terminal";
  EXPECT_NE(watched.text.find("r run  h hint"), std::string::npos) << watched.text;
  EXPECT_NE(watched.text.find("drill hint m2 gather"), std::string::npos) << watched.text;
  // After the first run, r and h; q ends it.
  EXPECT_EQ(lines_with(watched.text, "waiting for"), 3) << watched.text;
  EXPECT_EQ(watched.exit_code, 0) << watched.text;
}

}  // namespace
}  // namespace moe::driver
