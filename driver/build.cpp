#include "driver/build.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>

#include "driver/process.h"
#include "driver/state.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

// Two commands must not build in one tree at the same time: ninja does not guard its files.
class TreeLock {
 public:
  explicit TreeLock(const std::filesystem::path& tree) {
    std::error_code ignored;
    std::filesystem::create_directories(tree, ignored);
    descriptor_ = open((tree / ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      say("waiting for another drill command that builds in " + tree.string() + " ...\n");
      flock(descriptor_, LOCK_EX);
    }
  }
  ~TreeLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  TreeLock(const TreeLock&) = delete;
  TreeLock& operator=(const TreeLock&) = delete;

 private:
  int descriptor_ = -1;
};

// An entry of CMakeCache.txt, or "".
std::string cache_entry(const std::filesystem::path& tree, const std::string& name) {
  std::ifstream cache(tree / "CMakeCache.txt");
  for (std::string line; std::getline(cache, line);) {
    if (line.rfind(name + ":", 0) == 0) return line.substr(line.find('=') + 1);
  }
  return {};
}

// What cmake is to be told, empty when the tree is configured as wanted.
std::vector<std::string> configure_arguments(const Course& course,
                                             const std::string& tree,
                                             const Backend& backend) {
  const std::filesystem::path folder = course.tree(tree);
  const bool configured = std::filesystem::exists(folder / "build.ninja");
  const std::string home = cache_entry(folder, "CMAKE_HOME_DIRECTORY");
  const bool moved = configured && home != course.root.string();
  std::vector<std::string> arguments{"cmake", "--preset", tree};
  if (moved) arguments.emplace_back("--fresh");
  bool differs = !configured || moved;
  if (backend.cuda && tree == backend.name()) {
    differs = differs || cache_entry(folder, "CMAKE_CUDA_ARCHITECTURES") != backend.architecture ||
              cache_entry(folder, "CMAKE_CUDA_COMPILER") != backend.nvcc.string();
    arguments.push_back("-DCMAKE_CUDA_ARCHITECTURES=" + backend.architecture);
    arguments.push_back("-DCMAKE_CUDA_COMPILER=" + backend.nvcc.string());
  }
  return differs ? arguments : std::vector<std::string>();
}

// Did the build tool itself fail, or CMake, rather than a compiler? Then a part of the tree is
// gone.
bool is_damaged(const std::string& output) {
  return output.find("ninja: error: ") != std::string::npos ||
         output.find("CMake Error") != std::string::npos ||
         output.find("could not load cache") != std::string::npos ||
         output.find("ninja: fatal: ") != std::string::npos;
}

// Runs cmake and keeps its output in the log; ninja's "[3/17] ..." becomes the status line.
Build run_cmake(const Course& course,
                const std::vector<std::string>& arguments,
                const std::filesystem::path& log) {
  StatusLine status;
  Watcher watcher;
  watcher.on_output = [&status](std::string_view text) {
    const std::size_t start = text.rfind("\n[", text.size() - 1);
    const std::size_t begin = start == std::string_view::npos ? 0 : start + 1;
    const std::string_view line = text.substr(begin, text.find('\n', begin) - begin);
    if (!line.empty() && line.front() == '[') status.show("build  " + std::string(line));
  };
  Command command;
  command.arguments = arguments;
  command.folder = course.root;
  const Outcome outcome = run_process(command, watcher);
  std::ofstream(log, std::ios::binary) << outcome.output;
  return {outcome.exit_code == 0, outcome.seconds, compiler_text_of(outcome.output), log};
}

bool starts_with(const std::string& text, std::string_view prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

// "[3/17] Building ..."
bool is_progress(const std::string& line) {
  const std::size_t end = line.find("] ");
  return starts_with(line, "[") && end != std::string::npos &&
         line.find_first_not_of("0123456789/", 1) == end;
}

}  // namespace

std::string configured_architectures(const Course& course) {
  return cache_entry(course.tree("cuda"), "CMAKE_CUDA_ARCHITECTURES");
}

Build configure_tree(const Course& course, const std::string& tree, const Backend& backend) {
  const std::filesystem::path folder = course.tree(tree);
  const TreeLock lock(folder);
  const std::vector<std::string> arguments = configure_arguments(course, tree, backend);
  if (arguments.empty()) return {true, 0, "", {}};
  return run_cmake(course, arguments, folder / "configure.log");
}

Build build_targets(const Course& course,
                    const std::string& tree,
                    const std::vector<std::string>& targets,
                    const std::string& log_name) {
  const std::filesystem::path folder = course.tree(tree);
  const TreeLock lock(folder);
  std::vector<std::string> arguments{"cmake", "--build", folder};
  if (!targets.empty()) arguments.emplace_back("--target");
  arguments.insert(arguments.end(), targets.begin(), targets.end());
  Build build = run_cmake(course, arguments, folder / log_name);
  if (build.done || !is_damaged(read_file(build.log))) return build;
  // Its settings are kept: they are the preset's, and for CUDA what configure_tree() has said.
  std::vector<std::string> configure{"cmake", "--fresh", "--preset", tree};
  for (const char* name : {"CMAKE_CUDA_ARCHITECTURES", "CMAKE_CUDA_COMPILER"}) {
    const std::string value = cache_entry(folder, name);
    if (!value.empty()) configure.push_back("-D" + std::string(name) + "=" + value);
  }
  const Build configured = run_cmake(course, configure, folder / "configure.log");
  if (!configured.done) return build;
  Build again = run_cmake(course, arguments, folder / log_name);
  again.seconds += build.seconds + configured.seconds;
  return again;
}

Build build_runner(const Course& course,
                   const std::string& tree,
                   const Stage& stage,
                   const std::string& side) {
  const std::filesystem::path source = course.root / source_name(stage, side);
  const std::string target = std::string(stage.stem) + "." + side;
  const std::filesystem::path stamp = course.tree(tree) / (target + ".hash");
  const std::string hash = std::to_string(hash_of(read_file(source)));
  const std::filesystem::path log = course.tree(tree) / (target + ".log");
  std::error_code ignored;
  const bool changed = read_file(stamp) != hash;
  if (changed && std::filesystem::exists(log) && std::filesystem::exists(source) &&
      std::filesystem::last_write_time(source) < std::filesystem::last_write_time(log)) {
    std::filesystem::last_write_time(source, std::filesystem::file_time_type::clock::now(),
                                     ignored);
  }
  Build build = build_targets(course, tree, {target}, log.filename());
  if (build.done) {
    std::ofstream(stamp, std::ios::binary) << hash;
  } else {
    std::filesystem::remove(stamp, ignored);
  }
  return build;
}

std::filesystem::path runner_path(const Course& course,
                                  std::string_view tree,
                                  const Stage& stage,
                                  std::string_view side) {
  return course.tree(tree) / "runners" / (std::string(stage.stem) + "." + std::string(side));
}

std::filesystem::path test_path(const Course& course, const Stage& stage) {
  return course.tree("host") / "tests" / (std::string(stage.stem) + "_test");
}

std::string compiler_text_of(std::string_view ninja_output) {
  std::string text;
  bool skip_command = false;
  for (const std::string& line : split_lines(ninja_output)) {
    const bool is_command = skip_command;
    skip_command = starts_with(line, "FAILED: ");
    const bool frame = is_command || skip_command || is_progress(line) ||
                       starts_with(line, "ninja: ") || starts_with(line, "-- ");
    if (!frame) text += line + "\n";
  }
  return text;
}

std::size_t count_diagnostics(std::string_view text, std::string_view kind) {
  const std::string marked = std::string(kind) + ": ";
  std::size_t count = 0;
  for (const std::string& line : split_lines(text)) {
    // "x.cu:3:5: error: ...", "x.cu(3): error: ...", "x.s: Error: ..."; the source excerpts that
    // compilers print below start with blanks.
    if (starts_with(line, " ")) continue;
    const std::size_t found = line.find(marked);
    const bool assembler = kind == "error" && line.find(": Error: ") != std::string::npos;
    const bool linker = kind == "error" && line.find("undefined reference to") != std::string::npos;
    const bool collect = starts_with(line, "collect2: ") || starts_with(line, "clang: ");
    if ((found != std::string::npos || assembler || linker) && !collect) ++count;
  }
  return count;
}

}  // namespace moe::driver
