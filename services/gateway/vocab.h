#pragma once
#include <stdatomic.h>
#include "common/model/template.h"
#include "common/model/tokenizer.h"

enum { GW_DIGEST_MAX = 65, GW_WHY_MAX = 256 };

/** A model's tokenizer and chat template, shared by the requests of all loops; never changes.
 *  @thread any */
struct gw_vocab {
    atomic_uint refs;
    char digest[GW_DIGEST_MAX];
    fx_tokenizer *tokenizer;
    fx_template *template;         /* NULL: none, or template_why says what is wrong with it */
    char template_why[GW_WHY_MAX]; /* "" = the model has none */
};

/** Built from the two files' bytes, borrowed for the call. A template that can't be compiled only
 *  refuses chat. @own one reference @err as fx_tokenizer_new */
FX_MUST bool gw_vocab_new(const char *digest, const struct fx_tokenizer_files *files,
                          struct gw_vocab **out, fx_error *err);
struct gw_vocab *gw_vocab_ref(struct gw_vocab *vocab);
/** Gives one reference back; NULL is fine. */
void gw_vocab_unref(struct gw_vocab *vocab);
