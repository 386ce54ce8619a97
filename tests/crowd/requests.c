#include "tests/crowd/requests.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "common/base/error.h"

enum { PROMPT_MIN = 24, PROMPT_SPREAD = 180, TOKENS_MIN = 60, TOKENS_SPREAD = 180 };

static const char novel[] =
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife. However little known the feelings or views of such a man may be on "
    "his first entering a neighbourhood, this truth is so well fixed in the minds of the "
    "surrounding families, that he is considered the rightful property of some one or other of "
    "their daughters. My dear Mr. Bennet, said his lady to him one day, have you heard that "
    "Netherfield Park is let at last? Mr. Bennet replied that he had not. But it is, returned she; "
    "for Mrs. Long has just been here, and she told me all about it. Mr. Bennet made no answer.";

/* Spreads neighbouring numbers. */
static uint32_t mix(uint32_t number, uint32_t salt) {
    uint32_t x = number * 2654435761u + salt * 40503u;
    x = (x ^ x >> 15) * 2246822519u;
    return (x ^ x >> 13) * 3266489917u >> 8;
}

static void body_write(struct request *out, json_t *body, const char *prompt) {
    json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", prompt);
    FX_ASSERT(body && messages);
    if (out->chat)
        (void)json_object_set(body, "messages", messages);
    else
        (void)json_object_set_new(body, "prompt", json_string(prompt));
    json_decref(messages);
    size_t len = json_dumpb(body, out->body, sizeof out->body - 1, JSON_COMPACT);
    FX_ASSERT(len && len < sizeof out->body);
    out->body[len] = 0;
    json_decref(body);
}

/* Of many lengths. */
static void prompt_make(uint32_t number, char out[PROMPT_MIN + PROMPT_SPREAD + 1]) {
    uint32_t length = PROMPT_MIN + mix(number, 1) % PROMPT_SPREAD;
    uint32_t begin = mix(number, 2) % (uint32_t)(sizeof novel - 1 - length);
    (void)snprintf(out, PROMPT_MIN + PROMPT_SPREAD + 1, "%.*s", (int)length, novel + begin);
}

void request_make(uint32_t number, struct request *out) {
    char prompt[PROMPT_MIN + PROMPT_SPREAD + 1];
    bool seeded = number % 2;
    *out = (struct request){.number = number,
                            .choices = number % 4 == 3 ? 2 : 1,
                            .stream = number % 5 != 2,
                            .chat = number % 7 == 4};
    prompt_make(number, prompt);
    json_t *body =
        json_pack("{s:s, s:i, s:b, s:b, s:i, s:f, s:i}", "model", REQUEST_MODEL, "max_tokens",
                  (int)(TOKENS_MIN + mix(number, 3) % TOKENS_SPREAD), "stream", out->stream,
                  "ignore_eos", number % 3 != 0, "n", (int)out->choices, "temperature",
                  seeded ? 0.9 : 0.0, "seed", (int)mix(number, 4));
    body_write(out, body, prompt);
}

void request_make_long(uint32_t prompt_bytes, uint32_t tokens, struct request *out) {
    char prompt[sizeof novel];
    FX_ASSERT(prompt_bytes < sizeof novel);
    *out = (struct request){.choices = 1, .stream = true};
    (void)snprintf(prompt, sizeof prompt, "%.*s", (int)prompt_bytes, novel);
    json_t *body = json_pack("{s:s, s:i, s:b, s:b, s:i}", "model", REQUEST_MODEL, "max_tokens",
                             (int)tokens, "stream", 1, "ignore_eos", 1, "temperature", 0);
    body_write(out, body, prompt);
}

void request_make_sized(const struct request_size *size, struct request *out) {
    char prompt[PROMPT_MIN + PROMPT_SPREAD + 1];
    *out = (struct request){.number = size->number, .choices = 1, .stream = size->stream};
    prompt_make(size->number, prompt);
    json_t *body = json_pack("{s:s, s:i, s:b, s:b, s:f, s:i}", "model", size->model, "max_tokens",
                             (int)size->tokens, "stream", size->stream, "ignore_eos", 1,
                             "temperature", 0.9, "seed", (int)mix(size->number, 4));
    body_write(out, body, prompt);
}
