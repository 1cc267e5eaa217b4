#include "driver/course.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "driver/state.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

}  // namespace

std::filesystem::path Course::tree(std::string_view name) const {
  return root / "build" / name;
}

std::filesystem::path Course::mine(const Stage& stage) const {
  return root / source_name(stage, "mine");
}

std::filesystem::path Course::solution(const Stage& stage) const {
  return root / source_name(stage, "solution");
}

Course find_course() {
  if (const char* root = std::getenv("DRILL_ROOT")) return Course{root};
  // build/host/drill_command: three levels up.
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return Course{self.parent_path().parent_path().parent_path()};
}

std::string source_name(const Stage& stage, std::string_view side) {
  const std::string folder = side == "mine" ? "mine/" : "solutions/";
  return folder + stage.stem + ".cu";
}

const Stage* find_stage(std::string_view name) {
  std::string wanted = lower_case(name);
  if (wanted.size() > 3 && wanted.substr(wanted.size() - 3) == ".cu") {
    wanted = std::filesystem::path(wanted).stem().string();
  }
  for (const Stage& stage : kStages) {
    if (wanted == stage.id || wanted == stage.stem) return &stage;
  }
  return nullptr;
}

bool has_solution(const Course& course, const Stage& stage) {
  return std::filesystem::exists(course.solution(stage));
}

bool has_reference(const Course& course, const Stage& stage, const std::string& backend) {
  utsname system{};
  uname(&system);
  return has_solution(course, stage) ||
         std::filesystem::exists(course.root / "solutions" / system.machine / backend /
                                 (std::string(stage.stem) + ".o"));
}

namespace {

std::filesystem::path blank_file(const Course& course, const Stage& stage) {
  return course.root / "skeletons" / (std::string(stage.stem) + ".cu");
}

}  // namespace

std::string skeleton_of(const Course& course, const Stage& stage) {
  if (!has_solution(course, stage)) return read_file(blank_file(course, stage));
  return make_skeleton(read_file(course.solution(stage)), source_name(stage, "solution"), stage.id);
}

std::uint64_t work_hash(const Course& course, const Stage& stage, std::string_view mine) {
  std::string text(mine);
  const std::string stem = stage.stem;
  for (const std::string& file : {"drills/" + stem + ".h", "tests/" + stem + "_test.cpp"}) {
    text += '\0' + read_file(course.root / file);
  }
  return hash_of(text);
}

std::vector<std::string> restore_missing_files(const Course& course) {
  std::vector<std::string> names;
  for (const Stage& stage : kStages) {
    if (std::filesystem::exists(course.mine(stage))) continue;
    const std::string skeleton = skeleton_of(course, stage);
    if (skeleton.empty()) continue;  // nothing to make it from
    std::error_code error;
    std::filesystem::create_directories(course.mine(stage).parent_path(), error);
    if (!write_file(course.mine(stage), skeleton)) continue;
    names.push_back(source_name(stage, "mine"));
  }
  return names;
}

std::vector<Region> regions_of(const Course& course, const Stage& stage) {
  const bool solved = has_solution(course, stage);
  const std::filesystem::path file = solved ? course.solution(stage) : blank_file(course, stage);
  return find_regions(read_file(file), file.lexically_relative(course.root).string(), stage.id);
}

std::vector<Blank> blanks_of(const Course& course, const Stage& stage) {
  const std::string mine = read_file(course.mine(stage));
  std::vector<Blank> blanks = find_blanks(regions_of(course, stage), mine);
  if (mine.empty()) {
    for (Blank& blank : blanks) blank.written = false;
  }
  return blanks;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows of the classic table: two back (for swaps), one back, and the current one.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::string nearest(std::string_view word,
                    const std::vector<std::string>& candidates,
                    std::size_t limit) {
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(lower_case(word), lower_case(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace moe::driver
