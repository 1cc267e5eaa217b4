// The file as it was handed out.
// stage: m1_align
// base: skeleton
// expect: TODO
// says: m1.count


