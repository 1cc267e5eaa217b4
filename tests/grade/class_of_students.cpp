// Makes a class: students with right, wrong, cheating, hanging, crashing and broken files for m1
// and m2, as folders, zip files and git checkouts, and expected.csv with the verdicts that they
// must get.
//   class_of_students COURSE FOLDER COUNT
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <vector>

#include "cheat.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string text;  // "" for none
  std::string verdict;
};

// The file of a cheat, with the verdict of the quick set. Those that only the full set catches are
// left out of a class.
std::map<std::string, std::vector<File>> files_of(const fs::path& course) {
  std::map<std::string, std::vector<File>> files;
  for (const Cheat& cheat : read_cheats(course / "tests" / "cheats")) {
    const bool slow = cheat.expect == "HANG" && cheat.says.empty();
    const bool full_only =
        cheat.base == "solution" && cheat.expect == "WRONG" && cheat.quick.empty();
    const bool expensive = cheat.name.rfind("50_template", 0) == 0 ||
                           cheat.name.rfind("50_huge", 0) == 0 || cheat.expect == "MEMORY" ||
                           cheat.name.rfind("15_includes_a_device", 0) == 0;
    if (full_only || expensive || (slow && cheat.name.rfind("42", 0) == 0)) continue;
    const std::string solution = driver::read_file(course / "solutions" / (cheat.stem + ".cu"));
    files[cheat.stem].push_back({source_of(cheat, solution), cheat.expect});
  }
  for (const char* stem : {"m1_align", "m2_grouped_gemm"}) {
    files[stem].push_back({"", "MISSING"});
    files[stem].push_back({"this is no C++\n", "BUILD"});
  }
  return files;
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

void run(const std::vector<std::string>& words, const fs::path& folder) {
  driver::Command command;
  command.arguments = words;
  command.folder = folder;
  const driver::Outcome outcome = driver::run_process(command);
  if (outcome.exit_code != 0) throw std::runtime_error(words.front() + ": " + outcome.output);
}

// Turns a folder into what students hand in: every third a zip file, every seventh a checkout.
void pack(const fs::path& student, int index) {
  if (index % 3 == 0) {
    run({"zip", "-qr", student.string() + ".zip", student.filename()}, student.parent_path());
    fs::remove_all(student);
  } else if (index % 7 == 0) {
    run({"git", "init", "-q"}, student);
    run({"git", "add", "-A"}, student);
    run({"git", "-c", "user.name=student", "-c", "user.email=student@example.org", "commit", "-qm",
         "my stages", "--allow-empty"},
        student);
  }
}

void make_class(const fs::path& course, const fs::path& folder, int count) {
  const std::map<std::string, std::vector<File>> files = files_of(course);
  const auto& m1 = files.at("m1_align");
  const auto& m2 = files.at("m2_grouped_gemm");
  // Steps of 7 and 5 reach every file where they share no factor with how many there are.
  const std::size_t step1 = m1.size() % 7 == 0 ? 11 : 7;
  const std::size_t step2 = m2.size() % 5 == 0 ? 7 : 5;
  fs::remove_all(folder);
  std::string expected = "student,m1,m2\n";
  for (int i = 0; i < count; ++i) {
    char name[32];
    std::snprintf(name, sizeof name, "student%03d", i + 1);
    const fs::path student = folder / "hand-ins" / name;
    // The last entries of each list are the right, blank and broken ones: spread all evenly.
    const File& first = m1[static_cast<std::size_t>(i) * step1 % m1.size()];
    const File& second = m2[static_cast<std::size_t>(i) * step2 % m2.size()];
    write(student / "mine" / "readme.txt", "my files\n");
    if (!first.text.empty()) write(student / "mine" / "m1_align.cu", first.text);
    if (!second.text.empty()) write(student / "mine" / "m2_grouped_gemm.cu", second.text);
    expected += std::string(name) + "," + first.verdict + "," + second.verdict + "\n";
    pack(student, i);
  }
  write(folder / "expected.csv", expected);
}

}  // namespace
}  // namespace moe::grade

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: class_of_students COURSE FOLDER COUNT\n");
    return 2;
  }
  try {
    // zip and git run in other folders.
    moe::grade::make_class(argv[1], std::filesystem::absolute(argv[2]), std::atoi(argv[3]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "class_of_students: %s\n", error.what());
    return 1;
  }
  return 0;
}
