/* The strings of a packed message, looked at on the wire: unpacked, they have no length. */
#include <stdio.h>
#include "common/rpc/pb.h"

enum { WIRE_VARINT, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5, VARINT_BYTES_MAX = 10 };

struct entry {
    uint32_t id;
    fx_span bytes; /* WIRE_BYTES: its bytes, else empty */
};

static bool varint(fx_span *in, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < in->len && i < VARINT_BYTES_MAX; i++) {
        value |= (uint64_t)(in->at[i] & 0x7f) << (7 * i);
        if (in->at[i] & 0x80) continue;
        *in = (fx_span){in->at + i + 1, in->len - i - 1};
        *out = value;
        return true;
    }
    return false;
}

/* False at the end, and at what is no wire format. */
static bool next(fx_span *in, struct entry *out) {
    uint64_t key, len = 0;
    if (!varint(in, &key)) return false;
    *out = (struct entry){.id = (uint32_t)(key >> 3)};
    unsigned wire = key & 7;
    if (wire == WIRE_VARINT) return varint(in, &len);
    if (wire == WIRE_BYTES && !varint(in, &len)) return false;
    if (wire == WIRE_64 || wire == WIRE_32) len = wire == WIRE_64 ? 8 : 4;
    if (len > in->len || (!len && wire != WIRE_BYTES)) return false;
    if (wire == WIRE_BYTES) out->bytes = (fx_span){in->at, (size_t)len};
    *in = (fx_span){in->at + len, in->len - (size_t)len};
    return true;
}

/* The length of the UTF-8 sequence that begins here; 0: none does. */
static size_t sequence(fx_span text) {
    uint8_t first = text.at[0], low = 0x80, high = 0xbf;
    size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || len > text.len) return 0;
    if (first == 0xe0) low = 0xa0; /* too long, a surrogate, too long, past U+10FFFF */
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    for (size_t i = 1; i < len; i++, low = 0x80, high = 0xbf)
        if (text.at[i] < low || text.at[i] > high) return 0;
    return len;
}

/* NULL: nothing. */
static const char *wrong_with(fx_span text) {
    if (text.len && memchr(text.at, 0, text.len)) return "has a NUL character";
    for (size_t i = 0, len; i < text.len; i += len) {
        len = sequence((fx_span){text.at + i, text.len - i});
        if (!len) return "is not valid UTF-8";
    }
    return NULL;
}

/* Puts "name." or "name[2]." before what there is. */
static void name_put(fx_span message, const struct entry *entry,
                     const ProtobufCFieldDescriptor *field, char name[FX_PB_FIELD_MAX]) {
    struct entry before;
    unsigned index = 0;
    char rest[FX_PB_FIELD_MAX], place[16] = "";
    (void)snprintf(rest, sizeof rest, "%s%s", *name ? "." : "", name);
    while (next(&message, &before) && before.bytes.at != entry->bytes.at)
        index += before.id == entry->id;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        (void)snprintf(place, sizeof place, "[%u]", index);
    (void)snprintf(name, FX_PB_FIELD_MAX, "%.40s%s%s", field->name, place, rest);
}

/* What is wrong with the first string that is no text, and its name; NULL: all are. */
static const char *check(const ProtobufCMessageDescriptor *type, fx_span message,
                         char name[FX_PB_FIELD_MAX]) {
    struct entry entry;
    for (fx_span rest = message; next(&rest, &entry);) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, entry.id);
        const char *wrong = NULL;
        if (!field || !entry.bytes.at) continue;
        if (field->type == PROTOBUF_C_TYPE_STRING) wrong = wrong_with(entry.bytes);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE)
            wrong = check(field->descriptor, entry.bytes, name);
        if (!wrong) continue;
        name_put(message, &entry, field, name);
        return wrong;
    }
    return NULL;
}

bool fx_pb_check_text(const ProtobufCMessageDescriptor *type, fx_span bytes,
                      char field[FX_PB_FIELD_MAX], fx_error *err) {
    *field = '\0';
    const char *wrong = check(type, bytes, field);
    return !wrong || fx_fail(err, FX_INVALID_ARGUMENT, "%s %s", field, wrong);
}
