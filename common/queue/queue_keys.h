#pragma once
/* Names of keys and channels: private to common/queue/queue*.c. See fractal.lua for their use. */
#include "common/queue/queue.h"

enum { FX_KEY_MAX = 96 };
/** One name; `span` points into `text`, so a key stays where it was made. */
struct fx_key {
    char text[FX_KEY_MAX];
    fx_span span;
};

/** fx:{m<model>}:<what> */
fx_span fx_key_model(struct fx_key *key, uint32_t model, const char *what);
/** fx:{m<model>}:<what>:<id>; what = gen, log, hint */
fx_span fx_key_gen(struct fx_key *key, uint32_t model, const char *what, const fx_gen_id *id);
/** The same by the id's hex digits as Redis gave them. */
fx_span fx_key_text(struct fx_key *key, uint32_t model, const char *what, fx_span text);
/** A number in decimal digits. */
fx_span fx_key_number(struct fx_key *key, uint64_t number);
fx_span fx_key_id(struct fx_key *key, const fx_gen_id *id);
#define FX_KEY_MODELS "fx:models" /* hash: model number -> name; no tag: written by HSET alone */
#define FX_KEY_HINTS "fx:sched"   /* channel: a model number in digits */
#define FX_KEY_WORK "work"        /* channel of a model: "t", "c <id>" */
