// The one example that all notes carry: T = 4, K = 2, E = 3. Its tables are printed from the
// oracles of the tests, so a note cannot say what the tests do not.
#pragma once

#include <string>
#include <string_view>

namespace moe::content {

// The Markdown of the tables of one stage ("m1" ... "m5"), or "" for another name.
std::string tiny_example(std::string_view stage);

}  // namespace moe::content
