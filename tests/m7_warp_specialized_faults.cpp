// Mistakes of m7_warp_specialized that have no output: the emulator reports what happened and
// where, this table says why.
#include <algorithm>

#include "m7_warp_specialized_bugs.h"

namespace moe::bugs {
namespace {

using judge::Mistake;

// All parts must stand in the report; the first line of this
// table that fits says it.
struct FaultModel {
  std::vector<const char*> parts;
  Mistake mistake;
};

const std::vector<FaultModel>& fault_models() {
  static const std::vector<FaultModel> models = {
      {{"deadlock", "bytes missing"},
       {"M7-BYTES", "m7.produce", "produce",
        "The bytes that full[] was told to expect are not those that its copies bring: a box "
        "counts whole, 128 bytes a row, all boxes of the stage together."}},
      {{"deadlock", "mbarrier_wait", "first thread (0,0,0): returned"},
       {"M7-LAST", "m7.last", "last",
        "The producer has ended and the consumers wait for a stage: its last stage must come, "
        "with all the arrivals that full[] counts."}},
      {{"deadlock", "first thread (0,0,0): wait at mbarrier_wait"},
       {"M7-HANDBACK", "m7.release", "release",
        "The producer waits for a stage and the consumers for data: stages are not handed back as "
        "often as empty[] counts, or the first wait is not for the phase that a free ring is in."}},
      {{"deadlock", "wgmma_wait"},
       {"M7-PHASE", "m7.consume", "consume",
        "Threads of a consumer disagree about a stage: what they read of it, they read before it "
        "was full."}},
      {{"more arrivals in a phase"},
       {"M7-PHASE", "m7.produce", "produce",
        "A stage was filled while it was in use: wait for empty[], for the phase that is due (the "
        "parity flips whenever the ring starts over), and let it count one arrival of every "
        "consumer warp."}},
      {{"that no expect_tx announced"},
       {"M7-BYTES", "m7.produce", "produce",
        "full[] was told to expect fewer bytes than come: a box counts whole, 128 bytes a row, "
        "all boxes of the stage together."}},
      {{"bytes more in a phase than"},
       {"M7-BYTES", "m7.produce", "produce", "More bytes come than full[] was told to expect."}},
      {{"wgmma reads", "a copy under way"},
       {"M7-PHASE", "m7.consume", "consume",
        "wgmma reads what a copy is filling: wait for full[], for the phase that is due (the "
        "parity flips whenever the ring starts over), which counts every arrival; hand the stage "
        "back behind wgmma_wait<0>; keep the descriptors inside it."}},
      {{"wgmma reads", "fence_proxy_async"},
       {"M7-FENCE", "m7.consume", "consume",
        "A came by cp.async and wgmma reads by the async proxy: fence_proxy_async() stands "
        "between the wait and the first wgmma."}},
      {{"tma_store reads", "fence_proxy_async"},
       {"M7-FENCE", "m7.store_slab", "store_slab",
        "The slab was written by stmatrix and TMA reads by the async proxy: every thread fences "
        "what it wrote, before the barrier."}},
      {{"written while a bulk store"},
       {"M7-SLAB", "m7.store_slab", "store_slab",
        "A slab's buffer was written while TMA had still to read it: the storer waits, everyone "
        "waits for the storer; and nobody stores before everyone has written."}},
      {{"bulk stores that may still have to read"},
       {"M7-SLAB", "m7.store_slab", "store_slab",
        "Bulk stores were left behind: each is committed, and the last are awaited."}},
      {{"cp.async copies that it never waited for"},
       {"M7-NOINC", "m7.gather", "gather",
        "Nobody is told when the gathered chunks have landed: cp_async_mbarrier_arrive_noinc "
        "makes full[] wait for them."}},
      {{"a tile of a wgmma was overwritten"},
       {"M7-EARLY", "m7.release", "release",
        "A stage was handed back while wgmma had still to read it: wgmma_wait<0> first."}},
      {{"wgmmas that it never waited for"},
       {"M7-EARLY", "m7.release", "release",
        "Products are used, and their stage is handed back, before wgmma_wait<0>."}},
      {{"accumulators of a wgmma"},
       {"M7-EARLY", "m7.release", "release",
        "Accumulators are touched before wgmma_wait<0> said that they are there."}},
  };
  return models;
}

}  // namespace

const Mistake* mistake_of_fault(const std::string& fault) {
  for (const FaultModel& model : fault_models()) {
    const bool fits = std::all_of(model.parts.begin(), model.parts.end(), [&](const char* part) {
      return fault.find(part) != std::string::npos;
    });
    if (fits) return &model.mistake;
  }
  return nullptr;
}

}  // namespace moe::bugs
