/* Model folders that lie are refused, naming the tensor; the store stays as it was. */
#include <dirent.h>
#include <sys/stat.h>
#include "tests/e2e/suite.h"

#define VICTIM "model.layers.1.self_attn.q_proj.weight"
#define WEIGHTS "model.safetensors"
enum { COPY_BYTES = 1 << 16, LENGTH_BYTES = 8, CUT_BYTES = 100 };

/* A checkpoint in memory, to lie in. */
struct checkpoint {
    json_t *header;
    uint8_t *payload;
    size_t len;
    char named[128]; /* what the refusal has to name */
};

/* -- reading and writing -- */

static void checkpoint_read(struct checkpoint *checkpoint) {
    FILE *file = fopen(SUITE_MODEL_DIR "/" WEIGHTS, "rbe");
    struct stat stat_;
    uint64_t length;
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &stat_), 0);
    assert_int_equal(fread(&length, LENGTH_BYTES, 1, file), 1);
    auto_text text = malloc(length);
    assert_true(text && fread(text, length, 1, file) == 1);
    *checkpoint = (struct checkpoint){.header = json_loadb(text, length, 0, NULL),
                                      .len = (size_t)stat_.st_size - LENGTH_BYTES - length,
                                      .named = VICTIM};
    checkpoint->payload = malloc(checkpoint->len);
    assert_true(checkpoint->header && checkpoint->payload);
    assert_int_equal(fread(checkpoint->payload, checkpoint->len, 1, file), 1);
    assert_int_equal(fclose(file), 0);
}

static void checkpoint_write(const struct checkpoint *checkpoint, const char *folder) {
    char path[256];
    auto_text text = json_dumps(checkpoint->header, JSON_COMPACT);
    uint64_t len = strlen(text), padded = (len + 7) / 8 * 8;
    (void)snprintf(path, sizeof path, "%s/" WEIGHTS, folder);
    FILE *file = fopen(path, "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(&padded, LENGTH_BYTES, 1, file), 1);
    assert_int_equal(fprintf(file, "%-*s", (int)padded, text), padded);
    assert_int_equal(fwrite(checkpoint->payload, 1, checkpoint->len, file), checkpoint->len);
    assert_int_equal(fclose(file), 0);
}

static void file_copy(const char *from, const char *to) {
    static char bytes[COPY_BYTES];
    FILE *in = fopen(from, "rbe"), *out = fopen(to, "wbe");
    assert_true(in && out);
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, in)) > 0;)
        assert_int_equal(fwrite(bytes, 1, got, out), got);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* Everything of the model's folder but the weights. */
static void folder_copy(const char *to) {
    DIR *dir = opendir(SUITE_MODEL_DIR);
    assert_non_null(dir);
    assert_int_equal(mkdir(to, 0700), 0);
    for (struct dirent *entry; (entry = readdir(dir));) {
        char source[512], target[512];
        if (*entry->d_name == '.' || strcmp(entry->d_name, WEIGHTS) == 0) continue;
        (void)snprintf(source, sizeof source, SUITE_MODEL_DIR "/%s", entry->d_name);
        (void)snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
        file_copy(source, target);
    }
    (void)closedir(dir);
}

/* -- lies -- */

static json_t *victim(const struct checkpoint *checkpoint) {
    json_t *tensor = json_object_get(checkpoint->header, VICTIM);
    assert_non_null(tensor);
    return tensor;
}

static json_int_t offset(const json_t *tensor, size_t which) {
    return json_integer_value(json_array_get(json_object_get(tensor, "data_offsets"), which));
}

static void offsets_set(json_t *tensor, json_int_t begin, json_int_t end) {
    assert_int_equal(json_object_set_new(tensor, "data_offsets", json_pack("[I, I]", begin, end)),
                     0);
}

static void truncated(struct checkpoint *checkpoint) {
    const char *name;
    json_t *tensor;
    json_int_t last = 0;
    json_object_foreach(checkpoint->header, name, tensor) {
        if (strcmp(name, "__metadata__") == 0 || offset(tensor, 1) <= last) continue;
        last = offset(tensor, 1);
        (void)snprintf(checkpoint->named, sizeof checkpoint->named, "%s", name);
    }
    checkpoint->len -= CUT_BYTES;
}

static void past_the_end(struct checkpoint *checkpoint) {
    json_t *tensor = victim(checkpoint);
    json_int_t shift = (json_int_t)checkpoint->len;
    offsets_set(tensor, offset(tensor, 0) + shift, offset(tensor, 1) + shift);
}

static void shape_too_large(struct checkpoint *checkpoint) {
    json_t *shape = json_object_get(victim(checkpoint), "shape");
    json_t *rows = json_array_get(shape, 0);
    assert_int_equal(json_integer_set(rows, 2 * json_integer_value(rows)), 0);
}

static void shape_that_overflows(struct checkpoint *checkpoint) {
    json_int_t large = (json_int_t)1 << 62;
    (void)json_object_set_new(victim(checkpoint), "shape", json_pack("[I, I]", large, large));
}

static void shape_of_another_model(struct checkpoint *checkpoint) {
    json_t *shape = json_object_get(victim(checkpoint), "shape");
    (void)json_object_set_new(
        victim(checkpoint), "shape",
        json_pack("[O, O, i]", json_array_get(shape, 1), json_array_get(shape, 0), 1));
}

static void backwards(struct checkpoint *checkpoint) {
    json_t *tensor = victim(checkpoint);
    offsets_set(tensor, offset(tensor, 1), offset(tensor, 0));
}

