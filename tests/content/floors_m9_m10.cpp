#include <algorithm>
#include <cmath>

#include "content/floors.h"
#include "content/quantities.h"

namespace moe::content {
namespace {

// What a token or an expert of a shape comes to.
struct Layer {
  explicit Layer(const std::string& name) : shape(shape_named(name)) {}

  double ids() const { return static_cast<double>(shape.num_tokens) * shape.top_k; }
  // Experts that somebody chose, with random routing.
  double hit() const {
    const double missed = 1 - static_cast<double>(shape.top_k) / shape.num_experts;
    return shape.num_experts * (1 - std::pow(missed, shape.num_tokens));
  }
  double weights_of_expert() const { return 3.0 * shape.hidden_size * shape.intermediate_size; }
  double weights() const { return hit() * weights_of_expert(); }
  double flops() const { return 2 * ids() * weights_of_expert(); }
  double x_and_out() const { return 4.0 * shape.num_tokens * shape.hidden_size; }

  // Blocks of 128 rows an expert, on average.
  double blocks() const { return (ids() / shape.num_experts + wasted_rows(shape, 128)) / 128; }

  bench::Shape shape;
};

Layer with_tokens(Layer layer, int tokens) {
  layer.shape.num_tokens = tokens;
  return layer;
}

// The note's guesses of what m9 and m10 reach.
constexpr double kDecodeTerabytes = 4.2;
constexpr double kFp8Terabytes = 4.3;
constexpr double kFp8Tflops = 1500;

// The sums of m10 and what it moves, each over a rate.
double floor_s(const Layer& layer, double tflops, double terabytes) {
  return std::max(layer.flops() / (tflops * 1e12),
                  (layer.weights() + layer.x_and_out()) / (terabytes * 1e12));
}

struct Predicted {
  double gemm1, gemm2, rest;  // ms
  int digits;                 // of the layer
};

// Parts with as many digits as the note has, and their sum.
std::vector<std::string> prediction(const Predicted& p, int digits1, int digits2, int digits3) {
  return {quantity(p.gemm1, digits1, "ms"), quantity(p.gemm2, digits2, "ms"),
          quantity(p.rest, digits3, "ms"), quantity(p.gemm1 + p.gemm2 + p.rest, p.digits, "ms")};
}

}  // namespace

std::vector<std::string> m9_floors() {
  const Layer one("B1");
  std::vector<std::string> all{mb(2 * one.weights_of_expert()),
                               mb(2 * Layer("C1").weights_of_expert(), 0)};
  for (const char* name : {"B1", "B16", "B64", "C1", "C16"}) {
    const Layer layer(name);
    const double bytes = 2 * layer.weights();
    const bool few = layer.shape.num_experts == 8 && layer.shape.num_tokens > 1;
    all.push_back(quantity(layer.hit(), few ? 1 : 0, "hit"));
    all.push_back(mb(bytes, 0));
    all.push_back(us(memory_s(bytes), bytes < 1e8 ? 1 : 0));
    all.push_back(us(bytes / (kDecodeTerabytes * 1e12)));
  }
  const Layer two = with_tokens(one, 2);
  const double flops = Layer("B64").flops();
  const double latency = 1e-6;
  const double under_way = kSheet.terabytes_s * 1e12 * latency;
  const double a_lane = 16.0 * 32;  // bytes that a warp fetches with one load a lane
  const double weights_a_clock = kSheet.terabytes_s * 1e12 / 2 / kMultiprocessors / sheet_clock();
  for (const std::string& text :
       {quantity(flops / 1e9, 1, "GFLOP"), us(compute_s(flops)), quantity(two.hit(), 1, "hit"),
        us(memory_s(2 * two.weights()), 1), us(latency), mb(under_way),
        kib(under_way / kMultiprocessors), kib(8 * a_lane), kib(16 * 8 * a_lane), kib(16 * a_lane),
        kib(2.0 * one.shape.hidden_size), kib(2.0 * one.shape.intermediate_size, 1),
        quantity(sheet_clock() / 1e9, 2, "GHz"), quantity(weights_a_clock, 0, "weights"),
        quantity(5 * std::round(weights_a_clock), 0, "lanes"),
        // guesses: the rate; the graph and route; each kernel behind it
        quantity(kDecodeTerabytes, 1, "TB/s"), percent(kDecodeTerabytes / kSheet.terabytes_s),
        us(3e-6), us(2e-6)}) {
    all.push_back(text);
  }
  return all;
}

std::vector<std::string> m10_floors() {
  std::vector<std::string> all{quantity(kSheet.fp8_tflops, 0, "TFLOPS"),
                               quantity(kFp8Tflops, 0, "TFLOPS"),
                               quantity(kFp8Terabytes, 1, "TB/s")};
  for (const char* name : {"A8", "D4096", "D1024", "D64"}) {
    const Layer layer(name);
    const bool small = layer.weights() < 1e9;
    const double sums = layer.flops() / (kSheet.fp8_tflops * 1e12);
    all.push_back(quantity(layer.flops() / 1e9, 0, "GFLOP"));
    all.push_back(ms(sums, sums < 1e-3 ? 3 : 2));
    all.push_back(quantity(layer.hit(), 0, "hit"));
    all.push_back(small ? mb(layer.weights(), 0) : gb(layer.weights(), 1));
    all.push_back(mb(layer.x_and_out(), layer.x_and_out() < 1e7 ? 1 : 0));
    all.push_back(ms(memory_s(layer.weights() + layer.x_and_out()), small ? 3 : 2));
    all.push_back(ms(floor_s(layer, kFp8Tflops, kFp8Terabytes), small ? 3 : 2));
  }
  for (const auto& parts :
       {prediction({0.20, 0.12, 0.07, 2}, 2, 2, 2), prediction({2.3, 1.2, 0.3, 1}, 1, 1, 1),
        prediction({1.85, 0.95, 0.1, 1}, 2, 2, 1), prediction({1.6, 0.8, 0.03, 1}, 1, 1, 2)}) {
    all.insert(all.end(), parts.begin(), parts.end());
  }
  const Layer a8("A8");
  const double tiles = a8.blocks() * a8.shape.num_experts * 2 * a8.shape.intermediate_size / 256;
  const double rounds = tiles / kMultiprocessors;
  const Layer d64("D64");
  const double goal = 2.25e-3;
  const double chain = 2.0 * 64 * 128 * 128 / (2 * kFlopsPerClock);  // of codes: twice the rate
  for (const std::string& text :
       {ms(0.40e-3, 2), ms(4.2e-3, 1), ms(2.9e-3, 1), ms(goal, 2),
        quantity((d64.weights() + d64.x_and_out()) / goal / 1e12, 2, "TB/s"),
        quantity(chain, 0, "clocks"), quantity(rounds, 1, "rounds"),
        quantity(std::ceil(rounds), 0, "rounds"),
        quantity(Layer("D4096").blocks(), 1, "blocks an expert")}) {
    all.push_back(text);
  }
  return all;
}

}  // namespace moe::content
