#include "driver/grade/recipe.h"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "driver/grade/rules.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

std::string output_of(const std::vector<std::string>& arguments, const fs::path& folder) {
  driver::Command command;
  command.arguments = arguments;
  command.folder = folder;
  const driver::Outcome outcome = driver::run_process(command);
  if (outcome.exit_code != 0) {
    throw std::runtime_error(arguments.front() + " failed: " + outcome.output);
  }
  return outcome.output;
}

void replace_all(std::string& text, const std::string& from, const std::string& by) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + by.size())) {
    text.replace(at, from.size(), by);
  }
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The word behind `option`; throws where there is none.
template <class Words>
auto& value_of(Words& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  if (found == words.end() || found + 1 == words.end()) {
    throw std::runtime_error("the build tree's command has no " + option);
  }
  return *(found + 1);
}

bool is_program(const std::string& word, const char* name) {
  return fs::path(word).filename() == name;
}

// A link line is ": && c++ ... && :".
std::vector<std::string> without_frame(std::vector<std::string> words) {
  const auto frame = [](const std::string& word) { return word == ":" || word == "&&"; };
  words.erase(std::remove_if(words.begin(), words.end(), frame), words.end());
  if (!words.empty() && is_program(words.front(), "ccache")) words.erase(words.begin());
  return words;
}

std::vector<std::string> commands_of(const fs::path& tree, const std::string& target) {
  std::vector<std::string> lines =
      driver::split_lines(output_of({"ninja", "-C", tree, "-t", "commands", target}, tree));
  if (lines.empty()) throw std::runtime_error("ninja knows no commands for " + target);
  return lines;
}

// The words of the line that compiles `source`.
std::vector<std::string> compiler_of(const std::string& source,
                                     const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    std::vector<std::string> words = without_frame(shell_words(line));
    const auto compiled = std::find(words.begin(), words.end(), "-c");
    if (compiled == words.end() || compiled + 1 == words.end()) continue;
    if (ends_with(*(compiled + 1), source)) return words;
  }
  throw std::runtime_error("ninja does not compile " + source);
}

// What an object wants of others, sorted.
std::vector<std::string> wanted_of(const fs::path& object, const fs::path& tree) {
  std::set<std::string> wanted;
  for (const Symbol& symbol : parse_symbols(output_of({"nm", "-g", object}, tree))) {
    if (symbol.type == 'U') wanted.insert(symbol.name);
  }
  return {wanted.begin(), wanted.end()};
}

// Defined and wanted symbols, as nm prints them (mangled).
void read_symbols(Recipe& recipe) {
  std::set<std::string> harness;
  std::set<std::string> contract;
  std::vector<std::string> command{"nm", "-g"};
  for (const fs::path& object : recipe.objects) command.push_back(object);
  for (const std::string& line : driver::split_lines(output_of(command, recipe.tree))) {
    const std::size_t type = line.find_first_not_of("0123456789abcdef ");
    if (type == std::string::npos || type + 2 >= line.size() || line[type + 1] != ' ') continue;
    const std::string name = line.substr(type + 2);
    const bool wanted_of_learner = name.find("3moe4mine") != std::string::npos;
    if (line[type] == 'U' && wanted_of_learner) contract.insert(name);
    if (std::string("TDBRUC").find(line[type]) != std::string::npos && !wanted_of_learner) {
      harness.insert(name);
    }
  }
  recipe.harness.assign(harness.begin(), harness.end());
  recipe.contract.assign(contract.begin(), contract.end());
}

bool is_of_system(const fs::path& path) {
  for (const char* folder : {"/usr/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/"}) {
    if (path.string().rfind(folder, 0) == 0) return true;
  }
  return false;
}

// "x86_64-pc-linux-gnu", where a compiler keeps its assembler.
bool is_target(const std::string& name) {
  return std::count(name.begin(), name.end(), '-') >= 2;
}

void add_tools_at(const fs::path& program, std::vector<fs::path>& folders) {
  static const std::set<std::string> kParts{"bin",   "include", "lib",  "lib32",
                                            "lib64", "libexec", "nvvm", "targets"};
  if (is_of_system(program) || program.parent_path().filename() != "bin") return;
  std::error_code ignored;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(program.parent_path().parent_path(), ignored)) {
    const std::string name = entry.path().filename();
    const bool wanted = kParts.count(name) != 0 || is_target(name);
    const bool known = std::find(folders.begin(), folders.end(), entry.path()) != folders.end();
    if (wanted && !known && entry.is_directory(ignored)) folders.push_back(entry.path());
  }
}

}  // namespace

