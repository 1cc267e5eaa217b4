/* The tiny example of the contracts through the C interface: numbers, then refusals. Prints what it
 * checks; the exit code is the number of failures. */
#define _POSIX_C_SOURCE 200112L /* posix_memalign */

#include <math.h>
#include <moe_drills.h>
#include <stdint.h>

#include "device_memory.h"

enum { T = 4, K = 2, E = 3, H = 16, I = 24, BLOCK_M = 16 };
enum { IDS = T * K };

static int failures = 0;

static void check(int right, const char* what) {
  printf("%-6s %s\n", right ? "ok" : "FAILED", what);
  if (!right) ++failures;
}

static void succeeds(int status, const char* what) {
  if (status != MOE_DRILLS_SUCCESS || moe_drills_last_error()[0] != '\0') {
    printf("FAILED %s: %d, %s\n", what, status, moe_drills_last_error());
    ++failures;
  }
}

static void is_refused(int status, const char* sentence) {
  const int right =
      status == MOE_DRILLS_INVALID_VALUE && strcmp(moe_drills_last_error(), sentence) == 0;
  check(right, sentence);
  if (!right) printf("       got %d, \"%s\"\n", status, moe_drills_last_error());
}

static float value_of(moe_drills_bf16 bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value = 0.0f;
  memcpy(&value, &wide, sizeof value);
  return value;
}

/* Exact for the small multiples of 1/8 that are used here. */
static moe_drills_bf16 bf16_of(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return (moe_drills_bf16)(bits >> 16);
}

static moe_drills_bf16* bf16_array(float (*value)(int), int count) {
  moe_drills_bf16 values[E * 2 * I * H];
  for (int i = 0; i < count; ++i) values[i] = bf16_of(value(i));
  return device_array(values, (size_t)count * sizeof values[0]);
}

static float x_at(int i) {
  return (float)(i * 7 % 11 - 5) / 8.0f;
}
static float w13_at(int i) {
  return (float)(i * 5 % 13 - 6) / 8.0f;
}
static float w2_at(int i) {
  return (float)(i * 3 % 7 - 3) / 8.0f;
}

/* topk_ids = {0,1, 1,2, 0,2, 1,0}, the example of m1_align.h: slots in descending logit. */
static const float kLogits[T * E] = {2, 1, 0, 0, 2, 1, 2, 0, 1, 1, 2, 0};
static const int32_t kTopkIds[IDS] = {0, 1, 1, 2, 0, 2, 1, 0};

/* The layer in double; weights are softmax over two logits that differ by 1. */
static double layer_at(int token, int column) {
  const double first = 1.0 / (1.0 + exp(-1.0));
  double sum = 0.0;
  for (int slot = 0; slot < K; ++slot) {
    const int expert = kTopkIds[token * K + slot];
    double y = 0.0;
    for (int i = 0; i < I; ++i) {
      double gate = 0.0;
      double up = 0.0;
      for (int d = 0; d < H; ++d) {
        const double x = x_at(token * H + d);
        gate += x * w13_at((expert * 2 * I + i) * H + d);
        up += x * w13_at((expert * 2 * I + I + i) * H + d);
      }
      y += gate / (1.0 + exp(-gate)) * up * w2_at((expert * H + column) * I + i);
    }
    sum += (slot == 0 ? first : 1.0 - first) * y;
  }
  return sum;
}

static int is_right(const moe_drills_bf16* device_out) {
  moe_drills_bf16 out[T * H];
  copy_back(out, device_out, sizeof out);
  double error = 0.0;
  double size = 0.0;
  for (int t = 0; t < T; ++t) {
    for (int c = 0; c < H; ++c) {
      const double want = layer_at(t, c);
      error += pow(value_of(out[t * H + c]) - want, 2);
      size += want * want;
    }
  }
  return size > 1.0 && sqrt(error) <= 1e-2 * sqrt(size); /* false for NaN */
}

static int are_equal(const moe_drills_bf16* a, const moe_drills_bf16* b) {
  moe_drills_bf16 host[2][T * H];
  copy_back(host[0], a, sizeof host[0]);
  copy_back(host[1], b, sizeof host[1]);
  return memcmp(host[0], host[1], sizeof host[0]) == 0;
}

