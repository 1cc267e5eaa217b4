// Changes the environment in the hope that somebody reads it.
// stage: m1_align
// base: none
// expect: WRONG

#include <unistd.h>
static char filter[] = "GTEST_FILTER=-*";
static char shard[] = "GTEST_TOTAL_SHARDS=99";
static char* forged[] = {filter, shard, nullptr};
__attribute__((constructor)) static void forge() { environ = forged; }
static cudaError_t cheat(const Call&) { return cudaSuccess; }
