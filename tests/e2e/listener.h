#pragma once
/* A client of GET /v1/telemetry: snapshot after snapshot, checked as they come. */
#include <jansson.h>
#include "tests/e2e/http_client.h"

struct listener {
    struct http_conn conn;
    size_t at;         /* of the body: the next event */
    uint32_t comments; /* seen so far */
    fx_span data;      /* the last snapshot as it came, borrowed until the next call */
};

/** `key` NULL: none is sent. Reads the head; conn.status says what became of it.
 *  Stays where it is. @own caller, listener_close() */
FX_MUST bool listener_open(struct listener *listener, uint16_t port, const char *path,
                           const char *key, fx_error *err);
/** The next snapshot. Anything in the stream but `data:` lines of JSON objects and comments is an
 *  error. @own caller, json_decref() @err OUT_OF_RANGE (the stream has ended), DATA_LOSS,
 *  DEADLINE_EXCEEDED */
FX_MUST bool listener_next(struct listener *listener, uint32_t ms, json_t **out, fx_error *err);
void listener_close(struct listener *listener);
#define auto_listener __attribute__((cleanup(listener_close))) struct listener

/** An element of "models"; NULL: not there. Borrowed from the snapshot. */
json_t *snapshot_model(const json_t *snapshot, const char *name);
/** A number within, by a path of names: "kv_pages.used". -1: null or not there. */
double snapshot_number(const json_t *of, const char *path);
