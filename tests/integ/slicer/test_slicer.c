/* SlicerService by the real program: what an operator and a gateway ask of it. */
#include <jansson.h>
#include "tests/integ/slicer/slicer_process.h"

static struct slicer_process slicer;

static int setup(void **state) {
    slicer_start(&slicer);
    *state = &slicer;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    slicer_stop(&slicer);
    return 0;
}

static void import_bundled(const char *name, const char *dtype, struct import *import) {
    *import = (struct import){.folder = FX_BUNDLED, .name = name, .dtype = dtype};
    if (slicer_import_model(&slicer, import) != FX_OK) fail_msg("%s", import->err.text);
    assert_true(import->done && !import->broken);
}

static void test_import(void **state) {
    struct import import;
    Fractal__V1__ListModelsReply *list;
    (void)state;
    assert_int_equal(slicer_models(&slicer, NULL), 0);
    import_bundled("org/tiny", "int4", &import);
    assert_string_equal(import.stages, "read quantise digest publish ");
    assert_true(import.messages >= 5);
    assert_true(import.total_bytes > 20000000);
    assert_int_equal(import.done_bytes, import.total_bytes);
    assert_string_equal(import.version, "1");
    assert_int_equal(import.number, fx_model_number("org/tiny"));
    assert_memory_equal(import.numerics_id, "exact/1/int4-b64/f32/", 21);
    import_bundled("other", "f16", &import);
    assert_string_equal(import.stages, "read pack digest publish ");
    import_bundled("other", "f32", &import);
    assert_string_equal(import.version, "2");
    assert_int_equal(slicer_models(&slicer, &list), 2);
    const Fractal__V1__Model *model = list->models[0];
    assert_string_equal(model->name, "org/tiny");
    assert_string_equal(model->dtype, "int4");
    assert_int_equal(model->vocabulary, 260);
    assert_int_equal(model->context_max, 1024);
    assert_int_equal(model->n_eos_ids, 1);
    assert_int_equal(model->eos_ids[0], 257);
    assert_true(model->has_chat_template);
    assert_true(model->created_s > 1700000000);
    assert_string_equal(list->models[1]->name, "other");
    assert_string_equal(list->models[1]->dtype, "f32");
    assert_string_equal(list->models[1]->version, "2");
    assert_int_equal(slicer_left_over(&slicer), 0);
}

static void test_manifest(void **state) {
    struct import import;
    Fractal__V1__GetManifestRequest message = FRACTAL__V1__GET_MANIFEST_REQUEST__INIT;
    Fractal__V1__GetManifestReply *reply = NULL;
    fx_error err;
    (void)state;
    import_bundled("m", "int4", &import);
    message.name = (char *)(uintptr_t) "m";
    assert_int_equal(slicer_call(&slicer, "/fractal.v1.SlicerService/GetManifest", &message,
                                 &fractal__v1__get_manifest_reply__descriptor, &reply, &err),
                     FX_OK);
    json_t *manifest =
        json_loadb((const char *)reply->manifest_json.data, reply->manifest_json.len, 0, NULL);
    assert_non_null(manifest);
    assert_int_equal(json_integer_value(json_object_get(manifest, "schema")), 1);
    assert_string_equal(json_string_value(json_object_get(manifest, "tokenizer_digest")),
                        import.digest);
    assert_int_equal(json_object_size(json_object_get(manifest, "tensors")), 126);
    json_decref(manifest);
    message.name = (char *)(uintptr_t) "n";
    assert_int_equal(slicer_call(&slicer, "/fractal.v1.SlicerService/GetManifest", &message,
                                 &fractal__v1__get_manifest_reply__descriptor, &reply, &err),
                     FX_NOT_FOUND);
    message.name = (char *)(uintptr_t) "../../etc";
    assert_int_equal(slicer_call(&slicer, "/fractal.v1.SlicerService/GetManifest", &message,
                                 &fractal__v1__get_manifest_reply__descriptor, &reply, &err),
                     FX_INVALID_ARGUMENT);
}

static void test_tokenizer(void **state) {
    struct import import;
    Fractal__V1__GetTokenizerRequest message = FRACTAL__V1__GET_TOKENIZER_REQUEST__INIT;
    Fractal__V1__GetTokenizerReply *reply = NULL;
    fx_error err;
    size_t len;
    (void)state;
    import_bundled("m", "int4", &import);
    message.digest = import.digest;
    assert_int_equal(slicer_call(&slicer, "/fractal.v1.SlicerService/GetTokenizer", &message,
                                 &fractal__v1__get_tokenizer_reply__descriptor, &reply, &err),
                     FX_OK);
    char *want = fixture_read(FX_BUNDLED, "tokenizer.json", &len);
    assert_int_equal(reply->tokenizer_json.len, len);
    assert_memory_equal(reply->tokenizer_json.data, want, len);
    free(want);
    want = fixture_read(FX_BUNDLED, "tokenizer_config.json", &len);
    assert_int_equal(reply->tokenizer_config_json.len, len);
    assert_memory_equal(reply->tokenizer_config_json.data, want, len);
    free(want);
    import.digest[5] = import.digest[5] == 'a' ? 'b' : 'a';
    assert_int_equal(slicer_call(&slicer, "/fractal.v1.SlicerService/GetTokenizer", &message,
                                 &fractal__v1__get_tokenizer_reply__descriptor, &reply, &err),
                     FX_NOT_FOUND);
    message.digest = (char *)(uintptr_t) "../x";
    assert_int_equal(slicer_call(&slicer, "/fractal.v1.SlicerService/GetTokenizer", &message,
                                 &fractal__v1__get_tokenizer_reply__descriptor, &reply, &err),
                     FX_INVALID_ARGUMENT);
}

