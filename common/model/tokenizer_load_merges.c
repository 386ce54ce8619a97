#include "common/model/tokenizer_load.h"

/* "a b" or ["a", "b"]; neither part has a space. */
static bool split_merge(const json_t *merge, fx_span parts[2]) {
    if (json_is_array(merge)) {
        for (size_t i = 0; i < 2; i++)
            parts[i] = fx_json__span(json_array_get(merge, i));
        return json_array_size(merge) == 2 && parts[0].at && parts[1].at;
    }
    fx_span text = fx_json__span(merge);
    const uint8_t *space = text.at ? memchr(text.at, ' ', text.len) : NULL;
    if (!space) return false;
    parts[0] = (fx_span){text.at, (size_t)(space - text.at)};
    parts[1] = (fx_span){space + 1, text.len - parts[0].len - 1};
    return !memchr(parts[1].at, ' ', parts[1].len);
}

static FX_MUST bool part_id(struct fx_loader *loader, fx_span part, uint32_t *id, fx_error *err) {
    const json_t *found = json_object_getn(loader->vocab, (const char *)part.at, part.len);
    if (!found)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%.*s' is not in the vocabulary",
                       (int)(part.len < 64 ? part.len : 64), (const char *)part.at);
    *id = (uint32_t)json_integer_value(found);
    return true;
}

/* A merge of fallback bytes joins characters whose texts are in no token: no seams then. */
static void check_seams(struct fx_tokenizer *tokenizer, uint32_t id) {
    for (size_t byte = 0; tokenizer->has_seams && byte < 256; byte++)
        if (tokenizer->byte_ids[byte] == id) tokenizer->has_seams = false;
}

static FX_MUST bool put_merge(struct fx_loader *loader, const json_t *merge, uint32_t rank,
                              fx_error *err) {
    char whole[1024];
    fx_span parts[2];
    uint32_t left, right, id;
    if (!split_merge(merge, parts))
        return fx_fail(err, FX_INVALID_ARGUMENT, "want \"a b\" or [\"a\", \"b\"]");
    fx_buf text = {(uint8_t *)whole, 0, sizeof whole};
    fx_buf_put(&text, parts[0]);
    fx_buf_put(&text, parts[1]);
    if (!fx_buf_fits(&text))
        return fx_fail(err, FX_UNIMPLEMENTED, "a token longer than %zu bytes", sizeof whole);
    if (!part_id(loader, parts[0], &left, err) || !part_id(loader, parts[1], &right, err) ||
        !part_id(loader, (fx_span){text.at, text.len}, &id, err))
        return false;
    check_seams(loader->tokenizer, left);
    check_seams(loader->tokenizer, right);
    fx_merges__put(&loader->tokenizer->merges,
                   (struct fx_merge){(uint64_t)left << 32 | right, rank, id});
    return true;
}

bool fx_loader__merges(struct fx_loader *loader, fx_error *err) {
    size_t count = json_array_size(loader->merges);
    if (count >= FX_ID_NONE / 4)
        return fx_fail(err, FX_INVALID_ARGUMENT, "model: %zu merges", count);
    if (!fx_merges__init(&loader->tokenizer->merges, count, err)) return false;
    for (size_t i = 0; i < count; i++)
        if (!put_merge(loader, json_array_get(loader->merges, i), (uint32_t)i, err))
            return fx_wrap(err, "merges[%zu]", i);
    return true;
}
