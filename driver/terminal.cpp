#include "driver/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace moe::driver {

bool is_terminal() {
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::strcmp(terminal, "dumb") == 0;
  return !dumb && isatty(STDOUT_FILENO) != 0;
}

std::size_t columns() {
  constexpr std::size_t kNarrowest = 40;  // below that, words would break the layout anyway
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return kColumns;
  if (size.ws_col == 0) return kColumns;
  return std::clamp<std::size_t>(size.ws_col, kNarrowest, kColumns);
}

Paint Paint::for_stdout() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool refused = no_color != nullptr && *no_color != '\0';
  return Paint(!refused && is_terminal());
}

std::string Paint::wrap_code(const char* code, std::string_view text) const {
  if (!enabled_) return std::string(text);
  return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

std::string wrapped(std::string_view first, std::string_view text, std::size_t width) {
  if (width == 0) width = columns();
  std::string result;
  std::string line(first);
  const std::string hang(first.size(), ' ');
  bool line_has_word = false;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (line_has_word && line.size() + 1 + word.size() > width) {
      result += line + "\n";
      line = hang;
      line_has_word = false;
    }
    if (line_has_word) line += ' ';
    line += word;
    line_has_word = true;
  }
  return result + line + "\n";
}

std::string name_list(const std::vector<std::string>& names, std::size_t columns) {
  constexpr std::size_t kRoomForRest = 15;  // ", and 1234 more"
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string next = (i == 0 ? "" : ", ") + names[i];
    const std::size_t reserve = i + 1 < names.size() ? kRoomForRest : 0;
    if (i > 0 && list.size() + next.size() + reserve > columns) {
      return list + ", and " + std::to_string(names.size() - i) + " more";
    }
    list += next;
  }
  return list;
}

std::string padded(std::string_view text, std::size_t width) {
  std::string result(text);
  result.append(width - std::min(width, result.size()), ' ');
  return result;
}

std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

std::string shell_quoted(const std::string& text) {
  constexpr const char* kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:=@%,";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string without_control_bytes(std::string_view text) {
  std::string visible;
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (c == '\t') {
      visible += "    ";
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      visible += escape;
    } else {
      visible += c;
    }
  }
  return visible;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  return content.str();
}

bool write_file(const std::string& path, std::string_view text) {
  const std::string draft = path + "." + std::to_string(getpid());
  std::error_code error;
  {
    std::ofstream file(draft, std::ios::binary);
    file << text << std::flush;
    if (!file) {
      file.close();
      std::filesystem::remove(draft, error);
      return false;
    }
  }
  std::filesystem::rename(draft, path, error);
  if (!error) return true;
  std::filesystem::remove(draft, error);
  return false;
}

void say(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void StatusLine::show(std::string_view text) {
  if (!is_terminal()) return;
  say("\r\033[K" + std::string(text.substr(0, columns() - 1)));
  shown_ = true;
}

void StatusLine::clear() {
  if (shown_) say("\r\033[K");
  shown_ = false;
}

}  // namespace moe::driver
