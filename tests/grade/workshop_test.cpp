// Building a submission behind the wall: compilers outside of /usr, and what CMake adds to a link.
#include "driver/grade/workshop.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "driver/terminal.h"
#include "grade_test.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

constexpr Stage kStage = {"m1", "m1_align", "", ""};

TEST(RecipeTest, TheLinkersListOfInputsIsLeftOut) {
  const Words plain{"g++", "-Xlinker", "-s", "a.o", "-o", "a"};
  EXPECT_EQ(without_list_of_inputs(plain), plain);
  EXPECT_EQ(without_list_of_inputs(
                {"g++", "-Wl,--dependency-file,a.d", "-Xlinker", "-s", "a.o", "-o", "a"}),
            plain);
  EXPECT_EQ(without_list_of_inputs(
                {"g++", "-Xlinker", "--dependency-file=a.d", "-Xlinker", "-s", "a.o", "-o", "a"}),
            plain);
  EXPECT_EQ(without_list_of_inputs({"g++", "-Xlinker", "--dependency-file", "-Xlinker", "a.d",
                                    "-Xlinker", "-s", "a.o", "-o", "a"}),
            plain);
  EXPECT_EQ(without_list_of_inputs(
                {"g++", "-Xlinker=--dependency-file,a.d", "-Xlinker", "-s", "a.o", "-o", "a"}),
            plain);
}

// A compiler of its own folder: the system's, with a header that the system has not.
class WorkshopTest : public Folder {
 protected:
  void SetUp() override {
    Folder::SetUp();
    write("opt/gcc-13/bin/real-g++",
          "#!/bin/sh\nhere=$(dirname \"$(readlink -f \"$0\")\")\n"
          "[ -r \"$here/../libexec/part\" ] || { echo incomplete; exit 1; }\n"
          "exec /usr/bin/g++ -isystem \"$here/../include\" \"$@\"\n");
    write("opt/gcc-13/include/fake.h", "inline int answer() { return 42; }\n");
    write("opt/gcc-13/libexec/part", "");
    write("opt/gcc-13/secret", "secret");
    fs::permissions(root_ / "opt/gcc-13/bin/real-g++", fs::perms::all);
    fs::create_symlink("real-g++", root_ / "opt/gcc-13/bin/g++");
    fs::create_symlink("gcc-13", root_ / "opt/gcc");
    compiler_ = root_ / "opt" / "gcc" / "bin" / "g++";
    make_recipe();
  }
  void make_recipe() {
    recipe_.stage = &kStage;
    recipe_.tree = root_ / "tree";
    fs::create_directories(recipe_.tree);
    recipe_.compile = {compiler_, "-MD", "-MT", kObjectMark, "-MF", kDependsMark,
                       "-x",      "c++", "-o",  kObjectMark, "-c",  kSourceMark};
    write("start.cpp",
          "namespace moe::mine { int get(); } int main() { return moe::mine::get(); }");
    ASSERT_EQ(shell("g++ -c start.cpp -o tree/start.o").exit_code, 0);
    recipe_.objects = {recipe_.tree / "start.o"};
    recipe_.link = {compiler_, recipe_.objects[0], kObjectMark, "-o", kRunnerMark};
    recipe_.tools = tool_folders(recipe_.compile);
    fs::create_directories(root_ / "clean");
  }
  BuiltRunner build() {
    Confinement confinement(Wall::kBubblewrap);
    confinement.add_tools(recipe_.tools);
    const Workshop workshop(confinement, root_ / "clean", {20, 1});
    return workshop.build(recipe_, source_, root_ / "work", 1);
  }
  bool has_bubblewrap() { return find_confinement(root_).wall() == Wall::kBubblewrap; }

  fs::path compiler_;
  Recipe recipe_;
  std::string source_ =
      "#include <fake.h>\nnamespace moe::mine { int get() { return answer(); } }\n";
};

TEST_F(WorkshopTest, ToolsOutsideOfTheSystem) {
  std::vector<fs::path> expected;
  for (const char* prefix : {"opt/gcc", "opt/gcc-13"}) {
    for (const char* part : {"bin", "include", "libexec"})
      expected.push_back(root_ / prefix / part);
  }
  EXPECT_EQ(tool_folders({compiler_, "-c", "x.cu"}), expected);
  EXPECT_EQ(tool_folders({"/usr/bin/g++", "-ccbin=" + compiler_.string(), "x.cu"}), expected);
  EXPECT_EQ(tool_folders({"/usr/bin/g++", "-ccbin", compiler_, "x.cu"}), expected);
  EXPECT_TRUE(tool_folders({"/usr/bin/g++", "-c", compiler_}).empty()) << "an input is no tool";
  EXPECT_TRUE(tool_folders({"/bin/sh"}).empty());
  write("home/g++", "x");
  EXPECT_TRUE(tool_folders({root_ / "home" / "g++"}).empty()) << "a folder of other things";
}

TEST_F(WorkshopTest, BuildsWithACompilerOutsideOfTheSystem) {
  if (!has_bubblewrap()) GTEST_SKIP() << "bubblewrap does not work here";
  const BuiltRunner built = build();
  EXPECT_EQ(built.mark, Mark::kPass) << built.sentence << built.text;
  EXPECT_EQ(shell(built.runner).exit_code, 42);
  source_ = "#define NAME <" + (root_ / "opt/gcc/secret").string() + ">\n#include NAME\n";
  EXPECT_EQ(build().mark, Mark::kBuild) << "what lies beside the compiler is not shown";
  recipe_.tools.clear();
  EXPECT_NE(build().mark, Mark::kPass) << "without its folders it does not start";
}

TEST_F(WorkshopTest, LinksWithoutTheListOfInputs) {
  if (!has_bubblewrap()) GTEST_SKIP() << "bubblewrap does not work here";
  const Words plain = recipe_.link;
  recipe_.link.push_back("-Wl,--dependency-file,CMakeFiles/runner.dir/link.d");
  EXPECT_EQ(build().mark, Mark::kBuild) << "a folder of the tree, which is not there";
  recipe_.link = without_list_of_inputs(recipe_.link);
  EXPECT_EQ(recipe_.link, plain);
  EXPECT_EQ(build().mark, Mark::kPass);
}

TEST_F(WorkshopTest, LibrariesOfTheCompilerAreFound) {
  const char* before = std::getenv("LD_LIBRARY_PATH");
  const std::string kept = before != nullptr ? before : "";
  const std::string lib = root_ / "opt/gcc/bin";
  setenv("LD_LIBRARY_PATH", (lib + ":/nowhere:" + lib + "64").c_str(), 1);
  for (const Wall wall : {Wall::kBubblewrap, Wall::kUser}) {
    Confinement confinement(wall);
    confinement.add_tools(recipe_.tools);
    std::string words = " ";
    for (const std::string& word : confinement.wrap({"true"}, {}, {}, 1)) words += word + " ";
    const std::string equals = wall == Wall::kUser ? "=" : " ";
    EXPECT_NE(words.find(" LD_LIBRARY_PATH" + equals + lib + " "), std::string::npos) << words;
  }
  if (before != nullptr) {
    setenv("LD_LIBRARY_PATH", kept.c_str(), 1);
  } else {
    unsetenv("LD_LIBRARY_PATH");
  }
}

}  // namespace
}  // namespace moe::grade
