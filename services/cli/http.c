#include "services/cli/http.h"
#include <curl/curl.h>
#include <jansson.h>
#include <string.h>
#include "common/base/heap.h"
#include "services/cli/interrupt.h"

enum { POLL_MS = 100, CONNECT_S_MAX = 5 };

typedef struct curl_slist curl_slist;
FX_DEFINE_AUTO(json_t, json_decref)
FX_DEFINE_AUTO(CURL, curl_easy_cleanup)
FX_DEFINE_AUTO(CURLM, curl_multi_cleanup)
FX_DEFINE_AUTO(curl_slist, curl_slist_free_all)

struct transfer {
    const struct cli_http_request *request;
    CURL *easy;
    char *body; /* [cap] */
    size_t len, cap;
    bool stopped; /* by on_stream or a body too large; `err` says why */
    fx_error *err;
};

static bool is_event_stream(struct transfer *transfer) {
    long status = 0;
    const char *type = NULL;
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(transfer->easy, CURLINFO_CONTENT_TYPE, &type);
    return status == 200 && transfer->request->on_stream && type &&
           strncmp(type, "text/event-stream", strlen("text/event-stream")) == 0;
}

static FX_MUST bool keep(struct transfer *transfer, fx_span bytes) {
    if (bytes.len > CLI_HTTP_BODY_BYTES_MAX - transfer->len)
        return fx_fail(transfer->err, FX_RESOURCE_EXHAUSTED, "the reply is longer than %d bytes",
                       CLI_HTTP_BODY_BYTES_MAX);
    size_t cap = transfer->cap;
    while (cap <= transfer->len + bytes.len)
        cap *= 2;
    if (cap != transfer->cap) {
        char *grown = fx_realloc(transfer->body, cap, 1);
        if (!grown) return fx_fail(transfer->err, FX_RESOURCE_EXHAUSTED, "memory for the reply");
        transfer->body = grown;
        transfer->cap = cap;
    }
    memcpy(transfer->body + transfer->len, bytes.at, bytes.len);
    transfer->len += bytes.len;
    transfer->body[transfer->len] = '\0';
    return true;
}

static size_t on_bytes(char *at, size_t size, size_t count, void *user) {
    struct transfer *transfer = user;
    fx_span bytes = {(const uint8_t *)at, size * count};
    bool ok = is_event_stream(transfer)
                  ? transfer->request->on_stream(transfer->request->user, bytes, transfer->err)
                  : keep(transfer, bytes);
    transfer->stopped = !ok;
    return ok ? bytes.len : CURL_WRITEFUNC_ERROR;
}

static FX_MUST bool add_header(curl_slist **headers, const char *line) {
    curl_slist *grown = curl_slist_append(*headers, line);
    if (grown) *headers = grown;
    return grown != NULL;
}

static FX_MUST bool once_add(const struct cli_http_request *request, curl_slist **headers) {
    char line[128];
    if (!request->once) return true;
    (void)snprintf(line, sizeof line, "Idempotency-Key: %s", request->once);
    return add_header(headers, line);
}

static FX_MUST bool make_headers(const struct cli_http_request *request, curl_slist **headers,
                                 fx_error *err) {
    char line[512];
    int len = snprintf(line, sizeof line, "Authorization: Bearer %s", request->api_key);
    if (len < 0 || (size_t)len >= sizeof line)
        return fx_fail(err, FX_INVALID_ARGUMENT, "the API key is too long");
    if (!add_header(headers, line) || !add_header(headers, "Content-Type: application/json") ||
        !add_header(headers, "Expect:") || !once_add(request, headers))
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "memory for a request");
    return true;
}

static void set_options(struct transfer *transfer, curl_slist *headers) {
    CURL *easy = transfer->easy;
    const struct cli_http_request *request = transfer->request;
    (void)curl_easy_setopt(easy, CURLOPT_URL, request->url);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S_MAX);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)CLI_HTTP_SILENCE_S_MAX);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    if (request->body) (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
}

static FX_MUST bool explain(const struct transfer *transfer, CURLcode code, fx_error *err) {
    const char *url = transfer->request->url;
    if (transfer->stopped) return false; /* err is set */
    switch (code) {
    case CURLE_OK: return true;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return fx_fail(err, FX_UNAVAILABLE, "nothing answers at %s (run ./fractal up)", url);
    case CURLE_OPERATION_TIMEDOUT:
        return fx_fail(err, FX_DEADLINE_EXCEEDED, "%s: no answer for too long", url);
    default:
        return fx_fail(err, FX_DATA_LOSS, "%s: the connection broke: %s", url,
                       curl_easy_strerror(code));
    }
}

/* Drives the transfer to its end or to Ctrl-C. */
static FX_MUST bool drive(CURLM *multi, bool last_words, CURLcode *code, fx_error *err) {
    int running = 1, left = 0;
    while (running) {
        CURLMcode ok = curl_multi_perform(multi, &running);
        if (!ok && running) ok = curl_multi_poll(multi, NULL, 0, POLL_MS, NULL);
        if (ok) return fx_fail(err, FX_INTERNAL, "curl: %s", curl_multi_strerror(ok));
        if (!last_words && cli_interrupted()) return fx_fail(err, FX_CANCELLED, "cancelled");
    }
    const CURLMsg *message = curl_multi_info_read(multi, &left);
    if (!message) return fx_fail(err, FX_INTERNAL, "curl: no result");
    *code = message->data.result;
    return true;
}

static FX_MUST bool transfer_run(struct transfer *transfer, fx_error *err) {
    fx_auto(curl_slist) headers = NULL;
    fx_auto(CURLM) multi = curl_multi_init();
    CURLcode code = CURLE_OK;
    if (!multi || !make_headers(transfer->request, &headers, err))
        return multi ? false : fx_fail(err, FX_RESOURCE_EXHAUSTED, "curl does not start");
    set_options(transfer, headers);
    if (curl_multi_add_handle(multi, transfer->easy))
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "curl does not start");
    bool ok =
        drive(multi, transfer->request->last_words, &code, err) && explain(transfer, code, err);
    (void)curl_multi_remove_handle(multi, transfer->easy);
    return ok;
}

bool cli_http(const struct cli_http_request *request, struct cli_http_reply *reply, fx_error *err) {
    fx_auto(CURL) easy = curl_easy_init();
    struct transfer transfer = {.request = request, .easy = easy, .cap = 4096, .err = err};
    transfer.body = fx_alloc(transfer.cap, 1);
    bool ok = easy && transfer.body;
    if (!ok) fx_error_set(err, FX_RESOURCE_EXHAUSTED, "memory for a request");
    ok = ok && transfer_run(&transfer, err);
    fx_auto(char) body = transfer.body; /* it may have moved */
    if (!ok) return false;
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &reply->status);
    reply->body_len = transfer.len;
    reply->body = fx_take(body);
    return true;
}

static const char *remedy(long status) {
    switch (status) {
    case 401: return " (create a key: ./fractal keys create)";
    case 404: return " (./fractal models lists them)";
    case 429:
    case 503: return " (try again shortly; ./fractal status)";
    default: return "";
    }
}

bool cli_http_refused(const struct cli_http_reply *reply, fx_error *err) {
    fx_auto(json_t) root = json_loadb(reply->body, reply->body_len, 0, NULL);
    const json_t *error = json_object_get(root, "error");
    const char *message = json_string_value(json_object_get(error, "message"));
    return fx_fail(err, FX_FAILED_PRECONDITION, "HTTP %ld: %.160s%s", reply->status,
                   message ? message : "no message", remedy(reply->status));
}
