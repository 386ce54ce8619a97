#include "common/model/tokenizer_load.h"

/* Decoders work token by token here, so only such an order of theirs is accepted in which they can:
 * replacing, then bytes, then all as one text, of which the begin may be stripped. */

static FX_MUST bool put_replace(struct fx_decoder *decoder, struct fx_decoder_replace replace,
                                fx_error *err) {
    if (!replace.from.len || !replace.to.at)
        return fx_fail(err, FX_INVALID_ARGUMENT, "want a text and what to put for it");
    if (replace.to.len > replace.from.len)
        return fx_fail(err, FX_UNIMPLEMENTED, "content longer than the pattern");
    decoder->replaces[decoder->replace_count++] = replace;
    return true;
}

static FX_MUST bool load_replace(struct fx_loader *loader, const json_t *part, fx_error *err) {
    const json_t *pattern = json_object_get(part, "pattern");
    if (json_object_get(pattern, "Regex"))
        return fx_fail(err, FX_UNIMPLEMENTED, "a Regex is not supported");
    return put_replace(&loader->decoder,
                       (struct fx_decoder_replace){
                           .from = fx_json__span(json_object_get(pattern, "String")),
                           .to = fx_json__span(json_object_get(part, "content")),
                       },
                       err);
}

static FX_MUST bool load_metaspace(struct fx_loader *loader, const json_t *part, fx_error *err) {
    const char *scheme = json_string_value(json_object_get(part, "prepend_scheme"));
    bool never = scheme ? strcmp(scheme, "never") == 0
                        : json_is_false(json_object_get(part, "add_prefix_space"));
    return put_replace(&loader->decoder,
                       (struct fx_decoder_replace){
                           .from = fx_json__span(json_object_get(part, "replacement")),
                           .to = fx_span_str(" "),
                           .drops_at_first = !never,
                       },
                       err);
}

static FX_MUST bool load_byte_fallback(struct fx_loader *loader, const json_t *part,
                                       fx_error *err) {
    (void)part;
    (void)err;
    loader->decoder.falls_back = true;
    loader->tokenizer->decoding.bytes_alone = true;
    return true;
}

static FX_MUST bool load_fuse(struct fx_loader *loader, const json_t *part, fx_error *err) {
    (void)loader;
    (void)part;
    (void)err;
    return true;
}

static FX_MUST bool load_strip(struct fx_loader *loader, const json_t *part, fx_error *err) {
    fx_span content = fx_json__span(json_object_get(part, "content"));
    json_int_t start = json_integer_value(json_object_get(part, "start"));
    if (json_integer_value(json_object_get(part, "stop")) != 0)
        return fx_fail(err, FX_UNIMPLEMENTED, "stop is not supported");
    if (content.len != 1 || start < 0 || start > UINT8_MAX)
        return fx_fail(err, FX_UNIMPLEMENTED, "want one ASCII character, 0 to 255 times");
    loader->tokenizer->decoding.strip = content.at[0];
    loader->tokenizer->decoding.strip_count = (uint8_t)start;
    return true;
}

/* In the order in which they may stand; the first two in either. */
static const struct kind {
    const char *type;
    unsigned rank;
    bool many;
    bool (*load)(struct fx_loader *loader, const json_t *part, fx_error *err);
} kinds[] = {
    {"Replace",      0, true,  load_replace      },
    {"Metaspace",    0, true,  load_metaspace    },
    {"ByteFallback", 1, false, load_byte_fallback},
    {"Fuse",         2, true,  load_fuse         },
    {"Strip",        3, false, load_strip        },
};

static const struct kind *find_kind(const json_t *part) {
    for (size_t i = 0; i < FX_COUNT(kinds); i++)
        if (fx_json__is_type(part, kinds[i].type)) return &kinds[i];
    return NULL;
}

static FX_MUST bool load_all(struct fx_loader *loader, const struct fx_parts *parts,
                             fx_error *err) {
    const struct kind *last = NULL;
    for (size_t i = 0; i < parts->count; i++) {
        const struct kind *kind = find_kind(parts->at[i]);
        const char *type = fx_json__type(parts->at[i]);
        if (!kind) return fx_fail(err, FX_UNIMPLEMENTED, "decoder %.64s is not supported", type);
        bool fits = !last || kind->rank > last->rank || (kind->rank == last->rank && kind->many);
        if (!fits || (kind->load == load_strip && (!last || last->load != load_fuse)))
            return fx_fail(err, FX_UNIMPLEMENTED, "decoder %.64s in this place", type);
        if (!kind->load(loader, parts->at[i], err)) return fx_wrap(err, "decoder %.64s", type);
        last = kind;
    }
    return true;
}

bool fx_loader__decoder(struct fx_loader *loader, fx_error *err) {
    const json_t *decoder = json_object_get(loader->root, "decoder");
    struct fx_parts parts;
    if (!fx_json__parts(decoder, "decoders", &parts, err)) return fx_wrap(err, "decoder");
    bool is_byte_level = parts.count && fx_json__is_type(parts.at[0], "ByteLevel");
    if (!parts.count || is_byte_level != loader->tokenizer->is_byte_level)
        return fx_fail(err, FX_UNIMPLEMENTED, "decoder %.64s with this pre_tokenizer",
                       fx_json__type(parts.count ? parts.at[0] : decoder));
    if (!is_byte_level) return load_all(loader, &parts, err);
    if (parts.count == 1) return true;
    return fx_fail(err, FX_UNIMPLEMENTED, "decoder %.64s after ByteLevel",
                   fx_json__type(parts.at[1]));
}

static size_t replace_all(const struct fx_decoder_replace *replace, bool at_first, uint8_t *text,
                          size_t len) {
    fx_span to = replace->to;
    size_t out = 0;
    if (at_first && replace->drops_at_first) to.len = 0;
    for (size_t at = 0; at < len;) {
        if (len - at < replace->from.len ||
            memcmp(text + at, replace->from.at, replace->from.len) != 0) {
            text[out++] = text[at++];
            continue;
        }
        at += replace->from.len;
        memcpy(text + out, to.at, to.len);
        out += to.len;
    }
    return out;
}

static int hex_digit(uint8_t c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t fx_decoder__decode(const struct fx_decoder *decoder, fx_span text, bool at_first,
                          uint8_t *out) {
    size_t len = text.len;
    if (len) memcpy(out, text.at, len);
    for (size_t i = 0; i < decoder->replace_count; i++)
        len = replace_all(&decoder->replaces[i], at_first, out, len);
    if (!decoder->falls_back || len != 6 || memcmp(out, "<0x", 3) != 0 || out[5] != '>') return len;
    int high = hex_digit(out[3]), low = hex_digit(out[4]);
    if (high < 0 || low < 0) return len;
    out[0] = (uint8_t)(high << 4 | low);
    return 1;
}
