// The ladder from what was timed and what is published: its order, its table, its JSON.
#include "driver/ladder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "driver/drawing.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

using Json = nlohmann::ordered_json;

// The fastest first; what counts for nothing last.
void sort_rungs(std::vector<Rung>& rungs) {
  std::stable_sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) {
    if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
    return a.refusal.empty() && a.us < b.us;
  });
}

Rung rung_of_result(const Json& result, const std::string& gpu) {
  Rung rung;
  const std::string side = result.at("side");
  const bool yours = side == "mine";
  rung.name = yours ? "yours" : side;
  rung.what = yours ? "your m1 to m4" : "our " + side;
  rung.kind = yours ? "yours" : "ours";
  rung.gpu = gpu;
  rung.us = result.at("median_us");
  rung.dense_us = result.value("cublas_us", 0.0);
  const std::string verdict = result.at("verdict");
  if (verdict != "right") {
    rung.refusal = verdict.empty() ? "nothing was timed" : verdict;
  } else if (rung.us <= 0.0) {
    rung.refusal = "nothing was timed";
  }
  return rung;
}

// cuBLAS as a layer: both GEMMs, and nothing around them.
std::vector<Rung> rungs_of_cublas(const Json& bench, const std::string& gpu) {
  const Json times = bench.value("cublas_us", Json::object());
  const auto both = [&](const char* kind) {
    double us = 0.0;
    for (const double one : times.value(kind, std::vector<double>())) us += one;
    return us;
  };
  std::vector<Rung> rungs;
  for (const auto& [kind, what] :
       {std::pair{"dense", "both GEMMs with one weight matrix, nothing else"},
        std::pair{"grouped", "both GEMMs of all experts, rows gathered before, nothing else"},
        std::pair{"capacity", "both GEMMs as a batch padded to 1.25 of the mean, nothing else"}}) {
    const double us = both(kind);
    if (us <= 0.0) continue;
    rungs.push_back(
        {std::string("cuBLAS ") + kind, what, us, both("dense"), gpu, "", "cublas", ""});
  }
  return rungs;
}

std::string size_text(const LayerSizes& sizes) {
  return printed("T%d E%d K%d H%d I%d", sizes.num_tokens, sizes.num_experts, sizes.top_k,
                 sizes.hidden_size, sizes.intermediate_size);
}

std::string whose(const Rung& rung) {
  if (rung.kind == "published") return "published, " + rung.gpu;
  if (rung.kind == "cublas") return "both GEMMs alone";
  return rung.kind == "yours" ? "your m1 to m4" : "ours";
}

std::string row_of(const Rung& rung, double flops) {
  std::string row = "  " + padded(rung.name, 17);
  if (!rung.refusal.empty()) return wrapped(row, rung.refusal);
  row += printed("%9.1f us", rung.us);
  row += rung.dense_us > 0.0 ? printed("%8.2f x", rung.us / rung.dense_us) : std::string(10, ' ');
  row += flops > 0.0 ? printed("%7.0f TFLOPS", flops / rung.us * 1e-6) : std::string(14, ' ');
  return row + "  " + whose(rung) + "\n";
}

}  // namespace

std::string shape_key(const LayerSizes& s, const std::string& routing) {
  struct Family {
    const char* letter;
    int num_experts, top_k, hidden_size, intermediate_size;
  };
  if (routing != "uniform" && routing != "zipf") return {};
  const std::string suffix = routing == "zipf" ? "z" : "";
  for (const Family& family : {Family{"A", 64, 8, 2048, 768}, Family{"B", 128, 8, 2048, 768},
                               Family{"C", 8, 2, 4096, 14336}}) {
    if (s.num_experts != family.num_experts || s.top_k != family.top_k ||
        s.hidden_size != family.hidden_size || s.intermediate_size != family.intermediate_size) {
      continue;
    }
    const bool is_a = std::string(family.letter) == "A";  // the one shape without T in its name
    if (is_a && s.num_tokens != 4096) return {};
    return family.letter + (is_a ? "" : std::to_string(s.num_tokens)) + suffix;
  }
  return {};
}

