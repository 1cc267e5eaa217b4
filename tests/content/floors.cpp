#include "content/floors.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "content/quantities.h"

namespace moe::content {
namespace {

constexpr double kSharedBytesPerClock = 128;  // of one multiprocessor
constexpr const char* kL2 = "50 MB";

const bench::Shape kMain = shape_named("A");

// One of the two products of the main shape.
struct Gemm {
  double n, depth, rows_of_a;
  double rows = static_cast<double>(kMain.num_tokens) * kMain.top_k;
  double flops() const { return 2 * rows * n * depth; }
  double a() const { return rows_of_a * depth; }
  double w() const { return kMain.num_experts * n * depth; }
  double out() const { return rows * n * 2; }
  double bytes() const { return 2 * a() + 2 * w() + out(); }
  double a_scales() const { return rows_of_a * std::ceil(depth / 128) * 4; }
  double w_scales() const {
    return kMain.num_experts * std::ceil(n / 128) * std::ceil(depth / 128) * 4;
  }
  double fp8_bytes() const { return a() + a_scales() + w() + w_scales() + out(); }
};

const double kTokens = kMain.num_tokens;
const double kExperts = kMain.num_experts;
const double kHidden = kMain.hidden_size;
const double kWidth = kMain.intermediate_size;
const double kRows = kTokens * kMain.top_k;
const Gemm kGemm1 = {2 * kWidth, kHidden, kTokens};
const Gemm kGemm2 = {kHidden, kWidth, kRows};

double padding(int block_m) {
  return wasted_rows(kMain, block_m);
}

double row_tiles() {
  return std::round((kRows + kExperts * padding(128)) / 128);
}

std::vector<std::string> m1() {
  const double route = 4 * kTokens * kExperts + 8 * kRows;
  const double capacity = std::floor((kRows + kExperts * 63) / 64) * 64;
  const double written = 4 * capacity * (1 + 1.0 / 64);
  return {mb(4 * kTokens * kExperts, 2),
          mb(8 * kRows, 2),
          mb(route, 2),
          us(memory_s(route), 2),
          mb(written, 2),
          mb(8 * kRows + written, 2),
          us(memory_s(8 * kRows + written), 2),
          percent(63.5 * kExperts / kRows)};
}

std::vector<std::string> gemm_times() {
  return {quantity(kGemm1.flops() / 1e9, 1, "G"), quantity(kGemm2.flops() / 1e9, 1, "G"),
          us(compute_s(kGemm1.flops())), us(compute_s(kGemm2.flops()))};
}

std::vector<std::string> m2() {
  std::vector<std::string> all = gemm_times();
  for (const Gemm& gemm : {kGemm1, kGemm2}) {
    for (const std::string& text : {mb(2 * gemm.a()), mb(2 * gemm.w()), mb(gemm.out()),
                                    mb(gemm.bytes()), us(memory_s(gemm.bytes()))}) {
      all.push_back(text);
    }
  }
  const double padded = kExperts * padding(64) / kRows;
  const double one_token = kMain.top_k * kGemm1.n * kGemm1.depth * 2;
  for (const std::string& text : {percent(padded, 1), us(compute_s(kGemm1.flops()) * (1 + padded)),
                                  mb(one_token), us(memory_s(one_token), 1)}) {
    all.push_back(text);
  }
  return all;
}

std::vector<std::string> m3() {
  std::vector<std::string> all = gemm_times();
  const double swiglu = kRows * 3 * kWidth * 2;
  const double combine = (kRows + kTokens) * kHidden * 2;
  const double weigh = 2 * kRows * kHidden * 2;
  for (const std::string& text :
       {mb(swiglu), mb(swiglu, 0), us(memory_s(swiglu)), mb(combine), us(memory_s(combine)),
        mb(4 * kRows), std::string(kL2), mb(weigh, 0), us(memory_s(weigh))}) {
    all.push_back(text);
  }
  return all;
}

std::vector<std::string> m4() {
  std::vector<std::string> all{kL2, mb(kGemm1.n * kGemm1.depth * 2)};
  for (const Gemm& gemm : {kGemm1, kGemm2}) {
    const double panel = 128 * gemm.depth * 2;
    const double columns = gemm.n / 128;
    const double tiles = row_tiles() * columns;
    all.push_back(gb(2 * tiles * panel));
    all.push_back(gb((row_tiles() + kExperts * columns) * panel));
    all.push_back(gb((tiles + kExperts * columns) * panel));  // column by column: A each time
  }
  // Eight large experts of exactly eight rows of tiles; fewer panels fit than an expert has of W.
  const bench::Shape large = shape_named("C");
  const double panel = 128.0 * large.hidden_size * 2;
  const double columns = 2.0 * large.intermediate_size / 128;
  const double rows = large.num_tokens * large.top_k / 128.0;
  const double by_rows = rows * (1 + columns) * panel;
  const double in_groups = large.num_experts * (8 + columns) * panel;
  const double flops = 2 * rows * 128 * 2 * large.intermediate_size * large.hidden_size;
  for (const std::string& text :
       {gb(by_rows, 1), gb(in_groups), gb((rows + large.num_experts) * columns * panel, 1),
        mb(columns * panel, 0), quantity(memory_s(by_rows) * 1e3, 1, "ms"),
        quantity(memory_s(in_groups) * 1e3, 2, "ms"), quantity(compute_s(flops) * 1e3, 1, "ms")}) {
    all.push_back(text);
  }
  return all;
}

std::vector<std::string> m5() {
  std::vector<std::string> all = gemm_times();
  for (const Gemm& gemm : {kGemm1, kGemm2}) {
    for (const std::string& text :
         {mb(gemm.a_scales()), mb(gemm.w()), mb(gemm.w_scales(), 2), mb(gemm.out()),
          mb(gemm.fp8_bytes()), us(memory_s(gemm.fp8_bytes()))}) {
      all.push_back(text);
    }
  }
  const double x_written = kGemm1.a() + kGemm1.a_scales();
  const double h_moved = 3 * kGemm2.a() + kGemm2.a_scales();
  const double one_token = kMain.top_k * kGemm1.n * kGemm1.depth;
  for (const std::string& text :
       {mb(kGemm2.bytes(), 0), mb(x_written), us(memory_s(2 * kGemm1.a() + x_written), 1),
        mb(h_moved), us(memory_s(h_moved)), percent(4.0 / 128), us(memory_s(2 * one_token), 1),
        mb(one_token), us(memory_s(one_token), 1)}) {
    all.push_back(text);
  }
  return all;
}

// One turn of 64 along D, of a tile of so many rows and columns.
struct Turn {
  double rows, columns;
  double clocks() const { return 2 * rows * columns * 64 / kFlopsPerClock; }
  double a() const { return rows * 64 * 2; }
  double w() const { return columns * 64 * 2; }
  double read() const { return a() + w() * rows / 64; }  // a warpgroup has 64 rows and all of W
  double moved() const { return a() + w() + read(); }
  double moved_clocks() const { return moved() / kSharedBytesPerClock; }
};

std::string clocks(double count) {
  return quantity(count, 0, "clocks");
}

std::vector<std::string> m6() {
  const Turn turn = {128, 128};
  const Turn wide = {128, 256};
  const Turn half = {64, 128};
  const double rate = turn.clocks() / turn.moved_clocks();
  return {us(compute_s(kGemm1.flops())),
          us(memory_s(kGemm1.bytes())),
          us(memory_s(kGemm2.bytes())),
          clocks(turn.clocks()),
          kib(turn.a() + turn.w()),
          kib(turn.a() / 2),
          kib(turn.w()),
          kib(turn.read()),
          kib(turn.moved()),
          clocks(turn.moved_clocks()),
          percent(rate),
          us(compute_s(kGemm1.flops()) / rate),
          kib(wide.moved()),
          clocks(wide.clocks()),
          kib(half.read()),
          clocks(half.clocks()),
          clocks(half.moved_clocks()),
          percent(half.clocks() / half.moved_clocks())};
}

std::vector<std::string> m7() {
  std::vector<std::string> all = gemm_times();
  const double bytes1 = 2 * kGemm1.a() + 2 * kGemm1.w() + kGemm1.out() / 2;  // h is half as wide
  const double bytes2 = kGemm2.bytes();
  const Turn turn = {128, 256};
  const auto busiest = [&](const Gemm& gemm) {
    const double tiles = std::ceil(row_tiles() * gemm.n / 256 / kMultiprocessors);
    return tiles * gemm.depth / 64 * turn.clocks() / kClockUnderLoad;
  };
  const double silu = 128 * 128 * 2 / 16.0;
  const double fetched = (turn.a() + turn.w()) / turn.clocks() * kMultiprocessors;
  for (const std::string& text :
       {mb(bytes1, 0), us(memory_s(bytes1)), mb(bytes2, 0), us(memory_s(bytes2)),
        us(busiest(kGemm1)), us(busiest(kGemm2)), clocks(silu),
        percent(silu / (kGemm1.depth / 64 * turn.clocks())), clocks(turn.clocks()),
        quantity(fetched * kClockUnderLoad / 1e12, 0, "TB/s"),
        quantity(kClockUnderLoad / 1e9, 1, "GHz"), quantity(sheet_clock() / 1e9, 2, "GHz")}) {
    all.push_back(text);
  }
  return all;
}

std::vector<std::string> m8() {
  const double flops = kGemm1.flops() + kGemm2.flops();
  const double y = kRows * kHidden * 2;
  const double out = kTokens * kHidden * 2;
  return {quantity(flops / 1e9, 0, "GFLOP"),
          us(compute_s(flops)),
          quantity(kGemm1.flops() / 1e9, 0, "GFLOP"),
          us(compute_s(kGemm1.flops())),
          quantity(kGemm2.flops() / 1e9, 0, "GFLOP"),
          us(compute_s(kGemm2.flops())),
          percent(kExperts * padding(128) / kRows),
          percent(kExperts * padding(16) / kRows, 1),
          mb(4 * kTokens * kExperts, 0),
          mb(y, 0),
          mb(out, 0),
          us(memory_s(y + out)),
          quantity(sheet_clock() / 1e9, 2, "GHz")};
}

}  // namespace

std::vector<std::string> floors_of(const std::string& stage) {
  static const std::map<std::string, std::vector<std::string> (*)()> kNotes{
      {"m1", m1}, {"m2", m2}, {"m3", m3}, {"m4", m4},        {"m5", m5},
      {"m6", m6}, {"m7", m7}, {"m8", m8}, {"m9", m9_floors}, {"m10", m10_floors}};
  const auto note = kNotes.find(stage);
  return note == kNotes.end() ? std::vector<std::string>{} : note->second();
}

std::vector<MeasuredFloor> measured_floors_of(const std::string& stage) {
  if (stage == "m7") {
    return {{"300 us", "0.300"}, {"164 us", "0.164"}, {"264 us", "0.264"}, {"148 us", "0.148"}};
  }
  // predictions, made before any run
  if (stage == "m9") {
    return {{"26 us", "| 12 | 6 | 26 | 15.7 |"},
            {"193 us", "| 124 | 62 | 193 | 162 |"},
            {"293 us", "| 189 | 94 | 293 | 248 |"},
            {"174 us", "| 112 | 56 | 174 | 147 |"},
            {"673 us", "| 443 | 221 | 673 | 581 |"}};
  }
  if (stage != "m8") return {};
  return {{"411 us", "0.411"},
          {"3 us", "3.1 us of it the graph"},
          {"13 us", "13 are routing"},
          {"302 us", "302 up to the end of GEMM1"},
          {"146 us", "146 GEMM2 behind it"},
          {"38 us", "38 the sum over slots"}};
}

std::vector<std::string> quantities_in(const std::string& section) {
  static const std::regex kQuantity(
      R"((^|[^\d.,])(\d[\d,]*\.?\d*)\s(us|ms|MB|GB|TB/s|TFLOPS|GFLOP|G|clocks|KiB|GHz|%|hit|rounds|weights|lanes|blocks an expert)(?![A-Za-z]))");
  std::vector<std::string> found;
  for (std::sregex_iterator at(section.begin(), section.end(), kQuantity), end; at != end; ++at) {
    std::string number = (*at)[2].str();
    number.erase(std::remove(number.begin(), number.end(), ','), number.end());
    found.push_back(number + " " + (*at)[3].str());
  }
  return found;
}

}  // namespace moe::content
