/* moe_drills.h: the solutions of the drills as a library with a C interface (C99 and newer, C++).
 *
 *   find_package(moe_drills REQUIRED)
 *   target_link_libraries(your_program PRIVATE moe_drills::moe_drills)
 *
 * What every function shares:
 *   - Pointers are device pointers, dense and row-major; those to bf16 and e4m3 are 16-byte
 * aligned, a workspace is 256-byte aligned (NULL where its size is 0). In a library of the cpu
 * backend, the emulator, host memory stands for device memory.
 *   - `stream` is a cudaStream_t, or NULL for the default stream. Work is only put on it: no
 * function waits, allocates or keeps anything between calls, and all may be captured in a CUDA
 * graph.
 *   - Dimension letters as in the drills: T num_tokens, E num_experts, K top_k, H hidden_size,
 *     I intermediate_size, N columns of a GEMM's output, D its depth. A (token, slot) pair has the
 *     number flat_id = token * K + slot. Sizes count elements, `_bytes` bytes.
 *   - Inputs are never written; outputs must not alias inputs. T = 0 is legal.
 *   - The result is 0, or the value of a cudaError_t. MOE_DRILLS_INVALID_VALUE means that an
 * argument breaks a rule and nothing was launched. moe_drills_last_error() says which rule, or what
 * CUDA reported. A fault inside a kernel shows in a later call or when you synchronise, as always.
 *   - Functions that return a size or a tile have no error: for T < 0, E < 1, K outside 1..E and
 * the like they return zeros. The whole meaning of each function stands in the contract of its
 * stage, drills/mN_topic.h.
 */
#ifndef MOE_DRILLS_H
#define MOE_DRILLS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MOE_DRILLS_API __attribute__((visibility("default")))
#else
#define MOE_DRILLS_API
#endif

/* Changes when a function or a struct changes; compare with moe_drills_abi_version(). */
#define MOE_DRILLS_ABI_VERSION 1

#define MOE_DRILLS_SUCCESS 0
#define MOE_DRILLS_INVALID_VALUE 1 /* cudaErrorInvalidValue */

/* Which row of A a flat id reads: GEMM1 gathers tokens (flat_id / K), GEMM2 has a row for each. */
#define MOE_DRILLS_ROWS_TOKENS 0
#define MOE_DRILLS_ROWS_SLOTS 1

