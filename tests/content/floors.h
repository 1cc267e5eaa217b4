// The numbers of "Lower bound first", from the main shape and the data sheet of the H200. They
// stand in prose and in tables of two languages, so they are looked for and not written there.
#pragma once

#include <string>
#include <vector>

namespace moe::content {

// What the section of a note has to say, as it says it: "520.1 MB". No commas in numbers.
std::vector<std::string> floors_of(const std::string& stage);

// Of the layers that read each weight once or work on codes, on several shapes.
std::vector<std::string> m9_floors();
std::vector<std::string> m10_floors();

// A number of the section that was measured or predicted, and the words of content/results that it
// comes from.
struct MeasuredFloor {
  std::string text;
  std::string source;
};
std::vector<MeasuredFloor> measured_floors_of(const std::string& stage);

// The numbers with a unit in a section, in the same spelling.
std::vector<std::string> quantities_in(const std::string& section);

}  // namespace moe::content
