#include "tests/crowd/texts.h"
#include <jansson.h>

FX_DEFINE_AUTO(json_t, json_decref)

static json_t *answer_pack(const struct request *request, const struct client *answer) {
    const struct client_choice *choice = &answer->choices[0];
    return json_pack("{s:i, s:b, s:s, s:s, s:s, s:i, s:i}", "number", (int)request->number,
                     "stream", request->stream, "body", request->body, "text",
                     choice->text.at ? choice->text.at : "", "reason", choice->reason, "tokens",
                     (int)choice->tokens, "usage", (int)answer->usage);
}

bool texts_write(const char *path, const struct texts *texts, fx_error *err) {
    fx_auto(json_t) all = json_array();
    for (uint32_t i = 0; i < texts->count; i++)
        if (json_array_append_new(all, answer_pack(&texts->requests[i], &texts->answers[i])) != 0)
            return fx_fail(err, FX_DATA_LOSS, "answer %u is no UTF-8", i);
    if (json_dump_file(all, path, JSON_INDENT(1)) != 0) return fx_fail_errno(err, "write %s", path);
    return true;
}

static FX_MUST bool answer_unpack(json_t *from, struct request *request, struct client *answer,
                                  fx_error *err) {
    struct client_choice *choice = &answer->choices[0];
    const char *body, *text, *reason;
    int number, stream, tokens, usage;
    if (json_unpack(from, "{s:i, s:b, s:s, s:s, s:s, s:i, s:i}", "number", &number, "stream",
                    &stream, "body", &body, "text", &text, "reason", &reason, "tokens", &tokens,
                    "usage", &usage) != 0 ||
        strlen(body) >= sizeof request->body || strlen(reason) >= sizeof choice->reason)
        return fx_fail(err, FX_INVALID_ARGUMENT, "not what `fractal-crowd record` writes");
    *request = (struct request){.number = (uint32_t)number, .choices = 1, .stream = stream};
    memcpy(request->body, body, strlen(body));
    http_text_append(&choice->text, text, strlen(text));
    memcpy(choice->reason, reason, strlen(reason));
    choice->tokens = (uint32_t)tokens;
    answer->usage = (uint32_t)usage;
    return true;
}

bool texts_read(const char *path, struct texts *out, fx_error *err) {
    json_error_t why;
    size_t i;
    json_t *one;
    fx_auto(json_t) all = json_load_file(path, 0, &why);
    if (!all) return fx_fail(err, FX_INVALID_ARGUMENT, "%s: %s", path, why.text);
    if (json_array_size(all) == 0 || json_array_size(all) > TEXTS_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s: want 1 to %d answers", path, TEXTS_MAX);
    json_array_foreach(all, i, one) {
        if (!answer_unpack(one, &out->requests[i], &out->answers[i], err))
            return fx_wrap(err, "%s: answer %zu", path, i);
        out->count = (uint32_t)i + 1;
    }
    return true;
}

void texts_free(struct texts *texts) {
    for (uint32_t i = 0; i < TEXTS_MAX; i++)
        client_free(&texts->answers[i]);
}
