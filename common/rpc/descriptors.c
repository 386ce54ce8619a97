#include "common/rpc/descriptors_internal.h"
#include <stdlib.h>
#include "common/base/heap.h"

extern const unsigned char fx_proto_descriptors[];
extern const unsigned long fx_proto_descriptors_len;

enum { FILES_MAX = 64, DEPTH_MAX = 8 };

struct fx_descriptors {
    struct fx_descriptor_file files[FILES_MAX];
    size_t count;
};

/* Field numbers of descriptor.proto. */
enum {
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_IMPORT = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    NAME = 1,
    MESSAGE_FIELD = 2,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    ENUM_VALUE = 2,
    SERVICE_METHOD = 2,
};

struct field {
    uint32_t number;
    fx_span bytes; /* .at NULL for numbers */
};

static bool read_varint(fx_span *in, uint64_t *out) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && in->len; shift += 7) {
        uint8_t byte = *in->at;
        *in = (fx_span){in->at + 1, in->len - 1};
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool skip(fx_span *in, size_t len) {
    if (len > in->len) return false;
    *in = (fx_span){in->at + len, in->len - len};
    return true;
}

/* The next field of a message; false at its end or when malformed. */
static bool next_field(fx_span *in, struct field *out) {
    uint64_t key, value;
    if (!read_varint(in, &key)) return false;
    *out = (struct field){(uint32_t)(key >> 3), {0}};
    switch (key & 7) {
    case 0: return read_varint(in, &value);
    case 1: return skip(in, 8);
    case 5: return skip(in, 4);
    case 2:
        if (!read_varint(in, &value)) return false;
        out->bytes = (fx_span){in->at, (size_t)value};
        return skip(in, (size_t)value);
    default: return false;
    }
}

static fx_span find_field(fx_span message, uint32_t number) {
    struct field field;
    while (next_field(&message, &field))
        if (field.number == number) return field.bytes;
    return (fx_span){0};
}

static FX_MUST bool cut(struct fx_descriptors *into, fx_span set, fx_error *err) {
    struct field field;
    while (next_field(&set, &field)) {
        if (field.number != SET_FILE) continue;
        if (into->count == FILES_MAX)
            return fx_fail(err, FX_RESOURCE_EXHAUSTED, "more than %d proto files", FILES_MAX);
        into->files[into->count++] =
            (struct fx_descriptor_file){.name = find_field(field.bytes, FILE_NAME),
                                        .package = find_field(field.bytes, FILE_PACKAGE),
                                        .bytes = field.bytes};
    }
    if (set.len) return fx_fail(err, FX_DATA_LOSS, "the embedded descriptors are malformed");
    return true;
}

bool fx_descriptors__open(struct fx_descriptors **out, fx_error *err) {
    struct fx_descriptors *made = fx_alloc(1, sizeof *made);
    if (!made) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "descriptors");
    if (!cut(made, (fx_span){fx_proto_descriptors, fx_proto_descriptors_len}, err)) {
        free(made);
        return false;
    }
    *out = made;
    return true;
}

void fx_descriptors__free(struct fx_descriptors *descriptors) {
    free(descriptors);
}

const struct fx_descriptor_file *fx_descriptors__by_name(const struct fx_descriptors *descriptors,
                                                         fx_span name) {
    for (size_t i = 0; i < descriptors->count; i++)
        if (fx_span_eq(descriptors->files[i].name, name)) return &descriptors->files[i];
    return NULL;
}

static size_t import_add(const struct fx_descriptor_file *file, size_t count,
                         const struct fx_descriptor_file *out[FX_IMPORTS_MAX]) {
    if (!file || count == FX_IMPORTS_MAX) return count;
    for (size_t i = 0; i < count; i++)
        if (out[i] == file) return count;
    out[count] = file;
    return count + 1;
}

size_t fx_descriptors__with_imports(const struct fx_descriptors *descriptors,
                                    const struct fx_descriptor_file *file,
                                    const struct fx_descriptor_file *out[FX_IMPORTS_MAX]) {
    size_t count = import_add(file, 0, out);
    for (size_t i = 0; i < count; i++) { /* grows while it runs */
        fx_span rest = out[i]->bytes;
        for (struct field field; next_field(&rest, &field);)
            if (field.number == FILE_IMPORT)
                count = import_add(fx_descriptors__by_name(descriptors, field.bytes), count, out);
    }
    return count;
}

/* Takes `part` and a dot (or the end) off the front of `symbol`. */
static bool take_part(fx_span *symbol, fx_span part) {
    if (part.len == 0) return true;
    if (symbol->len < part.len || memcmp(symbol->at, part.at, part.len) != 0) return false;
    if (symbol->len > part.len && symbol->at[part.len] != '.') return false;
    size_t len = part.len + (symbol->len > part.len ? 1 : 0);
    return skip(symbol, len);
}

/* Is the rest of the symbol the name of a child in field `number`? */
static bool has_member(fx_span message, uint32_t number, fx_span rest) {
    struct field field;
    while (next_field(&message, &field))
        if (field.number == number && fx_span_eq(find_field(field.bytes, NAME), rest)) return true;
    return false;
}

struct container {
    uint32_t number, members;
};

/* Does one child of `in` in field `what.number` hold the symbol? On a nested message, goes down:
 * `in` and `symbol` become the child's. */
static bool matches(fx_span *in, struct container what, fx_span *symbol, bool *deeper) {
    struct field field;
    for (fx_span at = *in; next_field(&at, &field);) {
        fx_span rest = *symbol;
        if (field.number != what.number || !take_part(&rest, find_field(field.bytes, NAME)))
            continue;
        if (rest.len == 0 || has_member(field.bytes, what.members, rest)) return true;
        *deeper = what.members == MESSAGE_FIELD && what.number != FILE_ENUM;
        *in = field.bytes;
        *symbol = rest;
        return false;
    }
    return false;
}

static bool holds_message(fx_span in, fx_span symbol) {
    struct container messages = {FILE_MESSAGE, MESSAGE_FIELD}, enums = {0, ENUM_VALUE};
    for (int depth = 0; depth < DEPTH_MAX; depth++) {
        bool deeper = false, ignored = false;
        fx_span enum_in = in, enum_symbol = symbol;
        enums.number = depth ? MESSAGE_ENUM : FILE_ENUM;
        if (matches(&enum_in, enums, &enum_symbol, &ignored)) return true;
        if (matches(&in, messages, &symbol, &deeper)) return true;
        if (!deeper) return false;
        messages.number = MESSAGE_NESTED;
    }
    return false;
}

static bool holds(const struct fx_descriptor_file *file, fx_span symbol) {
    bool ignored = false;
    if (!take_part(&symbol, file->package) || symbol.len == 0) return false;
    fx_span in = file->bytes, name = symbol;
    struct container services = {FILE_SERVICE, SERVICE_METHOD};
    return matches(&in, services, &name, &ignored) || holds_message(file->bytes, symbol);
}

const struct fx_descriptor_file *fx_descriptors__by_symbol(const struct fx_descriptors *descriptors,
                                                           fx_span symbol) {
    for (size_t i = 0; i < descriptors->count; i++)
        if (holds(&descriptors->files[i], symbol)) return &descriptors->files[i];
    return NULL;
}
