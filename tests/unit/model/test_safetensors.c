/* Files that lie or are cut: each is refused, naming the tensor. */
#include "tests/unit/model/store_fixture.h"

#define F4(name, begin, end)                                                                       \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[" #begin "," #end "]}"
#define ONE(dtype, shape, offsets)                                                                 \
    "{\"a.weight\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define DEEP4 "[[[["
#define DEEP64 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4 DEEP4

struct row {
    const char *name, *header;
    size_t data;          /* bytes after the header */
    int64_t length_added; /* to the header's length */
    enum fx_code code;    /* FX_OK: accepted */
    const char *text;     /* in the error */
};
static const struct row rows[] = {
    {"two tensors", "{" F4("a", 0, 16) "," F4("b", 16, 32) "}", 32, 0, FX_OK, ""},
    {"not in order", "{" F4("b", 16, 32) "," F4("a", 0, 16) "}", 32, 0, FX_OK, ""},
    {"metadata", "{\"__metadata__\":{\"format\":\"pt\"}," F4("a", 0, 16) "}", 16, 0, FX_OK, ""},
    {"blanks after the header", "{" F4("a", 0, 16) "}   ", 16, 0, FX_OK, ""},
    {"no tensor", "{}", 0, 0, FX_OK, ""},
    {"empty tensor", ONE("\"F32\"", "[0,7]", "[0,0]"), 0, 0, FX_OK, ""},
    {"scalar", ONE("\"F64\"", "[]", "[0,8]"), 8, 0, FX_OK, ""},
    {"cut", "{" F4("a", 0, 16) "," F4("b", 16, 32) "}", 20, 0, FX_DATA_LOSS,
     "tensor 'b': data ends at 162 but the file has 150 bytes"},
    {"cut to the header", "{" F4("a", 0, 16) "}", 0, 0, FX_DATA_LOSS, "tensor 'a': data ends at"},
    {"header longer than the file", "{" F4("a", 0, 16) "}", 16, 1000, FX_DATA_LOSS,
     "header ends at"},
    {"header beyond all bounds", "{" F4("a", 0, 16) "}", 16, INT64_MAX / 2, FX_INVALID_ARGUMENT,
     "at most 67108864"},
    {"negative header length", "{" F4("a", 0, 16) "}", 16, -4096, FX_INVALID_ARGUMENT, "header of"},
    {"header cut in the JSON", "{" F4("a", 0, 16) "}", 16, -5, FX_INVALID_ARGUMENT, "JSON line 1"},
    {"data read as header", "{" F4("a", 0, 16) "}", 16, 8, FX_INVALID_ARGUMENT, "JSON"},
    {"empty header", "", 0, 0, FX_INVALID_ARGUMENT, "begin with '{'"},
    {"list", "[]", 0, 0, FX_INVALID_ARGUMENT, "begin with '{'"},
    {"duplicate name", "{" F4("a", 0, 16) "," F4("a", 16, 32) "}", 32, 0, FX_INVALID_ARGUMENT,
     "duplicate"},
    {"overlap", "{" F4("a", 0, 16) "," F4("b", 8, 24) "}", 24, 0, FX_INVALID_ARGUMENT,
     "tensor 'b': data begins at 138, inside, the end of what is before it, 146"},
    {"same data twice", "{" F4("a", 0, 16) "," F4("b", 0, 16) "}", 16, 0, FX_INVALID_ARGUMENT,
     "tensor 'b': data begins at"},
    {"hole", "{" F4("a", 0, 16) "," F4("b", 24, 40) "}", 40, 0, FX_INVALID_ARGUMENT,
     "tensor 'b': data begins at 155, after"},
    {"hole at the front", "{" F4("a", 4, 20) "}", 20, 0, FX_INVALID_ARGUMENT,
     "tensor 'a': data begins at"},
    {"bytes left over", "{" F4("a", 0, 16) "}", 17, 0, FX_INVALID_ARGUMENT,
     "data ends at 87 but the file has 88 bytes"},
    {"end before begin", "{" F4("a", 16, 0) "}", 16, 0, FX_INVALID_ARGUMENT,
     "tensor 'a': data begins at 16, after its end at 0"},
    {"negative offset", "{" F4("a", -16, 0) "}", 16, 0, FX_INVALID_ARGUMENT,
     "tensor 'a': data_offsets are not two"},
    {"one offset", ONE("\"U8\"", "[1]", "[1]"), 1, 0, FX_INVALID_ARGUMENT, "data_offsets"},
    {"offsets of text", ONE("\"U8\"", "[1]", "[0,\"1\"]"), 1, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': data_offsets"},
    {"offsets of fractions", ONE("\"U8\"", "[1]", "[0,1.0]"), 1, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': data_offsets"},
    {"offset of 2^64", ONE("\"U8\"", "[1]", "[0,18446744073709551616]"), 1, 0,
     FX_INVALID_ARGUMENT, "JSON"},
    {"offset of 2^63-1", ONE("\"U8\"", "[9223372036854775807]", "[0,9223372036854775807]"), 1, 0,
     FX_DATA_LOSS, "tensor 'a.weight': data ends at 9223372036854775900 but"},
    {"shape disagrees", ONE("\"F32\"", "[3]", "[0,16]"), 16, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': its shape needs 12 bytes, its data has 16"},
    {"shape overflows to 0", ONE("\"F32\"", "[4294967296,4294967296]", "[0,0]"), 0, 0,
     FX_INVALID_ARGUMENT, "tensor 'a.weight': its shape's product overflows"},
    {"shape overflows by its size", ONE("\"F64\"", "[2305843009213693952]", "[0,0]"), 0, 0,
     FX_INVALID_ARGUMENT, "tensor 'a.weight': its shape's product overflows"},
    {"negative shape", ONE("\"F32\"", "[-1]", "[0,4]"), 4, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': shape[0]"},
    {"negative shapes", ONE("\"F32\"", "[-2,-2]", "[0,16]"), 16, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': shape[0]"},
    {"shape of text", ONE("\"F32\"", "\"4\"", "[0,4]"), 4, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': shape is not"},
    {"nine dimensions", ONE("\"U8\"", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': 9 dimensions"},
    {"unknown dtype", ONE("\"F8_E4M3\"", "[1]", "[0,1]"), 1, 0, FX_UNIMPLEMENTED,
     "tensor 'a.weight': dtype 'F8_E4M3'"},
    {"dtype of a number", ONE("7", "[1]", "[0,1]"), 1, 0, FX_INVALID_ARGUMENT,
     "tensor 'a.weight': dtype"},
    {"no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, 0, FX_INVALID_ARGUMENT,
     "tensor 'a': dtype"},
    {"no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, 0, FX_INVALID_ARGUMENT,
     "tensor 'a': shape"},
    {"no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, 0, FX_INVALID_ARGUMENT,
     "tensor 'a': data_offsets"},
    {"entry of a number", "{\"a\":1}", 0, 0, FX_INVALID_ARGUMENT, "tensor 'a': not an object"},
    {"metadata of a number", "{\"__metadata__\":1}", 0, 0, FX_INVALID_ARGUMENT, "__metadata__"},
    {"metadata of numbers", "{\"__metadata__\":{\"a\":1}}", 0, 0, FX_INVALID_ARGUMENT,
     "__metadata__ 'a'"},
    {"deep JSON", "{\"a\":" DEEP64, 0, 0, FX_INVALID_ARGUMENT, "nested"},
    {"two objects", "{}{}", 0, 0, FX_INVALID_ARGUMENT, "JSON"},
    {"bytes that are no UTF-8", "{\"\xff\":1}", 0, 0, FX_INVALID_ARGUMENT, "JSON"},
    {"NUL in a name", "{\"a\\u0000b\":1}", 0, 0, FX_INVALID_ARGUMENT, "JSON"},
};

static void write_row(const struct row *row, const struct fixture_dir *dir) {
    size_t len = strlen(row->header);
    uint64_t length = (uint64_t)((int64_t)len + row->length_added);
    uint8_t *file = fx_alloc(8 + len + row->data, 1);
    assert_non_null(file);
    memcpy(file, &length, 8);
    memcpy(file + 8, row->header, len);
    for (size_t i = 0; i < row->data; i++)
        file[8 + len + i] = (uint8_t)(i * 37 + 11);
    fixture_write(dir->path, "x.safetensors", file, 8 + len + row->data);
    free(file);
}

static void test_safetensors(void **state) {
    const struct row *row = *state;
    struct fixture_dir dir;
    char path[FIXTURE_PATH];
    fx_auto(fx_safetensors) file = NULL;
    fx_error err = {0};
    fixture_dir_make(&dir);
    write_row(row, &dir);
    fixture_path(path, dir.path, "x.safetensors");
    bool ok = fx_safetensors_open(path, &file, &err);
    fixture_dir_remove(&dir);
    if (row->code == FX_OK && !ok) fail_msg("refused: %s", err.text);
    if (row->code == FX_OK) return;
    assert_false(ok);
    assert_null(file);
    fixture_expect(&err, row->code, row->text);
}
FX_TEST_MAIN(test_safetensors, rows)
