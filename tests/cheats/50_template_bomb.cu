// Takes the compiler's time and memory.
// stage: m1_align
// base: none
// expect: BUILD

template <int N, int M>
struct Bomb {
  static constexpr int value = Bomb<N - 1, M>::value + Bomb<N - 1, M * 2 + 1>::value;
};
template <int M>
struct Bomb<0, M> {
  static constexpr int value = M;
};
static_assert(Bomb<30, 0>::value != 1);
static cudaError_t cheat(const Call&) { return cudaSuccess; }
