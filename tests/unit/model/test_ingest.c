/* Every checkpoint in every dtype: what the pack and the parts hold is what the codec makes of the
 * checkpoint's values, found by the tensors' names and not by the code under test. */
#include <jansson.h>
#include <math.h>
#include "tests/unit/model/synthetic.h"

struct row {
    const char *name, *folder;
    enum fx_model_dtype dtype;
    uint32_t part_bytes_max;
};
#define SYNTHETIC NULL /* made by synthetic.h: odd sizes, all three dtypes */
static const struct row rows[] = {
    {"llama f32",          FX_GOLDENS "llama",          FX_MODEL_F32,  0    },
    {"llama f16",          FX_GOLDENS "llama",          FX_MODEL_F16,  0    },
    {"llama int4",         FX_GOLDENS "llama",          FX_MODEL_INT4, 0    },
    {"tied f32",           FX_GOLDENS "llama-tied",     FX_MODEL_F32,  0    },
    {"tied f16",           FX_GOLDENS "llama-tied",     FX_MODEL_F16,  0    },
    {"tied int4",          FX_GOLDENS "llama-tied",     FX_MODEL_INT4, 0    },
    {"sharded f32",        FX_GOLDENS "llama-sharded",  FX_MODEL_F32,  0    },
    {"sharded f16",        FX_GOLDENS "llama-sharded",  FX_MODEL_F16,  0    },
    {"sharded int4",       FX_GOLDENS "llama-sharded",  FX_MODEL_INT4, 0    },
    {"mistral f32",        FX_GOLDENS "mistral-window", FX_MODEL_F32,  0    },
    {"mistral f16",        FX_GOLDENS "mistral-window", FX_MODEL_F16,  0    },
    {"mistral int4",       FX_GOLDENS "mistral-window", FX_MODEL_INT4, 0    },
    {"mixtral f32",        FX_GOLDENS "mixtral",        FX_MODEL_F32,  0    },
    {"mixtral f16",        FX_GOLDENS "mixtral",        FX_MODEL_F16,  0    },
    {"mixtral int4",       FX_GOLDENS "mixtral",        FX_MODEL_INT4, 0    },
    {"bundled f32",        FX_BUNDLED,                  FX_MODEL_F32,  0    },
    {"bundled f16",        FX_BUNDLED,                  FX_MODEL_F16,  0    },
    {"bundled int4",       FX_BUNDLED,                  FX_MODEL_INT4, 0    },
    {"tails f32",          SYNTHETIC,                   FX_MODEL_F32,  0    },
    {"tails f16",          SYNTHETIC,                   FX_MODEL_F16,  0    },
    {"tails int4",         SYNTHETIC,                   FX_MODEL_INT4, 0    },
    {"small parts f32",    FX_GOLDENS "llama",          FX_MODEL_F32,  16384},
    {"small parts f16",    FX_GOLDENS "mixtral",        FX_MODEL_F16,  20000},
    {"small parts int4",   FX_GOLDENS "llama",          FX_MODEL_INT4, 6000 },
    {"small parts, tails", SYNTHETIC,                   FX_MODEL_F32,  4096 },
};

enum { FILES_MAX = 1200, COLS_MAX = 1024 };
struct files {
    fx_safetensors *at[FILES_MAX];
    size_t count;
};

static void open_one(struct files *files, const char *folder, const char *name) {
    char path[FIXTURE_PATH];
    fx_error err = {0};
    assert_true(files->count < FILES_MAX);
    fixture_path(path, folder, name);
    if (!fx_safetensors_open(path, &files->at[files->count++], &err)) fail_msg("%s", err.text);
}

static void open_all(struct files *files, const char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strstr(entry->d_name, ".safetensors") && !strstr(entry->d_name, ".json"))
            open_one(files, folder, entry->d_name);
    (void)closedir(dir);
}

static void close_all(struct files *files) {
    for (size_t i = 0; i < files->count; i++)
        fx_safetensors_free(files->at[i]);
    files->count = 0;
}

static const struct fx_tensor *find(const struct files *files, const char *name) {
    for (size_t i = 0; i < files->count; i++) {
        const struct fx_tensor *tensor = fx_safetensors_find(files->at[i], name);
        if (tensor) return tensor;
    }
    return NULL;
}

static float source_value(const struct fx_tensor *tensor, uint64_t i) {
    uint16_t half;
    float value;
    if (tensor->dtype == FX_DTYPE_F32) {
        memcpy(&value, tensor->data.at + i * 4, 4);
        return value;
    }
    memcpy(&half, tensor->data.at + i * 2, 2);
    return tensor->dtype == FX_DTYPE_F16 ? fx_f16_to_f32(half) : fx_bf16_to_f32(half);
}

/* What one imported model is checked against. */
struct check {
    const struct row *row;
    struct files source, parts;
    size_t compared;
};

