/* Requests as raw bytes against a live server: what is answered, and whether it hangs up. */
#include "tests/unit/http/wire.h"

enum { BODY_MAX = 1000, HEAD_MAX = 2048 };

static void on_request(void *ctx, fx_http_call *call, const struct fx_http_request *request) {
    char text[256];
    (void)ctx;
    int len = snprintf(text, sizeof text, "%s %zu body=%zu sum=%u first=%.*s",
                       fx_http_method_name(request->method), request->segment_count,
                       request->body.len, request->body.len ? request->body.at[0] : 0,
                       request->segment_count ? (int)request->segments[0].len : 0,
                       request->segment_count ? (const char *)request->segments[0].at : "");
    struct fx_http_reply reply = {
        .status = 200, .content_type = "text/plain", .body = {(const uint8_t *)text, (size_t)len}
    };
    fx_http_reply(call, &reply);
}

#define HOST "Host: x\r\n"
#define POST "POST /a HTTP/1.1\r\n" HOST
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct row {
    const char *name, *bytes;
    unsigned status;
    bool closes;
    const char *holds; /* in the reply, NULL: anything */
} rows[] = {
    {"plain get",                         "GET /v1/x HTTP/1.1\r\n" HOST "\r\n",                                          200, false, "GET 2 body=0"},
    {"one segment, encoded slash",        "GET /a%2Fb HTTP/1.1\r\n" HOST "\r\n",                                         200, false, "first=a/b"   },
    {"space in a segment",                "GET /a%20b?q=%20 HTTP/1.1\r\n" HOST "\r\n",                                   200, false, "first=a b"   },
    {"root",                              "GET / HTTP/1.1\r\n" HOST "\r\n",                                              200, false, "GET 0 "      },
    {"absolute form",                     "GET http://h/abc HTTP/1.1\r\n" HOST "\r\n",                                   200, false, "first=abc"   },
    {"absolute form, no path",            "GET http://h HTTP/1.1\r\n" HOST "\r\n",                                       200, false, "GET 0"       },
    {"bad escape",                        "GET /a%2 HTTP/1.1\r\n" HOST "\r\n",                                           400, true,  NULL          },
    {"bad escape digits",                 "GET /a%zz HTTP/1.1\r\n" HOST "\r\n",                                          400, true,  NULL          },
    {"NUL in the path",                   "GET /a%00 HTTP/1.1\r\n" HOST "\r\n",                                          400, true,  NULL          },
    {"no slash",                          "GET a HTTP/1.1\r\n" HOST "\r\n",                                              400, true,  NULL          },
    {"17 segments",                       "GET /a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a HTTP/1.1\r\n" HOST "\r\n",             400, true,
     "segments"                                                                                                                                    },
    {"empty lines before",                "\r\n\r\nGET /a HTTP/1.1\r\n" HOST "\r\n",                                     200, false, NULL          },
    {"head request",                      "HEAD /a HTTP/1.1\r\n" HOST "\r\n",                                            200, false, NULL          },
    {"close asked",                       "GET /a HTTP/1.1\r\n" HOST "Connection: x, Close\r\n\r\n",                     200, true,  NULL          },
    {"http/1.0 closes",                   "GET /a HTTP/1.0\r\n\r\n",                                                     200, true,  NULL          },
    {"http/0.9",                          "GET /a\r\n",                                                                  400, true,  NULL          },
    {"http/0.9, bare LF",                 "GET /a\n",                                                                    400, true,  NULL          },
    {"http/2 preface",                    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",                                            505, true,  NULL          },
    {"http/1.2",                          "GET /a HTTP/1.2\r\n" HOST "\r\n",                                             505, true,  NULL          },
    {"lower-case version",                "GET /a http/1.1\r\n" HOST "\r\n",                                             400, true,  NULL          },
    {"two spaces",                        "GET  /a HTTP/1.1\r\n" HOST "\r\n",                                            400, true,  NULL          },
    {"garbage",                           "\x16\x03\x01\x02\r\n\r\n",                                                    400, true,  NULL          },
    {"unknown method",                    "FROB /a HTTP/1.1\r\n" HOST "\r\n",                                            400, true,  NULL          },
    {"connect",                           "CONNECT x:1 HTTP/1.1\r\n" HOST "\r\n",                                        400, true,  NULL          },
    {"no host",                           "GET /a HTTP/1.1\r\n\r\n",                                                     400, true,  "Host"        },
    {"two hosts",                         "GET /a HTTP/1.1\r\n" HOST HOST "\r\n",                                        400, true,  "Host"        },
    {"space before the colon",            "GET /a HTTP/1.1\r\nHost : x\r\n\r\n",                                         400, true,  "token"       },
    {"tab before the colon",              "GET /a HTTP/1.1\r\n" HOST "A\t: x\r\n\r\n",                                   400, true,  "token"       },
    {"no colon",                          "GET /a HTTP/1.1\r\n" HOST "abc\r\n\r\n",                                      400, true,  NULL          },
    {"empty name",                        "GET /a HTTP/1.1\r\n" HOST ": x\r\n\r\n",                                      400, true,  NULL          },
    {"folded header",                     "GET /a HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n",                               400, true,  NULL          },
    {"control character",                 "GET /a HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n",                                 400, true,  NULL          },
    {"bare LF between headers",           "GET /a HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",                                    400, true,  NULL          },
    {"bare CR in a value",                "GET /a HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n",                                  400, true,  NULL          },
    {"offered upgrade is ignored",
     "GET /a HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n",                                           200, false, NULL          },
    {"body",                              POST "Content-Length: 3\r\n\r\nabc",                                           200, false, "body=3"      },
    {"empty body",                        POST "Content-Length: 0\r\n\r\n",                                              200, false, "body=0"      },
    {"no length",                         POST "\r\n",                                                                   200, false, "body=0"      },
    {"signed length",                     POST "Content-Length: +3\r\n\r\nabc",                                          400, true,  NULL          },
    {"negative length",                   POST "Content-Length: -3\r\n\r\nabc",                                          400, true,  NULL          },
    {"hexadecimal length",                POST "Content-Length: 0x3\r\n\r\nabc",                                         400, true,  NULL          },
    {"empty length",                      POST "Content-Length:\r\n\r\nabc",                                             400, true,  NULL          },
    {"list of lengths",                   POST "Content-Length: 3, 3\r\n\r\nabc",                                        400, true,  NULL          },
    {"equal lengths twice",               POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",                      400, true,
     NULL                                                                                                                                          },
    {"differing lengths",                 POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",                      400, true,
     NULL                                                                                                                                          },
    {"length over 64 bits",               POST "Content-Length: 99999999999999999999\r\n\r\n",                           400, true,  NULL          },
    {"length and chunked",                POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400,                                                                                                                     true,  NULL          },
    {"chunked and length",                POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
     400,                                                                                                                     true,  NULL          },
    {"chunked",                           POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 200,
     false,                                                                                                                          "body=5"      },
    {"chunked with a trailer",
     POST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n",                                           200, false,
     "body=1"                                                                                                                                      },
    {"chunk without size",                POST "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",                              400, true,  NULL          },
    {"chunk size overflows",              POST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",                400,
     true,                                                                                                                           NULL          },
    {"signed chunk size",                 POST "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",               400,
     true,                                                                                                                           NULL          },
    {"chunk longer than its size",        POST "Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n",
     400,                                                                                                                     true,  NULL          },
    {"chunked twice",                     POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",       400,
     true,                                                                                                                           NULL          },
    {"other encoding",                    POST "Transfer-Encoding: gzip, chunked\r\n\r\n",                               501, true,  NULL          },
    {"chunked in 1.0",                    "POST /a HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     400,                                                                                                                     true,  NULL          },
    {"announced over the limit",          POST "Content-Length: 1001\r\n\r\n",                                           413, true,  "too large"   },
    {"chunk announced over the limit",    POST "Transfer-Encoding: chunked\r\n\r\n3e9\r\n",                              413, true,
     "too large"                                                                                                                                   },
    {"chunk announced over what is left",
     POST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n3e8\r\n",                                                         413, true,  "too large"   },
    {"chunk over the limit",
     POST "Transfer-Encoding: chunked\r\n\r\n3e9\r\n" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
         HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED "a\r\n0\r\n\r\n",
     413,                                                                                                                     true,  NULL          },
    {"chunks over the limit together",
     POST "Transfer-Encoding: chunked\r\n\r\n1f4\r\n" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
          "\r\n1f5\r\n" HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED "a\r\n0\r\n\r\n",
     413,                                                                                                                     true,  NULL          },
    {"head over the limit",
     "GET /a HTTP/1.1\r\n" HOST
     "A: " HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED
         HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED "\r\n\r\n",
     431,                                                                                                                     true,  NULL          },
    {"unknown expectation",               POST "Content-Length: 1\r\nExpect: cake\r\n\r\na",                             417, true,  NULL          },
};

static void test_wire(void **state) {
    const struct row *row = *state;
    struct wire wire = {0};
    struct fx_http_server_opts opts = {
        .request = on_request, .body_bytes_max = BODY_MAX, .head_bytes_max = HEAD_MAX};
    wire_start(&wire, opts);
    int fd = wire_connect(&wire);
    bool closed;
    wire_say(fd, row->bytes);
    char *text = wire_read(fd, row->closes ? NULL : "\r\n\r\n", &closed);
    if (wire_status(text) != row->status || closed != row->closes ||
        (row->holds && !strstr(text, row->holds)))
        fail_msg("status %u, closed %d: %s", wire_status(text), closed, text);
    assert_non_null(strstr(text, "x-request-id: "));
    assert_int_equal(!!strstr(text, "connection: close"), row->closes);
    free(text);
    if (!row->closes) { /* the connection is in step: the next request is understood */
        wire_say(fd, "GET /next HTTP/1.1\r\n" HOST "\r\n");
        text = wire_read(fd, "first=next", &closed);
        assert_int_equal(wire_status(text), 200);
        assert_non_null(strstr(text, "first=next"));
        free(text);
    }
    close(fd);
    wire_stop(&wire);
}

FX_TEST_MAIN(test_wire, rows)
