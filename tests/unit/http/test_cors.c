/* CORS: which origins are taken, which answers name them, what a preflight is told. */
#include "tests/unit/http/wire.h"

#define A "https://a.example"
#define B "http://localhost:3000"
#define ORIGIN(of) "Host: x\r\nOrigin: " of "\r\n"
#define ASKS "Access-Control-Request-Method: POST\r\n"
#define NAMES "Access-Control-Request-Headers: "
#define FIXED "authorization, content-type"
#define SAYS "access-control-allow-origin: "

/* -- the setting -- */

static const struct {
    const char *origins;
    bool good;
} settings[] = {
    {"",                                 true },
    {"*",                                true },
    {A,                                  true },
    {A "," B,                            true },
    {A ", " B,                           true },
    {"https://xn--bcher-kva.example",    true },
    {"http://127.0.0.1:8080",            true },
    {"http://[::1]:8080",                true },
    {"tauri://localhost",                true },
    {"chrome-extension://abcdefghijklm", true },
    {"https://a.example/",               false},
    {"https://a.example/app",            false},
    {"https://A.example",                false},
    {"HTTPS://a.example",                false},
    {"a.example",                        false},
    {"https://",                         false},
    {"://a.example",                     false},
    {"https:/a.example",                 false},
    {"https://user@a.example",           false},
    {"https://*.a.example",              false},
    {"https://a.example:",               false},
    {"https://a.example:0",              false},
    {"https://a.example:65536",          false},
    {"https://a.example:123456",         false},
    {"https://a.example:443",            false}, /* browsers leave it out: it would never match */
    {"http://a.example:80",              false},
    {"https://a.example:80",             true },
    {"http://[::1",                      false},
    {"http://[]:1",                      false},
    {"*," A,                             false},
    {A ",",                              false},
    {"," A,                              false},
    {A ",," B,                           false},
    {"null",                             false},
    {"https://a b",                      false},
    {"https://a.example\r\nX: y",        false},
};

static void test_settings(void **state) {
    (void)state;
    char many[FX_HTTP_ORIGINS_MAX * 14 + 32] = "", long_one[FX_HTTP_ORIGIN_BYTES_MAX + 2] = "";
    fx_error err = {0};
    for (size_t i = 0; i < FX_TEST_COUNT(settings); i++)
        if (fx_http_cors_check(settings[i].origins, &err) != settings[i].good)
            fail_msg("'%s': %s", settings[i].origins, err.text);
    assert_true(fx_http_cors_check(NULL, &err));
    for (int i = 0; i < FX_HTTP_ORIGINS_MAX; i++)
        (void)snprintf(many + strlen(many), sizeof many - strlen(many), "%shttp://a:%u",
                       i ? "," : "", 1000 + i % 9);
    assert_true(fx_http_cors_check(many, &err));
    (void)snprintf(many + strlen(many), sizeof many - strlen(many), ",http://a");
    assert_false(fx_http_cors_check(many, &err));
    memset(long_one, 'a', FX_HTTP_ORIGIN_BYTES_MAX + 1);
    memcpy(long_one, "http://", 7);
    assert_false(fx_http_cors_check(long_one, &err));
    long_one[FX_HTTP_ORIGIN_BYTES_MAX] = 0;
    assert_true(fx_http_cors_check(long_one, &err));
}

/* -- answers -- */

static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    (void)ctx;
    if (request->method == FX_HTTP_OPTIONS) {
        fx_http_reply_problem(
            call, &(struct fx_http_problem){.status = 405, .type = "t", .message = "no"});
    } else if (request->method == FX_HTTP_POST) {
        fx_http_stream_begin(call, NULL, 0, 0);
        fx_http_stream_write(call, fx_span_str(": x\n\n"));
        fx_http_stream_end(call);
    } else {
        fx_http_reply(call, &(struct fx_http_reply){.status = 200, .body = fx_span_str("{}")});
    }
}

