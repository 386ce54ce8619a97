#include "tests/unit/engine/rig.h"
#include "tests/fx_test.h"
#include "common/base/heap.h"
#include "common/model/safetensors.h"
#include <ftw.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

/* INT4 x INT8 against f32 arithmetic on the same dequantised weights: these are written into a
 * checkpoint of their own, which is imported as f32. The mean divergence of the next token's
 * distribution, over prompts and their greedy continuations, is at most 0.001 nats. */
#define FOLDER "models/fractal-tiny-moe"
#define KL_MAX 0.001

enum { TENSORS_MAX = 512 };

struct checkpoint {
    char folder[64], names[TENSORS_MAX][96];
    struct fx_tensor_spec specs[TENSORS_MAX];
    struct fx_weight weights[TENSORS_MAX];
    size_t count;
};

static void put(struct checkpoint *out, const struct fx_weight *weight, const char *name) {
    assert_true(out->count < TENSORS_MAX);
    struct fx_tensor_spec *spec = &out->specs[out->count];
    bool vector = weight->layout == FX_LAYOUT_F32_ROW;
    (void)snprintf(out->names[out->count], sizeof(out->names[0]), "%s", name);
    *spec = (struct fx_tensor_spec){
        out->names[out->count], FX_DTYPE_F32, vector ? 1 : 2, {weight->rows, weight->cols}
    };
    if (vector) spec->shape[0] = weight->cols;
    out->weights[out->count++] = *weight;
}

static void put_in_layer(struct checkpoint *out, const struct fx_weight *weight, uint32_t layer,
                         const char *name) {
    char full[96];
    (void)snprintf(full, sizeof full, "model.layers.%u.%s.weight", layer, name);
    put(out, weight, full);
}

static void put_expert(struct checkpoint *out, const struct fx_mlp_weights *mlp, uint32_t layer,
                       uint32_t expert) {
    const struct fx_weight *parts[] = {&mlp->gate, &mlp->down, &mlp->up};
    for (uint32_t i = 0; i < 3; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "block_sparse_moe.experts.%u.w%u", expert, i + 1);
        put_in_layer(out, parts[i], layer, name);
    }
}

static void put_layer(struct checkpoint *out, const struct fx_layer_weights *layer, uint32_t number,
                      uint32_t experts) {
    put_in_layer(out, &layer->attn_norm, number, "input_layernorm");
    put_in_layer(out, &layer->mlp_norm, number, "post_attention_layernorm");
    put_in_layer(out, &layer->q, number, "self_attn.q_proj");
    put_in_layer(out, &layer->k, number, "self_attn.k_proj");
    put_in_layer(out, &layer->v, number, "self_attn.v_proj");
    put_in_layer(out, &layer->o, number, "self_attn.o_proj");
    put_in_layer(out, &layer->router, number, "block_sparse_moe.gate");
    for (uint32_t e = 0; e < experts; e++)
        put_expert(out, &layer->experts[e], number, e);
}

static void row_of(const struct fx_weight *weight, uint32_t row, float *out) {
    if (weight->layout == FX_LAYOUT_F32_ROW)
        memcpy(out, (const float *)weight->data + (size_t)row * weight->cols,
               weight->cols * sizeof(float));
    else
        fx_weight_row(weight, row, out);
}

