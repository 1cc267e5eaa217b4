// What the tests of the emulator share: a clean device before each test, and device arrays.
#pragma once

#include <cuda_runtime.h>
#include <drills/launch.h>
#include <emulator/control.h>

#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// Options as the environment sets them, no fault, no regions left to do.
class EmulatorTest : public testing::Test {
 protected:
  EmulatorTest() : saved_(emulator::options()) { reset(); }
  ~EmulatorTest() override {
    emulator::options() = saved_;
    reset();
  }

  static std::string fault() { return emulator::fault(); }
  static std::string fault_kind() { return fault().substr(0, fault().find(':')); }

 private:
  static void reset() {
    emulator::clear_fault();
    emulator::clear_todo();
  }

  emulator::Options saved_;
};

// Device memory with the contents of a vector.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  explicit DeviceArray(std::size_t count) : DeviceArray(std::vector<T>(count)) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() {
    emulator::clear_fault();  // a test that expects a fault still frees
    EXPECT_EQ(cudaFree(data_), cudaSuccess);
  }

  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }

  T* data_ = nullptr;
  std::size_t count_;
};

// "file.cu:12", as reports end a place.
#define EMULATOR_TEST_LINE(offset) (file_name(__FILE__) + ":" + std::to_string(__LINE__ + (offset)))

inline std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// Does the text hold all of the parts?
inline testing::AssertionResult holds(const std::string& text,
                                      const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "no \"" << part << "\" in:\n" << text;
    }
  }
  return testing::AssertionSuccess();
}
