// CUDA's vector types and dim3.
#pragma once

// NAME1 .. NAME4 of scalar TYPE. ALIGN2 and ALIGN4 are CUDA's alignments of the pair and the four.
#define EMULATOR_VECTOR_TYPES(NAME, TYPE, ALIGN2, ALIGN4)            \
  struct NAME##1 {                                                   \
    TYPE x;                                                          \
  };                                                                 \
  struct alignas(ALIGN2) NAME##2 {                                   \
    TYPE x, y;                                                       \
  };                                                                 \
  struct NAME##3 {                                                   \
    TYPE x, y, z;                                                    \
  };                                                                 \
  struct alignas(ALIGN4) NAME##4 {                                   \
    TYPE x, y, z, w;                                                 \
  };                                                                 \
  constexpr NAME##1 make_##NAME##1(TYPE x) {                         \
    return {x};                                                      \
  }                                                                  \
  constexpr NAME##2 make_##NAME##2(TYPE x, TYPE y) {                 \
    return {x, y};                                                   \
  }                                                                  \
  constexpr NAME##3 make_##NAME##3(TYPE x, TYPE y, TYPE z) {         \
    return {x, y, z};                                                \
  }                                                                  \
  constexpr NAME##4 make_##NAME##4(TYPE x, TYPE y, TYPE z, TYPE w) { \
    return {x, y, z, w};                                             \
  }

EMULATOR_VECTOR_TYPES(char, signed char, 2, 4)
EMULATOR_VECTOR_TYPES(uchar, unsigned char, 2, 4)
EMULATOR_VECTOR_TYPES(short, short, 4, 8)
EMULATOR_VECTOR_TYPES(ushort, unsigned short, 4, 8)
EMULATOR_VECTOR_TYPES(int, int, 8, 16)
EMULATOR_VECTOR_TYPES(uint, unsigned int, 8, 16)
EMULATOR_VECTOR_TYPES(longlong, long long, 16, 16)
EMULATOR_VECTOR_TYPES(ulonglong, unsigned long long, 16, 16)
EMULATOR_VECTOR_TYPES(float, float, 8, 16)
EMULATOR_VECTOR_TYPES(double, double, 16, 16)

#undef EMULATOR_VECTOR_TYPES

struct dim3 {
  unsigned int x, y, z;

  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
      : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
