// Copies of files that the command is about to replace, in .drill/trash.
#pragma once

#include <filesystem>
#include <string>

#include "driver/course.h"

namespace moe::driver {

// Copies the file to .drill/trash/TIME-NAME; returns the copy. Throws where that fails.
std::filesystem::path keep_copy(const Course& course, const std::filesystem::path& file);

// "cp COPY FILE", as short as it can be typed from where the user is.
std::string undo_command(const Course& course,
                         const std::filesystem::path& copy,
                         const std::filesystem::path& file);

}  // namespace moe::driver
