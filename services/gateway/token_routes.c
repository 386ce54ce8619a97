/* POST /tokenize and /detokenize, as vLLM's users know them. Nothing is generated or charged. */
#include "common/base/heap.h"
#include "common/http/json.h"
#include "services/gateway/visit.h"

/* -- to ids -- */

struct tokenized {
    const struct gw_model *model;
    struct gw_prompt prompt;
    bool with_texts;
};

static void ids_put(const struct gw_prompt *prompt, fx_buf *out) {
    fx_json_put(out, "[");
    for (uint32_t i = 0; i < prompt->len; i++) {
        if (i) fx_json_put(out, ",");
        fx_json_put_u64(out, prompt->at[i]);
    }
    fx_json_put(out, "]");
}

static void texts_put(const struct tokenized *tokenized, fx_buf *out) {
    const fx_tokenizer *tokenizer = tokenized->model->vocab->tokenizer;
    fx_json_put(out, "[");
    for (uint32_t i = 0; i < tokenized->prompt.len; i++) {
        if (i) fx_json_put(out, ",");
        gw_token_text(tokenizer, tokenized->prompt.at[i], out);
    }
    fx_json_put(out, "]");
}

static void tokenized_write(const void *what, fx_buf *out) {
    const struct tokenized *tokenized = what;
    fx_json_put(out, "{\"count\":");
    fx_json_put_u64(out, tokenized->prompt.len);
    fx_json_put(out, ",\"max_model_len\":");
    fx_json_put_u64(out, tokenized->model->context_max);
    fx_json_put(out, ",\"tokens\":");
    ids_put(&tokenized->prompt, out);
    fx_json_put(out, ",\"token_strs\":");
    if (tokenized->with_texts)
        texts_put(tokenized, out);
    else
        fx_json_put(out, "null");
    fx_json_put(out, "}");
}

static void on_model_tokenize(void *ctx, const struct gw_model *model) {
    struct gw_visit *visit = ctx;
    struct tokenized tokenized = {.model = model, .with_texts = visit->request.token_strs};
    struct gw_problem problem = {0};
    if (!gw_prompt_build(&visit->request, model->vocab, UINT32_MAX, &tokenized.prompt, &problem)) {
        gw_visit_refuse(visit, &problem);
        return;
    }
    gw_visit_reply_written(visit, tokenized_write, &tokenized);
    free(tokenized.prompt.at);
}

void gw_serve_tokenize(struct gw_visit *visit) {
    gw_visit_want_model(visit, visit->request.model, on_model_tokenize);
}

/* -- to text -- */

struct detokenized {
    const fx_tokenizer *tokenizer;
    struct fx_ids ids;
    uint8_t *room; /* for one token's text */
};

static void detokenized_write(const void *what, fx_buf *out) {
    const struct detokenized *detokenized = what;
    const fx_buf room = {detokenized->room, 0, fx_detok_room(detokenized->tokenizer)};
    struct fx_detok detok;
    fx_detok_init(&detok, detokenized->tokenizer);
    fx_json_put(out, "{\"prompt\":\"");
    for (size_t i = 0; i <= detokenized->ids.len; i++) {
        fx_buf text = room;
        if (i < detokenized->ids.len)
            fx_detok_push_all(&detok, detokenized->ids.at[i], &text);
        else
            fx_detok_flush(&detok, &text);
        fx_json_put_escaped(out, (fx_span){text.at, text.len});
    }
    fx_json_put(out, "\"}");
}

static void on_model_detokenize(void *ctx, const struct gw_model *model) {
    struct gw_visit *visit = ctx;
    const fx_tokenizer *tokenizer = model->vocab->tokenizer;
    struct detokenized detokenized = {.tokenizer = tokenizer,
                                      .room = fx_alloc(1, fx_detok_room(tokenizer))};
    struct gw_problem problem = {0};
    bool ok = detokenized.room || gw_refuse(&problem, GW_UNAVAILABLE, NULL, "no memory");
    if (ok && gw_ids_copy(visit->request.tokens, tokenizer, "tokens", &detokenized.ids, &problem))
        gw_visit_reply_written(visit, detokenized_write, &detokenized);
    else
        gw_visit_refuse(visit, &problem);
    free(detokenized.ids.at);
    free(detokenized.room);
}

void gw_serve_detokenize(struct gw_visit *visit) {
    gw_visit_want_model(visit, visit->request.model, on_model_detokenize);
}