static void overlapping(struct checkpoint *checkpoint) {
    const char *name;
    json_t *tensor, *other = NULL;
    json_object_foreach(checkpoint->header, name, tensor) {
        bool same = strcmp(name, VICTIM) == 0 || strcmp(name, "__metadata__") == 0;
        if (!same && json_equal(json_object_get(tensor, "shape"),
                                json_object_get(victim(checkpoint), "shape")))
            other = tensor;
    }
    assert_non_null(other);
    offsets_set(victim(checkpoint), offset(other, 0), offset(other, 1));
    (void)snprintf(checkpoint->named, sizeof checkpoint->named, "model.layers."); /* either */
}

static void unknown_dtype(struct checkpoint *checkpoint) {
    (void)json_object_set_new(victim(checkpoint), "dtype", json_string("Q99"));
}

static void missing(struct checkpoint *checkpoint) {
    const char *name;
    json_t *tensor;
    json_int_t begin = offset(victim(checkpoint), 0), end = offset(victim(checkpoint), 1);
    json_int_t hole = end - begin;
    assert_int_equal(json_object_del(checkpoint->header, VICTIM), 0);
    memmove(checkpoint->payload + begin, checkpoint->payload + end, checkpoint->len - (size_t)end);
    checkpoint->len -= (size_t)hole;
    json_object_foreach(checkpoint->header, name,
                        tensor) if (strcmp(name, "__metadata__") != 0 && offset(tensor, 0) >= end)
        offsets_set(tensor, offset(tensor, 0) - hole, offset(tensor, 1) - hole);
}

static void not_finite(struct checkpoint *checkpoint) {
    static const struct {
        const char *dtype;
        uint8_t bytes[4];
        size_t len;
    } nans[] = {
        {"F32",  {0x00, 0x00, 0xc0, 0x7f}, 4},
        {"F16",  {0x00, 0x7e},             2},
        {"BF16", {0xc0, 0x7f},             2},
    };
    const char *dtype = json_string_value(json_object_get(victim(checkpoint), "dtype"));
    for (size_t i = 0; i < FX_TEST_COUNT(nans); i++) {
        if (strcmp(nans[i].dtype, dtype) != 0) continue;
        memcpy(checkpoint->payload + offset(victim(checkpoint), 0), nans[i].bytes, nans[i].len);
        return;
    }
    fail_msg("the model's weights are %s", dtype);
}

static const struct lie {
    const char *name;
    void (*tell)(struct checkpoint *checkpoint);
} lies[] = {
    {"truncated",              truncated             },
    {"past the end",           past_the_end          },
    {"shape too large",        shape_too_large       },
    {"shape that overflows",   shape_that_overflows  },
    {"shape of another model", shape_of_another_model},
    {"backwards",              backwards             },
    {"overlapping",            overlapping           },
    {"unknown dtype",          unknown_dtype         },
    {"missing",                missing               },
    {"not finite",             not_finite            },
};

/* -- the tests -- */

static void assert_refused(struct suite *suite, const struct lie *lie) {
    char folder[96];
    struct checkpoint checkpoint;
    (void)snprintf(folder, sizeof folder, "%s/lying", suite->folder);
    folder_copy(folder);
    checkpoint_read(&checkpoint);
    lie->tell(&checkpoint);
    checkpoint_write(&checkpoint, folder);
    auto_output done =
        suite_cli(suite, WORDS("import", folder, "--name", "lying", "--dtype", "int4"));
    print_message("%s: %s%s", lie->name, done.out, done.err);
    if (done.code == 0) fail_msg("%s was imported", lie->name);
    if (!strstr(done.err, checkpoint.named) && !strstr(done.out, checkpoint.named))
        fail_msg("%s: %s is not named", lie->name, checkpoint.named);
    json_decref(checkpoint.header);
    free(checkpoint.payload);
    folder_remove(folder);
}

static void assert_store_clean(struct suite *suite) {
    DIR *dir = opendir(suite->models);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, "lying", 5) == 0) fail_msg("left behind: %s", entry->d_name);
    (void)closedir(dir);
}

static void lies_are_refused(void **state) {
    struct suite *suite = *state;
    auto_text before = suite_cli_ok(suite, WORDS("models"));
    for (size_t i = 0; i < FX_TEST_COUNT(lies); i++)
        assert_refused(suite, &lies[i]);
    auto_text after = suite_cli_ok(suite, WORDS("models"));
    assert_string_equal(after, before);
    assert_store_clean(suite);
    auto_text text = suite_complete(suite, "and then", json_pack("{s:i}", "max_tokens", 4));
    assert_true(*text != 0);
}

/* The test's own way of writing a checkpoint is no lie: what is refused is what was changed. */
static void the_truth_is_imported(void **state) {
    struct suite *suite = *state;
    char folder[96];
    struct checkpoint checkpoint;
    (void)snprintf(folder, sizeof folder, "%s/true", suite->folder);
    folder_copy(folder);
    checkpoint_read(&checkpoint);
    checkpoint_write(&checkpoint, folder);
    free(suite_cli_ok(suite, WORDS("import", folder, "--name", "true", "--dtype", "int4")));
    json_decref(checkpoint.header);
    free(checkpoint.payload);
    folder_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(the_truth_is_imported),
    };
    return suite_main("import", tests, FX_TEST_COUNT(tests), &(struct suite_opts){0});
}