static void write_tensors(const struct checkpoint *out) {
    char path[128];
    float row[4096];
    fx_error err = {0};
    fx_auto(fx_safetensors_writer) writer = NULL;
    (void)snprintf(path, sizeof path, "%s/model.safetensors", out->folder);
    if (!fx_safetensors_create(path, out->specs, out->count, &writer, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < out->count; i++) {
        const struct fx_weight *weight = &out->weights[i];
        size_t bytes = weight->cols * sizeof(float);
        assert_true(weight->cols <= 4096);
        for (uint32_t r = 0; r < weight->rows; r++) {
            row_of(weight, r, row);
            if (!fx_safetensors_write(writer, i, r * bytes, (fx_span){(const uint8_t *)row, bytes},
                                      &err))
                fail_msg("%s", err.text);
        }
    }
    if (!fx_safetensors_finish(writer, &err)) fail_msg("%s", err.text);
}

static void copy_config(const struct checkpoint *out) {
    char path[128];
    uint8_t bytes[8192];
    fx_auto(FILE) from = fopen(FX_SOURCE_DIR "/" FOLDER "/config.json", "rbe");
    (void)snprintf(path, sizeof path, "%s/config.json", out->folder);
    fx_auto(FILE) to = fopen(path, "wbe");
    assert_non_null(from);
    assert_non_null(to);
    size_t len = fread(bytes, 1, sizeof bytes, from);
    assert_true(len > 0 && len < sizeof bytes && fwrite(bytes, 1, len, to) == len);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

/* The weights of `model` as f32 values, imported as a model of their own. */
static fx_model *as_f32(const fx_model *model) {
    const struct fx_model_weights *weights = fx_model_get_weights(model);
    const struct fx_model_config *config = fx_model_get_config(model);
    static struct checkpoint out;
    fx_model *copy = NULL;
    fx_error err = {0};
    out = (struct checkpoint){.folder = "/tmp/fx-int4-XXXXXX"};
    assert_non_null(mkdtemp(out.folder));
    put(&out, &weights->embed, "model.embed_tokens.weight");
    put(&out, &weights->norm, "model.norm.weight");
    for (uint32_t l = 0; l < config->layers; l++)
        put_layer(&out, &weights->layers[l], l, config->experts);
    write_tensors(&out);
    copy_config(&out);
    bool opened = fx_store_open_folder(out.folder, FX_MODEL_F32, NULL, &copy, &err);
    (void)nftw(out.folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (!opened) fail_msg("%s", err.text);
    return copy;
}

static double log_sum_exp(const float *row, uint32_t count) {
    double highest = (double)row[rig_argmax(row, count)], sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += exp((double)row[i] - highest);
    return highest + log(sum);
}

static double divergence(const float *want, const float *got, uint32_t count) {
    double want_norm = log_sum_exp(want, count), got_norm = log_sum_exp(got, count), sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        double log_p = (double)want[i] - want_norm;
        sum += exp(log_p) * (log_p - ((double)got[i] - got_norm));
    }
    return sum;
}

static struct rig *read_along(const fx_model *model, const struct rig_prompt *prompt) {
    struct rig_opts opts = RIG_PLAIN;
    uint32_t ids[RIG_TOKENS_MAX];
    opts.backend = "cpu";
    opts.slots = 1;
    memcpy(ids, prompt->ids, prompt->count * sizeof(*ids));
    memcpy(ids + prompt->count, prompt->greedy, prompt->greedy_count * sizeof(*ids));
    struct rig *rig = rig_open(model, &opts, true);
    struct fx_sequence sequence = rig_sequence(ids, prompt->count + prompt->greedy_count, 1);
    (void)rig_add(rig, &sequence);
    rig_run(rig);
    return rig;
}

static void test_divergence(void **state) {
    (void)state;
    fx_auto(fx_model) int4 = rig_model(FOLDER, FX_MODEL_INT4);
    fx_auto(fx_model) f32 = as_f32(int4);
    uint32_t vocab = fx_model_get_config(int4)->vocabulary, positions = 0;
    double sum = 0, worst = 0;
    struct rig_prompts prompts =
        rig_prompts_load(FOLDER, "oracle.json", "last_logits", "greedy_ids", vocab);
    for (size_t i = 0; i < prompts.count; i++) {
        rig_auto want = read_along(f32, &prompts.at[i]);
        rig_auto got = read_along(int4, &prompts.at[i]);
        assert_int_equal(got->positions, want->positions);
        for (uint32_t p = 0; p < want->positions; p++, positions++) {
            size_t at = (size_t)p * vocab;
            double one = divergence(want->logits + at, got->logits + at, vocab);
            sum += one;
            worst = one > worst ? one : worst;
        }
    }
    print_message("  %u tokens: mean KL %.2e nats, worst %.2e\n", positions, sum / positions,
                  worst);
    assert_true(positions > 700);
    assert_true(sum / positions > 0); /* the two do differ: int8 activations round */
    assert_true(sum / positions <= KL_MAX);
    rig_prompts_free(&prompts);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_divergence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
