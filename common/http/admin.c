#include "common/http/admin.h"
#include <event2/thread.h>
#include <pthread.h>
#include <stdlib.h>
#include "common/base/certificates.h"
#include "common/base/heap.h"
#include "common/http/server.h"

enum {
    CONNECTIONS_MAX = 64,
    HEAD_BYTES_MAX = 8192,
    BODY_BYTES_MAX = 4096,
    IDLE_MS_MAX = 30000,
};

struct fx_admin {
    struct fx_admin_opts opts;
    struct event_base *base;
    struct event *stop, *follow;
    fx_http_server *server;
    uint8_t *page; /* FX_ADMIN_METRICS_MAX bytes */
    pthread_t thread;
    bool running;
};

static void reply_text(fx_http_call *call, unsigned status, fx_span body) {
    struct fx_http_reply reply = {
        .status = status, .content_type = "text/plain; charset=utf-8", .body = body};
    fx_http_reply(call, &reply);
}

static void serve_live(struct fx_admin *admin, fx_http_call *call) {
    char reason[FX_ADMIN_REASON_MAX] = "";
    if (!admin->opts.live || admin->opts.live(admin->opts.ctx, reason))
        reply_text(call, 200, fx_span_str("ok\n"));
    else
        reply_text(call, 503, fx_span_str(*reason ? reason : "not alive"));
}

static void serve_ready(struct fx_admin *admin, fx_http_call *call) {
    char reason[FX_ADMIN_REASON_MAX] = "";
    if (admin->opts.ready(admin->opts.ctx, reason)) {
        reply_text(call, 200, fx_span_str("ok\n"));
        return;
    }
    const struct fx_http_header again = {fx_span_str("retry-after"), fx_span_str("1")};
    fx_http_reply(call, &(struct fx_http_reply){.status = 503,
                                                .content_type = "text/plain; charset=utf-8",
                                                .body = fx_span_str(*reason ? reason : "not ready"),
                                                .headers = &again,
                                                .header_count = 1});
}

static void on_follow(evutil_socket_t fd, short what, void *arg) {
    struct fx_admin *admin = arg;
    char reason[FX_ADMIN_REASON_MAX] = "";
    (void)fd, (void)what;
    bool ready = admin->opts.ready(admin->opts.ctx, reason);
    admin->opts.follow(admin->opts.ctx, ready, reason);
}

static void certificate_samples(const struct fx_certs_state states[FX_CERTS_USES], fx_buf *out) {
    static const struct {
        const char *name, *help;
        enum fx_metric_type type;
        bool zero; /* is a value */
        size_t at;
    } families[] = {
#define AT(member) offsetof(struct fx_certs_state, member)
        {"fx_certificate_expiry_timestamp_seconds",           "When our own certificate ends.",
                                                                  FX_METRIC_GAUGE,                                                                                                           false, AT(expires_s)},
        {"fx_certificate_authority_expiry_timestamp_seconds",
                                                                  "When the last of the authorities we trust ends.",                                                      FX_METRIC_GAUGE,   false,
                                                                  AT(ca_expires_s)                                                                                                                               },
        {"fx_certificate_reloads_total",                      "Replaced certificate files taken.",               FX_METRIC_COUNTER,
                                                                  true,                                                                                                                             AT(reloads)  },
        {"fx_certificate_refused_total",                      "Replaced certificate files that were not taken.",
                                                                  FX_METRIC_COUNTER,                                                                                                         true,  AT(refused)  },
#undef AT
    };
    for (size_t i = 0; i < FX_COUNT(families); i++) {
        fx_metric_family(out, families[i].type, families[i].name, families[i].help);
        for (size_t use = 0; use < FX_CERTS_USES; use++) {
            uint64_t value;
            memcpy(&value, (const uint8_t *)&states[use] + families[i].at, sizeof value);
            if (states[use].open && (value || families[i].zero))
                fx_metric_sample(out, families[i].name, "use", states[use].use, value);
        }
    }
}

/* A process without TLS has none of these. */
static void certificates_write(fx_buf *out) {
    struct fx_certs_state states[FX_CERTS_USES];
    fx_certs_states(states);
    for (size_t use = 0; use < FX_CERTS_USES; use++)
        if (states[use].open) {
            certificate_samples(states, out);
            return;
        }
}

