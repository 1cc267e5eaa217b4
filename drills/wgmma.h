// wgmma.h: the matrix instruction of a warpgroup (four warps, 128 threads), sm_90a.
//
// CUDA version; elsewhere it traps, see hopper.h. The emulator's twin is
// emulator/include/drills/wgmma.h.
//
// wgmma m64nNk16 multiplies a 64 x 16 tile A (registers or shared memory) by a 16 x N tile B
// (shared memory) and adds the product to D, 64 x N fp32 in registers of the warpgroup:
//   warp w of the four holds rows 16w .. 16w + 15; g = lane / 4, t = lane % 4:
//   d[4j + 2h + e] is row 16w + g + 8h, column 8j + 2t + e.
// It runs asynchronously: wgmma_fence() before the first of a chain (registers written before are
// then seen), wgmma_commit() closes a group, wgmma_wait<N>() waits until at most N groups run.
// Until then nobody may touch d, nor write the tiles.
#pragma once

#include <drills/hopper.h>

namespace moe {

__device__ __forceinline__ void wgmma_fence() {
  MOE_SM90("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  MOE_SM90("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void wgmma_wait() {
  MOE_SM90("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Whether a tile lies in shared memory with its reduction index running fastest (K-major, as rows
// of x and of w do), or its other index (MN-major).
enum class Major { kK, kMN };

// Where wgmma finds a tile swizzled by 128 bytes, as a 64-bit word:
//   bits 0-13   address / 16        (within the 256 KB window)
//   bits 16-29  leading bytes / 16  K-major: not used; MN-major: from one 64-wide column of
//                                   boxes to the next
//   bits 32-45  stride bytes / 16   from 8 rows to the next 8 rows: 1024 where rows are 128 bytes
//   bits 62-63  1: 128-byte swizzle
// The k-th 16 elements of a K-major tile start 32 * k bytes further: the swizzle is applied to the
// address that results, so add 2 * k to the word.
__device__ __forceinline__ uint64_t wgmma_descriptor(const void* tile,
                                                     int leading_bytes = 16,
                                                     int stride_bytes = 1024) {
  return static_cast<uint64_t>(shared_address(tile) >> 4 & 0x3fff) |
         static_cast<uint64_t>(leading_bytes >> 4 & 0x3fff) << 16 |
         static_cast<uint64_t>(stride_bytes >> 4 & 0x3fff) << 32 | uint64_t{1} << 62;
}

// d (+)= a * b with bf16 tiles, N being twice the registers of d: a multiple of 8, 8 to 256. Where
// `accumulate` is false d is overwritten. All 128 threads of the warpgroup, with the same
// descriptors.
//   wgmma_bf16(d, descriptor_a, descriptor_b, accumulate)
//   wgmma_bf16(d, a, descriptor_b, accumulate)       A in registers: of the 64 x 16 tile, a[i]
//   holds
//       row 16w + g + 8 * (i % 2), columns 2t + 8 * (i / 2) and the next
//   wgmma_e4m3(d, descriptor_a, descriptor_b, accumulate)   m64nNk32 on codes of one byte
// wgmma_bf16<Major::kMN, ...> says that A, or B, is MN-major.
// clang-format off
#define MOE_D4(i) "+f"(d[(i)]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define MOE_D8(i) MOE_D4(i), MOE_D4((i) + 4)
#define MOE_D16(i) MOE_D8(i), MOE_D8((i) + 8)
#define MOE_D32(i) MOE_D16(i), MOE_D16((i) + 16)
#define MOE_D64(i) MOE_D32(i), MOE_D32((i) + 32)
#define MOE_P4 "%0,%1,%2,%3"
#define MOE_P8 MOE_P4 ",%4,%5,%6,%7"
#define MOE_P12 MOE_P8 ",%8,%9,%10,%11"
#define MOE_P16 MOE_P12 ",%12,%13,%14,%15"
#define MOE_P20 MOE_P16 ",%16,%17,%18,%19"
#define MOE_P24 MOE_P20 ",%20,%21,%22,%23"
#define MOE_P28 MOE_P24 ",%24,%25,%26,%27"
#define MOE_P32 MOE_P28 ",%28,%29,%30,%31"
#define MOE_P36 MOE_P32 ",%32,%33,%34,%35"
#define MOE_P40 MOE_P36 ",%36,%37,%38,%39"
#define MOE_P44 MOE_P40 ",%40,%41,%42,%43"
#define MOE_P48 MOE_P44 ",%44,%45,%46,%47"
#define MOE_P52 MOE_P48 ",%48,%49,%50,%51"
#define MOE_P56 MOE_P52 ",%52,%53,%54,%55"
#define MOE_P60 MOE_P56 ",%56,%57,%58,%59"
#define MOE_P64 MOE_P60 ",%60,%61,%62,%63"
#define MOE_P68 MOE_P64 ",%64,%65,%66,%67"
#define MOE_P72 MOE_P68 ",%68,%69,%70,%71"
#define MOE_P76 MOE_P72 ",%72,%73,%74,%75"
#define MOE_P80 MOE_P76 ",%76,%77,%78,%79"
#define MOE_P84 MOE_P80 ",%80,%81,%82,%83"
#define MOE_P88 MOE_P84 ",%84,%85,%86,%87"
#define MOE_P92 MOE_P88 ",%88,%89,%90,%91"
#define MOE_P96 MOE_P92 ",%92,%93,%94,%95"
#define MOE_P100 MOE_P96 ",%96,%97,%98,%99"
#define MOE_P104 MOE_P100 ",%100,%101,%102,%103"
#define MOE_P108 MOE_P104 ",%104,%105,%106,%107"
#define MOE_P112 MOE_P108 ",%108,%109,%110,%111"
#define MOE_P116 MOE_P112 ",%112,%113,%114,%115"
#define MOE_P120 MOE_P116 ",%116,%117,%118,%119"
#define MOE_P124 MOE_P120 ",%120,%121,%122,%123"
#define MOE_P128 MOE_P124 ",%124,%125,%126,%127"
// X(N, names of d, operands of d, the seven names that follow)
#define MOE_WGMMA_SHAPES(X) \
  X(8, MOE_P4, (MOE_D4(0)), "%4", "%5", "%6", "%7", "%8", "%9", "%10") \
  X(16, MOE_P8, (MOE_D8(0)), "%8", "%9", "%10", "%11", "%12", "%13", "%14") \
  X(24, MOE_P12, (MOE_D8(0), MOE_D4(8)), "%12", "%13", "%14", "%15", "%16", "%17", "%18") \
  X(32, MOE_P16, (MOE_D16(0)), "%16", "%17", "%18", "%19", "%20", "%21", "%22") \
  X(40, MOE_P20, (MOE_D16(0), MOE_D4(16)), "%20", "%21", "%22", "%23", "%24", "%25", "%26") \
  X(48, MOE_P24, (MOE_D16(0), MOE_D8(16)), "%24", "%25", "%26", "%27", "%28", "%29", "%30") \
  X(56, MOE_P28, (MOE_D16(0), MOE_D8(16), MOE_D4(24)), "%28", "%29", "%30", "%31", "%32", "%33", "%34") \
  X(64, MOE_P32, (MOE_D32(0)), "%32", "%33", "%34", "%35", "%36", "%37", "%38") \
  X(72, MOE_P36, (MOE_D32(0), MOE_D4(32)), "%36", "%37", "%38", "%39", "%40", "%41", "%42") \
  X(80, MOE_P40, (MOE_D32(0), MOE_D8(32)), "%40", "%41", "%42", "%43", "%44", "%45", "%46") \
  X(88, MOE_P44, (MOE_D32(0), MOE_D8(32), MOE_D4(40)), "%44", "%45", "%46", "%47", "%48", "%49", "%50") \
  X(96, MOE_P48, (MOE_D32(0), MOE_D16(32)), "%48", "%49", "%50", "%51", "%52", "%53", "%54") \
  X(104, MOE_P52, (MOE_D32(0), MOE_D16(32), MOE_D4(48)), "%52", "%53", "%54", "%55", "%56", "%57", "%58") \
  X(112, MOE_P56, (MOE_D32(0), MOE_D16(32), MOE_D8(48)), "%56", "%57", "%58", "%59", "%60", "%61", "%62") \
  X(120, MOE_P60, (MOE_D32(0), MOE_D16(32), MOE_D8(48), MOE_D4(56)), "%60", "%61", "%62", "%63", "%64", "%65", "%66") \
  X(128, MOE_P64, (MOE_D64(0)), "%64", "%65", "%66", "%67", "%68", "%69", "%70") \
  X(136, MOE_P68, (MOE_D64(0), MOE_D4(64)), "%68", "%69", "%70", "%71", "%72", "%73", "%74") \
  X(144, MOE_P72, (MOE_D64(0), MOE_D8(64)), "%72", "%73", "%74", "%75", "%76", "%77", "%78") \
  X(152, MOE_P76, (MOE_D64(0), MOE_D8(64), MOE_D4(72)), "%76", "%77", "%78", "%79", "%80", "%81", "%82") \
  X(160, MOE_P80, (MOE_D64(0), MOE_D16(64)), "%80", "%81", "%82", "%83", "%84", "%85", "%86") \
  X(168, MOE_P84, (MOE_D64(0), MOE_D16(64), MOE_D4(80)), "%84", "%85", "%86", "%87", "%88", "%89", "%90") \
  X(176, MOE_P88, (MOE_D64(0), MOE_D16(64), MOE_D8(80)), "%88", "%89", "%90", "%91", "%92", "%93", "%94") \
  X(184, MOE_P92, (MOE_D64(0), MOE_D16(64), MOE_D8(80), MOE_D4(88)), "%92", "%93", "%94", "%95", "%96", "%97", "%98") \
  X(192, MOE_P96, (MOE_D64(0), MOE_D32(64)), "%96", "%97", "%98", "%99", "%100", "%101", "%102") \
  X(200, MOE_P100, (MOE_D64(0), MOE_D32(64), MOE_D4(96)), "%100", "%101", "%102", "%103", "%104", "%105", "%106") \
  X(208, MOE_P104, (MOE_D64(0), MOE_D32(64), MOE_D8(96)), "%104", "%105", "%106", "%107", "%108", "%109", "%110") \
  X(216, MOE_P108, (MOE_D64(0), MOE_D32(64), MOE_D8(96), MOE_D4(104)), "%108", "%109", "%110", "%111", "%112", "%113", "%114") \
  X(224, MOE_P112, (MOE_D64(0), MOE_D32(64), MOE_D16(96)), "%112", "%113", "%114", "%115", "%116", "%117", "%118") \
  X(232, MOE_P116, (MOE_D64(0), MOE_D32(64), MOE_D16(96), MOE_D4(112)), "%116", "%117", "%118", "%119", "%120", "%121", "%122") \
  X(240, MOE_P120, (MOE_D64(0), MOE_D32(64), MOE_D16(96), MOE_D8(112)), "%120", "%121", "%122", "%123", "%124", "%125", "%126") \
  X(248, MOE_P124, (MOE_D64(0), MOE_D32(64), MOE_D16(96), MOE_D8(112), MOE_D4(120)), "%124", "%125", "%126", "%127", "%128", "%129", "%130") \
  X(256, MOE_P128, (MOE_D64(0), MOE_D64(64)), "%128", "%129", "%130", "%131", "%132", "%133", "%134") \

#define MOE_UNPACK(...) __VA_ARGS__
#define MOE_WGMMA(N, P, D, I0, I1, I2, I3, I4, I5, I6)                                             \
  template <Major A = Major::kK, Major B = Major::kK>                                              \
  __device__ __forceinline__ void wgmma_bf16(float (&d)[N / 2], uint64_t a, uint64_t b,            \
                                             bool accumulate) {                                    \
    MOE_SM90("{\n.reg .pred add;\nsetp.ne.b32 add, " I2 ", 0;\n"                                   \
             "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" P "}, " I0 ", " I1       \
             ", add, 1, 1, " I3 ", " I4 ";\n}"                                                     \
             : MOE_UNPACK D                                                                        \
             : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(A == Major::kMN),            \
               "n"(B == Major::kMN)                                                                \
             : "memory");                                                                          \
  }                                                                                                \
  template <Major B = Major::kK>                                                                   \
  __device__ __forceinline__ void wgmma_bf16(float (&d)[N / 2], const uint32_t (&a)[4],            \
                                             uint64_t b, bool accumulate) {                        \
    MOE_SM90("{\n.reg .pred add;\nsetp.ne.b32 add, " I5 ", 0;\n"                                   \
             "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32.bf16.bf16 {" P "}, {" I0 "," I1 "," I2\
             "," I3 "}, " I4 ", add, 1, 1, " I6 ";\n}"                                             \
             : MOE_UNPACK D                                                                        \
             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                                 \
               "r"(static_cast<int>(accumulate)), "n"(B == Major::kMN)                             \
             : "memory");                                                                          \
  }                                                                                                \
  __device__ __forceinline__ void wgmma_e4m3(float (&d)[N / 2], uint64_t a, uint64_t b,            \
                                             bool accumulate) {                                    \
    MOE_SM90("{\n.reg .pred add;\nsetp.ne.b32 add, " I2 ", 0;\n"                                   \
             "wgmma.mma_async.sync.aligned.m64n" #N "k32.f32.e4m3.e4m3 {" P "}, " I0 ", " I1       \
             ", add, 1, 1;\n}"                                                                     \
             : MOE_UNPACK D                                                                        \
             : "l"(a), "l"(b), "r"(static_cast<int>(accumulate))                                   \
             : "memory");                                                                          \
  }
MOE_WGMMA_SHAPES(MOE_WGMMA)
#undef MOE_WGMMA
#undef MOE_UNPACK
#undef MOE_WGMMA_SHAPES
// clang-format on

}  // namespace moe
