#include "services/worker/stop.h"
#include "common/base/heap.h"

bool gen_stop_init(struct gen_stop *stop, const fx_tokenizer *tokenizer, char *const *strings,
                   size_t count, bool continues, fx_error *err) {
    fx_span spans[FX_STOPS_MAX];
    if (!tokenizer)
        return fx_fail(err, FX_FAILED_PRECONDITION, "stop strings need the model's tokenizer");
    if (count > FX_STOPS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%zu stop strings: at most %d", count,
                       FX_STOPS_MAX);
    for (size_t i = 0; i < count; i++)
        spans[i] = fx_span_str(strings[i]);
    if (!fx_stops_new(spans, count, &stop->stops, err)) return false;
    (continues ? fx_detok_init_middle : fx_detok_init)(&stop->detok, tokenizer);
    stop->text_cap = fx_detok_room(tokenizer);
    stop->text = fx_alloc(1, stop->text_cap);
    return stop->text || fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for stop strings");
}

void gen_stop_done(struct gen_stop *stop) {
    fx_stops_free(stop->stops);
    free(stop->text);
    *stop = (struct gen_stop){0};
}

bool gen_stop_token(struct gen_stop *stop, uint32_t token, bool searched) {
    fx_buf text = {stop->text, 0, stop->text_cap}, shown = {0};
    fx_detok_push(&stop->detok, token, &text);
    return searched && fx_stops_push(stop->stops, (fx_span){text.at, text.len}, &shown);
}
