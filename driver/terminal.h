// What text looks like: colours, wrapping to 80 columns, the transient status line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

constexpr std::size_t kColumns = 80;

// How wide lines may be: kColumns, or less where stdout is a narrower terminal.
std::size_t columns();

// True when stdout is a terminal that understands escape codes.
bool is_terminal();

// Colours, or nothing: plain text unless stdout is a terminal, and never with NO_COLOR set.
class Paint {
 public:
  explicit Paint(bool enabled) : enabled_(enabled) {}
  static Paint for_stdout();

  std::string good(std::string_view text) const { return wrap_code("1;32", text); }
  std::string bad(std::string_view text) const { return wrap_code("1;31", text); }
  std::string open(std::string_view text) const { return wrap_code("1;33", text); }
  std::string strong(std::string_view text) const { return wrap_code("1", text); }
  std::string dim(std::string_view text) const { return wrap_code("2", text); }

 private:
  std::string wrap_code(const char* code, std::string_view text) const;

  bool enabled_;
};

// Breaks text at blanks so that no line is longer than `width`; 0 stands for columns(). The first
// line starts with `first`, the others with as many blanks; every line ends with a newline.
std::string wrapped(std::string_view first, std::string_view text, std::size_t width = 0);

// "a, b, c", shortened to "a, b, and 7 more" where it would not fit into `columns`.
std::string name_list(const std::vector<std::string>& names, std::size_t columns);

std::string padded(std::string_view text, std::size_t width);
std::string counted(std::size_t count, std::string_view noun);  // "1 case", "2 cases"
std::string seconds_text(double seconds);                       // "1.3 s"
std::string shell_quoted(const std::string& text);              // as one word for a shell

// Bytes that could move the cursor or change colours become visible; tabs become blanks.
std::string without_control_bytes(std::string_view text);

std::vector<std::string> split_lines(std::string_view text);
std::string read_file(const std::string& path);  // "" when it cannot be read

// Replaces the file in one step, so that a full disk or a crash leaves the old one. False when it
// could not be written.
bool write_file(const std::string& path, std::string_view text);

// Writes to stdout at once, so that output and progress never change places.
void say(std::string_view text);

// One line that is overwritten while something long runs. Silent unless stdout is a terminal.
class StatusLine {
 public:
  StatusLine() = default;
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(std::string_view text);
  void clear();

 private:
  bool shown_ = false;
};

}  // namespace moe::driver
