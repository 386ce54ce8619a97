#include <stdio.h>
#include "services/gateway/limits.h"

enum { SECOND_MS = 1000, MINUTE_S = 60, HOUR_S = 3600 };

void gw_limit_duration(uint64_t ms, char out[GW_LIMIT_TEXT]) {
    uint64_t s = (ms + SECOND_MS - 1) / SECOND_MS;
    unsigned long long h = s / HOUR_S, m = s / MINUTE_S % MINUTE_S, rest = s % MINUTE_S;
    if (ms && ms < SECOND_MS)
        (void)snprintf(out, GW_LIMIT_TEXT, "%llums", (unsigned long long)ms);
    else if (s < MINUTE_S)
        (void)snprintf(out, GW_LIMIT_TEXT, "%llus", rest);
    else if (s < HOUR_S)
        (void)snprintf(out, GW_LIMIT_TEXT, "%llum%llus", m, rest);
    else
        (void)snprintf(out, GW_LIMIT_TEXT, "%lluh%llum%llus", h, m, rest);
}

void gw_limit_headers(const struct gw_limit_state *state, struct gw_limit_headers *out) {
    static const char *const names[GW_LIMIT_HEADERS] = {
        "x-ratelimit-limit-requests",   "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",   "x-ratelimit-limit-tokens",
        "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens",
    };
    const struct gw_bucket *buckets[] = {&state->requests, &state->tokens};
    out->count = 0;
    if (!state->known) return;
    for (size_t i = 0; i < FX_COUNT(buckets); i++) {
        const struct gw_bucket *bucket = buckets[i];
        bool limited = bucket->limit > 0;
        char(*text)[GW_LIMIT_TEXT] = &out->text[3 * i];
        (void)snprintf(text[0], GW_LIMIT_TEXT, "%u", limited ? bucket->limit : GW_LIMIT_NONE);
        (void)snprintf(text[1], GW_LIMIT_TEXT, "%u", limited ? bucket->left : GW_LIMIT_NONE);
        gw_limit_duration(limited ? bucket->full_ms : 0, text[2]);
    }
    for (; out->count < GW_LIMIT_HEADERS; out->count++)
        out->headers[out->count] = (struct fx_http_header){fx_span_str(names[out->count]),
                                                           fx_span_str(out->text[out->count])};
}
