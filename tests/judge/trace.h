// trace.h: the lines that say how one output value is formed, term by term.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "look.h"

namespace moe::judge {

// "%.6g", and "nothing" for the poison of outputs.
std::string number_text(double value);

class Trace {
 public:
  // One line, as printf has it.
  [[gnu::format(printf, 2, 3)]] void line(const char* format, ...);

  // A table of terms under its headings; of many terms the first and the last ones.
  void heading(const std::vector<std::string>& names);
  void row(const std::vector<std::string>& values);

  // What should stand there and what does.
  void result(const std::string& name, const std::string& want, const std::string& got);

  // False, with a line that says so, where the output has no such place.
  bool has(const std::string& name, Place place, int64_t rows, int64_t columns);

  std::vector<std::string> take();

 private:
  void end_table();

  std::vector<std::string> lines_;
  std::vector<std::vector<std::string>> table_;
};

}  // namespace moe::judge
