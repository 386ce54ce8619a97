/* Names, lists, digests, and versions that were tampered with. */
#include <dirent.h>
#include <jansson.h>
#include "tests/unit/model/store_fixture.h"

static void test_number(void **state) {
    (void)state;
    /* printf abc | sha256sum */
    assert_int_equal(fx_model_number("abc"), 0xba7816bfu);
    assert_int_equal(fx_model_number("tiny"), 0x8950abfdu);
}

static void test_numerics_id(void **state) {
    struct fx_model_info info = {.dtype = FX_MODEL_INT4, .weight_digest = "0123456789abcdef0123"};
    char id[FX_NUMERICS_ID_MAX];
    (void)state;
    fx_numerics_id(&info, "f16", id);
    assert_string_equal(id, "exact/1/int4-b64/f16/0123456789abcdef");
    info.dtype = FX_MODEL_F16;
    fx_numerics_id(&info, "f32", id);
    assert_string_equal(id, "exact/1/f16/f32/0123456789abcdef");
}

/* Two names of one number, found by trying: the second is refused. */
static void test_same_number(void **state) {
    struct fixture_dir store;
    struct fx_ingest_opts opts = {
        .folder = FX_GOLDENS "llama", .name = "model-100333", .dtype = FX_MODEL_INT4};
    fx_error err = {0};
    (void)state;
    assert_int_equal(fx_model_number("model-31943"), fx_model_number("model-100333"));
    fixture_dir_make(&store);
    opts.store_dir = store.path;
    fixture_import(opts.folder, store.path, "model-31943", FX_MODEL_INT4, 0, NULL);
    assert_false(fx_ingest(&opts, NULL, &err));
    fixture_expect(&err, FX_ALREADY_EXISTS, "same number as 'model-31943'");
    fixture_import(opts.folder, store.path, "model-31943", FX_MODEL_F16, 0, NULL);
    fixture_dir_remove(&store);
}

#define C16 "abcdefghijklmnop"
#define C64 C16 C16 C16 C16
static const struct {
    const char *name;
    bool good;
} names[] = {
    {"a",            true },
    {"tiny-moe_1.5", true },
    {"org/model",    true },
    {"7",            true },
    {C64,            true },
    {C64 "/" C64,    true },
    {"7/a",          true },
    {"a/v1",         true },
    {"a.b",          true },
    {"-",            true },
    {"",             false},
    {C64 "x",        false},
    {"a/" C64 "x",   false},
    {"..",           false},
    {".a",           false},
    {"a/..",         false},
    {"../a",         false},
    {"a/b/c",        false},
    {"/a",           false},
    {"a/",           false},
    {"a//b",         false},
    {"a b",          false},
    {"a\n",          false},
    {"\xc3\xa4",     false},
    {"a/1",          false},
    {"a/current",    false},
    {"a/.import",    false},
    {"a\\b",         false},
    {".import",      false},
    {"a%2e",         false},
};

static void test_names(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_COUNT(names); i++) {
        fx_error err = {0};
        bool ok = fx_model_name_check(names[i].name, &err);
        if (ok != names[i].good) fail_msg("'%s' is %s", names[i].name, ok ? "taken" : err.text);
        assert_int_equal(err.code, ok ? FX_OK : FX_INVALID_ARGUMENT);
    }
}

