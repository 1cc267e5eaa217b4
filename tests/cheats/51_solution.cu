// Our solution as it is.
// stage: m1_align
// base: file
// expect: PASS


