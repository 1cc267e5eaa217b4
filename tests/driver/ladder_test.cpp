// The ladder without a GPU: its files, its order, its table, its JSON, its drawing. Times in here
// are made up, except where the repository's own files are read.
#include "driver/ladder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

const std::string kResults = std::string(DRILL_SOURCE_DIR) + "/content/results/";
const std::string kPeerHead = "# made up\nname\tshape\tms\tcublas_dense_ms\tgpu\tdate\tsource\n";
const std::string kLadderHead = "# title\n# more\nrung\twhat\tus\tR_us\tgpu\tdate\tkind\n";
const std::string kPeers = kPeerHead +
                           "Slow\tA\t0.9\t0.4\tH200\t2026-01-01\tsomebody/slow 123\n"
                           "Quick\tA\t0.45\t-\tH100\t2026-01-02\tsomebody/quick 456\n"
                           "Other\tB4096\t0.1\t-\tH100\t2026-01-02\tsomebody/other\n";

std::string bench_json(const std::string& routing = "uniform") {
  return R"({"device": "NVIDIA X", "routing": ")" + routing + R"(", "notes": ["busy"],
    "shape": {"name": "A", "num_tokens": 4096, "num_experts": 64, "top_k": 8, "hidden_size": 2048,
              "intermediate_size": 768},
    "cublas_us": {"dense": [250.0, 150.0], "grouped": [600.0, 400.0]},
    "results": [
      {"what": "layer", "side": "m3", "verdict": "right", "median_us": 1600.0, "cublas_us": 400.0},
      {"what": "layer", "side": "m8", "verdict": "right", "median_us": 500.0, "cublas_us": 400.0},
      {"what": "layer", "side": "mine", "verdict": "WRONG: 3 values", "median_us": 10.0}]})";
}

std::vector<std::string> names_of(const Ladder& ladder) {
  std::vector<std::string> names;
  for (const Rung& rung : ladder.rungs) names.push_back(rung.name);
  return names;
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t i = text.find(word); i != std::string::npos; i = text.find(word, i + 1)) ++found;
  return found;
}

