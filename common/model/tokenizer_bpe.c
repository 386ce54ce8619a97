#include "common/model/tokenizer_internal.h"
#include "common/base/heap.h"
#include "common/model/tokenizer_unicode.h"

/* Byte-pair merging as `tokenizers` does it: the lowest rank first, among equals the leftmost. Of
 * long words by a binary heap of candidates (rank << 32 | place) over a linked list of symbols;
 * stale candidates are skipped. */

/* Every merge takes one candidate out and puts at most two in: count < 2 * symbols. */
struct work {
    const struct fx_merges *merges;
    struct fx_symbol *symbols;
    size_t symbol_count;
    uint64_t *heap;
    size_t count;
};

static void heap_push(struct work *work, uint64_t candidate) {
    size_t i = work->count++;
    while (i > 0 && candidate < work->heap[(i - 1) / 2]) {
        work->heap[i] = work->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    work->heap[i] = candidate;
}

static uint64_t heap_pop(struct work *work) {
    uint64_t top = work->heap[0], last = work->heap[--work->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= work->count) break;
        if (child + 1 < work->count && work->heap[child + 1] < work->heap[child]) child++;
        if (work->heap[child] >= last) break;
        work->heap[i] = work->heap[child];
        i = child;
    }
    work->heap[i] = last;
    return top;
}

/* The merge of the pair that begins at `at`, NULL if there is none. */
static const struct fx_merge *merge_at(const struct work *work, uint32_t at) {
    const struct fx_symbol *left = &work->symbols[at];
    if (left->id == FX_ID_NONE || left->next == FX_ID_NONE) return NULL;
    return fx_merges__get(work->merges, left->id, work->symbols[left->next].id);
}

static void offer(struct work *work, uint32_t at) {
    const struct fx_merge *merge = at == FX_ID_NONE ? NULL : merge_at(work, at);
    if (merge) heap_push(work, (uint64_t)merge->rank << 32 | at);
}

static void merge_all(struct work *work) {
    while (work->count) {
        uint64_t top = heap_pop(work);
        uint32_t at = (uint32_t)top;
        const struct fx_merge *merge = merge_at(work, at);
        if (!merge || merge->rank != top >> 32) continue;
        struct fx_symbol *left = &work->symbols[at], *right = &work->symbols[left->next];
        left->id = merge->id;
        left->next = right->next;
        right->id = FX_ID_NONE;
        if (left->next != FX_ID_NONE) work->symbols[left->next].prev = at;
        offer(work, left->prev);
        offer(work, at);
    }
}

/* -- symbols of a word, handed to `put` -- */

struct symbols {
    uint32_t *ids;
    size_t count;
};

static void put_bytes(const struct fx_tokenizer *tokenizer, fx_span word, struct symbols *out) {
    for (size_t i = 0; i < word.len; i++)
        out->ids[out->count++] = tokenizer->byte_ids[word.at[i]];
}

static uint32_t char_id(const struct fx_tokenizer *tokenizer, uint32_t point) {
    uint32_t id = FX_ID_NONE;
    if (point < 128) return tokenizer->ascii_ids[point];
    (void)fx_numbers__get(&tokenizer->chars, (uint64_t)point + 1, &id);
    return id;
}

static bool falls_back(const struct fx_tokenizer *tokenizer, fx_span bytes) {
    for (size_t i = 0; i < bytes.len; i++)
        if (tokenizer->byte_ids[bytes.at[i]] == FX_ID_NONE) return false;
    return true;
}

/* An unknown character waits for what follows, as in `tokenizers`: byte fallback overtakes it. */
static void put_chars(const struct fx_tokenizer *tokenizer, fx_span word, struct symbols *out) {
    bool waits = false;
    size_t len;
    for (size_t i = 0; i < word.len; i += len) {
        uint32_t id = char_id(tokenizer, fx_utf8__point(word.at + i, &len));
        fx_span bytes = {word.at + i, len};
        if (id != FX_ID_NONE) {
            if (waits) out->ids[out->count++] = tokenizer->unknown_id;
            waits = false;
            out->ids[out->count++] = id;
        } else if (falls_back(tokenizer, bytes)) {
            put_bytes(tokenizer, bytes, out);
        } else if (tokenizer->unknown_id != FX_ID_NONE) {
            if (waits && !tokenizer->fuses_unknown) out->ids[out->count++] = tokenizer->unknown_id;
            waits = true;
        }
    }
    if (waits) out->ids[out->count++] = tokenizer->unknown_id;
}

