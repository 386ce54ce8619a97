#pragma once
#include "common/base/stops.h"
#include "common/model/detok.h"

/** The stop strings of a generation and its text so far. Zeroed: it has none. */
struct gen_stop {
    fx_stops *stops;
    struct fx_detok detok;
    uint8_t *text; /* room for one token's */
    size_t text_cap;
};

/** `continues`: the text goes on with the prompt's.
 *  @own the caller, gen_stop_done() @err as fx_stops_new */
FX_MUST bool gen_stop_init(struct gen_stop *stop, const fx_tokenizer *tokenizer,
                           char *const *strings, size_t count, bool continues, fx_error *err);
/** May be called twice. */
void gen_stop_done(struct gen_stop *stop);
/** Takes one token's text, which is looked through only where `searched`; true: a stop string is
 *  complete. Allocates nothing. */
bool gen_stop_token(struct gen_stop *stop, uint32_t token, bool searched);