static void test_verify(void **state) {
    struct import import;
    Fractal__V1__VerifyModelReply *reply = NULL;
    fx_error err;
    char version[FIXTURE_PATH];
    (void)state;
    import_bundled("m", "int4", &import);
    if (slicer_verify_model(&slicer, "m", &reply, &err) != FX_OK) fail_msg("%s", err.text);
    assert_int_equal(reply->files, 7);
    assert_true(reply->bytes > 8000000);
    fixture_path(version, slicer.store, "m/1");
    fixture_flip(version, "pack-t8.bin", 4000000);
    (void)slicer_verify_model(&slicer, "m", &reply, &err);
    fixture_expect(&err, FX_DATA_LOSS, "model 'm': file 'pack-t8.bin' has changed");
    fixture_flip(version, "pack-t8.bin", 4000000);
    assert_int_equal(slicer_verify_model(&slicer, "m", &reply, &err), FX_OK);
    assert_int_equal(slicer_verify_model(&slicer, "n", &reply, &err), FX_NOT_FOUND);
}

static void test_refused(void **state) {
    static const struct {
        struct import import;
        enum fx_code code;
        const char *text;
    } rows[] = {
        {{.folder = FX_BUNDLED, .name = "m", .token = ""},        FX_UNAUTHENTICATED,   ""           },
        {{.folder = FX_BUNDLED, .name = "m", .token = "1" TOKEN}, FX_PERMISSION_DENIED, ""           },
        {{.folder = FX_BUNDLED, .name = "../m"},                  FX_INVALID_ARGUMENT,  "model name" },
        {{.folder = FX_BUNDLED, .name = ""},                      FX_INVALID_ARGUMENT,  "model name" },
        {{.folder = FX_BUNDLED, .name = "m/1"},                   FX_INVALID_ARGUMENT,  "model name" },
        {{.folder = FX_BUNDLED, .name = "m", .dtype = "int8"},    FX_INVALID_ARGUMENT,  "dtype"      },
        {{.folder = "models", .name = "m"},                       FX_INVALID_ARGUMENT,  "absolute"   },
        {{.folder = "/nowhere/at/all", .name = "m"},              FX_NOT_FOUND,         "config.json"},
        {{.folder = FX_SOURCE_DIR, .name = "m"},                  FX_NOT_FOUND,         "config.json"},
    };
    (void)state;
    for (size_t i = 0; i < FX_COUNT(rows); i++) {
        struct import import = rows[i].import;
        (void)slicer_import_model(&slicer, &import);
        fixture_expect(&import.err, rows[i].code, rows[i].text);
        assert_false(import.done);
    }
    assert_int_equal(slicer_models(&slicer, NULL), 0);
    assert_int_equal(slicer_left_over(&slicer), 0);
}

static void test_truncated(void **state) {
    struct import import = {.name = "m"};
    char folder[FIXTURE_PATH], path[FIXTURE_PATH];
    (void)state;
    fixture_path(folder, slicer.dir.path, "cut");
    assert_int_equal(mkdir(folder, 0755), 0);
    fixture_copy_model(FX_GOLDENS "mixtral", folder);
    fixture_path(path, folder, "model.safetensors");
    assert_int_equal(truncate(path, 500000), 0);
    import.folder = folder;
    (void)slicer_import_model(&slicer, &import);
    fixture_expect(
        &import.err, FX_DATA_LOSS,
        "tensor 'model.layers.1.block_sparse_moe.experts.7.w2.weight': data ends at 503704");
    assert_int_equal(slicer_models(&slicer, NULL), 0);
}

static void test_bad_tokenizer(void **state) {
    struct import import = {.folder = slicer.dir.path, .name = "m"};
    (void)state;
    fixture_copy_model(FX_BUNDLED, slicer.dir.path);
    fixture_write(slicer.dir.path, "tokenizer.json", "{\"model\":{\"type\":\"Unigram\"}}", 28);
    (void)slicer_import_model(&slicer, &import);
    fixture_expect(&import.err, FX_UNIMPLEMENTED, "tokenizer.json");
    fixture_copy(FX_BUNDLED, slicer.dir.path, "tokenizer.json");
    fixture_copy_model(FX_GOLDENS "llama", slicer.dir.path);
    import.err = (fx_error){0};
    if (slicer_import_model(&slicer, &import) != FX_OK) fail_msg("%s", import.err.text);
}

static void test_admin(void **state) {
    struct import import;
    char body[16384];
    (void)state;
    import_bundled("m", "int4", &import);
    assert_int_equal(slicer_admin(&slicer, "/readyz", body, sizeof body), 200);
    assert_int_equal(slicer_admin(&slicer, "/livez", body, sizeof body), 200);
    assert_int_equal(slicer_admin(&slicer, "/metrics", body, sizeof body), 200);
    assert_non_null(strstr(body, "\nfx_slicer_models 1\n"));
    assert_non_null(strstr(body, "\nfx_slicer_imports_total 1\n"));
    assert_non_null(strstr(body, "\nfx_slicer_importing 0\n"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_import),  TEST(test_manifest),  TEST(test_tokenizer),     TEST(test_verify),
        TEST(test_refused), TEST(test_truncated), TEST(test_bad_tokenizer), TEST(test_admin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
