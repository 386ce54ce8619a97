#include "common/model/tokenizer_internal.h"
#include "common/model/tokenizer_unicode.h"

/* From a piece of text to words, and from a word to its ids by way of the cache. */

static uint64_t load(const uint8_t *at) {
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static uint32_t load_half(const uint8_t *at) {
    uint32_t half;
    memcpy(&half, at, sizeof half);
    return half;
}

/* The word in four numbers that, with its length, tell it from any other; it has 1..32 bytes. Loads
 * overlap, so that none passes the end. */
static void make_key(fx_span word, uint64_t key[4]) {
    size_t len = word.len;
    memset(key, 0, FX_CACHE_KEY_BYTES);
    if (len >= 8) {
        key[0] = load(word.at);
        key[1] = load(word.at + len - 8);
        if (len <= 16) return;
        key[2] = load(word.at + 8);
        key[3] = load(word.at + len - 16);
    } else if (len >= 4) {
        key[0] = load_half(word.at) | (uint64_t)load_half(word.at + len - 4) << 32;
    } else {
        key[0] = word.at[0] | (uint64_t)word.at[len / 2] << 8 | (uint64_t)word.at[len - 1] << 16;
    }
}

static struct fx_cached *cache_slot(struct fx_scratch *scratch, const uint64_t key[4], size_t len) {
    uint64_t hash = key[0] * 0x9e3779b97f4a7c15U ^ key[1] * 0xc2b2ae3d27d4eb4fU ^
                    (key[2] ^ key[3] << 1) * 0x165667b19e3779f9U ^ len;
    return &scratch->cache[fx_mix(hash) & (FX_CACHE_SLOTS - 1)];
}

/* What was found anew goes into the slot, if it fits; what was there is forgotten. */
static void cache_put(struct fx_cached *slot, const uint64_t key[4], size_t len,
                      const struct fx_ids *out, size_t from) {
    size_t count = out->len - from;
    if (count > FX_CACHE_IDS_MAX || out->len > out->cap) return;
    memcpy(slot->key, key, FX_CACHE_KEY_BYTES);
    memcpy(slot->ids, out->at + from, count * sizeof slot->ids[0]);
    slot->len = (uint32_t)len;
    slot->count = (uint32_t)count;
}

static void put_cached(const struct fx_cached *slot, struct fx_ids *out) {
    if (out->len + FX_CACHE_IDS_MAX <= out->cap) {
        memcpy(out->at + out->len, slot->ids, sizeof slot->ids);
        out->len += slot->count;
        return;
    }
    for (size_t i = 0; i < slot->count; i++)
        fx_ids__put(out, slot->ids[i]);
}

static FX_MUST bool word_encode(struct fx_encoding *encoding, fx_span word) {
    uint32_t whole;
    if (!encoding->tokenizer->ignore_merges ||
        !fx_words__get(&encoding->tokenizer->words, word, &whole))
        return fx_encoding__bpe(encoding, word);
    fx_ids__put(encoding->out, whole);
    return true;
}

static FX_MUST bool word(struct fx_encoding *encoding, fx_span bytes) {
    uint64_t key[4];
    if (bytes.len > FX_CACHE_KEY_BYTES) return word_encode(encoding, bytes);
    make_key(bytes, key);
    struct fx_cached *slot = cache_slot(encoding->scratch, key, bytes.len);
    if (slot->len == bytes.len && memcmp(slot->key, key, FX_CACHE_KEY_BYTES) == 0) {
        put_cached(slot, encoding->out);
        return true;
    }
    size_t from = encoding->out->len;
    if (!word_encode(encoding, bytes)) return false;
    cache_put(slot, key, bytes.len, encoding->out, from);
    return true;
}

static bool is_joined(const struct fx_tokenizer *tokenizer, uint32_t left, uint32_t right) {
    if (left < 128 && right < 128) return tokenizer->joined_ascii[left][right / 8] >> right % 8 & 1;
    return fx_numbers__get(&tokenizer->joined, (uint64_t)left << 32 | right, NULL);
}

/* Characters that stand side by side in no token are never merged over: what lies between such
 * seams can be encoded, and remembered, apart. */
static FX_MUST bool words_between_seams(struct fx_encoding *encoding, fx_span piece) {
    size_t from = 0, at, len;
    uint32_t left = fx_utf8__point(piece.at, &at);
    for (; at < piece.len; at += len) {
        uint32_t right = fx_utf8__point(piece.at + at, &len);
        if (!is_joined(encoding->tokenizer, left, right)) {
            if (!word(encoding, fx_span__cut(piece, from, at))) return false;
            from = at;
        }
        left = right;
    }
    return word(encoding, fx_span__cut(piece, from, piece.len));
}

bool fx_encoding__piece(struct fx_encoding *encoding, fx_span piece) {
    return encoding->tokenizer->has_seams ? words_between_seams(encoding, piece)
                                          : word(encoding, piece);
}
