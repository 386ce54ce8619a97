/* What is read from a good file, and what the writer makes. */
#include "tests/unit/model/store_fixture.h"

static const struct fx_tensor_spec specs[] = {
    {"first",  FX_DTYPE_F32,  2, {3, 5}}, /* 60 bytes: padding follows */
    {"second", FX_DTYPE_U8,   1, {64}  }, /* none */
    {"third",  FX_DTYPE_F16,  2, {1, 7}},
    {"empty",  FX_DTYPE_I64,  1, {0}   },
    {"last",   FX_DTYPE_BF16, 0, {0}   },
};

static uint8_t value(size_t tensor, size_t byte) {
    return (uint8_t)(tensor * 101 + byte * 7 + 1);
}

/* Each tensor in two writes, the second half first. */
static void fill(fx_safetensors_writer *writer, const struct fx_safetensors *layout) {
    fx_error err = {0};
    for (size_t i = 0; i < FX_COUNT(specs); i++) {
        const struct fx_tensor *tensor = fx_safetensors_find(layout, specs[i].name);
        uint8_t bytes[64];
        size_t len = tensor->data.len, half = len / 2;
        for (size_t k = 0; k < len; k++)
            bytes[k] = value(i, k);
        assert_true(
            fx_safetensors_write(writer, i, half, (fx_span){bytes + half, len - half}, &err));
        assert_true(fx_safetensors_write(writer, i, 0, (fx_span){bytes, half}, &err));
    }
}

static fx_safetensors *open_at(const char *path) {
    fx_error err = {0};
    fx_safetensors *file = NULL;
    if (!fx_safetensors_open(path, &file, &err)) fail_msg("%s", err.text);
    return file;
}

static void check(const fx_safetensors *file) {
    for (size_t i = 0; i < FX_COUNT(specs); i++) {
        const struct fx_tensor *tensor = fx_safetensors_find(file, specs[i].name);
        uint8_t bytes[64];
        fx_error err = {0};
        assert_non_null(tensor);
        assert_int_equal(tensor->dtype, specs[i].dtype);
        assert_int_equal(tensor->dims, specs[i].dims);
        assert_memory_equal(tensor->shape, specs[i].shape, specs[i].dims * sizeof(uint64_t));
        assert_int_equal((uintptr_t)tensor->data.at % FX_SAFETENSORS_ALIGN, 0);
        assert_true(fx_safetensors_read(file, tensor, 0, bytes, tensor->data.len, &err));
        for (size_t k = 0; k < tensor->data.len; k++) {
            assert_int_equal(tensor->data.at[k], value(i, k));
            assert_int_equal(bytes[k], value(i, k));
        }
    }
}

static void test_round_trip(void **state) {
    struct fixture_dir dir;
    char path[FIXTURE_PATH];
    struct stat stat_;
    fx_error err = {0};
    fx_auto(fx_safetensors_writer) writer = NULL;
    (void)state;
    fixture_dir_make(&dir);
    fixture_path(path, dir.path, "x.safetensors");
    assert_true(fx_safetensors_create(path, specs, FX_COUNT(specs), &writer, &err));
    fx_auto(fx_safetensors) file = open_at(path);
    fill(writer, file);
    assert_true(fx_safetensors_finish(writer, &err));
    check(file);
    assert_int_equal(fx_safetensors_count(file), FX_COUNT(specs) + 2); /* with the paddings */
    assert_non_null(fx_safetensors_find(file, "pad#1"));
    assert_non_null(fx_safetensors_find(file, "pad#3"));
    assert_null(fx_safetensors_find(file, "firs"));
    assert_null(fx_safetensors_find(file, "zz"));
    assert_int_equal(stat(path, &stat_), 0);
    assert_int_equal(stat_.st_size, fx_safetensors_size(specs, FX_COUNT(specs)));
    fixture_dir_remove(&dir);
}

