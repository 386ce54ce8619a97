#include "common/model/tokenizer_internal.h"
#include "common/base/heap.h"

/* Byte-pair merging as `tokenizers` does it: the lowest rank first, among equals the leftmost. A
 * binary heap of candidates over a linked list of symbols; stale candidates are skipped. */

struct symbol {
    uint32_t id; /* FX_ID_NONE: merged into its left neighbour */
    uint32_t prev, next;
};
struct candidate {
    uint32_t rank, at, id;
};
/* Every merge takes one candidate out and puts at most two in: count < 2 * symbols. */
struct work {
    const struct fx_merges *merges;
    struct symbol *symbols;
    struct candidate *heap;
    size_t count;
};

static bool before(struct candidate a, struct candidate b) {
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void heap_push(struct work *work, struct candidate candidate) {
    size_t i = work->count++;
    while (i > 0 && before(candidate, work->heap[(i - 1) / 2])) {
        work->heap[i] = work->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    work->heap[i] = candidate;
}

static struct candidate heap_pop(struct work *work) {
    struct candidate top = work->heap[0];
    struct candidate last = work->heap[--work->count];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= work->count) break;
        if (child + 1 < work->count && before(work->heap[child + 1], work->heap[child])) child++;
        if (!before(work->heap[child], last)) break;
        work->heap[i] = work->heap[child];
        i = child;
    }
    work->heap[i] = last;
    return top;
}

/* Offers the pair that begins at `at`. */
static void offer(struct work *work, uint32_t at) {
    if (at == FX_ID_NONE || work->symbols[at].next == FX_ID_NONE) return;
    const struct fx_merge *merge = fx_merges__get(work->merges, work->symbols[at].id,
                                                  work->symbols[work->symbols[at].next].id);
    if (merge) heap_push(work, (struct candidate){merge->rank, at, merge->id});
}

static bool is_stale(const struct work *work, struct candidate candidate) {
    const struct symbol *left = &work->symbols[candidate.at];
    if (left->id == FX_ID_NONE || left->next == FX_ID_NONE) return true;
    const struct fx_merge *merge =
        fx_merges__get(work->merges, left->id, work->symbols[left->next].id);
    return !merge || merge->id != candidate.id;
}

static void merge_all(struct work *work) {
    while (work->count) {
        struct candidate top = heap_pop(work);
        if (is_stale(work, top)) continue;
        struct symbol *left = &work->symbols[top.at];
        struct symbol *right = &work->symbols[left->next];
        left->id = top.id;
        left->next = right->next;
        right->id = FX_ID_NONE;
        if (left->next != FX_ID_NONE) work->symbols[left->next].prev = top.at;
        offer(work, left->prev);
        offer(work, top.at);
    }
}

static void symbols_init(const struct fx_tokenizer *tokenizer, fx_span text,
                         struct symbol *symbols) {
    for (size_t i = 0; i < text.len; i++) {
        uint32_t at = (uint32_t)i;
        symbols[i] = (struct symbol){tokenizer->byte_ids[text.at[i]], at - 1, at + 1};
    }
    symbols[0].prev = FX_ID_NONE;
    symbols[text.len - 1].next = FX_ID_NONE;
}

static FX_MUST bool merge_text(const struct fx_tokenizer *tokenizer, fx_span text,
                               struct fx_ids *out, fx_error *err) {
    fx_auto(void) symbols = fx_alloc(text.len, sizeof(struct symbol));
    fx_auto(void) heap = fx_alloc(2 * text.len, sizeof(struct candidate));
    if (!symbols || !heap)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory to tokenise %zu bytes", text.len);
    struct work work = {.merges = &tokenizer->merges, .symbols = symbols, .heap = heap};
    symbols_init(tokenizer, text, work.symbols);
    for (size_t i = 0; i < text.len; i++)
        offer(&work, (uint32_t)i);
    merge_all(&work);
    for (uint32_t at = 0; at != FX_ID_NONE; at = work.symbols[at].next)
        fx_ids__put(out, work.symbols[at].id);
    return true;
}

bool fx_tokenizer__bpe(const struct fx_tokenizer *tokenizer, fx_span text, struct fx_ids *out,
                       fx_error *err) {
    uint32_t whole;
    if (!text.len) return true;
    if (tokenizer->ignore_merges && fx_words__get(tokenizer, text, &whole)) {
        fx_ids__put(out, whole);
        return true;
    }
    if (tokenizer->merges.count) return merge_text(tokenizer, text, out, err);
    for (size_t i = 0; i < text.len; i++)
        fx_ids__put(out, tokenizer->byte_ids[text.at[i]]);
    return true;
}
