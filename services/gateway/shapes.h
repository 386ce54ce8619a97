#pragma once
#include "services/gateway/logprobs.h"

enum { GW_ANSWER_ID_MAX = 56 };

/** What the JSON of one answer is made of. */
struct gw_answer {
    char id[GW_ANSWER_ID_MAX]; /* the same in every chunk */
    uint64_t created_s;
    const char *model;
    bool include_usage; /* of a stream */
    uint32_t prompt_tokens;
};

/** What there is of one choice. */
struct gw_piece {
    uint32_t index, n; /* of the choice; its tokens so far */
    fx_span text;
    const char *reason;                 /* "stop", "length"; NULL: more will come */
    const struct gw_logprobs *logprobs; /* of `text`; NULL: not asked for */
};

/** The JSON of one route; each writes one object and counts what does not fit. */
struct gw_shape {
    const char *id_prefix;
    /** Opens a choice of a stream; NULL: nothing does. */
    void (*first)(const struct gw_answer *answer, uint32_t index, fx_buf *out);
    void (*delta)(const struct gw_answer *answer, const struct gw_piece *piece, fx_buf *out);
    /** The end, with the text that comes with it: a client has both or neither. */
    void (*finish)(const struct gw_answer *answer, const struct gw_piece *piece, fx_buf *out);
    /** The whole answer, not streamed: all choices. */
    void (*whole)(const struct gw_answer *answer, const struct gw_piece *pieces, size_t count,
                  fx_buf *out);
    const char *object_chunk;
};

extern const struct gw_shape gw_chat_shape, gw_completion_shape;

/** The last chunk of a stream that asked for it: no choices, the usage. `n`: tokens of all. */
void gw_shape_usage(const struct gw_shape *shape, const struct gw_answer *answer, uint32_t n,
                    fx_buf *out);

/* Shared by the shapes. */

/** `{"id":...,"object":...,"created":...,"model":...,` */
void gw_shape__head(const struct gw_answer *answer, const char *object, fx_buf *out);
/** `,"usage":null` where a usage chunk will follow, `,"fractal":{"n":N}}`: a chunk's end. */
void gw_shape__tail(const struct gw_answer *answer, uint32_t n, fx_buf *out);
/** `"choices":[...],"usage":{...},"fractal":{"n":N}}`, each choice by `put`. */
void gw_shape__choices(const struct gw_answer *answer, const struct gw_piece *pieces, size_t count,
                       void (*put)(const struct gw_piece *piece, fx_buf *out), fx_buf *out);
