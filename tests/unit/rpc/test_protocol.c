/* The protocol against its snapshot, protocol.txt: a line that is gone or differs breaks running
 * replicas and stored messages; a new line is added to the snapshot in the same change.
 * `test_protocol --print` prints the protocol as it is. */
#include "common/base/span.h"
#include "tests/fx_test.h"

extern const unsigned char fx_proto_descriptors[];
extern const unsigned long fx_proto_descriptors_len;

enum { TEXT_MAX = 64 * 1024, NAME_MAX_BYTES = 128 };

struct field {
    uint32_t number;
    uint64_t value;
    fx_span bytes;
};

static uint64_t varint(fx_span *in) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(in->len > 0 && shift < 64);
        uint8_t byte = *in->at;
        *in = (fx_span){in->at + 1, in->len - 1};
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return value;
    }
}

static bool next(fx_span *in, struct field *out) {
    if (in->len == 0) return false;
    uint64_t key = varint(in);
    *out = (struct field){.number = (uint32_t)(key >> 3)};
    assert_true((key & 7) == 0 || (key & 7) == 2);
    out->value = varint(in);
    if ((key & 7) == 2) {
        assert_true(out->value <= in->len);
        out->bytes = (fx_span){in->at, (size_t)out->value};
        *in = (fx_span){in->at + out->value, in->len - (size_t)out->value};
    }
    return true;
}

static struct field find(fx_span in, uint32_t number) {
    struct field field = {0};
    while (next(&in, &field))
        if (field.number == number) return field;
    return (struct field){0};
}

static fx_buf text_;

static void put(fx_span bytes) {
    fx_buf_put(&text_, bytes);
}

static void put_text(const char *text) {
    put(fx_span_str(text));
}

static void put_number(uint64_t number) {
    char text[24];
    (void)snprintf(text, sizeof text, " %llu", (unsigned long long)number);
    put_text(text);
}

static void put_name(const char *scope, fx_span name) {
    put_text(scope);
    put_text(".");
    put(name);
}

/* "<message>.<field> <number> <label> <type> <type name>" as descriptor.proto numbers them. */
static void list_message(const char *scope, fx_span message) {
    char name[NAME_MAX_BYTES];
    fx_span own = find(message, 1).bytes;
    (void)snprintf(name, sizeof name, "%s.%.*s", scope, (int)own.len, (const char *)own.at);
    put_text(name);
    put_text("\n");
    for (struct field field; next(&message, &field);) {
        if (field.number != 2) continue;
        put_name(name, find(field.bytes, 1).bytes);
        put_number(find(field.bytes, 3).value);
        put_number(find(field.bytes, 4).value);
        put_number(find(field.bytes, 5).value);
        fx_span type = find(field.bytes, 6).bytes;
        if (type.len) put_text(" ");
        put(type);
        put_text("\n");
    }
}

static void list_enum(const char *scope, fx_span type) {
    for (struct field field; next(&type, &field);) {
        if (field.number != 2) continue;
        put_name(scope, find(field.bytes, 1).bytes);
        put_number(find(field.bytes, 2).value);
        put_text("\n");
    }
}

/* "<service>/<method> <request> <reply> <client streams> <server streams>" */
static void list_service(const char *scope, fx_span service) {
    fx_span own = find(service, 1).bytes;
    for (struct field field; next(&service, &field);) {
        if (field.number != 2) continue;
        put_name(scope, own);
        put_text("/");
        put(find(field.bytes, 1).bytes);
        put_text(" ");
        put(find(field.bytes, 2).bytes);
        put_text(" ");
        put(find(field.bytes, 3).bytes);
        put_number(find(field.bytes, 5).value);
        put_number(find(field.bytes, 6).value);
        put_text("\n");
    }
}

static void list_all(void) {
    static uint8_t memory[TEXT_MAX];
    fx_span set = {fx_proto_descriptors, fx_proto_descriptors_len};
    text_ = (fx_buf){memory, 0, sizeof memory - 1};
    for (struct field file; next(&set, &file);) {
        char package[NAME_MAX_BYTES];
        fx_span name = find(file.bytes, 2).bytes;
        (void)snprintf(package, sizeof package, "%.*s", (int)name.len, (const char *)name.at);
        if (strcmp(package, "fractal.v1") != 0) continue;
        for (struct field field; next(&file.bytes, &field);) {
            if (field.number == 4) list_message(package, field.bytes);
            if (field.number == 5) list_enum(package, field.bytes);
            if (field.number == 6) list_service(package, field.bytes);
        }
    }
    memory[text_.len < TEXT_MAX ? text_.len : 0] = '\0';
}

/* Every line of `have` is in `want`. */
static int missing_lines(const char *have, const char *want, const char *complaint) {
    int missing = 0;
    for (size_t len; *have; have += len) {
        char line[512] = "\n";
        len = strcspn(have, "\n") + 1;
        assert_true(len < sizeof line - 2);
        memcpy(line + 1, have, len);
        bool found = strncmp(want, line + 1, len) == 0 || strstr(want, line);
        if (!found) print_error("%s: %.*s", complaint, (int)len, have);
        missing += !found;
    }
    return missing;
}

static void test_snapshot(void **state) {
    static char snapshot[TEXT_MAX];
    FILE *file = fopen(FX_SOURCE_DIR "/tests/unit/rpc/protocol.txt", "rbe");
    (void)state;
    assert_non_null(file);
    size_t len = fread(snapshot, 1, sizeof snapshot - 1, file);
    (void)fclose(file);
    assert_in_range(len, 1000, sizeof snapshot - 2);
    list_all();
    assert_true(fx_buf_fits(&text_));
    int gone = missing_lines(snapshot, (const char *)text_.at, "gone or changed");
    int new = missing_lines((const char *)text_.at, snapshot, "add to protocol.txt");
    assert_int_equal(gone, 0);
    assert_int_equal(new, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_snapshot)};
    if (argc < 2 || strcmp(argv[1], "--print") != 0)
        return cmocka_run_group_tests(tests, NULL, NULL);
    list_all();
    return fwrite(text_.at, 1, text_.len, stdout) != text_.len;
}