static const struct row {
    const char *name, *origins, *bytes;
    unsigned status;
    const char *origin; /* that the answer names; NULL: none */
    const char *holds;  /* NULL: anything */
} rows[] = {
    {"off",                             "",       "GET / HTTP/1.1\r\n" ORIGIN(A) "\r\n",                            200, NULL, NULL                                                                      },
    {"off: OPTIONS as ever",            "",       "OPTIONS / HTTP/1.1\r\n" ORIGIN(A) ASKS "\r\n",                   405, NULL, NULL                                                                      },
    {"no origin",                       A,        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",                              200, NULL, "vary: origin\r\n"                                                        },
    {"an origin of the list",           B "," A,  "GET / HTTP/1.1\r\n" ORIGIN(A) "\r\n",                            200, A,
     "vary: origin\r\n"                                                                                                                                                                                  },
    {"behind a space in the list",      B ", " A, "GET / HTTP/1.1\r\n" ORIGIN(A) "\r\n",                            200, A,    NULL                                                                      },
    {"another origin",                  A "," B,  "GET / HTTP/1.1\r\n" ORIGIN("https://evil.example") "\r\n",       200,
     NULL,                                                                                                                     "vary: origin\r\n"                                                        },
    {"the beginning of one",            A,        "GET / HTTP/1.1\r\n" ORIGIN("https://a.exampl") "\r\n",           200, NULL,
     NULL                                                                                                                                                                                                },
    {"one with more behind it",         A,        "GET / HTTP/1.1\r\n" ORIGIN(A ".evil") "\r\n",                    200, NULL, NULL                                                                      },
    {"another port",                    B,        "GET / HTTP/1.1\r\n" ORIGIN("http://localhost:3001") "\r\n",      200, NULL,
     NULL                                                                                                                                                                                                },
    {"null is not listed",              A,        "GET / HTTP/1.1\r\n" ORIGIN("null") "\r\n",                       200, NULL, NULL                                                                      },
    {"all",                             "*",      "GET / HTTP/1.1\r\n" ORIGIN("null") "\r\n",                       200, "*",  NULL                                                                      },
    {"what may be read",                A,        "GET / HTTP/1.1\r\n" ORIGIN(A) "\r\n",                            200, A,
     "access-control-expose-headers: x-request-id\r\n"                                                                                                                                                   },
    {"a stream",                        A,        "POST / HTTP/1.1\r\n" ORIGIN(A) "Content-Length: 0\r\n\r\n",      200, A,
     "text/event-stream"                                                                                                                                                                                 },
    {"an error of the server's own",    A,        "GET /%zz HTTP/1.1\r\n" ORIGIN(A) "\r\n",                         400, A,    NULL                                                                      },
    {"too large",                       A,        "PUT / HTTP/1.1\r\n" ORIGIN(A) "Content-Length: 9999999\r\n\r\n", 413, A,
     NULL                                                                                                                                                                                                },
    {"no head was read",                A,        "GET / HTTP/9.9\r\n" ORIGIN(A) "\r\n",                            505, NULL, "vary: origin\r\n"                                                        },
    {"OPTIONS that is no preflight",    A,        "OPTIONS / HTTP/1.1\r\n" ORIGIN(A) "\r\n",                        405, A,    NULL                                                                      },
    {"a preflight of another origin",   A,        "OPTIONS / HTTP/1.1\r\n" ORIGIN(B) ASKS "\r\n",                   405, NULL,
     NULL                                                                                                                                                                                                },
    {"a preflight without origin",      A,        "OPTIONS / HTTP/1.1\r\nHost: x\r\n" ASKS "\r\n",                  405, NULL,
     NULL                                                                                                                                                                                                },
    {"a preflight",                     A,        "OPTIONS /v1/x HTTP/1.1\r\n" ORIGIN(A) ASKS "\r\n",               204, A,
     "access-control-allow-methods: GET, POST\r\naccess-control-allow-headers: " FIXED "\r\n"
     "access-control-max-age: 600\r\n"                                                                                                                                                                   },
    {"a preflight, all",                "*",      "OPTIONS * HTTP/1.1\r\n" ORIGIN(A) ASKS "\r\n",                   204, "*",  NULL                                                                      },
    {"its headers are repeated",        A,
     "OPTIONS / HTTP/1.1\r\n" ORIGIN(A) ASKS NAMES "authorization,x-stainless-os, X-My_Own\r\n\r\n",
     204,                                                                                                                A,    "access-control-allow-headers: authorization,x-stainless-os, X-My_Own\r\n"},
    {"what is no name is not repeated", A,
     "OPTIONS / HTTP/1.1\r\n" ORIGIN(A) ASKS NAMES "a;b\r\n\r\n",                                                   204, A,
     "access-control-allow-headers: " FIXED "\r\n"                                                                                                                                                       },
    {"headers empty",                   A,        "OPTIONS / HTTP/1.1\r\n" ORIGIN(A) ASKS NAMES "\r\n\r\n",         204, A,
     "access-control-allow-headers: " FIXED "\r\n"                                                                                                                                                       },
};

static void wire_open(struct wire *wire, const char *origins) {
    wire_start(wire, (struct fx_http_server_opts){
                         .request = on_request,
                         .cors = {.origins = origins,
                                  .methods = "GET, POST",
                                  .headers = FIXED,
                                  .exposed = "x-request-id"}
    });
}

static void check_origin(const char *text, const char *origin) {
    char line[128];
    (void)snprintf(line, sizeof line, "\r\n" SAYS "%s\r\n", origin ? origin : "");
    if (origin ? !strstr(text, line) : strstr(text, SAYS) != NULL) fail_msg("%s", text);
    assert_null(strstr(text, "access-control-allow-credentials"));
}

static void test_answer(void **state) {
    const struct row *row = *state;
    struct wire wire = {0};
    bool closed;
    wire_open(&wire, row->origins);
    int fd = wire_connect(&wire);
    wire_say(fd, row->bytes);
    char *text = wire_read(fd, "\r\n\r\n", &closed);
    if (wire_status(text) != row->status || (row->holds && !strstr(text, row->holds)))
        fail_msg("status %u: %s", wire_status(text), text);
    check_origin(text, row->origin);
    assert_non_null(strstr(text, "x-request-id: "));
    if (!*row->origins) assert_null(strstr(text, "vary"));
    if (row->status == 204) assert_null(strstr(text, "\r\ncontent-"));
    free(text);
    close(fd);
    wire_stop(&wire);
}

/* More names than anybody needs are not repeated; the connection goes on. */
static void test_bound(void **state) {
    (void)state;
    struct wire wire = {0};
    bool closed;
    char names[FX_HTTP_CORS_HEADERS_MAX + 2], head[2 * FX_HTTP_CORS_HEADERS_MAX];
    wire_open(&wire, A);
    int fd = wire_connect(&wire);
    memset(names, 'a', sizeof names);
    for (size_t len = FX_HTTP_CORS_HEADERS_MAX; len <= FX_HTTP_CORS_HEADERS_MAX + 1; len++) {
        names[len] = 0;
        (void)snprintf(head, sizeof head,
                       "OPTIONS / HTTP/1.1\r\n" ORIGIN(A) ASKS NAMES "%s\r\n\r\n", names);
        wire_say(fd, head);
        char *text = wire_read(fd, "\r\n\r\n", &closed);
        assert_int_equal(wire_status(text), 204);
        assert_int_equal(strstr(text, FIXED) != NULL, len > FX_HTTP_CORS_HEADERS_MAX);
        free(text);
        names[len] = 'a';
    }
    close(fd);
    wire_stop(&wire);
}

int main(void) {
    struct CMUnitTest tests[FX_TEST_COUNT(rows) + 2] = {cmocka_unit_test(test_settings),
                                                        cmocka_unit_test(test_bound)};
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i + 2] =
            (struct CMUnitTest){rows[i].name, test_answer, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
