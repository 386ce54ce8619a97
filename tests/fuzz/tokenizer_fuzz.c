/* tokenizer.json, then after a NUL a text: ids of what is accepted are tokens, the same the second
 * time (from the cache), and where no part rewrites the text it comes back byte for byte. */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "common/base/heap.h"
#include "common/model/detok.h"
#include "common/model/tokenizer_internal.h"

enum { IDS_MAX = 65536 };

static uint32_t ids_[IDS_MAX];

static bool is_plain(const fx_tokenizer *tokenizer) {
    for (size_t set = 0; set < FX_ADDED_SETS; set++)
        for (size_t i = 0; i < tokenizer->added[set].count; i++)
            if (!tokenizer->added[set].at[i].special) return false;
    for (size_t i = 0; i < tokenizer->stage_count; i++)
        if (tokenizer->stages[i].mark_len || tokenizer->stages[i].split == FX_SPLIT_REMOVED)
            return false;
    return tokenizer->is_byte_level && !tokenizer->normal_count;
}

/* The text with U+FFFD for what is no UTF-8. */
static fx_span repair(fx_span text, uint8_t *out) {
    fx_buf buf = {out, 0, 3 * IDS_MAX};
    struct fx_detok detok;
    fx_detok_init(&detok, NULL);
    fx_detok_push_bytes(&detok, text, &buf);
    fx_detok_flush(&detok, &buf);
    FX_ASSERT(fx_buf_fits(&buf));
    return (fx_span){out, buf.len};
}

static void check(const fx_tokenizer *tokenizer, fx_span text, struct fx_ids ids) {
    static uint8_t repaired[3 * IDS_MAX];
    bool plain = is_plain(tokenizer) && text.len < IDS_MAX;
    size_t at = 0;
    if (plain) text = repair(text, repaired);
    for (size_t i = 0; i < ids.len; i++) {
        fx_span bytes = fx_tokenizer_bytes(tokenizer, ids.at[i]);
        FX_ASSERT(ids.at[i] < fx_tokenizer_vocabulary(tokenizer) && bytes.at);
        FX_ASSERT(bytes.len <= fx_tokenizer_bytes_max(tokenizer));
        if (!plain) continue;
        FX_ASSERT(bytes.len <= text.len - at && !memcmp(bytes.at, text.at + at, bytes.len));
        at += bytes.len;
    }
    FX_ASSERT(!plain || at == text.len);
}

static void check_again(const fx_tokenizer *tokenizer, struct fx_segments text,
                        struct fx_ids first) {
    static uint32_t again_[IDS_MAX];
    struct fx_ids again = {again_, 0, IDS_MAX};
    fx_error err = {0};
    bool ok = fx_tokenizer_encode(tokenizer, text, FX_ENCODE_PLAIN, &again, &err);
    FX_ASSERT(ok && again.len == first.len);
    FX_ASSERT(!again.len || !memcmp(again.at, first.at, again.len * sizeof again.at[0]));
}

/* Whatever is decoded, in whatever order, stays within the room promised. */
static void check_detok(const fx_tokenizer *tokenizer, struct fx_ids ids) {
    struct fx_detok detok;
    size_t room = fx_detok_room(tokenizer);
    fx_auto(uint8_t) at = fx_alloc(room, 1);
    FX_ASSERT(at);
    fx_detok_init(&detok, tokenizer);
    for (size_t i = 0; i < ids.len; i++) {
        fx_buf out = {at, 0, room};
        fx_detok_push(&detok, ids.at[ids.len - 1 - i], &out);
        FX_ASSERT(fx_buf_fits(&out));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t first = nul ? (size_t)(nul - data) : size;
    fx_span text = {nul ? nul + 1 : data, nul ? size - first - 1 : 0};
    struct fx_tokenizer_files files = {
        {data, first},
        {0   }
    };
    struct fx_segment segments[] = {
        {text, false},
        {text, true }
    };
    struct fx_ids ids = {ids_, 0, IDS_MAX};
    fx_auto(fx_tokenizer) tokenizer = NULL;
    fx_error err = {0};
    if (!fx_tokenizer_new(&files, &tokenizer, &err)) {
        FX_ASSERT(err.code != FX_OK && err.text[0]);
        return 0;
    }
    if (fx_tokenizer_encode(tokenizer, (struct fx_segments){segments, 1}, FX_ENCODE_PLAIN, &ids,
                            &err)) {
        check(tokenizer, text, ids);
        check_again(tokenizer, (struct fx_segments){segments, 1}, ids);
        check_detok(tokenizer, ids);
    }
    ids.len = 0;
    if (!fx_tokenizer_encode(tokenizer, (struct fx_segments){segments, 2}, FX_ENCODE_PROMPT, &ids,
                             &err))
        FX_ASSERT(err.code == FX_OUT_OF_RANGE || err.code == FX_RESOURCE_EXHAUSTED);
    FX_ASSERT(ids.len < IDS_MAX);
    return 0;
}
