#include "driver/grade/workshop.h"

#include <signal.h>

#include <chrono>
#include <fstream>
#include <stdexcept>

#include "driver/build.h"
#include "driver/grade/rules.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kKeptText = 64 * 1024;
constexpr std::size_t kShownText = 4 * 1024;
constexpr std::size_t kShownBreaks = 5;
constexpr std::uint64_t kObjectBytes = 256u << 20;

std::string joined(const std::vector<RuleBreak>& broken) {
  std::string text;
  for (std::size_t i = 0; i < broken.size() && i < kShownBreaks; ++i) {
    text += broken[i].sentence + "\n";
  }
  return text;
}

std::string shortened(std::string text) {
  if (text.size() <= kShownText) return text;
  text.resize(kShownText);
  return text + "\n... (shortened)\n";
}

// "mine/m2_grouped_gemm.cu:91:7: error: ..." of a compiler's text, or "".
std::string first_error(const std::string& text) {
  for (const std::string& line : driver::split_lines(text)) {
    const bool error = line.find("error: ") != std::string::npos ||
                       line.find("undefined reference") != std::string::npos ||
                       line.find("multiple definition") != std::string::npos;
    if (error) return line.substr(0, 300);
  }
  return {};
}

void replace_all(std::string& text, const std::string& from, const std::string& by) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), by);
  }
}

// The tools could not even be started: nothing that a submission could be blamed for.
class WallError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace

struct Workshop::Step {
  const Recipe& recipe;
  fs::path folder;
  fs::path source;
  fs::path out;  // what the tools may write
  int worker;
  BuiltRunner& built;
  std::vector<std::pair<std::string, std::string>> marks = {};

  std::string name() const { return "mine/" + source.filename().string(); }
  bool fail(Mark mark, const std::string& sentence, const std::string& text = "") {
    built.mark = mark;
    built.sentence = sentence;
    built.text = shortened(text);
    return false;
  }
};

driver::Outcome Workshop::run(const Step& step,
                              const std::vector<std::string>& command,
                              const std::vector<fs::path>& readable) const {
  Room room;
  room.readable = readable;
  room.writable = {step.out};
  room.folder = step.out;
  Limits limits;
  limits.address_bytes = static_cast<std::uint64_t>(limits_.memory_gib * (1u << 30));
  limits.file_bytes = kObjectBytes;
  limits.cpu_seconds = static_cast<int>(limits_.seconds) + 1;
  limits.processes = 32;
  driver::Command wrapped;
  wrapped.arguments = confinement_.wrap(command, room, limits, step.worker);
  wrapped.limit_s = limits_.seconds;
  wrapped.keep_bytes = kKeptText;
  driver::Outcome outcome = driver::run_process(wrapped);
  if (outcome.exit_code == 127 || is_of_wall(outcome.output)) {
    throw WallError("the wall failed: " + outcome.output.substr(0, 200));
  }
  replace_all(outcome.output, step.folder.string() + "/", "");
  replace_all(outcome.output, clean_tree_.string() + "/", "");
  return outcome;
}

bool Workshop::compile(Step& step) const {
  const std::vector<RuleBreak> broken = check_source(driver::read_file(step.source), step.name());
  if (!broken.empty()) return step.fail(Mark::kRule, broken.front().sentence, joined(broken));
  std::vector<std::string> command = filled(step.recipe.compile, step.marks);
  for (std::string& word : command) {
    if (word.rfind("-fmacro-prefix-map=", 0) == 0) {
      word = "-fmacro-prefix-map=" + step.folder.string() + "/=";
    }
  }
  const driver::Outcome outcome = run(step, command, {clean_tree_, step.source});
  const bool killed = outcome.signal == SIGKILL || outcome.exit_code == 128 + SIGXCPU ||
                      outcome.output.find("CPU time limit exceeded") != std::string::npos;
  if (outcome.timed_out || killed) {
    return step.fail(Mark::kBuild,
                     "compiling takes more than " + driver::seconds_text(limits_.seconds));
  }
  if (outcome.exit_code == 0) return true;
  const std::string& text = outcome.output;
  if (text.find("out of memory") != std::string::npos ||
      text.find("virtual memory exhausted") != std::string::npos ||
      text.find("cannot allocate") != std::string::npos) {
    return step.fail(Mark::kBuild, "compiling needs more than " +
                                       std::to_string(static_cast<int>(limits_.memory_gib)) +
                                       " GiB of memory");
  }
  const std::string error = first_error(text);
  return step.fail(Mark::kBuild, error.empty() ? "it does not compile" : error, text);
}

