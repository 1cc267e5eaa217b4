// The files of the ladder: what is published (peers.tsv), and the results that are drawn
// (ladder.tsv).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <stdexcept>

#include "driver/ladder.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr const char* kPeerNames = "name\tshape\tms\tcublas_dense_ms\tgpu\tdate\tsource";
constexpr const char* kRungNames = "rung\twhat\tus\tR_us\tgpu\tdate\tkind";
constexpr std::size_t kColumnCount = 7;  // of both files

[[noreturn]] void fail(std::size_t line, const std::string& what) {
  throw std::runtime_error("line " + std::to_string(line + 1) + ": " + what);
}

// "-" is 0: not known.
double time_in(const std::string& field, std::size_t line) {
  if (field == "-") return 0.0;
  char* end = nullptr;
  const double value = std::strtod(field.c_str(), &end);
  if (end == field.c_str() || *end != '\0' || !(value > 0.0) || value > 1e9) {
    fail(line, "no time: " + field);
  }
  return value;
}

std::vector<std::string> fields_of(const std::string& text, std::size_t line) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\t', begin), text.size());
    fields.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() != kColumnCount) fail(line, "not " + std::to_string(kColumnCount) + " columns");
  for (const std::string& field : fields) {
    if (field.empty()) fail(line, "an empty column");
  }
  return fields;
}

struct Row {
  std::size_t line;  // from 0
  std::vector<std::string> fields;
};

// The rows under the line of names; lines before it that start with "#" are comments.
std::vector<Row> rows_of(const std::vector<std::string>& lines, const char* names) {
  std::size_t i = 0;
  while (i < lines.size() && lines[i].rfind('#', 0) == 0) ++i;
  if (i == lines.size() || lines[i] != names) fail(i, "not the names of the columns");
  std::vector<Row> rows;
  for (++i; i < lines.size(); ++i) {
    if (!lines[i].empty()) rows.push_back({i, fields_of(lines[i], i)});
  }
  if (rows.empty()) throw std::runtime_error("no rows");
  return rows;
}

}  // namespace

std::vector<Peer> parse_peers(const std::string& text) {
  std::vector<Peer> peers;
  for (const auto& [line, fields] : rows_of(split_lines(text), kPeerNames)) {
    Peer peer;
    peer.shape = fields[1];
    peer.rung.name = fields[0];
    peer.rung.us = 1000.0 * time_in(fields[2], line);
    peer.rung.dense_us = 1000.0 * time_in(fields[3], line);
    peer.rung.gpu = fields[4];
    peer.rung.date = fields[5];
    peer.rung.what = fields[6];
    peer.rung.kind = "published";
    if (peer.rung.us <= 0.0) fail(line, "no time: " + fields[2]);
    for (const Peer& other : peers) {
      if (other.shape == peer.shape && other.rung.name == peer.rung.name) {
        fail(line, fields[0] + " has a time on " + fields[1] + " already");
      }
    }
    peers.push_back(std::move(peer));
  }
  return peers;
}

Ladder parse_ladder(const std::string& text) {
  constexpr std::array<const char*, 5> kKinds{"yours", "ours", "cublas", "prototype", "published"};
  const std::vector<std::string> lines = split_lines(text);
  if (lines.empty() || lines[0].rfind("# ", 0) != 0) fail(0, "no title");
  Ladder ladder;
  ladder.title = lines[0].substr(2);
  for (const auto& [line, fields] : rows_of(lines, kRungNames)) {
    Rung rung;
    rung.name = fields[0];
    rung.what = fields[1];
    rung.us = time_in(fields[2], line);
    rung.dense_us = time_in(fields[3], line);
    rung.gpu = fields[4];
    rung.date = fields[5];
    rung.kind = fields[6];
    // It is drawn in times of R.
    if (rung.us <= 0.0 || rung.dense_us <= 0.0) fail(line, "no time: -");
    if (std::find(kKinds.begin(), kKinds.end(), rung.kind) == kKinds.end()) {
      fail(line, "no kind of rung: " + rung.kind);
    }
    ladder.rungs.push_back(std::move(rung));
  }
  return ladder;
}

}  // namespace moe::driver
