#include "driver/trash.h"

#include <ctime>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

std::string typed_path(const Course& course, const std::filesystem::path& path) {
  std::error_code error;
  const bool here =
      std::filesystem::equivalent(std::filesystem::current_path(error), course.root, error);
  return shell_quoted(here ? path.lexically_relative(course.root).string() : path.string());
}

}  // namespace

std::filesystem::path keep_copy(const Course& course, const std::filesystem::path& file) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d-%H%M%S", &parts);
  const std::filesystem::path folder = course.root / ".drill" / "trash";
  const std::string stem = std::string(time) + "-" + file.stem().string();
  std::filesystem::path copy = folder / stem;
  copy += file.extension();
  for (int number = 2; std::filesystem::exists(copy); ++number) {
    copy = folder / stem;
    copy += "-" + std::to_string(number);
    copy += file.extension();
  }
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(file, copy);
  return copy;
}

std::string undo_command(const Course& course,
                         const std::filesystem::path& copy,
                         const std::filesystem::path& file) {
  return "cp " + typed_path(course, copy) + " " + typed_path(course, file);
}

}  // namespace moe::driver