bool Workshop::check(Step& step) const {
  const std::string depends = driver::read_file(step.out / "code.d");
  std::vector<std::string> allowed{"/usr/", clean_tree_.string() + "/", step.folder.string() + "/"};
  for (const fs::path& folder : confinement_.tools()) allowed.push_back(folder.string() + "/");
  const std::vector<RuleBreak> outside = check_depends(depends, allowed);
  if (!outside.empty()) return step.fail(Mark::kRule, outside.front().sentence);
  const std::string object = step.out / "code.o";
  const driver::Outcome listed = run(step, {"nm", "-g", object}, {});
  if (listed.exit_code != 0) return step.fail(Mark::kBuild, "its symbols cannot be read");
  const SymbolCheck symbols = check_symbols(parse_symbols(listed.output), step.recipe.harness,
                                            step.recipe.given, step.name());
  if (!symbols.broken.empty()) {
    return step.fail(Mark::kRule, symbols.broken.front().sentence, joined(symbols.broken));
  }
  if (symbols.to_hide.empty()) return true;
  const fs::path list = step.folder / "hide.txt";
  std::string names;
  for (const std::string& name : symbols.to_hide) names += name + "\n";
  std::ofstream(list, std::ios::binary) << names;
  const driver::Outcome hidden =
      run(step, {"objcopy", "--localize-symbols=" + list.string(), object}, {list});
  return hidden.exit_code == 0 ||
         step.fail(Mark::kBuild, "its symbols cannot be hidden", hidden.output);
}

bool Workshop::link(Step& step) const {
  std::vector<std::string> command = filled(step.recipe.link, step.marks);
  // The link command names files of the tree by relative paths.
  for (std::string& word : command) {
    const fs::path path = step.recipe.tree / word;
    if (!word.empty() && word[0] != '-' && word[0] != '/' && fs::exists(path)) word = path;
  }
  const driver::Outcome outcome = run(step, command, step.recipe.objects);
  if (outcome.exit_code == 0) return true;
  const std::string error = first_error(outcome.output);
  return step.fail(Mark::kBuild, error.empty() ? "it cannot be linked" : error, outcome.output);
}

BuiltRunner Workshop::build(const Recipe& recipe,
                            const std::string& source,
                            const fs::path& folder,
                            int worker) const {
  const auto start = std::chrono::steady_clock::now();
  BuiltRunner built;
  const std::string stem = recipe.stage->stem;
  Step step{recipe, folder, folder / "mine" / (stem + ".cu"), folder / "build", worker, built};
  fs::create_directories(step.source.parent_path());
  fs::create_directories(step.out);
  std::ofstream(step.source, std::ios::binary) << source;
  confinement_.hand_over(step.out, worker);
  const fs::path runner = step.out / "runner";
  step.marks = {{kCourseMark, clean_tree_},
                {kSourceMark, step.source},
                {kObjectMark, step.out / "code.o"},
                {kDependsMark, step.out / "code.d"},
                {kRunnerMark, runner}};
  try {
    if (compile(step) && check(step) && link(step)) {
      built.mark = Mark::kPass;
      built.runner = runner;
    }
  } catch (const WallError& error) {
    step.fail(Mark::kFault, error.what());
  }
  built.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return built;
}

void make_clean_tree(const driver::Course& course, const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder / "emulator");
  fs::copy(course.root / "drills", folder / "drills", fs::copy_options::recursive);
  fs::copy(course.root / "emulator" / "include", folder / "emulator" / "include",
           fs::copy_options::recursive);
}

}  // namespace moe::grade
