#include "driver/headline.h"

#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace moe::driver {
namespace {

using Json = nlohmann::json;

[[gnu::format(printf, 1, 2)]] std::string printed(const char* format, ...) {
  char text[160];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

std::string time_of(double us) {
  return us < 1000 ? printed("%.1f us", us) : printed("%.3f ms", us / 1000);
}

void add_result(const Json& result, const std::string& side, Headline& headline) {
  const std::string of = result.value("side", "");
  const double us = result.value("median_us", 0.0);
  const std::string verdict = result.value("verdict", "");
  if (of == side) {
    headline.known = true;
    headline.us += us;
    headline.flops += result.value("flops", 0.0);
    headline.dense_us += result.value("cublas_us", 0.0);
    if (verdict != "right" && headline.refusal.empty()) headline.refusal = verdict;
  }
  if (of == "solution" && verdict == "right") headline.reference_us += us;
}

}  // namespace

Headline parse_headline(const std::string& text, const std::string& side) {
  Headline headline;
  try {
    const Json json = Json::parse(text);
    for (const Json& result : json.at("results")) add_result(result, side, headline);
    const Json& shape = json.at("shape");
    const std::string name = shape.value("name", "");
    headline.shape = "shape " + name;
    for (const auto& [letter, key] : {std::pair{" T", "num_tokens"},
                                      {" E", "num_experts"},
                                      {" K", "top_k"},
                                      {" H", "hidden_size"},
                                      {" I", "intermediate_size"}}) {
      headline.shape += letter + std::to_string(shape.value(key, 0));
    }
    headline.notes = json.value("notes", std::vector<std::string>());
  } catch (const std::exception&) {
    return {};
  }
  return headline;
}

std::string labelled_line(const std::string& label, const std::string& text) {
  return wrapped("  " + padded(label, 8), text);
}

std::string headline_text(const Headline& headline) {
  if (!headline.refusal.empty()) return labelled_line("time", headline.refusal);
  std::string line = time_of(headline.us);
  if (headline.flops > 0) line += printed(", %.0f TFLOPS", headline.flops / headline.us * 1e-6);
  if (!headline.side_is_reference && headline.reference_us > 0) {
    line += printed(", %.2f x the reference", headline.us / headline.reference_us);
  }
  if (headline.dense_us > 0) {
    line += printed(", %.2f x cuBLAS dense", headline.us / headline.dense_us);
  }
  std::string text = labelled_line("time", line + " (" + headline.shape + ")");
  for (const std::string& note : headline.notes) text += labelled_line("", note);
  return text;
}

bool is_slow(const Headline& headline, double gate) {
  return gate > 0 && headline.refusal.empty() && headline.reference_us > 0 &&
         headline.us > gate * headline.reference_us;
}

std::string slow_text(const Headline& headline, double gate, const Paint& paint) {
  const std::string text =
      wrapped("SLOW   ", time_of(headline.us) + "; the gate is " + printed("%.2f", gate) +
                             " x the reference = " + time_of(gate * headline.reference_us) +
                             " on this GPU today. Correctness is complete.");
  return paint.open(text.substr(0, 4)) + text.substr(4);
}

}  // namespace moe::driver
