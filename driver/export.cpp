// `drill export --without-solutions DIR`: a copy for a class. The references come along as machine
// code only, since later stages call earlier ones and times are compared with the reference.
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "driver/build.h"
#include "driver/ground.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

namespace fs = std::filesystem;

constexpr int kFault = static_cast<int>(Verdict::kFault);
constexpr const char* kReadme =
    "The references of this copy of the course are here as machine code only, one folder for each\n"
    "kind of processor they were made for. Stages that call earlier ones are linked with them, "
    "and\n"
    "`drill bench` compares with them. The blank files are in skeletons/.\n";

// What would show how the blanks are filled, or is of use with solutions only.
bool is_left_out(const fs::path& file) {
  static constexpr std::array<const char*, 11> kFolders{
      "solutions",   "mine",       "tests/wrong",  "tests/alternative",
      "tests/check", "tests/cost", "tests/driver", ".ci",
      "build",       ".drill",     ".git"};
  const std::string name = file.generic_string();
  return std::any_of(kFolders.begin(), kFolders.end(), [&](const std::string& folder) {
    return name == folder || name.rfind(folder + "/", 0) == 0;
  });
}

// Tracked files where this is a git checkout, else all.
std::set<fs::path> course_files(const Course& course) {
  Command command;
  command.arguments = {"git", "ls-files", "-z"};
  command.folder = course.root;
  std::set<fs::path> files;
  const Outcome listed = run_process(command);
  if (listed.exit_code == 0 && fs::exists(course.root / ".git")) {
    for (std::size_t begin = 0; begin < listed.output.size();) {
      const std::size_t end = listed.output.find('\0', begin);
      files.insert(listed.output.substr(begin, end - begin));
      begin = end == std::string::npos ? listed.output.size() : end + 1;
    }
  } else {
    for (fs::recursive_directory_iterator entry(course.root), end; entry != end; ++entry) {
      const fs::path file = entry->path().lexically_relative(course.root);
      if (is_left_out(file)) {
        if (entry->is_directory()) entry.disable_recursion_pending();
      } else if (entry->is_regular_file()) {
        files.insert(file);
      }
    }
  }
  return files;
}

class Export {
 public:
  Export(const Course& course, fs::path folder, bool cpu)
      : course_(course), folder_(std::move(folder)), cpu_(cpu) {}

  int run();

 private:
  bool copy_files();
  bool write_skeletons();
  bool add_objects(const std::string& backend, const fs::path& tree);
  bool build_cpu();
  bool build_cuda(const fs::path& nvcc);
  int fail(const std::string& why) const {
    say(wrapped("drill: ", why + "."));
    return kFault;
  }

  const Course& course_;
  fs::path folder_;
  bool cpu_;  // the emulator only
};

bool Export::copy_files() {
  std::error_code error;
  for (const fs::path& file : course_files(course_)) {
    if (is_left_out(file) || !fs::is_regular_file(course_.root / file)) continue;
    fs::create_directories((folder_ / file).parent_path(), error);
    if (!fs::copy_file(course_.root / file, folder_ / file, error)) return false;
  }
  return true;
}

bool Export::write_skeletons() {
  std::error_code error;
  for (const char* name : {"mine", "skeletons", "solutions"}) {
    fs::create_directories(folder_ / name, error);
  }
  for (const Stage& stage : kStages) {
    const std::string skeleton = skeleton_of(course_, stage);
    const std::string file = std::string(stage.stem) + ".cu";
    if (!write_file(folder_ / "mine" / file, skeleton)) return false;
    if (!write_file(folder_ / "skeletons" / file, skeleton)) return false;
  }
  return write_file(folder_ / "solutions" / "README.md", kReadme);
}