std::vector<fs::path> tool_folders(const std::vector<std::string>& command) {
  std::vector<fs::path> folders;
  for (std::size_t i = 0; i < command.size(); ++i) {
    std::string word = command[i];
    for (const char* option : {"-ccbin=", "--compiler-bindir="}) {
      if (word.rfind(option, 0) == 0) word = word.substr(std::string(option).size());
    }
    const bool names_one = i == 0 || word != command[i] || command[i - 1] == "-ccbin" ||
                           command[i - 1] == "--compiler-bindir";
    std::error_code ignored;
    if (!names_one || !fs::is_regular_file(word, ignored)) continue;
    const fs::path program = fs::absolute(word).lexically_normal();
    add_tools_at(program, folders);
    add_tools_at(fs::canonical(program, ignored), folders);
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::vector<std::string> without_list_of_inputs(const std::vector<std::string>& command) {
  const std::string option = "--dependency-file";
  std::vector<std::string> kept;
  bool file_follows = false;  // -Xlinker --dependency-file -Xlinker FILE
  for (const std::string& word : command) {
    const bool names_it = word.find(option) != std::string::npos;
    const bool is_file = file_follows && word != "-Xlinker";
    if (!names_it && !is_file) {
      kept.push_back(word);
      continue;
    }
    file_follows = names_it && word == option;
    if (!kept.empty() && kept.back() == "-Xlinker") kept.pop_back();
  }
  return kept;
}

std::vector<std::string> shell_words(const std::string& command) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (quote == '\0' && blank) {
      if (in_word) words.push_back(word);
      word.clear();
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < command.size()) {
      word += command[++i];
    } else {
      word += c;
    }
  }
  if (in_word) words.push_back(word);
  return words;
}

std::vector<std::string> filled(std::vector<std::string> words,
                                const std::vector<std::pair<std::string, std::string>>& marks) {
  for (std::string& word : words) {
    for (const auto& [mark, by] : marks) replace_all(word, mark, by);
  }
  return words;
}

Recipe find_recipe(const driver::Course& course, const std::string& tree, const Stage& stage) {
  Recipe recipe;
  recipe.stage = &stage;
  recipe.tree = course.tree(tree);
  const std::string stem = stage.stem;
  const std::vector<std::string> lines = commands_of(recipe.tree, stem + ".skeleton");
  recipe.compile = compiler_of("skeletons/" + stem + ".cu", lines);
  recipe.link = without_list_of_inputs(without_frame(shell_words(lines.back())));
  recipe.tools = tool_folders(recipe.compile);
  const std::vector<fs::path> linkers = tool_folders(recipe.link);
  recipe.tools.insert(recipe.tools.end(), linkers.begin(), linkers.end());

  // A tree may hold its own files to more than a student's: a warning costs nobody points.
  auto& words_of_compile = recipe.compile;
  words_of_compile.erase(std::remove(words_of_compile.begin(), words_of_compile.end(), "-Werror"),
                         words_of_compile.end());
  const std::string object = value_of(recipe.compile, "-o");
  value_of(recipe.compile, "-o") = kObjectMark;
  value_of(recipe.compile, "-c") = kSourceMark;
  value_of(recipe.compile, "-MF") = kDependsMark;
  value_of(recipe.compile, "-MT") = kObjectMark;
  for (std::string& word : recipe.compile) {
    // Debug lines and messages shall say mine/STEM.cu: that prefix is the submission's folder.
    if (word.rfind("-fmacro-prefix-map=", 0) == 0) continue;
    replace_all(word, course.root.string(), kCourseMark);
  }
  value_of(recipe.link, "-o") = kRunnerMark;
  for (std::string& word : recipe.link) {
    if (word == object) {
      word = kObjectMark;
    } else if (word[0] != '-' && fs::is_regular_file(recipe.tree / word) &&
               (ends_with(word, ".o") || ends_with(word, ".a"))) {
      recipe.objects.push_back(recipe.tree / word);
    }
  }
  read_symbols(recipe);
  const std::vector<std::string> ours =
      compiler_of("solutions/" + stem + ".cu", commands_of(recipe.tree, stem + ".solution"));
  const fs::path object_of_ours = recipe.tree / value_of(ours, "-o");
  // The tree that counts for cost cards has the blank files only; on the emulator nothing is given.
  if (fs::exists(object_of_ours)) recipe.given = wanted_of(object_of_ours, recipe.tree);
  return recipe;
}

}  // namespace moe::grade
