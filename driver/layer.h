// Whose stages a layer is made of.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "driver/course.h"
#include "driver/verbs.h"

namespace moe::driver {

// "mine" or "solution" by stage id: what --with names, else ours with --solution, else yours where
// it has passed. `problem` says what is wrong with --with.
std::map<std::string, std::string> layer_sides(const LayerOptions& options,
                                               const std::vector<Stage>& stages,
                                               const std::function<bool(const Stage&)>& passed,
                                               std::string& problem);

}  // namespace moe::driver