struct Layer {
  float* logits;
  moe_drills_bf16 *x, *w13, *w2;
  moe_drills_bf16* out[4]; /* by moe_layer, m3, m4, and step by step */
};

static void run_layers(struct Layer* l) {
  size_t bytes = moe_drills_moe_layer_workspace_bytes(T, E, K, H, I);
  void* workspace = device_array(NULL, bytes);
  succeeds(moe_drills_moe_layer(l->out[0], l->x, l->logits, l->w13, l->w2, T, E, K, H, I, 1,
                                workspace, bytes, NULL),
           "moe_layer");
  check(is_right(l->out[0]), "moe_layer gives the layer");
  is_refused(moe_drills_moe_layer(l->out[0], l->x, l->logits, l->w13, l->w2, T, E, K, H, I, 1,
                                  workspace, bytes - 1, NULL),
             "moe_layer: workspace_bytes must be at least moe_layer_workspace_bytes(...)");
  is_refused(moe_drills_moe_layer(l->out[0], l->x, l->logits, l->w13, l->w2, T, E, E + 1, H, I, 1,
                                  workspace, bytes, NULL),
             "moe_layer: top_k must not exceed num_experts");

  bytes = moe_drills_m3_moe_layer_workspace_bytes(T, E, K, H, I);
  workspace = device_array(NULL, bytes);
  succeeds(moe_drills_m3_moe_layer(l->out[1], l->x, l->logits, l->w13, l->w2, T, E, K, H, I, 1,
                                   workspace, bytes, NULL),
           "m3_moe_layer");
  check(is_right(l->out[1]), "m3_moe_layer gives the layer");

  bytes = moe_drills_m4_moe_layer_workspace_bytes(T, E, K, H, I);
  workspace = device_array(NULL, bytes);
  succeeds(moe_drills_m4_moe_layer(l->out[2], l->x, l->logits, l->w13, l->w2, T, E, K, H, I, 1,
                                   workspace, bytes, NULL),
           "m4_moe_layer");
  check(is_right(l->out[2]), "m4_moe_layer gives the layer");
}

struct Table {
  int32_t *topk_ids, *sorted_token_ids, *expert_ids, *num_tokens_post_padded;
  float* topk_weights;
};

/* m1; with blocks of two rows the table is the one in m1_align.h. */
static struct Table route_and_align(const struct Layer* l, int block_m) {
  struct Table t;
  const size_t capacity = moe_drills_m1_align_capacity(T, K, E, block_m);
  const size_t bytes = moe_drills_m1_align_workspace_bytes(T, K, E, block_m);
  t.topk_ids = device_array(NULL, IDS * sizeof(int32_t));
  t.topk_weights = device_array(NULL, IDS * sizeof(float));
  t.sorted_token_ids = device_array(NULL, capacity * sizeof(int32_t));
  t.expert_ids = device_array(NULL, capacity / (size_t)block_m * sizeof(int32_t));
  t.num_tokens_post_padded = device_array(NULL, sizeof(int32_t));
  succeeds(moe_drills_m1_route(t.topk_ids, t.topk_weights, l->logits, T, E, K, 1, NULL),
           "m1_route");
  succeeds(
      moe_drills_m1_align(t.sorted_token_ids, t.expert_ids, t.num_tokens_post_padded, t.topk_ids, T,
                          K, E, block_m, device_array(NULL, bytes), bytes, NULL),
      "m1_align");
  return t;
}

