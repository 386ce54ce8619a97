#pragma once
/* What the rate limits' tests read from an answer. */
#include "tests/integ/gateway/stage.h"
#include "services/gateway/limits.h"

#define LIMIT_PROMPT_TOKENS 2
#define LIMIT_ASK(more) "{\"model\":\"" STAGE_MODEL "\",\"prompt\":[65,66]" more "}"

/* A number in a header; fails the test when it is missing or none. */
static inline unsigned long header_number(const char *answer, const char *name) {
    char value[64], *end;
    if (!stage_header(answer, name, value)) fail_msg("no %s in: %s", name, answer);
    if (*value < '0' || *value > '9') fail_msg("%s: %s", name, value);
    unsigned long number = strtoul(value, &end, 10);
    assert_int_equal(*end, 0);
    return number;
}

/* "1s", "6m0s", "120ms" in ms. */
static inline unsigned long header_duration(const char *answer, const char *name) {
    char value[64], unit[8] = "";
    unsigned long number = 0, total = 0;
    int used = 0;
    if (!stage_header(answer, name, value)) fail_msg("no %s in: %s", name, answer);
    for (const char *at = value; *at; at += used) {
        if (sscanf(at, "%lu%7[a-z]%n", &number, unit, &used) != 2) fail_msg("%s: %s", name, value);
        if (strcmp(unit, "ms") == 0)
            total += number;
        else if (strcmp(unit, "s") == 0)
            total += number * 1000;
        else if (strcmp(unit, "m") == 0)
            total += number * 60000;
        else
            fail_msg("%s: %s", name, value);
    }
    return total;
}

/* All six are there and make sense. */
static inline void assert_six_headers(const char *answer) {
    static const char *const names[] = {"requests", "tokens"};
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "x-ratelimit-limit-%s", names[i]);
        unsigned long limit = header_number(answer, name);
        (void)snprintf(name, sizeof name, "x-ratelimit-remaining-%s", names[i]);
        unsigned long left = header_number(answer, name);
        (void)snprintf(name, sizeof name, "x-ratelimit-reset-%s", names[i]);
        unsigned long ms = header_duration(answer, name);
        assert_in_range(left, 0, limit);
        assert_in_range(ms, 0, 60000);
    }
}

/* 429, six headers, an error as the clients read it, when to come again. */
static inline void assert_limited(const char *answer) {
    assert_int_equal(wire_status(answer), 429);
    assert_six_headers(answer);
    unsigned long s = header_number(answer, "retry-after");
    unsigned long ms = header_number(answer, "retry-after-ms");
    assert_in_range(s, 1, 60);
    assert_in_range(ms, s * 1000 - 999, s * 1000);
    assert_non_null(strstr(answer, "\"type\":\"rate_limit_error\""));
    assert_non_null(strstr(answer, "\"code\":\"rate_limit_exceeded\""));
    assert_non_null(strstr(answer, "\r\nx-request-id: "));
}