#ifdef __cplusplus
extern "C" {
#endif

typedef uint16_t moe_drills_bf16; /* the bits of a bfloat16 */
typedef uint8_t moe_drills_e4m3;  /* the code of an 8-bit float, e4m3fn */

/* ---- about the library */

/* MOE_DRILLS_ABI_VERSION of the library that is loaded. */
MOE_DRILLS_API int moe_drills_abi_version(void);

/* "cuda" or "cpu" (the emulator). */
MOE_DRILLS_API const char* moe_drills_backend(void);

/* What the last call of this thread that returned a status had to say: "" after success, else
 * "function: sentence". Valid until the thread's next call. Never NULL. */
MOE_DRILLS_API const char* moe_drills_last_error(void);

/* ---- the whole layer, by the stage that serves these sizes best */

/* The stage behind moe_drills_moe_layer for these sizes on the current device: "m9" for
 * T <= 64, above "m8" where the compute capability is 9.0, else "m4". */
MOE_DRILLS_API const char* moe_drills_moe_layer_stage(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

/* Bytes of scratch memory that the layer wants. */
MOE_DRILLS_API size_t moe_drills_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

/* out[t] = sum over the K best experts e of t:  weight * w2[e] (silu(w1[e] x[t]) * (w3[e] x[t]))
 * Weights are the softmax of the logits over all E, with `renormalize` divided by their sum over
 * the K. w13[e] holds the I rows of w1 (gate), then the I rows of w3 (up). bf16 in and out, fp32
 * inside, the same bytes in every run. H % 8 == 0, I % 8 == 0, E <= 1024, K <= 32, K <= E. */
MOE_DRILLS_API int moe_drills_moe_layer(moe_drills_bf16* out,       /* [T, H] */
                                        const moe_drills_bf16* x,   /* [T, H] */
                                        const float* logits,        /* [T, E] */
                                        const moe_drills_bf16* w13, /* [E, 2I, H] */
                                        const moe_drills_bf16* w2,  /* [E, H, I] */
                                        int num_tokens,
                                        int num_experts,
                                        int top_k,
                                        int hidden_size,
                                        int intermediate_size,
                                        int renormalize, /* 0 or 1 */
                                        void* workspace,
                                        size_t workspace_bytes,
                                        void* stream);

/* The same layer on 8-bit codes, by m10: only on a GPU of capability 9.0, refused elsewhere. w13
 * and w2 are codes with a scale for each 128 x 128, as m5_quantize_weights makes them; x and what
 * lies between the GEMMs is quantised inside, a scale for each row and 128 columns. H % 128 == 0,
 * I % 128 == 0, T * H < 2^32. */
MOE_DRILLS_API size_t moe_drills_moe_layer_fp8_workspace_bytes(int num_tokens,
                                                               int num_experts,
                                                               int top_k,
                                                               int hidden_size,
                                                               int intermediate_size,
                                                               int out_fp32);
MOE_DRILLS_API int moe_drills_moe_layer_fp8(void* out,                /* [T, H], float or bf16 */
                                            int out_fp32,             /* 1: out is float */
                                            const moe_drills_bf16* x, /* [T, H] */
                                            const float* logits,      /* [T, E] */
                                            const moe_drills_e4m3* w13_codes, /* [E, 2I, H] */
                                            const float* w13_scales, /* [E, 2I/128, H/128] */
                                            const moe_drills_e4m3* w2_codes, /* [E, H, I] */
                                            const float* w2_scales,          /* [E, H/128, I/128] */
                                            int num_tokens,
                                            int num_experts,
                                            int top_k,
                                            int hidden_size,
                                            int intermediate_size,
                                            int renormalize, /* 0 or 1 */
                                            void* workspace,
                                            size_t workspace_bytes,
                                            void* stream);

/* ---- m1_align: routing, and the table that the GEMMs walk */

/* Ids in descending logit, the lower id first among equals; weights as said above. */
MOE_DRILLS_API int moe_drills_m1_route(int32_t* topk_ids,   /* [T, K] */
                                       float* topk_weights, /* [T, K] */
                                       const float* logits, /* [T, E] */
                                       int num_tokens,
                                       int num_experts,
                                       int top_k,
                                       int renormalize, /* 0 or 1 */
                                       void* stream);

/* Entries of sorted_token_ids; capacity / block_m is the length of expert_ids. */
MOE_DRILLS_API size_t moe_drills_m1_align_capacity(int num_tokens,
                                                   int top_k,
                                                   int num_experts,
                                                   int block_m);

MOE_DRILLS_API size_t moe_drills_m1_align_workspace_bytes(int num_tokens,
                                                          int top_k,
                                                          int num_experts,
                                                          int block_m);

/* Flat ids by expert, each expert's rows padded to whole blocks with the id T*K; behind the end the
 * pad id and expert -1. block_m is 1 to 256. */
MOE_DRILLS_API int moe_drills_m1_align(int32_t* sorted_token_ids,       /* [capacity] */
                                       int32_t* expert_ids,             /* [capacity / block_m] */
                                       int32_t* num_tokens_post_padded, /* [1] */
                                       const int32_t* topk_ids,         /* [T, K] */
                                       int num_tokens,
                                       int top_k,
                                       int num_experts,
                                       int block_m,
                                       void* workspace,
                                       size_t workspace_bytes,
                                       void* stream);

/* ---- m2_grouped_gemm */

/* out[flat_id] = a[row] * w[expert]^T, fp32 sums, one rounding; rows of out that no flat id names
 * stay as they are. N % 8 == 0, D % 8 == 0; block_m is 16, 32, 64 or 128, as align was told. */
MOE_DRILLS_API int moe_drills_m2_grouped_gemm(
    moe_drills_bf16* out,                  /* [T*K, N] */
    const moe_drills_bf16* a,              /* [T, D] or [T*K, D], see rows */
    const moe_drills_bf16* w,              /* [E, N, D] */
    const int32_t* sorted_token_ids,       /* [capacity] */
    const int32_t* expert_ids,             /* [capacity / block_m] */
    const int32_t* num_tokens_post_padded, /* [1] */
    int num_tokens,
    int top_k,
    int num_experts,
    int n,
    int depth,
    int block_m,
    int rows, /* MOE_DRILLS_ROWS_... */
    void* stream);

/* ---- m3_weighted_epilogue */

/* h = silu(gate) * up of each row. I % 8 == 0. */
MOE_DRILLS_API int moe_drills_m3_silu_and_mul(moe_drills_bf16* h,             /* [T*K, I] */
                                              const moe_drills_bf16* gate_up, /* [T*K, 2I] */
                                              int num_ids,                    /* T*K */
                                              int intermediate_size,
                                              void* stream);

/* m2's GEMM with each fp32 sum times topk_weights[flat_id] before it is rounded. */
MOE_DRILLS_API int moe_drills_m3_grouped_gemm_weighted(
    moe_drills_bf16* out,                  /* [T*K, N] */
    const moe_drills_bf16* a,              /* [T, D] or [T*K, D], see rows */
    const moe_drills_bf16* w,              /* [E, N, D] */
    const float* topk_weights,             /* [T, K] */
    const int32_t* sorted_token_ids,       /* [capacity] */
    const int32_t* expert_ids,             /* [capacity / block_m] */
    const int32_t* num_tokens_post_padded, /* [1] */
    int num_tokens,
    int top_k,
    int num_experts,
    int n,
    int depth,
    int block_m,
    int rows, /* MOE_DRILLS_ROWS_... */
    void* stream);

/* out[t] = sum of y's rows of token t whose id is in [0, E), slots in ascending order. H % 8 == 0.
 */
MOE_DRILLS_API int moe_drills_m3_combine(moe_drills_bf16* out,     /* [T, H] */
                                         const moe_drills_bf16* y, /* [T*K, H] */
                                         const int32_t* topk_ids,  /* [T, K] */
                                         int num_tokens,
                                         int top_k,
                                         int hidden_size,
                                         int num_experts,
                                         void* stream);

/* moe_drills_moe_layer by this stage, whatever would be best. */
MOE_DRILLS_API size_t moe_drills_m3_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);
MOE_DRILLS_API int moe_drills_m3_moe_layer(moe_drills_bf16* out,       /* [T, H] */
                                           const moe_drills_bf16* x,   /* [T, H] */
                                           const float* logits,        /* [T, E] */
                                           const moe_drills_bf16* w13, /* [E, 2I, H] */
                                           const moe_drills_bf16* w2,  /* [E, H, I] */
                                           int num_tokens,
                                           int num_experts,
                                           int top_k,
                                           int hidden_size,
                                           int intermediate_size,
                                           int renormalize, /* 0 or 1 */
                                           void* workspace,
                                           size_t workspace_bytes,
                                           void* stream);

/* ---- m4_group_m */

typedef struct {
  int m; /* which block of rows */
  int n; /* which range of columns */
} moe_drills_tile_coordinates;

typedef struct {
  int block_n;
  int block_k;
  int group_m; /* rows of tiles in a group */
} moe_drills_gemm_tile;

typedef struct {
  int block_m;
  moe_drills_gemm_tile gemm1;
  moe_drills_gemm_tile gemm2;
} moe_drills_tile;

/* The arguments of moe_drills_m4_grouped_gemm; start from one that is all zeros. */
typedef struct {
  moe_drills_bf16* out;                  /* [T*K, N] */
  const moe_drills_bf16* a;              /* [T, D] or [T*K, D], see rows */
  const moe_drills_bf16* w;              /* [E, N, D]; with swiglu [E, 2N, D]: gate, then up rows */
  const float* topk_weights;             /* [T, K]: each fp32 sum times this; or NULL */
  const int32_t* sorted_token_ids;       /* [capacity] */
  const int32_t* expert_ids;             /* [capacity / block_m] */
  const int32_t* num_tokens_post_padded; /* [1] */
  int num_tokens;
  int top_k;
  int num_experts;
  int n;
  int depth;
  int block_m;
  moe_drills_gemm_tile tile; /* with block_m one that the library is compiled for, as pick_tile's */
  int rows;                  /* MOE_DRILLS_ROWS_... */
  int swiglu;                /* 1: out = silu(a * gate^T) * (a * up^T), weights not used */
} moe_drills_m4_gemm;

/* The tile that program `pid` of num_pid_m * num_pid_n computes; group_m >= 1. */
MOE_DRILLS_API moe_drills_tile_coordinates moe_drills_m4_tile_of(int pid,
                                                                 int num_pid_m,
                                                                 int num_pid_n,
                                                                 int group_m);

/* tiles[pid] = tile_of(pid, ...) for all pids, computed on the device. */
MOE_DRILLS_API int moe_drills_m4_list_tiles(
    moe_drills_tile_coordinates* tiles, /* [num_pid_m * num_pid_n] */
    int num_pid_m,
    int num_pid_n,
    int group_m,
    void* stream);

MOE_DRILLS_API moe_drills_tile moe_drills_m4_pick_tile(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

MOE_DRILLS_API int moe_drills_m4_grouped_gemm(const moe_drills_m4_gemm* gemm, void* stream);

/* moe_drills_moe_layer by this stage, whatever would be best. */
MOE_DRILLS_API size_t moe_drills_m4_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);
MOE_DRILLS_API int moe_drills_m4_moe_layer(moe_drills_bf16* out,       /* [T, H] */
                                           const moe_drills_bf16* x,   /* [T, H] */
                                           const float* logits,        /* [T, E] */
                                           const moe_drills_bf16* w13, /* [E, 2I, H] */
                                           const moe_drills_bf16* w2,  /* [E, H, I] */
                                           int num_tokens,
                                           int num_experts,
                                           int top_k,
                                           int hidden_size,
                                           int intermediate_size,
                                           int renormalize, /* 0 or 1 */
                                           void* workspace,
                                           size_t workspace_bytes,
                                           void* stream);

/* ---- m5_block_fp8 */

/* The least power of two >= scale, for a normal scale > 0 up to 2^127. On the host. */
MOE_DRILLS_API float moe_drills_m5_power_of_two_at_least(float scale);

/* Codes and scales of rows, one scale for each 128 values of a row. num_rows >= 0, D % 16 == 0. */
MOE_DRILLS_API int moe_drills_m5_quantize_rows(moe_drills_e4m3* codes, /* [rows, D] */
                                               float* scales,          /* [rows, ceil(D/128)] */
                                               const moe_drills_bf16* values, /* [rows, D] */
                                               int num_rows,
                                               int depth,
                                               int power_of_two, /* 1: scales are powers of two */
                                               void* stream);

/* The same with one scale for each 128 x 128. N % 8 == 0, D % 16 == 0. */
MOE_DRILLS_API int moe_drills_m5_quantize_weights(moe_drills_e4m3* codes, /* [E, N, D] */
                                                  float* scales, /* [E, ceil(N/128), ceil(D/128)] */
                                                  const moe_drills_bf16* w, /* [E, N, D] */
                                                  int num_experts,
                                                  int n,
                                                  int depth,
                                                  int power_of_two,
                                                  void* stream);

/* m2's GEMM on codes: each 128 of D is summed apart, times both scales, added in fp32; times
 * topk_weights[flat_id] where that is not NULL. D % 16 == 0, N % 8 == 0, block_m as in m2. */
MOE_DRILLS_API int moe_drills_m5_grouped_gemm_fp8(
    void* out,                             /* [T*K, N], float or bf16 */
    int out_fp32,                          /* 1: out is float */
    const moe_drills_e4m3* a_codes,        /* [T, D] or [T*K, D], see rows */
    const float* a_scales,                 /* [T or T*K, ceil(D/128)] */
    const moe_drills_e4m3* w_codes,        /* [E, N, D] */
    const float* w_scales,                 /* [E, ceil(N/128), ceil(D/128)] */
    const float* topk_weights,             /* [T, K] or NULL */
    const int32_t* sorted_token_ids,       /* [capacity] */
    const int32_t* expert_ids,             /* [capacity / block_m] */
    const int32_t* num_tokens_post_padded, /* [1] */
    int num_tokens,
    int top_k,
    int num_experts,
    int n,
    int depth,
    int block_m,
    int rows, /* MOE_DRILLS_ROWS_... */
    void* stream);

/* ---- m8_persistent */

/* The layer by kernels that overlap, for capability 9.0 only. */
MOE_DRILLS_API size_t moe_drills_m8_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);
MOE_DRILLS_API int moe_drills_m8_moe_layer(moe_drills_bf16* out,       /* [T, H] */
                                           const moe_drills_bf16* x,   /* [T, H] */
                                           const float* logits,        /* [T, E] */
                                           const moe_drills_bf16* w13, /* [E, 2I, H] */
                                           const moe_drills_bf16* w2,  /* [E, H, I] */
                                           int num_tokens,
                                           int num_experts,
                                           int top_k,
                                           int hidden_size,
                                           int intermediate_size,
                                           int renormalize, /* 0 or 1 */
                                           void* workspace,
                                           size_t workspace_bytes,
                                           void* stream);

/* ---- m9_decode */

/* The layer for T <= 64, bound by the bytes of the weights. */
MOE_DRILLS_API size_t moe_drills_m9_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);
MOE_DRILLS_API int moe_drills_m9_moe_layer(moe_drills_bf16* out,       /* [T, H] */
                                           const moe_drills_bf16* x,   /* [T, H] */
                                           const float* logits,        /* [T, E] */
                                           const moe_drills_bf16* w13, /* [E, 2I, H] */
                                           const moe_drills_bf16* w2,  /* [E, H, I] */
                                           int num_tokens,
                                           int num_experts,
                                           int top_k,
                                           int hidden_size,
                                           int intermediate_size,
                                           int renormalize, /* 0 or 1 */
                                           void* workspace,
                                           size_t workspace_bytes,
                                           void* stream);

#ifdef __cplusplus
}
#endif

#endif /* MOE_DRILLS_H */
