#pragma once
/* What clients ask for: request `number` is always the same. */
#include <stdbool.h>
#include <stdint.h>

#define REQUEST_MODEL "fractal-tiny-moe"
enum { REQUEST_CHOICES_MAX = 2, REQUEST_BODY_MAX = 2048 };

struct request {
    uint32_t number, choices;
    bool stream, chat;
    char body[REQUEST_BODY_MAX]; /* JSON */
};

/** Greedy and seeded, one choice and two, streamed and not, completions and chats, with prompts
 *  and answers of many lengths. */
void request_make(uint32_t number, struct request *out);
/** A completion of `tokens` tokens after a prompt of about `prompt_bytes` bytes, greedy, streamed.
 */
void request_make_long(uint32_t prompt_bytes, uint32_t tokens, struct request *out);

struct request_size {
    const char *model;
    uint32_t number, tokens; /* exactly so many */
    bool stream;
};
/** A seeded completion of one choice after a prompt of many lengths. */
void request_make_sized(const struct request_size *size, struct request *out);