/* At most one a byte. */
static void put_symbols(const struct fx_tokenizer *tokenizer, fx_span word, struct symbols *out) {
    (tokenizer->is_byte_level ? put_bytes : put_chars)(tokenizer, word, out);
}

/* -- short words: look at every pair, merge the best, again -- */

static size_t merge_short(const struct fx_merges *merges, uint32_t *ids, size_t count) {
    const struct fx_merge *pairs[FX_WORD_SHORT_MAX];
    for (size_t i = 0; i + 1 < count; i++)
        pairs[i] = fx_merges__get(merges, ids[i], ids[i + 1]);
    for (;;) {
        const struct fx_merge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            if (!pairs[i] || (best && pairs[i]->rank >= best->rank)) continue;
            best = pairs[i];
            at = i;
        }
        if (!best) return count;
        ids[at] = best->id;
        count--;
        for (size_t i = at + 1; i < count; i++) {
            ids[i] = ids[i + 1];
            pairs[i] = i + 1 < count ? pairs[i + 1] : NULL;
        }
        if (at + 1 < count) pairs[at] = fx_merges__get(merges, ids[at], ids[at + 1]);
        if (at) pairs[at - 1] = fx_merges__get(merges, ids[at - 1], ids[at]);
    }
}

static void bpe_short(struct fx_encoding *encoding, fx_span word) {
    uint32_t ids[FX_WORD_SHORT_MAX];
    struct symbols symbols = {ids, 0};
    put_symbols(encoding->tokenizer, word, &symbols);
    size_t count = merge_short(&encoding->tokenizer->merges, ids, symbols.count);
    for (size_t i = 0; i < count; i++)
        fx_ids__put(encoding->out, ids[i]);
}

/* -- long words -- */

/* The heap's memory holds the plain ids first. */
static void link_symbols(struct work *work, const uint32_t *ids) {
    for (size_t i = 0; i < work->symbol_count; i++) {
        uint32_t at = (uint32_t)i;
        work->symbols[i] = (struct fx_symbol){ids[i], at - 1, at + 1};
    }
    work->symbols[0].prev = FX_ID_NONE;
    work->symbols[work->symbol_count - 1].next = FX_ID_NONE;
}

static void bpe_long(struct fx_encoding *encoding, fx_span word, struct work *work) {
    struct symbols plain = {(void *)work->heap, 0};
    put_symbols(encoding->tokenizer, word, &plain);
    work->merges = &encoding->tokenizer->merges;
    work->symbol_count = plain.count;
    if (!plain.count) return;
    link_symbols(work, plain.ids);
    for (size_t i = 0; i < plain.count; i++)
        offer(work, (uint32_t)i);
    merge_all(work);
    for (uint32_t at = 0; at != FX_ID_NONE; at = work->symbols[at].next)
        fx_ids__put(encoding->out, work->symbols[at].id);
}

static FX_MUST bool bpe_huge(struct fx_encoding *encoding, fx_span word) {
    fx_auto(void) symbols = fx_alloc(word.len, sizeof(struct fx_symbol));
    fx_auto(void) heap = fx_alloc(2 * word.len, sizeof(uint64_t));
    if (!symbols || !heap)
        return fx_fail(encoding->err, FX_RESOURCE_EXHAUSTED, "memory to tokenise %zu bytes",
                       word.len);
    bpe_long(encoding, word, &(struct work){.symbols = symbols, .heap = heap});
    return true;
}

bool fx_encoding__bpe(struct fx_encoding *encoding, fx_span word) {
    struct fx_scratch *scratch = encoding->scratch;
    if (word.len > FX_WORD_SYMBOLS_MAX) return bpe_huge(encoding, word);
    if (word.len <= FX_WORD_SHORT_MAX)
        bpe_short(encoding, word);
    else
        bpe_long(encoding, word,
                 &(struct work){.symbols = scratch->symbols, .heap = scratch->heap});
    return true;
}
