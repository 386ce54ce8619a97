#include <stdio.h>
#include "common/http/json.h"
#include "common/http/server.h"

enum { NUMBER_MAX = 24 };

static void write_json(const struct fx_http_problem *problem, fx_span message, fx_buf *out) {
    fx_json_put(out, "{\"error\":{\"message\":");
    fx_json_put_string(out, message);
    fx_json_put(out, ",\"type\":");
    fx_json_put_text(out, problem->type);
    fx_json_put(out, ",\"param\":");
    fx_json_put_text(out, problem->param);
    fx_json_put(out, ",\"code\":");
    fx_json_put_text(out, problem->code);
    fx_json_put(out, "}}");
}

/* Shortens the message until the whole fits: escapes may make six bytes of one. */
void fx_http_problem_json(const struct fx_http_problem *problem, fx_buf *out) {
    fx_span message = fx_span_str(problem->message);
    for (;;) {
        fx_buf measure = {0};
        write_json(problem, message, &measure);
        if (measure.len <= FX_HTTP_ERROR_BODY_MAX || !message.len) break;
        message.len /= 2;
        while (message.len && (message.at[message.len] & 0xC0) == 0x80)
            message.len--;
    }
    write_json(problem, message, out);
}

static struct fx_http_header header(const char *name, const char *value) {
    return (struct fx_http_header){fx_span_str(name), fx_span_str(value)};
}

static uint32_t retry_clamp(uint32_t ms) {
    if (ms < FX_HTTP_RETRY_MS_MIN) return FX_HTTP_RETRY_MS_MIN;
    return ms > FX_HTTP_RETRY_MS_MAX ? FX_HTTP_RETRY_MS_MAX : ms;
}

void fx_http_reply_problem(fx_http_call *call, const struct fx_http_problem *problem) {
    uint8_t body[FX_HTTP_ERROR_BODY_MAX];
    fx_buf out = {body, 0, sizeof body};
    char seconds[NUMBER_MAX], millis[NUMBER_MAX];
    struct fx_http_header headers[5 + FX_HTTP_PROBLEM_HEADERS_MAX];
    size_t count = 0;
    uint32_t ms = retry_clamp(problem->retry_ms);
    fx_http_problem_json(problem, &out);
    FX_ASSERT(fx_buf_fits(&out));
    (void)snprintf(seconds, sizeof seconds, "%u", (ms + 999) / 1000);
    (void)snprintf(millis, sizeof millis, "%u", ms);
    if (problem->retry_ms) {
        headers[count++] = header("retry-after", seconds);
        headers[count++] = header("retry-after-ms", millis);
    }
    if (problem->no_retry || problem->retry)
        headers[count++] = header("x-should-retry", problem->no_retry ? "false" : "true");
    if (problem->status == 401) headers[count++] = header("www-authenticate", "Bearer");
    if (problem->allow) headers[count++] = header("allow", problem->allow);
    FX_ASSERT(problem->header_count <= FX_HTTP_PROBLEM_HEADERS_MAX);
    for (size_t i = 0; i < problem->header_count; i++)
        headers[count++] = problem->headers[i];
    struct fx_http_reply reply = {
        .status = problem->status,
        .body = {body, out.len},
        .headers = headers,
        .header_count = count
    };
    fx_http_reply(call, &reply);
}
