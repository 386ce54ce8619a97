/* tokenizer.json, then after a NUL a text: ids of what is accepted are tokens, and where no added
 * token rewrites it the text comes back byte for byte. */
#include <string.h>
#include "tests/fuzz/fuzz.h"
#include "common/model/tokenizer_internal.h"

enum { IDS_MAX = 65536 };

static uint32_t ids_[IDS_MAX];

static bool is_plain(const fx_tokenizer *tokenizer) {
    for (size_t set = 0; set < FX_ADDED_SETS; set++)
        for (size_t i = 0; i < tokenizer->added[set].count; i++)
            if (!tokenizer->added[set].at[i].special) return false;
    return true;
}

static void check(const fx_tokenizer *tokenizer, fx_span text, struct fx_ids ids) {
    size_t at = 0;
    for (size_t i = 0; i < ids.len; i++) {
        fx_span bytes = fx_tokenizer_bytes(tokenizer, ids.at[i]);
        FX_ASSERT(ids.at[i] < fx_tokenizer_vocabulary(tokenizer) && bytes.at);
        FX_ASSERT(bytes.len <= fx_tokenizer_bytes_max(tokenizer));
        if (!is_plain(tokenizer)) continue;
        FX_ASSERT(bytes.len <= text.len - at && !memcmp(bytes.at, text.at + at, bytes.len));
        at += bytes.len;
    }
    FX_ASSERT(!is_plain(tokenizer) || at == text.len);
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
                            &err))
        check(tokenizer, text, ids);
    ids.len = 0;
    if (!fx_tokenizer_encode(tokenizer, (struct fx_segments){segments, 2}, FX_ENCODE_PROMPT, &ids,
                             &err))
        FX_ASSERT(err.code == FX_OUT_OF_RANGE && ids.len == 0);
    return 0;
}