static void test_bad_names_reach_no_file(void **state) {
    fx_error err = {0};
    fx_model *model = NULL;
    struct fx_model_info info;
    struct fx_bytes bytes;
    struct fx_store_verified verified;
    (void)state;
    assert_false(fx_store_open("/", "../etc", &model, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_false(fx_store_info("/", "a/../b", &info, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_false(fx_store_manifest("/", "/etc", &bytes, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_false(fx_store_verify("/", "..", NULL, NULL, &verified, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_false(fx_ingest(
        &(struct fx_ingest_opts){
            .folder = FX_BUNDLED, .store_dir = "/tmp", .name = "a/../../b", .dtype = FX_MODEL_F32},
        NULL, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
}

static void test_list(void **state) {
    struct fixture_dir store;
    struct fx_model_list list;
    struct fx_model_info info;
    fx_error err = {0};
    (void)state;
    fixture_dir_make(&store);
    fixture_import(FX_GOLDENS "llama", store.path, "org/z", FX_MODEL_INT4, 0, &info);
    fixture_import(FX_GOLDENS "llama", store.path, "org", FX_MODEL_F16, 0, &info);
    fixture_import(FX_GOLDENS "mixtral", store.path, "b", FX_MODEL_F32, 0, &info);
    fixture_import(FX_BUNDLED, store.path, "b", FX_MODEL_INT4, 0, &info);
    assert_true(fx_store_list(store.path, &list, &err));
    assert_int_equal(list.count, 3);
    assert_string_equal(list.at[0].name, "b");
    assert_string_equal(list.at[1].name, "org");
    assert_string_equal(list.at[2].name, "org/z");
    assert_memory_equal(&list.at[0], &info, sizeof info);
    assert_string_equal(info.version, "2");
    assert_int_equal(info.number, fx_model_number("b"));
    assert_int_equal(info.vocabulary, 260);
    assert_int_equal(info.context_max, 1024);
    assert_int_equal(info.eos_ids[0], 257);
    assert_true(info.has_chat_template);
    assert_int_equal(strlen(info.tokenizer_digest), 64);
    assert_false(list.at[1].has_chat_template);
    assert_string_equal(list.at[1].tokenizer_digest, "");
    free(list.at);
    assert_false(fx_store_list("/nowhere/at/all", &list, &err));
    assert_int_equal(err.code, FX_NOT_FOUND);
    fixture_dir_remove(&store);
}

/* One checkpoint, the same weights: the digest names them and not the day or the name. */
static void test_weight_digest(void **state) {
    struct fixture_dir store;
    struct fx_model_info a, b, c;
    (void)state;
    fixture_dir_make(&store);
    fixture_import(FX_GOLDENS "llama", store.path, "a", FX_MODEL_F16, 0, &a);
    fixture_import(FX_GOLDENS "llama", store.path, "b", FX_MODEL_F16, 0, &b);
    fixture_import(FX_GOLDENS "llama", store.path, "c", FX_MODEL_F32, 0, &c);
    assert_string_equal(a.weight_digest, b.weight_digest);
    assert_string_not_equal(a.weight_digest, c.weight_digest);
    fixture_dir_remove(&store);
}

static void test_tokenizer(void **state) {
    struct fixture_dir store;
    struct fx_model_info info;
    struct fx_bytes tokenizer = {0}, config = {0};
    fx_error err = {0};
    size_t len;
    char version[FIXTURE_PATH];
    (void)state;
    fixture_dir_make(&store);
    fixture_import(FX_BUNDLED, store.path, "m", FX_MODEL_INT4, 0, &info);
    assert_true(fx_store_tokenizer(store.path, info.tokenizer_digest, &tokenizer, &config, &err));
    char *want = fixture_read(FX_BUNDLED, "tokenizer.json", &len);
    assert_int_equal(tokenizer.len, len);
    assert_memory_equal(tokenizer.at, want, len);
    free(want);
    want = fixture_read(FX_BUNDLED, "tokenizer_config.json", &len);
    assert_int_equal(config.len, len);
    assert_memory_equal(config.at, want, len);
    free(want);
    free(tokenizer.at);
    free(config.at);
    char other[FX_SHA256_HEX];
    memcpy(other, info.tokenizer_digest, sizeof other);
    other[0] = other[0] == '0' ? '1' : '0';
    assert_false(fx_store_tokenizer(store.path, other, &tokenizer, &config, &err));
    assert_int_equal(err.code, FX_NOT_FOUND);
    assert_false(fx_store_tokenizer(store.path, "../../../etc/passwd", &tokenizer, &config, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    assert_false(fx_store_tokenizer(store.path, "", &tokenizer, &config, &err));
    assert_int_equal(err.code, FX_INVALID_ARGUMENT);
    fixture_path(version, store.path, "m/1");
    fixture_flip(version, "tokenizer.json", 100);
    assert_false(fx_store_tokenizer(store.path, info.tokenizer_digest, &tokenizer, &config, &err));
    assert_int_equal(err.code, FX_DATA_LOSS);
    fixture_dir_remove(&store);
}

/* A template in a file of its own is found in tokenizer_config.json, and wins. */
static void test_template_file(void **state) {
    static const char template[] = "{{ messages }}\n\"quoted\" \xc3\xa4";
    struct fixture_dir store, folder;
    struct fx_model_info info;
    struct fx_bytes tokenizer = {0}, config = {0};
    fx_error err = {0};
    (void)state;
    fixture_dir_make(&store);
    fixture_dir_make(&folder);
    fixture_copy_model(FX_BUNDLED, folder.path);
    fixture_copy(FX_BUNDLED, folder.path, "tokenizer.json");
    fixture_write(folder.path, "chat_template.jinja", template, sizeof template - 1);
    for (int with_config = 0; with_config < 2; with_config++) {
        if (with_config) fixture_copy(FX_BUNDLED, folder.path, "tokenizer_config.json");
        fixture_import(folder.path, store.path, "m", FX_MODEL_INT4, 0, &info);
        assert_true(info.has_chat_template);
        assert_true(
            fx_store_tokenizer(store.path, info.tokenizer_digest, &tokenizer, &config, &err));
        json_t *root = json_loadb((const char *)config.at, config.len, 0, NULL);
        assert_string_equal(json_string_value(json_object_get(root, "chat_template")), template);
        assert_int_equal(json_object_get(root, "eos_token") != NULL, with_config);
        json_decref(root);
        free(tokenizer.at);
        free(config.at);
    }
    fixture_write(folder.path, "chat_template.jinja", "\xff", 1);
    assert_false(fx_ingest(
        &(struct fx_ingest_opts){
            .folder = folder.path, .store_dir = store.path, .name = "m", .dtype = FX_MODEL_INT4},
        NULL, &err));
    fixture_expect(&err, FX_INVALID_ARGUMENT, "chat_template.jinja is not UTF-8");
    fixture_dir_remove(&folder);
    fixture_dir_remove(&store);
}

static bool stop(void *ctx) {
    return ++*(int *)ctx >= 3;
}

static void test_verify(void **state) {
    struct fixture_dir store;
    struct fx_model_info info;
    struct fx_store_verified verified;
    fx_error err = {0};
    int asked = 0;
    (void)state;
    fixture_dir_make(&store);
    fixture_import(FX_BUNDLED, store.path, "m", FX_MODEL_INT4, 0, &info);
    assert_true(fx_store_verify(store.path, "m", NULL, NULL, &verified, &err));
    assert_int_equal(verified.files, 7);
    assert_true(verified.bytes > info.bytes);
    assert_false(fx_store_verify(store.path, "m", stop, &asked, &verified, &err));
    assert_int_equal(err.code, FX_CANCELLED);
    assert_false(fx_store_verify(store.path, "n", NULL, NULL, &verified, &err));
    assert_int_equal(err.code, FX_NOT_FOUND);
    fixture_dir_remove(&store);
}

/* One bit of one file: verify names the file; put back, all is well again. */
static void test_verify_flipped(void **state) {
    static const struct {
        const char *file;
        long at;
    } flips[] = {
        {"part-000.safetensors",   -1  },
        {"part-000.safetensors",   0   },
        {"pack-t8.bin",            0   },
        {"pack-t8.bin",            -1  },
        {"config.json",            20  },
        {"generation_config.json", 5   },
        {"tokenizer.json",         1000},
        {"tokenizer_config.json",  10  },
        {"manifest.json",          200 },
    };
    struct fixture_dir store;
    struct fx_store_verified verified;
    char version[FIXTURE_PATH];
    (void)state;
    fixture_dir_make(&store);
    fixture_import(FX_BUNDLED, store.path, "m", FX_MODEL_INT4, 0, NULL);
    fixture_path(version, store.path, "m/1");
    for (size_t i = 0; i < FX_COUNT(flips); i++) {
        fx_error err = {0};
        char text[64];
        fixture_flip(version, flips[i].file, flips[i].at);
        assert_false(fx_store_verify(store.path, "m", NULL, NULL, &verified, &err));
        (void)snprintf(text, sizeof text, "file '%s' has changed", flips[i].file);
        fixture_expect(&err, FX_DATA_LOSS, text);
        fixture_flip(version, flips[i].file, flips[i].at);
        assert_true(fx_store_verify(store.path, "m", NULL, NULL, &verified, &err));
    }
    char path[FIXTURE_PATH];
    fx_error err = {0};
    fixture_path(path, version, "part-000.safetensors");
    assert_int_equal(unlink(path), 0);
    assert_false(fx_store_verify(store.path, "m", NULL, NULL, &verified, &err));
    fixture_expect(&err, FX_DATA_LOSS, "file 'part-000.safetensors' is missing");
    fixture_dir_remove(&store);
}

static size_t count_prefix(const char *dir, const char *prefix) {
    size_t count = 0;
    DIR *entries = opendir(dir);
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries));)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    (void)closedir(entries);
    return count;
}

static void test_open_folder(void **state) {
    struct fixture_dir tmp;
    fx_error err = {0};
    fx_model *model = NULL;
    float row[192];
    (void)state;
    fixture_dir_make(&tmp);
    if (!fx_store_open_folder(FX_BUNDLED, FX_MODEL_F16, tmp.path, &model, &err))
        fail_msg("%s", err.text);
    assert_int_equal(count_prefix(tmp.path, "fx-folder-"), 0);
    const struct fx_model_weights *weights = fx_model_get_weights(model);
    fx_weight_row(&weights->embed, 259, row);
    assert_int_equal(fx_model_get_config(model)->layers, 4);
    fx_model_free(model);
    assert_false(fx_store_open_folder("/nowhere/at/all", FX_MODEL_F16, tmp.path, &model, &err));
    assert_int_equal(err.code, FX_NOT_FOUND);
    assert_int_equal(count_prefix(tmp.path, "fx-folder-"), 0);
    fixture_dir_remove(&tmp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_number),
        cmocka_unit_test(test_same_number),
        cmocka_unit_test(test_numerics_id),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_bad_names_reach_no_file),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_weight_digest),
        cmocka_unit_test(test_tokenizer),
        cmocka_unit_test(test_template_file),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_verify_flipped),
        cmocka_unit_test(test_open_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
