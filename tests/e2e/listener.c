#include "tests/e2e/listener.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/clock.h"

enum { HEAD_MS = 10000, NAME_MAX_BYTES = 64 };

bool listener_open(struct listener *listener, uint16_t port, const char *path, const char *key,
                   fx_error *err) {
    char line[128];
    *listener = (struct listener){0};
    (void)snprintf(line, sizeof line, "Authorization: Bearer %s", key ? key : "");
    const char *const headers[] = {key ? line : NULL, NULL};
    const struct http_request request = {.method = "GET", .path = path, .headers = headers};
    if (!http_open(&listener->conn, port, err) || !http_send(&listener->conn, &request, err))
        return false;
    while (!listener->conn.status)
        if (!http_read(&listener->conn, HEAD_MS, err)) return false;
    return true;
}

void listener_close(struct listener *listener) {
    http_close(&listener->conn);
}

/* One event that is in the body, `end` behind its last line. */
static FX_MUST bool event_read(struct listener *listener, const char *end, json_t **out,
                               fx_error *err) {
    const char *at = listener->conn.body.at + listener->at;
    size_t len = (size_t)(end - at);
    *out = NULL;
    listener->at += len + 2;
    if (len && at[0] == ':') {
        listener->comments++;
        return true;
    }
    if (len < 7 || strncmp(at, "data: {", 7) != 0 || memchr(at, '\n', len))
        return fx_fail(err, FX_DATA_LOSS, "neither data nor a comment: %.*s", (int)len, at);
    listener->data = (fx_span){(const uint8_t *)at + 6, len - 6};
    *out = json_loadb(at + 6, len - 6, JSON_REJECT_DUPLICATES, NULL);
    return *out || fx_fail(err, FX_DATA_LOSS, "not JSON: %.*s", (int)len, at);
}

bool listener_next(struct listener *listener, uint32_t ms, json_t **out, fx_error *err) {
    uint64_t deadline_ms = fx_clock_ms() + ms;
    for (;;) {
        struct http_text *body = &listener->conn.body;
        const char *end = body->len > listener->at ? strstr(body->at + listener->at, "\n\n") : NULL;
        if (end) {
            if (!event_read(listener, end, out, err)) return false;
            if (*out) return true;
            continue;
        }
        if (listener->conn.ended) return fx_fail(err, FX_OUT_OF_RANGE, "the stream has ended");
        uint64_t now_ms = fx_clock_ms();
        if (now_ms >= deadline_ms) return fx_fail(err, FX_DEADLINE_EXCEEDED, "no snapshot");
        if (!http_read(&listener->conn, (uint32_t)(deadline_ms - now_ms), err)) return false;
    }
}

json_t *snapshot_model(const json_t *snapshot, const char *name) {
    const json_t *models = json_object_get(snapshot, "models");
    for (size_t i = 0; i < json_array_size(models); i++) {
        json_t *model = json_array_get(models, i);
        const char *is = json_string_value(json_object_get(model, "model"));
        if (is && strcmp(is, name) == 0) return model;
    }
    return NULL;
}

double snapshot_number(const json_t *of, const char *path) {
    char name[NAME_MAX_BYTES];
    while (*path) {
        size_t len = strcspn(path, ".");
        (void)snprintf(name, sizeof name, "%.*s", (int)len, path);
        of = json_object_get(of, name);
        path += path[len] ? len + 1 : len;
    }
    return json_is_number(of) ? json_number_value(of) : -1;
}
