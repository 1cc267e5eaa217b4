// Our solution as it is.
// stage: m2_grouped_gemm
// base: file
// expect: PASS