static void check_table(const struct Layer* l) {
  const struct Table t = route_and_align(l, 2);
  int32_t ids[IDS], experts[5], padded = 0, sorted[10], sums[3] = {0, 0, 0};
  float weights[IDS];
  copy_back(ids, t.topk_ids, sizeof ids);
  copy_back(weights, t.topk_weights, sizeof weights);
  copy_back(experts, t.expert_ids, sizeof experts);
  copy_back(&padded, t.num_tokens_post_padded, sizeof padded);
  copy_back(sorted, t.sorted_token_ids, sizeof sorted);
  check(memcmp(ids, kTopkIds, sizeof ids) == 0, "m1_route chooses the experts of the example");
  check(fabsf(weights[0] - 0.7310586f) < 1e-5f, "m1_route gives 1 / (1 + 1/e) to the first");
  check(moe_drills_m1_align_capacity(T, K, E, 2) == 10 && padded == 10, "ten rows");
  const int32_t want[5] = {0, 0, 1, 1, 2};
  check(memcmp(experts, want, sizeof want) == 0, "m1_align: blocks of experts 0 0 1 1 2");
  for (int i = 0; i < 10; ++i) sums[experts[i / 2]] += sorted[i]; /* any order inside an expert */
  check(sums[0] == 0 + 4 + 7 + 8 && sums[1] == 1 + 2 + 6 + 8 && sums[2] == 3 + 5,
        "m1_align: the rows of each expert");
}

/* Both GEMMs of the layer by m4, SwiGLU in the first. */
static void check_m4(struct Layer* l,
                     const struct Table* t,
                     moe_drills_bf16* h,
                     moe_drills_bf16* y) {
  const moe_drills_tile tile = moe_drills_m4_pick_tile(1, E, K, H, I);
  check(tile.block_m == BLOCK_M, "m4_pick_tile gives few tokens small tiles");
  moe_drills_m4_gemm gemm = {0};
  gemm.out = h;
  gemm.a = l->x;
  gemm.w = l->w13;
  gemm.sorted_token_ids = t->sorted_token_ids;
  gemm.expert_ids = t->expert_ids;
  gemm.num_tokens_post_padded = t->num_tokens_post_padded;
  gemm.num_tokens = T;
  gemm.top_k = K;
  gemm.num_experts = E;
  gemm.n = I;
  gemm.depth = H;
  gemm.block_m = tile.block_m;
  gemm.tile = tile.gemm1;
  gemm.swiglu = 1;
  succeeds(moe_drills_m4_grouped_gemm(&gemm, NULL), "m4_grouped_gemm, SwiGLU");
  gemm.out = y;
  gemm.a = h;
  gemm.w = l->w2;
  gemm.topk_weights = t->topk_weights;
  gemm.n = H;
  gemm.depth = I;
  gemm.tile = tile.gemm2;
  gemm.rows = MOE_DRILLS_ROWS_SLOTS;
  gemm.swiglu = 0;
  succeeds(moe_drills_m4_grouped_gemm(&gemm, NULL), "m4_grouped_gemm, weighted");
  succeeds(moe_drills_m3_combine(l->out[3], y, t->topk_ids, T, K, H, E, NULL), "m3_combine");
  check(is_right(l->out[3]), "m4_grouped_gemm twice gives the layer");
}

/* The layer by its steps: m1, m2, m3; then with the GEMMs of m4. */
static void check_steps(struct Layer* l) {
  const struct Table t = route_and_align(l, BLOCK_M);
  moe_drills_bf16* gate_up = device_array(NULL, IDS * 2 * I * sizeof *gate_up);
  moe_drills_bf16* h = device_array(NULL, IDS * I * sizeof *h);
  moe_drills_bf16* y = device_array(NULL, IDS * H * sizeof *y);
  succeeds(moe_drills_m2_grouped_gemm(gate_up, l->x, l->w13, t.sorted_token_ids, t.expert_ids,
                                      t.num_tokens_post_padded, T, K, E, 2 * I, H, BLOCK_M,
                                      MOE_DRILLS_ROWS_TOKENS, NULL),
           "m2_grouped_gemm");
  succeeds(moe_drills_m3_silu_and_mul(h, gate_up, IDS, I, NULL), "m3_silu_and_mul");
  succeeds(moe_drills_m3_grouped_gemm_weighted(y, h, l->w2, t.topk_weights, t.sorted_token_ids,
                                               t.expert_ids, t.num_tokens_post_padded, T, K, E, H,
                                               I, BLOCK_M, MOE_DRILLS_ROWS_SLOTS, NULL),
           "m3_grouped_gemm_weighted");
  succeeds(moe_drills_m3_combine(l->out[3], y, t.topk_ids, T, K, H, E, NULL), "m3_combine");
  check(are_equal(l->out[3], l->out[1]), "m1, m2 and m3 step by step give the bytes of m3's layer");
  check_m4(l, &t, h, y);
}

