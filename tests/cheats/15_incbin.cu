// Takes a file of the machine into the object.
// stage: m1_align
// base: none
// expect: RULE
// says: inline assembly is not allowed

asm(".section .rodata\n.incbin \"/etc/passwd\"\n.text\n");
static cudaError_t cheat(const Call&) { return cudaSuccess; }
