// What was handed in: odd, broken and hostile folders and zip files.
#include <gtest/gtest.h>

#include "driver/grade/class_run.h"
#include "driver/grade/submissions.h"
#include "driver/grade/usage.h"
#include "grade_test.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace moe::grade