/* The stored values of a row, by the codec alone. */
static void want_row(const struct check *check, const struct fx_tensor *from, uint32_t row,
                     uint32_t cols, bool exact, float *out) {
    uint8_t codes[COLS_MAX / 2 + 32];
    float scales[COLS_MAX / 64 + 1];
    fx_error err = {0};
    for (uint32_t i = 0; i < cols; i++)
        out[i] = source_value(from, (uint64_t)row * cols + i);
    if (exact || check->row->dtype == FX_MODEL_F32) return;
    for (uint32_t i = 0; i < cols && check->row->dtype == FX_MODEL_F16; i++)
        out[i] = fx_f16_to_f32(fx_f32_to_f16(out[i]));
    if (check->row->dtype == FX_MODEL_F16) return;
    assert_true(fx_int4_encode(out, cols, codes, scales, &err));
    fx_int4_decode(codes, scales, cols, out);
}

/* The piece of a tensor in the parts that holds `row`, and the row in it. */
static const struct fx_tensor *find_piece(const struct check *check, const char *name,
                                          const char *ending, uint32_t *row) {
    char piece[FIXTURE_PATH];
    (void)snprintf(piece, sizeof piece, "%s%s", name, ending);
    const struct fx_tensor *whole = find(&check->parts, piece);
    if (whole) return whole;
    for (uint32_t first = *row / 8 * 8;; first -= 8) {
        (void)snprintf(piece, sizeof piece, "%s#%u%s", name, first, ending);
        const struct fx_tensor *tensor = find(&check->parts, piece);
        if (tensor) {
            *row -= first;
            assert_true(*row < tensor->shape[0]);
            return tensor;
        }
        if (!first) fail_msg("no part holds row %u of %s", *row, name);
    }
}

static void part_row_int4(const struct check *check, const char *name, uint32_t row, uint32_t cols,
                          float *out) {
    uint32_t blocks = (cols + 63) / 64, row_q4 = row, row_scale = row;
    float scales[COLS_MAX / 64 + 1];
    const struct fx_tensor *q4 = find_piece(check, name, ".q4", &row_q4);
    const struct fx_tensor *scale = find_piece(check, name, ".scale", &row_scale);
    assert_int_equal(q4->dtype, FX_DTYPE_U8);
    assert_int_equal(q4->shape[1], blocks * 32);
    assert_int_equal(scale->dtype, FX_DTYPE_F32);
    assert_int_equal(scale->shape[1], blocks);
    memcpy(scales, scale->data.at + (size_t)row_scale * blocks * 4, (size_t)blocks * 4);
    fx_int4_decode(q4->data.at + (size_t)row_q4 * blocks * 32, scales, cols, out);
}

static void part_row(const struct check *check, const char *name, uint32_t row, uint32_t cols,
                     bool exact, float *out) {
    if (!exact && check->row->dtype == FX_MODEL_INT4) {
        part_row_int4(check, name, row, cols, out);
        return;
    }
    const struct fx_tensor *piece = find_piece(check, name, "", &row);
    bool half = !exact && check->row->dtype == FX_MODEL_F16;
    assert_int_equal(piece->dtype, half ? FX_DTYPE_F16 : FX_DTYPE_F32);
    for (uint32_t i = 0; i < cols; i++)
        out[i] = source_value(piece, (uint64_t)row * cols + i);
}

static void check_weight(struct check *check, const struct fx_weight *weight, const char *name,
                         bool exact) {
    const struct fx_tensor *from = find(&check->source, name);
    float got[COLS_MAX], stored[COLS_MAX], want[COLS_MAX];
    assert_non_null(from);
    assert_true(weight->cols <= COLS_MAX);
    assert_int_equal((uintptr_t)weight->data % 64, 0);
    assert_int_equal((uint64_t)weight->rows * weight->cols * fx_dtype_bytes(from->dtype),
                     from->data.len);
    for (uint32_t row = 0; row < weight->rows; row++) {
        fx_weight_row(weight, row, got);
        want_row(check, from, row, weight->cols, exact, want);
        part_row(check, name, row, weight->cols, exact, stored);
        if (memcmp(got, want, weight->cols * sizeof *got) != 0)
            fail_msg("pack: row %u of %s differs", row, name);
        if (memcmp(stored, want, weight->cols * sizeof *got) != 0)
            fail_msg("parts: row %u of %s differs", row, name);
    }
    check->compared++;
}

static void check_layer(struct check *check, const struct fx_weight *weight, uint32_t layer,
                        const char *suffix, bool exact) {
    char name[FIXTURE_PATH];
    (void)snprintf(name, sizeof name, "model.layers.%u.%s.weight", layer, suffix);
    check_weight(check, weight, name, exact);
}

