// The text of a kernel file as a compiler's first phases see it.
#pragma once

#include <string>
#include <string_view>

namespace moe::grade {

// `text` with comments gone and strings and characters emptied; lines stay where they are. Lines
// that end with a backslash are joined with the next one, as a compiler joins them.
std::string code_only(std::string_view text);

// "#  include <x>" -> "include", with `rest` what stands behind; "" when it is no directive.
std::string directive_of(const std::string& line, std::string& rest);

bool is_word_char(char c);

}  // namespace moe::grade