Ladder ladder_of_bench(const std::string& bench_json, const std::vector<Peer>& peers) {
  const Json bench = Json::parse(bench_json);
  const Json& shape = bench.at("shape");
  const std::string gpu = bench.at("device");
  const std::string routing = bench.at("routing");
  Ladder ladder;
  ladder.sizes = {shape.at("num_tokens"), shape.at("num_experts"), shape.at("top_k"),
                  shape.at("hidden_size"), shape.at("intermediate_size")};
  ladder.title = shape.at("name").get<std::string>() + ": " + size_text(ladder.sizes) +
                 ", routing " + routing + ", " + gpu;
  ladder.notes = bench.value("notes", std::vector<std::string>());
  for (const Json& result : bench.at("results")) {
    if (result.at("what") == "layer") ladder.rungs.push_back(rung_of_result(result, gpu));
  }
  for (Rung& rung : rungs_of_cublas(bench, gpu)) ladder.rungs.push_back(std::move(rung));
  const std::string key = shape_key(ladder.sizes, routing);
  for (const Peer& peer : peers) {
    if (!key.empty() && peer.shape == key) ladder.rungs.push_back(peer.rung);
  }
  sort_rungs(ladder.rungs);
  return ladder;
}

std::vector<Ladder> ladders_of_peers(const std::vector<Peer>& peers, const std::string& shape) {
  std::vector<Ladder> ladders;
  std::set<std::string> done;
  for (const Peer& first : peers) {
    const bool wanted = shape.empty() || shape == first.shape;
    if (!wanted || !done.insert(first.shape).second) continue;
    Ladder ladder;
    ladder.title = first.shape;
    for (const Peer& peer : peers) {
      if (peer.shape == first.shape) ladder.rungs.push_back(peer.rung);
    }
    sort_rungs(ladder.rungs);
    ladders.push_back(std::move(ladder));
  }
  return ladders;
}

std::string table_of(const Ladder& ladder) {
  std::string text = wrapped("ladder ", ladder.title);
  bool compared = false;
  bool measured = false;
  bool published = false;
  for (const Rung& rung : ladder.rungs) {
    text += row_of(rung, ladder.sizes.flops());
    compared = compared || rung.dense_us > 0.0;
    (rung.kind == "published" ? published : measured) = true;
  }
  std::string key = compared ? "x: times of cuBLAS dense in the same run" : "";
  if (measured && published) {
    key += (compared ? "; " : "") + std::string("what is published was not timed in this one");
  }
  if (!key.empty()) text += wrapped("       ", key);
  for (const auto& [name, why] : ladder.left_out) {
    text += wrapped("left out  " + name + ": ", why);
  }
  for (const std::string& note : ladder.notes) text += wrapped("note   ", note);
  for (const Rung& rung : ladder.rungs) {
    if (rung.kind != "published") continue;
    text += wrapped("published  ", rung.name + ": " + rung.what + " (" + rung.date + ")");
  }
  return text;
}

std::string json_of(const Ladder& ladder, const std::string& bench_json) {
  Json json = {{"version", 1}, {"title", ladder.title}, {"notes", ladder.notes}};
  json["rows"] = Json::array();
  for (const Rung& rung : ladder.rungs) {
    Json row = {{"name", rung.name}, {"kind", rung.kind}, {"what", rung.what}, {"gpu", rung.gpu}};
    if (!rung.date.empty()) row["date"] = rung.date;
    if (!rung.refusal.empty()) {
      row["refused"] = rung.refusal;
    } else {
      row["us"] = rung.us;
      if (rung.dense_us > 0.0) {
        row["cublas_us"] = rung.dense_us;
        row["times_cublas"] = rung.us / rung.dense_us;
      }
      if (ladder.sizes.flops() > 0.0) row["tflops"] = ladder.sizes.flops() / rung.us * 1e-6;
    }
    json["rows"].push_back(std::move(row));
  }
  json["left_out"] = Json::array();
  for (const auto& [name, why] : ladder.left_out) {
    json["left_out"].push_back({{"name", name}, {"why", why}});
  }
  json["bench"] = Json::parse(bench_json);
  return json.dump(2) + "\n";
}

}  // namespace moe::driver