template <class Parse>
std::string fault_of(Parse parse, const std::string& text) {
  try {
    parse(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Ladder, FilesThatAreNoneAreRefused) {
  const auto peers = [](const std::string& text) { return fault_of(parse_peers, text); };
  EXPECT_EQ(peers(""), "line 1: not the names of the columns");
  EXPECT_EQ(peers(kPeerHead), "no rows");
  EXPECT_EQ(peers(kPeerHead + "a\tA\t1\t1\tg\td\n"), "line 3: not 7 columns");
  EXPECT_EQ(peers(kPeerHead + "a\tA\t1\t1\tg\td\ts\tmore\n"), "line 3: not 7 columns");
  EXPECT_EQ(peers(kPeerHead + "a\tA\t1\t1\tg\td\t\n"), "line 3: an empty column");
  EXPECT_EQ(peers(kPeerHead + "a\tA\t-\t1\tg\td\ts\n"), "line 3: no time: -");
  for (const char* time : {"0", "-1", "1ms", "nan", "inf"}) {
    EXPECT_EQ(peers(kPeerHead + "a\tA\t" + time + "\t1\tg\td\ts\n"),
              std::string("line 3: no time: ") + time);
  }
  EXPECT_EQ(peers(kPeerHead + "a\tA\t1\t1\tg\td\ts\na\tA\t2\t1\tg\td\ts\n"),
            "line 4: a has a time on A already");
  const auto rungs = [](const std::string& text) { return fault_of(parse_ladder, text); };
  EXPECT_EQ(rungs(""), "line 1: no title");
  EXPECT_EQ(rungs("# title\n"), "line 2: not the names of the columns");
  EXPECT_EQ(rungs(kLadderHead + "a\tw\t1\t-\tg\td\tours\n"), "line 4: no time: -");
  EXPECT_EQ(rungs(kLadderHead + "a\tw\t1\t1\tg\td\ttheirs\n"), "line 4: no kind of rung: theirs");
}

TEST(Ladder, ShapesHaveTheNamesOfThePublishedFigures) {
  EXPECT_EQ(shape_key({4096, 64, 8, 2048, 768}, "uniform"), "A");
  EXPECT_EQ(shape_key({4096, 64, 8, 2048, 768}, "zipf"), "Az");
  EXPECT_EQ(shape_key({4096, 64, 8, 2048, 768}, "one-hot"), "");
  EXPECT_EQ(shape_key({64, 64, 8, 2048, 768}, "uniform"), "") << "A has one T";
  EXPECT_EQ(shape_key({16, 128, 8, 2048, 768}, "uniform"), "B16");
  EXPECT_EQ(shape_key({1024, 8, 2, 4096, 14336}, "uniform"), "C1024");
  EXPECT_EQ(shape_key({1024, 8, 2, 4096, 14328}, "uniform"), "");
}

TEST(Ladder, TheFastestStandFirstAndWhatIsWrongLast) {
  const Ladder ladder = ladder_of_bench(bench_json(), parse_peers(kPeers));
  EXPECT_EQ(names_of(ladder), (std::vector<std::string>{"cuBLAS dense", "Quick", "m8", "Slow",
                                                        "cuBLAS grouped", "m3", "yours"}));
  EXPECT_EQ(ladder.rungs.back().refusal, "WRONG: 3 values");
  EXPECT_EQ(ladder.title, "A: T4096 E64 K8 H2048 I768, routing uniform, NVIDIA X");
  const Ladder zipf = ladder_of_bench(bench_json("zipf"), parse_peers(kPeers));
  EXPECT_EQ(zipf.rungs.size(), 5u) << "nothing is published for it";
  EXPECT_ANY_THROW(ladder_of_bench("{}", {}));
}

TEST(Ladder, TheTableSaysWhoseAndFromWhere) {
  Ladder ladder = ladder_of_bench(bench_json(), parse_peers(kPeers));
  ladder.left_out = {{"m9", "takes 64 tokens at most"}};
  EXPECT_EQ(table_of(ladder), R"(ladder A: T4096 E64 K8 H2048 I768, routing uniform, NVIDIA X
  cuBLAS dense         400.0 us    1.00 x    773 TFLOPS  both GEMMs alone
  Quick                450.0 us              687 TFLOPS  published, H100
  m8                   500.0 us    1.25 x    618 TFLOPS  ours
  Slow                 900.0 us    2.25 x    344 TFLOPS  published, H200
  cuBLAS grouped      1000.0 us    2.50 x    309 TFLOPS  both GEMMs alone
  m3                  1600.0 us    4.00 x    193 TFLOPS  ours
  yours            WRONG: 3 values
       x: times of cuBLAS dense in the same run; what is published was not timed
       in this one
left out  m9: takes 64 tokens at most
note   busy
published  Quick: somebody/quick 456 (2026-01-02)
published  Slow: somebody/slow 123 (2026-01-01)
)");
}

TEST(Ladder, TheJsonHasTheSameRows) {
  Ladder ladder = ladder_of_bench(bench_json(), parse_peers(kPeers));
  ladder.left_out = {{"m9", "why"}};
  const auto json = nlohmann::json::parse(json_of(ladder, bench_json()));
  ASSERT_EQ(json.at("rows").size(), ladder.rungs.size());
  const auto& slow = json.at("rows").at(3);
  EXPECT_EQ(slow.at("kind"), "published");
  EXPECT_EQ(slow.at("what"), "somebody/slow 123");
  EXPECT_DOUBLE_EQ(slow.at("times_cublas"), 2.25);
  EXPECT_EQ(json.at("rows").at(6).at("refused"), "WRONG: 3 values");
  EXPECT_FALSE(json.at("rows").at(6).contains("us"));
  EXPECT_EQ(json.at("left_out").at(0).at("name"), "m9");
  EXPECT_EQ(json.at("bench").at("device"), "NVIDIA X");
}

TEST(Ladder, PeersAloneAreShownByShape) {
  const std::vector<Peer> peers = parse_peers(kPeers);
  EXPECT_EQ(ladders_of_peers(peers, "").size(), 2u);
  const std::vector<Ladder> one = ladders_of_peers(peers, "A");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(names_of(one[0]), (std::vector<std::string>{"Quick", "Slow"}));
  EXPECT_EQ(table_of(one[0]).find("TFLOPS"), std::string::npos);
  const std::string other = table_of(ladders_of_peers(peers, "B4096")[0]);
  EXPECT_EQ(other.find("cuBLAS"), std::string::npos) << "nothing stands beside it: " << other;
  EXPECT_TRUE(ladders_of_peers(peers, "D64").empty());
}

TEST(Ladder, TheDrawingHasABarForEachRungAndSaysThemInWords) {
  const Ladder ladder = parse_ladder(kLadderHead +
                                     "a<b\tw\t800\t400\tg\td\tours\n"
                                     "dense\tw\t400\t400\tg\td\tcublas\n");
  const std::string svg = svg_of(ladder);
  EXPECT_EQ(count(svg, "<rect"), 5u) << "the paper, two bars, two of the legend";
  EXPECT_NE(
      svg.find("<title>title</title>\n<desc>Bars from the fastest to the slowest, in times of "
               "cuBLAS dense: dense (cublas) 1.00, 400 us; a&lt;b (ours) 2.00, 800 us.</desc>"),
      std::string::npos)
      << svg;
  EXPECT_LT(svg.find(">dense<"), svg.find(">a&lt;b<"));
}

TEST(Ladder, TheRepositorysFilesAreGood) {
  const std::vector<Peer> peers = parse_peers(read_file(kResults + "peers.tsv"));
  const Ladder ladder = parse_ladder(read_file(kResults + "ladder.tsv"));
  for (const Rung& rung : ladder.rungs) {
    if (rung.kind != "published") continue;
    const auto same = [&](const Peer& peer) {
      return peer.shape == "A" && peer.rung.name == rung.name && peer.rung.what == rung.what &&
             std::abs(peer.rung.us - rung.us) < 0.1 &&
             std::abs(peer.rung.dense_us - rung.dense_us) < 0.1;
    };
    EXPECT_TRUE(std::any_of(peers.begin(), peers.end(), same))
        << rung.name << " is not in peers.tsv";
  }
  EXPECT_EQ(read_file(kResults + "ladder.svg"), svg_of(ladder))
      << "stale; ./drill bench layer --plot content/results/ladder.tsv writes it";
}

}  // namespace
}  // namespace moe::driver
