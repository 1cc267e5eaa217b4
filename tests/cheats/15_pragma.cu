// Renames a symbol behind the linker's back.
// stage: m1_align
// base: solution
// expect: RULE
// says: of all pragmas only unroll is allowed

#pragma redefine_extname cheat_name recvmsg
static cudaError_t cheat(const Call& call) { return honest(call); }
