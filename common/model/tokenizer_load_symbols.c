#include <stdio.h>
#include "common/model/tokenizer_load.h"
#include "common/model/tokenizer_unicode.h"

/* What words are made of: bytes, or characters with bytes to fall back on. */

/* UTF-8 of a code point below 0x800, NUL at the end. */
static void encode_point(unsigned point, char out[3]) {
    if (point < 0x80) {
        out[0] = (char)point;
        out[1] = 0;
        return;
    }
    out[0] = (char)(0xc0 | point >> 6);
    out[1] = (char)(0x80 | (point & 0x3f));
    out[2] = 0;
}

static uint32_t id_of(const json_t *number) {
    return number ? (uint32_t)json_integer_value(number) : FX_ID_NONE;
}

static FX_MUST bool find_bytes(struct fx_loader *loader, fx_error *err) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[3];
        encode_point(loader->alphabet.point_of[byte], name);
        const json_t *id = json_object_get(loader->vocab, name);
        if (!id) return fx_fail(err, FX_UNIMPLEMENTED, "model: no token for the byte 0x%02x", byte);
        loader->tokenizer->byte_ids[byte] = id_of(id);
    }
    return true;
}

static void find_fallback(struct fx_loader *loader) {
    bool falls_back = json_is_true(json_object_get(loader->model, "byte_fallback"));
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        (void)snprintf(name, sizeof name, "<0x%02X>", byte);
        loader->tokenizer->byte_ids[byte] =
            falls_back ? id_of(json_object_get(loader->vocab, name)) : FX_ID_NONE;
    }
}

static FX_MUST bool find_unknown(struct fx_loader *loader, fx_error *err) {
    const json_t *unknown = json_object_get(loader->model, "unk_token");
    loader->tokenizer->unknown_id = FX_ID_NONE;
    if (fx_json__is_absent(unknown)) return true;
    const json_t *id =
        json_is_string(unknown) ? json_object_get(loader->vocab, json_string_value(unknown)) : NULL;
    if (!id) return fx_fail(err, FX_INVALID_ARGUMENT, "model: unk_token is not in the vocabulary");
    loader->tokenizer->unknown_id = id_of(id);
    return true;
}

static FX_MUST bool find_chars(struct fx_loader *loader, fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    const char *name;
    json_t *id;
    size_t count = 0;
    memset(tokenizer->ascii_ids, 0xff, sizeof tokenizer->ascii_ids);
    json_object_foreach(loader->vocab, name, id) {
        fx_span text = fx_span_str(name);
        count += text.len && fx_utf8__sequence(text) == text.len;
    }
    if (!fx_numbers__init(&tokenizer->chars, count, err)) return false;
    json_object_foreach(loader->vocab, name, id) {
        fx_span text = fx_span_str(name);
        size_t len;
        if (!text.len || fx_utf8__sequence(text) != text.len) continue;
        uint32_t point = fx_utf8__point(text.at, &len);
        if (point < 128) tokenizer->ascii_ids[point] = id_of(id);
        fx_numbers__put(&tokenizer->chars, (uint64_t)point + 1, id_of(id));
    }
    return true;
}

/* -- seams: pairs of characters that stand side by side in some token -- */

typedef void visit_pair(struct fx_tokenizer *tokenizer, uint32_t left, uint32_t right, size_t *n);

static void count_pair(struct fx_tokenizer *tokenizer, uint32_t left, uint32_t right, size_t *n) {
    (void)tokenizer;
    *n += left >= 128 || right >= 128;
}

static void put_pair(struct fx_tokenizer *tokenizer, uint32_t left, uint32_t right, size_t *n) {
    (void)n;
    if (left < 128 && right < 128)
        tokenizer->joined_ascii[left][right / 8] |= (uint8_t)(1U << right % 8);
    else
        fx_numbers__put(&tokenizer->joined, (uint64_t)left << 32 | right, 1);
}

static void each_pair(struct fx_loader *loader, visit_pair *visit, size_t *n) {
    const char *name;
    json_t *id;
    json_object_foreach(loader->vocab, name, id) {
        fx_span text = fx_span_str(name);
        size_t at, len;
        if (!text.len) continue;
        uint32_t left = fx_utf8__point(text.at, &at);
        for (; at < text.len; at += len) {
            uint32_t right = fx_utf8__point(text.at + at, &len);
            visit(loader->tokenizer, left, right, n);
            left = right;
        }
    }
}

/* Where everything unknown falls back to bytes: unknown characters would fuse over a seam. */
static FX_MUST bool find_seams(struct fx_loader *loader, fx_error *err) {
    struct fx_tokenizer *tokenizer = loader->tokenizer;
    size_t count = 0;
    for (size_t byte = 0; byte < 256; byte++)
        if (tokenizer->byte_ids[byte] == FX_ID_NONE) return true;
    if (tokenizer->ignore_merges) return true;
    each_pair(loader, count_pair, &count);
    if (!fx_numbers__init(&tokenizer->joined, count, err)) return false;
    each_pair(loader, put_pair, &count);
    tokenizer->has_seams = true;
    return true;
}

bool fx_loader__symbols(struct fx_loader *loader, fx_error *err) {
    if (loader->tokenizer->is_byte_level) return find_bytes(loader, err);
    find_fallback(loader);
    return find_unknown(loader, err) && find_chars(loader, err) && find_seams(loader, err);
}