/* Rules come before everything else: no array is looked at. */
static void check_refusals(moe_drills_bf16* a) {
  is_refused(moe_drills_m2_grouped_gemm(a, a, a, NULL, NULL, NULL, T, K, E, 2 * I, H, 24,
                                        MOE_DRILLS_ROWS_TOKENS, NULL),
             "m2_grouped_gemm: block_m must be 16, 32, 64 or 128");
  is_refused(
      moe_drills_m2_grouped_gemm(a, a, a, NULL, NULL, NULL, T, K, E, 2 * I, H, BLOCK_M, 2, NULL),
      "m2_grouped_gemm: rows must be MOE_DRILLS_ROWS_TOKENS or MOE_DRILLS_ROWS_SLOTS");
  is_refused(moe_drills_m3_silu_and_mul(a + 1, a, IDS, I, NULL),
             "m3_silu_and_mul: h and gate_up must be 16-byte aligned");
  is_refused(moe_drills_m3_combine(a, a, NULL, T, K, 12, E, NULL),
             "m3_combine: H must be a positive multiple of 8");
  is_refused(moe_drills_m1_route(NULL, NULL, NULL, T, 1025, K, 1, NULL),
             "m1_route: num_experts must not exceed 1024");
  moe_drills_m4_gemm gemm = {0};
  gemm.num_tokens = T;
  gemm.top_k = K;
  gemm.num_experts = E;
  gemm.n = gemm.depth = 16;
  gemm.block_m = 16;
  gemm.tile.block_n = 33;
  gemm.tile.block_k = 64;
  is_refused(moe_drills_m4_grouped_gemm(&gemm, NULL),
             "m4_grouped_gemm: block_m, block_n, block_k must be a line of kTileShapes");
  is_refused(moe_drills_m4_list_tiles(NULL, 5, 3, 0, NULL),
             "m4_list_tiles: group_m must be at least 1");
  is_refused(moe_drills_m5_quantize_rows(NULL, NULL, NULL, 1, 24, 0, NULL),
             "m5_quantize_rows: D must be a positive multiple of 16");
}

static void check_order(void) {
  moe_drills_tile_coordinates tiles[15];
  moe_drills_tile_coordinates* device_tiles = device_array(NULL, sizeof tiles);
  succeeds(moe_drills_m4_list_tiles(device_tiles, 5, 3, 2, NULL), "m4_list_tiles");
  copy_back(tiles, device_tiles, sizeof tiles);
  int right = tiles[7].m == 3 && tiles[7].n == 0 && tiles[14].m == 4 && tiles[14].n == 2;
  for (int pid = 0; pid < 15; ++pid) {
    const moe_drills_tile_coordinates tile = moe_drills_m4_tile_of(pid, 5, 3, 2);
    right = right && tile.m == tiles[pid].m && tile.n == tiles[pid].n;
  }
  check(right, "m4_tile_of and m4_list_tiles give the picture in m4_group_m.h");
}

static float ones(int i) {
  return i < 128 ? 448.0f : 224.0f; /* a row of 256: scales 1 and 1/2 */
}

