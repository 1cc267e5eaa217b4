// Help in the words of this command, for CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <cctype>
#include <string>

namespace moe::driver {

// Help in the words of this command, within 80 columns.
class HelpText : public CLI::Formatter {
 public:
  HelpText() { column_width(18); }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_parent() == nullptr) return "usage: drill [VERB] [OPTIONS]\n";
    std::string arguments;
    for (const CLI::Option* option : app->get_options()) {
      if (!option->get_positional()) continue;
      const std::string what =
          option->get_name() == "stage" ? "mN" : placeholder(option->get_name());
      arguments += option->get_required() ? " " + what : " [" + what + "]";
    }
    return "usage: " + name + arguments + " [OPTIONS]\n";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }

  std::string make_positionals(const CLI::App*) const override { return ""; }

 private:
  // "region" -> "REGION".
  static std::string placeholder(std::string name) {
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
  }
};

}  // namespace moe::driver