static void test_incomplete_is_refused(void **state) {
    struct fixture_dir dir;
    char path[FIXTURE_PATH];
    fx_error err = {0};
    fx_auto(fx_safetensors_writer) writer = NULL;
    (void)state;
    fixture_dir_make(&dir);
    fixture_path(path, dir.path, "x.safetensors");
    assert_true(fx_safetensors_create(path, specs, 2, &writer, &err));
    uint8_t bytes[60] = {0};
    assert_true(fx_safetensors_write(writer, 0, 0, (fx_span){bytes, 60}, &err));
    assert_false(fx_safetensors_finish(writer, &err));
    fixture_expect(&err, FX_FAILED_PRECONDITION, "tensor 1 has 0 of 64 bytes");
    fixture_dir_remove(&dir);
}

static void test_existing_file_is_kept(void **state) {
    struct fixture_dir dir;
    char path[FIXTURE_PATH];
    fx_error err = {0};
    fx_safetensors_writer *writer = NULL;
    size_t len;
    (void)state;
    fixture_dir_make(&dir);
    fixture_path(path, dir.path, "x.safetensors");
    fixture_write(dir.path, "x.safetensors", "mine", 4);
    assert_false(fx_safetensors_create(path, specs, 1, &writer, &err));
    assert_int_equal(err.code, FX_ALREADY_EXISTS);
    char *text = fixture_read(dir.path, "x.safetensors", &len);
    assert_string_equal(text, "mine");
    free(text);
    fixture_dir_remove(&dir);
}

/* A file cut while it is open is an error of the reader, not a SIGBUS. */
static void test_cut_while_open(void **state) {
    struct fixture_dir dir;
    char path[FIXTURE_PATH];
    float values[512];
    fx_error err = {0};
    (void)state;
    fixture_dir_make(&dir);
    fixture_copy(FX_GOLDENS "llama", dir.path, "model.safetensors");
    fixture_path(path, dir.path, "model.safetensors");
    fx_auto(fx_safetensors) file = open_at(path);
    assert_int_equal(truncate(path, 8192), 0);
    const struct fx_tensor *tensor = fx_safetensors_find(file, "model.norm.weight");
    assert_false(fx_safetensors_read(file, tensor, 0, values, 256, &err));
    fixture_expect(&err, FX_DATA_LOSS, "tensor 'model.norm.weight': the file became shorter");
    fixture_dir_remove(&dir);
}

static const struct {
    const char *path;
    enum fx_code code;
} no_files[] = {
    {"/nowhere/at/all.safetensors", FX_NOT_FOUND       },
    {"/",                           FX_INVALID_ARGUMENT},
    {"/dev/null",                   FX_INVALID_ARGUMENT},
    {"/etc/ld.so.conf",             FX_INVALID_ARGUMENT},
};

static void test_no_file(void **state) {
    (void)state;
    for (size_t i = 0; i < FX_COUNT(no_files); i++) {
        fx_error err = {0};
        fx_safetensors *file = NULL;
        assert_false(fx_safetensors_open(no_files[i].path, &file, &err));
        assert_int_equal(err.code, no_files[i].code);
    }
}

static void test_shorter_than_a_length(void **state) {
    struct fixture_dir dir;
    char path[FIXTURE_PATH];
    (void)state;
    fixture_dir_make(&dir);
    fixture_path(path, dir.path, "x.safetensors");
    for (size_t len = 0; len < 8; len++) {
        fx_error err = {0};
        fx_safetensors *file = NULL;
        fixture_write(dir.path, "x.safetensors", "\2\0\0\0\0\0\0\0{}", len);
        assert_false(fx_safetensors_open(path, &file, &err));
        fixture_expect(&err, FX_DATA_LOSS, "no safetensors file");
    }
    fixture_dir_remove(&dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_incomplete_is_refused),
        cmocka_unit_test(test_existing_file_is_kept),
        cmocka_unit_test(test_cut_while_open),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_shorter_than_a_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