/* The worked example of m5_block_fp8.h with w of 448: scales come from the quantisers. */
static void check_fp8(void) {
  enum { D = 256, N = 8 };
  float scales[2], out[N];
  moe_drills_bf16* a = bf16_array(ones, D);
  moe_drills_bf16* w = bf16_array(ones, D * N); /* row 0 as a, the others 224 */
  moe_drills_e4m3* a_codes = device_array(NULL, D);
  moe_drills_e4m3* w_codes = device_array(NULL, D * N);
  float* a_scales = device_array(NULL, sizeof scales);
  float* w_scales = device_array(NULL, sizeof scales);
  succeeds(moe_drills_m5_quantize_rows(a_codes, a_scales, a, 1, D, 0, NULL), "m5_quantize_rows");
  succeeds(moe_drills_m5_quantize_weights(w_codes, w_scales, w, 1, N, D, 0, NULL),
           "m5_quantize_weights");
  copy_back(scales, a_scales, sizeof scales);
  check(scales[0] == 1.0f && scales[1] == 0.5f, "m5_quantize_rows: scales 1 and 1/2");
  copy_back(scales, w_scales, sizeof scales);
  check(scales[0] == 1.0f && scales[1] == 0.5f, "m5_quantize_weights: scales 1 and 1/2");
  int32_t sorted[16], expert = 0, padded = 16;
  for (int i = 0; i < 16; ++i) sorted[i] = i == 0 ? 0 : 1;
  float* device_out = device_array(NULL, sizeof out);
  succeeds(moe_drills_m5_grouped_gemm_fp8(device_out, 1, a_codes, a_scales, w_codes, w_scales, NULL,
                                          device_array(sorted, sizeof sorted),
                                          device_array(&expert, sizeof expert),
                                          device_array(&padded, sizeof padded), 1, 1, 1, N, D,
                                          BLOCK_M, MOE_DRILLS_ROWS_TOKENS, NULL),
           "m5_grouped_gemm_fp8");
  copy_back(out, device_out, sizeof out);
  const float first = 128.0f * (448.0f * 448.0f + 224.0f * 224.0f);
  const float other = 128.0f * (448.0f * 224.0f + 224.0f * 224.0f);
  check(out[0] == first && out[1] == other && out[N - 1] == other,
        "m5_grouped_gemm_fp8: both scales");
  check(moe_drills_m5_power_of_two_at_least(0.75f) == 1.0f, "m5_power_of_two_at_least");
}

typedef int LayerFunction(moe_drills_bf16*,
                          const moe_drills_bf16*,
                          const float*,
                          const moe_drills_bf16*,
                          const moe_drills_bf16*,
                          int,
                          int,
                          int,
                          int,
                          int,
                          int,
                          void*,
                          size_t,
                          void*);

/* moe_layer of num_tokens tokens must say that it is `stage` and give that stage's very bytes. */
static void check_chosen(const struct Layer* l,
                         int num_tokens,
                         const char* stage,
                         LayerFunction* own,
                         size_t own_bytes) {
  enum { kMost = 65 };
  moe_drills_bf16 host[2][kMost * H];
  const char* said = moe_drills_moe_layer_stage(num_tokens, E, K, H, I);
  if (strcmp(said, stage) != 0) printf("  T = %d: %s, not %s\n", num_tokens, said, stage);
  check(strcmp(said, stage) == 0, "moe_layer_stage says the stage");
  const size_t bytes = moe_drills_moe_layer_workspace_bytes(num_tokens, E, K, H, I);
  check(bytes == own_bytes, "moe_layer wants the workspace of its stage");
  float* logits = device_array(NULL, sizeof(float) * (size_t)(num_tokens * E));
  moe_drills_bf16* x = bf16_array(x_at, num_tokens * H);
  for (int i = 0; i < 2; ++i) {
    moe_drills_bf16* out = device_array(NULL, sizeof(moe_drills_bf16) * (size_t)(num_tokens * H));
    void* workspace = device_array(NULL, bytes);
    succeeds((i == 0 ? moe_drills_moe_layer : own)(out, x, logits, l->w13, l->w2, num_tokens, E, K,
                                                   H, I, 1, workspace, bytes, NULL),
             stage);
    copy_back(host[i], out, sizeof(moe_drills_bf16) * (size_t)(num_tokens * H));
  }
  const size_t out_bytes = sizeof(moe_drills_bf16) * (size_t)(num_tokens * H);
  check(memcmp(host[0], host[1], out_bytes) == 0, "moe_layer gives the bytes of its stage");
}

/* Which stage serves which T; above 64 it depends on the device, which the caller names. */
static void check_choice(const struct Layer* l, const char* above_64) {
  const int tokens[] = {1, T, 5, 64};
  for (int i = 0; i < 4; ++i) {
    check_chosen(l, tokens[i], "m9", moe_drills_m9_moe_layer,
                 moe_drills_m9_moe_layer_workspace_bytes(tokens[i], E, K, H, I));
  }
  if (strcmp(above_64, "m8") == 0) {
    check_chosen(l, 65, "m8", moe_drills_m8_moe_layer,
                 moe_drills_m8_moe_layer_workspace_bytes(65, E, K, H, I));
  } else {
    check_chosen(l, 65, "m4", moe_drills_m4_moe_layer,
                 moe_drills_m4_moe_layer_workspace_bytes(65, E, K, H, I));
  }
}