// Takes the object files of the solutions out of a built tree, without debug information.
bool Export::add_objects(const std::string& backend, const fs::path& tree) {
  utsname system{};
  uname(&system);
  const fs::path target = folder_ / "solutions" / system.machine / backend;
  std::error_code error;
  fs::create_directories(target, error);
  for (const Stage& stage : kStages) {
    const std::string stem = stage.stem;
    const fs::path object = tree / "tests/runner/CMakeFiles" / (stem + ".solution.code.dir") /
                            "__/__/solutions" / (stem + ".cu.o");
    Command strip;
    strip.arguments = {"objcopy", "--strip-debug", object, target / (stem + ".o")};
    const Outcome outcome = run_process(strip);
    if (outcome.exit_code != 0) {
      say(outcome.output);
      return false;
    }
  }
  return true;
}

std::vector<std::string> object_targets() {
  std::vector<std::string> targets;
  for (const Stage& stage : kStages) targets.push_back(std::string(stage.stem) + ".solution.code");
  return targets;
}

bool Export::build_cpu() {
  say("compiling the references for the emulator ...\n");
  Build build = configure_tree(course_, "cpu", Backend());
  if (build.done) build = build_targets(course_, "cpu", object_targets(), "export.log");
  if (!build.done) say(build.compiler_text);
  return build.done && add_objects("cpu", course_.tree("cpu"));
}

// In a tree of its own: for every GPU that the drills can run on, not for the one that is here.
bool Export::build_cuda(const fs::path& nvcc) {
  say("compiling the references for GPUs (minutes) ...\n");
  const fs::path tree = course_.tree("export-cuda");
  const std::string root = course_.root.string();
  Command configure;
  configure.arguments = {"cmake",
                         "--preset",
                         "cuda",
                         "-B",
                         tree,
                         "-DCMAKE_CUDA_ARCHITECTURES=80;86;89;90a",
                         "-DCMAKE_CUDA_COMPILER=" + nvcc.string()};
  configure.folder = root;
  const Outcome configured = run_process(configure);
  if (configured.exit_code != 0) {
    say(configured.output);
    return false;
  }
  const Build build = build_targets(course_, "export-cuda", object_targets(), "export.log");
  if (!build.done) say(build.compiler_text);
  return build.done && add_objects("cuda", tree);
}

int Export::run() {
  std::error_code error;
  if (fs::exists(folder_) && !fs::is_empty(folder_, error)) {
    return fail(shell_quoted(folder_.string()) + " exists and is not empty; name a new folder");
  }
  for (const Stage& stage : kStages) {
    if (!has_solution(course_, stage))
      return fail("this copy of the course has no solutions itself");
  }
  if (const std::string trouble = ground_trouble(course_); !trouble.empty()) return fail(trouble);
  fs::create_directories(folder_, error);
  if (error || !copy_files() || !write_skeletons()) {
    return fail(shell_quoted(folder_.string()) + " cannot be written");
  }
  if (!build_cpu()) return fail("the references could not be compiled for the emulator");
  const fs::path nvcc = cpu_ ? fs::path() : find_nvcc();
  if (nvcc.empty()) {
    say(wrapped("note   ",
                "without references for GPUs (--cpu, or no nvcc): in the copy, m3 and later stages "
                "have no GPU side (their "
                "layers call earlier stages), and times have no reference"));
  } else if (!build_cuda(nvcc)) {
    return fail("the references could not be compiled for GPUs");
  }
  utsname system{};
  uname(&system);
  say("done   " + shell_quoted(folder_.string()) + "\n");
  say(wrapped("       ", "A copy without solutions, for " + std::string(system.machine) +
                             " machines: hand it out as it is. In it: ./drill"));
  return 0;
}

}  // namespace

int export_course(const Course& course, const ExportOptions& options) {
  if (!options.without_solutions) {
    say(wrapped("drill: ",
                "a copy with solutions is a clone: git clone. For a class: drill export "
                "--without-solutions " +
                    shell_quoted(options.folder)));
    return static_cast<int>(Verdict::kUsage);
  }
  return Export(course, fs::absolute(options.folder), options.cpu).run();
}

}  // namespace moe::driver
