// What the tests of the grader share.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "driver/grade/result.h"
#include "driver/process.h"

namespace moe::grade {

// A folder for each test, gone afterwards.
class Folder : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("grade_test." + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  driver::Outcome shell(const std::string& script) const {
    driver::Command command;
    command.arguments = {"sh", "-c", script};
    command.folder = root_;
    command.limit_s = 60;
    return driver::run_process(command);
  }

  std::filesystem::path root_;
};

inline CaseResult one_case(const std::string& name, driver::CaseState state) {
  CaseResult one;
  one.name = name;
  one.state = state;
  return one;
}

}  // namespace moe::grade