/* The example of m10's contract: 448 everywhere in x, codes of 1 in the weights. */
static void check_fp8_layer(void) {
  enum { SIZE = 128 };
  static moe_drills_bf16 x_values[SIZE];
  static moe_drills_e4m3 codes[2 * SIZE * SIZE];
  static float got[SIZE];
  const float logit = 0.0f;
  const float w13_scales[2] = {1.0f / 64, 1.0f / 64};
  const float w2_scale = 1.0f;
  for (int i = 0; i < SIZE; ++i) x_values[i] = bf16_of(448.0f);
  memset(codes, 0x38, sizeof codes);
  const size_t bytes = moe_drills_moe_layer_fp8_workspace_bytes(1, 1, 1, SIZE, SIZE, 1);
  float* out = device_array(NULL, sizeof got);
  const moe_drills_bf16* x = device_array(x_values, sizeof x_values);
  const float* logits = device_array(&logit, sizeof logit);
  const moe_drills_e4m3* w13 = device_array(codes, sizeof codes);
  const moe_drills_e4m3* w2 = device_array(codes, sizeof codes / 2);
  const float* of_w13 = device_array(w13_scales, sizeof w13_scales);
  const float* of_w2 = device_array(&w2_scale, sizeof w2_scale);
  void* workspace = device_array(NULL, bytes);
  const int status = moe_drills_moe_layer_fp8(out, 1, x, logits, w13, of_w13, w2, of_w2, 1, 1, 1,
                                              SIZE, SIZE, 1, workspace, bytes, NULL);
  if (status == MOE_DRILLS_INVALID_VALUE) {
    is_refused(status, "moe_layer_fp8: the device must have compute capability 9.0");
    return;
  }
  succeeds(status, "moe_layer_fp8");
  copy_back(got, out, sizeof got);
  int right = 0;
  for (int i = 0; i < SIZE; ++i) right += fabsf(got[i] / (128.0f * 802816.0f) - 1.0f) < 1e-6f;
  check(right == SIZE, "moe_layer_fp8 gives 128 * 802816 in every column");
  is_refused(moe_drills_moe_layer_fp8(out, 1, x, logits, w13, of_w13, w2, of_w2, 1, 1, 1, SIZE, 64,
                                      1, workspace, bytes, NULL),
             "moe_layer_fp8: I must be a positive multiple of 128");
}

int main(int argc, char** argv) {
  printf("moe_drills, backend %s; the layer of %s\n", moe_drills_backend(),
         moe_drills_moe_layer_stage(T, E, K, H, I));
  check(moe_drills_abi_version() == MOE_DRILLS_ABI_VERSION,
        "header and library are of one version");
  check(moe_drills_moe_layer_workspace_bytes(T, 0, K, H, I) == 0, "no experts: 0 bytes, no crash");
  struct Layer layer;
  layer.logits = device_array(kLogits, sizeof kLogits);
  layer.x = bf16_array(x_at, T * H);
  layer.w13 = bf16_array(w13_at, E * 2 * I * H);
  layer.w2 = bf16_array(w2_at, E * H * I);
  for (int i = 0; i < 4; ++i) {
    layer.out[i] = device_array(NULL, T * H * sizeof(moe_drills_bf16));
  }
  run_layers(&layer);
  check_table(&layer);
  check_steps(&layer);
  check_order();
  check_fp8();
  check_fp8_layer();
  check_refusals(layer.x);
  if (argc > 1) check_choice(&layer, argv[1]); /* m8 or m4: the stage for T > 64 here */
  succeeds(moe_drills_m1_route(NULL, NULL, NULL, 0, E, K, 1, NULL), "T = 0");
  printf("%d failed\n", failures);
  return failures;
}