static void serve_metrics(struct fx_admin *admin, fx_http_call *call) {
    fx_buf out = {admin->page, 0, FX_ADMIN_METRICS_MAX};
    if (admin->opts.metrics) admin->opts.metrics(admin->opts.ctx, &out);
    certificates_write(&out);
    if (!fx_buf_fits(&out)) {
        reply_text(call, 500, fx_span_str("the metrics outgrew their page\n"));
        return;
    }
    struct fx_http_reply reply = {
        .status = 200,
        .content_type = "text/plain; version=0.0.4; charset=utf-8",
        .body = {admin->page, out.len}
    };
    fx_http_reply(call, &reply);
}

static const struct {
    const char *path;
    void (*serve)(struct fx_admin *admin, fx_http_call *call);
} routes[] = {
    {"livez",   serve_live   },
    {"readyz",  serve_ready  },
    {"metrics", serve_metrics},
};

static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    for (size_t i = 0; i < FX_COUNT(routes) && request->segment_count == 1; i++) {
        if (!fx_span_eq_str(request->segments[0], routes[i].path)) continue;
        if (request->method == FX_HTTP_GET || request->method == FX_HTTP_HEAD)
            routes[i].serve(ctx, call);
        else
            reply_text(call, 405, fx_span_str("only GET\n"));
        return;
    }
    reply_text(call, 404, fx_span_str("/livez, /readyz or /metrics\n"));
}

/* By an event: a break asked for before the loop began would be forgotten. */
static void on_stop(evutil_socket_t fd, short what, void *arg) {
    struct fx_admin *admin = arg;
    (void)fd, (void)what;
    (void)event_base_loopbreak(admin->base);
}

static void *run(void *arg) {
    struct fx_admin *admin = arg;
    (void)event_base_loop(admin->base, EVLOOP_NO_EXIT_ON_EMPTY);
    return NULL;
}

static FX_MUST bool follow_start(struct fx_admin *admin, fx_error *err) {
    const struct timeval every = {0, FX_ADMIN_FOLLOW_MS * 1000L};
    if (!admin->opts.follow) return true;
    admin->follow = event_new(admin->base, -1, EV_PERSIST, on_follow, admin);
    return (admin->follow && event_add(admin->follow, &every) == 0) ||
           fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the admin endpoints");
}

static FX_MUST bool start(struct fx_admin *admin, fx_error *err) {
    struct fx_http_server_opts opts = {
        .base = admin->base,
        .addr = admin->opts.addr,
        .ctx = admin,
        .request = on_request,
        .connections_max = CONNECTIONS_MAX,
        .head_bytes_max = HEAD_BYTES_MAX,
        .body_bytes_max = BODY_BYTES_MAX,
        .idle_ms_max = IDLE_MS_MAX,
    };
    if (!fx_http_server_open(&opts, &admin->server, err)) return fx_wrap(err, "admin endpoints");
    if (!follow_start(admin, err)) return false;
    admin->opts.addr = NULL;
    if (pthread_create(&admin->thread, NULL, run, admin) != 0)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no thread for the admin endpoints");
    admin->running = true;
    return true;
}

bool fx_admin_open(const struct fx_admin_opts *opts, fx_admin **out, fx_error *err) {
    FX_ASSERT(opts->ready);
    fx_auto(fx_admin) admin = fx_alloc(1, sizeof *admin);
    if (!admin) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the admin endpoints");
    admin->opts = *opts;
    admin->page = fx_alloc(1, FX_ADMIN_METRICS_MAX);
    if (evthread_use_pthreads() == 0) admin->base = event_base_new();
    if (admin->base) admin->stop = event_new(admin->base, -1, EV_PERSIST, on_stop, admin);
    if (!admin->page || !admin->stop)
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for the admin endpoints");
    if (!start(admin, err)) return false;
    *out = fx_take(admin);
    return true;
}

uint16_t fx_admin_port(const fx_admin *admin) {
    return fx_http_server_port(admin->server);
}

void fx_admin_free(fx_admin *admin) {
    if (!admin) return;
    if (admin->running) {
        event_active(admin->stop, 0, 0);
        (void)pthread_join(admin->thread, NULL);
    }
    fx_http_server_free(admin->server);
    if (admin->base) (void)event_base_loop(admin->base, EVLOOP_NONBLOCK); /* deferred frees */
    if (admin->stop) event_free(admin->stop);
    if (admin->follow) event_free(admin->follow);
    if (admin->base) event_base_free(admin->base);
    free(admin->page);
    free(admin);
}
