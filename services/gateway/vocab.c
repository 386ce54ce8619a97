#include "services/gateway/vocab.h"
#include <stdio.h>
#include "common/base/heap.h"

static void template_compile(struct gw_vocab *vocab) {
    fx_span source = fx_tokenizer_chat_template(vocab->tokenizer);
    fx_error err = {0};
    if (!source.len) return;
    if (!fx_template_compile(source, &vocab->template, &err))
        (void)snprintf(vocab->template_why, sizeof vocab->template_why, "%s", err.text);
}

bool gw_vocab_new(const char *digest, const struct fx_tokenizer_files *files, struct gw_vocab **out,
                  fx_error *err) {
    struct gw_vocab *vocab = fx_alloc(1, sizeof *vocab);
    if (!vocab) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for a tokenizer");
    vocab->refs = 1;
    (void)snprintf(vocab->digest, sizeof vocab->digest, "%s", digest);
    if (!fx_tokenizer_new(files, &vocab->tokenizer, err)) {
        gw_vocab_unref(vocab);
        return fx_wrap(err, "tokenizer");
    }
    template_compile(vocab);
    *out = vocab;
    return true;
}

struct gw_vocab *gw_vocab_ref(struct gw_vocab *vocab) {
    if (vocab) (void)atomic_fetch_add_explicit(&vocab->refs, 1, memory_order_relaxed);
    return vocab;
}

void gw_vocab_unref(struct gw_vocab *vocab) {
    if (!vocab || atomic_fetch_sub(&vocab->refs, 1) > 1) return;
    fx_tokenizer_free(vocab->tokenizer);
    fx_template_free(vocab->template);
    free(vocab);
}
