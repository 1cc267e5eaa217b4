# Warnings and flags, as INTERFACE targets. Errors only where CMAKE_COMPILE_WARNING_AS_ERROR says so (CI).

# Every sum rounds at each step: left alone, g++ makes a*b + c one operation where the processor has it, which
# aarch64 always does, and results would depend on the processor. (nvcc does as it likes.)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)

# Host-only code: C++20.
add_library(host_options INTERFACE)
target_compile_features(host_options INTERFACE cxx_std_20)
target_compile_options(host_options INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor
                                              -Wpedantic)

# Kernel files and what is linked with them: C++17, for g++, clang++ and nvcc. No sign-conversion (part of
# clang's -Wconversion): dim3 takes unsigned, sizes are int. No psabi: tensor maps are passed by value.
add_library(kernel_options INTERFACE)
target_compile_features(kernel_options INTERFACE cxx_std_17)
target_compile_options(
  kernel_options
  INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion;-Wno-unknown-pragmas;-Wno-psabi>"
            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow;-Wreorder;-lineinfo>")
target_include_directories(kernel_options INTERFACE "${PROJECT_SOURCE_DIR}")
# Reports name files as a learner does: mine/m2_grouped_gemm.cu.
target_compile_options(kernel_options
                       INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>")

# What runs in kernels, in the tree cpu-traced: -fsanitize=thread as a way to be called at each access; the
# functions are ours (emulator/src/thread_hooks.cpp), the sanitizer's runtime is not linked. Structs must stay
# whole: a uint4 is one access of 16 bytes.
add_library(traced_options INTERFACE)
if(DRILL_TRACED)
  target_compile_options(traced_options INTERFACE -fsanitize=thread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(traced_options INTERFACE -fno-tree-sra -fno-ipa-sra
                                                    --param=tsan-instrument-func-entry-exit=0)
  else()  # compiles, but sees no copy of a struct: clang 14 makes it a call of memcpy
    target_compile_options(
      traced_options INTERFACE "SHELL:-mllvm -tsan-instrument-func-entry-exit=0"
                               "SHELL:-mllvm -tsan-instrument-read-before-write=1")
  endif()
endif()

# A file with blanks has variables that nobody uses yet. Linked after kernel_options: the last flag wins.
add_library(skeleton_options INTERFACE)
set(skeleton_flags -Wno-unused-parameter -Wno-unused-variable -Wno-unused-function
                   -Wno-unused-but-set-variable -Wno-unused-local-typedefs)
string(REPLACE ";" "," skeleton_flags_of_nvcc "${skeleton_flags}")
target_compile_options(
  skeleton_options
  INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${skeleton_flags}>"
            "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${skeleton_flags_of_nvcc};-diag-suppress=177,550>")