static void check_experts(struct check *check, const struct fx_layer_weights *layer, uint32_t nth,
                          uint32_t count) {
    char suffix[64];
    check_layer(check, &layer->router, nth, "block_sparse_moe.gate", true);
    for (uint32_t i = 0; i < count; i++) {
        (void)snprintf(suffix, sizeof suffix, "block_sparse_moe.experts.%u.w1", i);
        check_layer(check, &layer->experts[i].gate, nth, suffix, false);
        (void)snprintf(suffix, sizeof suffix, "block_sparse_moe.experts.%u.w3", i);
        check_layer(check, &layer->experts[i].up, nth, suffix, false);
        (void)snprintf(suffix, sizeof suffix, "block_sparse_moe.experts.%u.w2", i);
        check_layer(check, &layer->experts[i].down, nth, suffix, false);
    }
}

static void check_model(struct check *check, const fx_model *model) {
    const struct fx_model_config *config = fx_model_get_config(model);
    const struct fx_model_weights *weights = fx_model_get_weights(model);
    check_weight(check, &weights->embed, "model.embed_tokens.weight", false);
    check_weight(check, &weights->norm, "model.norm.weight", true);
    if (config->tied)
        assert_ptr_equal(weights->lm_head.data, weights->embed.data);
    else
        check_weight(check, &weights->lm_head, "lm_head.weight", false);
    for (uint32_t i = 0; i < config->layers; i++) {
        const struct fx_layer_weights *layer = &weights->layers[i];
        check_layer(check, &layer->attn_norm, i, "input_layernorm", true);
        check_layer(check, &layer->q, i, "self_attn.q_proj", false);
        check_layer(check, &layer->k, i, "self_attn.k_proj", false);
        check_layer(check, &layer->v, i, "self_attn.v_proj", false);
        check_layer(check, &layer->o, i, "self_attn.o_proj", false);
        check_layer(check, &layer->mlp_norm, i, "post_attention_layernorm", true);
        if (config->experts) {
            check_experts(check, layer, i, config->experts);
            continue;
        }
        assert_null(layer->experts);
        assert_null(layer->router.data);
        check_layer(check, &layer->mlp.gate, i, "mlp.gate_proj", false);
        check_layer(check, &layer->mlp.up, i, "mlp.up_proj", false);
        check_layer(check, &layer->mlp.down, i, "mlp.down_proj", false);
    }
}

/* Every part is within the cap, every tensor in it at a multiple of 64. */
static void check_parts(const struct check *check, const char *version, size_t *pieces) {
    uint32_t cap = check->row->part_bytes_max ? check->row->part_bytes_max : FX_PART_BYTES_MAX;
    *pieces = 0;
    for (size_t i = 0; i < check->parts.count; i++) {
        char name[64], path[FIXTURE_PATH];
        struct stat stat_;
        (void)snprintf(name, sizeof name, "part-%03zu.safetensors", i);
        fixture_path(path, version, name);
        assert_int_equal(stat(path, &stat_), 0);
        assert_true(stat_.st_size <= cap);
        for (size_t k = 0; k < fx_safetensors_count(check->parts.at[i]); k++) {
            const struct fx_tensor *tensor = fx_safetensors_at(check->parts.at[i], k);
            if (strncmp(tensor->name, "pad#", 4) == 0) continue;
            assert_int_equal((uintptr_t)tensor->data.at % 64, 0);
            *pieces += strchr(tensor->name, '#') != NULL;
        }
    }
}

static void test_ingest(void **state) {
    static struct check check;
    const struct row *row = *state;
    struct fixture_dir store, made;
    struct fx_model_info info;
    const char *folder = row->folder ? row->folder : made.path;
    char version[FIXTURE_PATH];
    size_t pieces;
    check = (struct check){.row = row};
    fixture_dir_make(&store);
    fixture_dir_make(&made);
    if (!row->folder) synthetic_write(&(struct synthetic){0}, made.path);
    fixture_import(folder, store.path, "m", row->dtype, row->part_bytes_max, &info);
    assert_string_equal(info.version, "1");
    fixture_path(version, store.path, "m/1");
    open_all(&check.source, folder);
    open_all(&check.parts, version);
    fx_model *model = fixture_open(store.path, "m");
    check_model(&check, model);
    size_t tensors = 0;
    for (size_t i = 0; i < check.source.count; i++)
        tensors += fx_safetensors_count(check.source.at[i]);
    assert_int_equal(check.compared, tensors);
    check_parts(&check, version, &pieces);
    if (row->part_bytes_max)
        assert_true(check.parts.count > 1 && pieces > 0);
    else
        assert_int_equal(check.parts.count, 1);
    fx_model_free(model);
    close_all(&check.source);
    close_all(&check.parts);
    fixture_dir_remove(&store);
    fixture_dir_remove(&made);
}
FX_TEST_MAIN(test_ingest, rows)
