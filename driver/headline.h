// The timed line after a PASS on a GPU, from what bench_stage measured in the same minute.
#pragma once

#include <string>
#include <vector>

#include "driver/course.h"
#include "driver/terminal.h"

namespace moe::driver {

struct Headline {
  bool known = false;
  bool side_is_reference = false;
  std::string refusal;             // why the times are not believed, or ""
  double us = 0;                   // of the headline's calls together
  double flops = 0;                // of real rows
  double reference_us = 0;         // the same of the reference, timed in turns; 0: not known
  double dense_us = 0;             // cuBLAS, dense GEMMs of the same FLOPs; 0: no such thing
  std::string shape;               // "shape A: T4096 E64 K8 H2048 I768"
  std::vector<std::string> notes;  // busy, throttled
};

// From the JSON of bench_stage; `side` is "mine" or "solution". Not known where it makes no sense.
Headline parse_headline(const std::string& text, const std::string& side);

// "time   0.975 ms   317 TFLOPS   1.02 x the reference   2.37 x cuBLAS dense" and what belongs to
// it.
std::string headline_text(const Headline& headline);

// Is it slower than `gate` times the reference's time? Never when the gate is 0 or nothing is
// known.
bool is_slow(const Headline& headline, double gate);
std::string slow_text(const Headline& headline, double gate, const Paint& paint);

// "  time    not taken: ..."
std::string labelled_line(const std::string& label, const std::string& text);

struct HeadlineRun {
  Headline headline;
  std::string trouble;  // why there is none, or ""
};

// Builds what is needed and times the learner's side (or the reference) on a GPU. driver/bench.cpp
HeadlineRun run_headline(const Course& course, const Stage& stage, bool solution);

}  // namespace moe::driver
