// look.h: what `drill mN --map` and `--print row,column` show of a case: which values are wrong,
// and how one value is formed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace moe::judge {

// Of one output, seen as a matrix.
struct WrongMap {
  std::string name;
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<uint8_t> cells;  // [rows, columns]: 0 right, 1 wrong, 2 not judged
};

struct Place {
  int64_t row = 0;
  int64_t column = 0;
};

struct Look {
  WrongMap map;
  std::vector<std::string> trace;
};

// What was asked for.
struct LookOptions {
  bool map = false;
  bool trace = false;
  Place place;
};
LookOptions& look_options();

// Judges tell of what they found wrong; nothing is kept unless it was asked for. `judged` has a
// flag for each row.
void note_wrong(const std::string& name,
                int64_t rows,
                int64_t columns,
                std::vector<uint8_t> wrong,
                const std::vector<uint8_t>& judged = {});
void note_trace(std::vector<std::string> lines);

// What was noted since the last call.
Look take_look();

// "3,0"; false when that is no place.
bool parse_place(const std::string& text, Place& place);

}  // namespace moe::judge
