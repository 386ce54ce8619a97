/* `fractal chat` against replies played back byte for byte. */
#include "tests/integ/cli/http_script.h"

#define CHUNK(text) "\1" text "\2"
#define END "0\r\n\r\n"
#define STREAM                                                                                     \
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"                        \
    "Transfer-Encoding: chunked\r\n\r\n"
#define JSON(status, body)                                                                         \
    "HTTP/1.1 " status "\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" body

#define ROLE                                                                                       \
    CHUNK("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n")
#define CALL CHUNK("data: {\"choices\":[{\"delta\":{\"content\":\"Call \"}}]}\n\n")
#define ME                                                                                         \
    CHUNK("data: {\"choices\":[{\"delta\":{\"content\":\"m\\u00e9\"}}]}\n\n"                       \
          ":\n\n")
#define FINISH                                                                                     \
    CHUNK("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"                    \
          ":\n\n")
#define DONE CHUNK("data: [DONE]\n\n")

/* As the gateway writes them: the answer's id, and the tokens so far. */
#define NUMBERED(n, text)                                                                          \
    CHUNK("data: {\"id\":\"chatcmpl-7\",\"choices\":[{\"delta\":{\"content\":\"" text              \
          "\"}}],\"fractal\":{\"n\":" #n "}}\n\n")
#define LAST(n)                                                                                    \
    CHUNK("data: {\"id\":\"chatcmpl-7\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],"  \
          "\"fractal\":{\"n\":" #n "}}\n\n")
#define SHUTS_DOWN                                                                                 \
    CHUNK("data: {\"error\":{\"message\":\"ends\",\"code\":\"gateway_shutting_down\"}}\n\n")

struct row {
    const char *name;
    const char *replies[3];
    const char *args[8]; /* after "chat" */
    int status;
    const char *out, *err;       /* stdout whole, stderr a part */
    const char *request_part[3]; /* of the last request */
};

static const struct row rows[] = {
    {"streams",
     {STREAM ROLE CALL ME FINISH DONE END},
     {"--model", "m", "hi"},
     0,                                                                                                        "Call mé\n",
     "",                                                                                                                                                {"POST /v1/chat/completions HTTP/1.1", "Authorization: Bearer fx-key",
      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true,"
      "\"max_tokens\":128}"}                                                                                                                                                                                                              },
    {"sends its options",
     {STREAM CALL DONE END},
     {"--seed=7", "two", "words", "--model=m", "--max-tokens=5", "--temperature=0.5"},
     0,                                                                                                        "Call \n",
     "",                                                                                                                                                {"\"content\":\"two words\"", "\"max_tokens\":5,\"temperature\":0.5,\"seed\":7}"}         },
    {"asks for the only model",
     {JSON("200 OK", "{\"data\":[{\"id\":\"org/only\"}]}"), STREAM CALL DONE END},
     {"hi"},
     0,                                                                                                        "Call \n",
     "",                                                                                                                                                {"\"model\":\"org/only\""}                                                                },
    {"several models",
     {JSON("200 OK", "{\"data\":[{\"id\":\"one\"},{\"id\":\"two\"}]}")},
     {"hi"},
     1,                                                                                                        "",
     "several models, choose by --model: one, two",                                                                                                     {"GET /v1/models HTTP/1.1"}                                                               },
    {"no model",                                  {JSON("200 OK", "{\"data\":[]}")},                {"hi"}, 1, "",                  "./fractal import", {NULL}                                                                                    },
    {"models is no list",                         {JSON("200 OK", "{}")},                           {"hi"}, 1, "",                  "not a list",       {NULL}                                                                                    },
    {"wrong key",
     {JSON("401 Unauthorized", "{\"error\":{\"message\":\"no such key\"}}")},
     {"--model", "m", "hi"},
     1,                                                                                                        "",
     "HTTP 401: no such key (create a key: ./fractal keys create)",                                                                                     {NULL}                                                                                    },
    {"busy",
     {JSON("503 Service Unavailable", "{\"error\":{\"message\":\"no workers\"}}")},
     {"--model", "m", "hi"},
     1,                                                                                                        "",
     "HTTP 503: no workers (try again shortly; ./fractal status)",                                                                                      {NULL}                                                                                    },
    {"refused without a body",
     {JSON("500 Internal Server Error", "")},
     {"--model", "m", "hi"},
     1,                                                                                                        "",
     "HTTP 500: no message",                                                                                                                            {NULL}                                                                                    },
    {"comes back for the rest",
     {STREAM NUMBERED(1, "Call ") NUMBERED(2, "me "),
      STREAM NUMBERED(3, "Ishmael") LAST(3) DONE END},
     {"--model", "m", "hi"},
     0,                                                                                                        "Call me Ishmael\n",
     "",                                                                                                                                                {"GET /v1/generations/chatcmpl-7/events?after=2 HTTP/1.1", "Authorization: Bearer fx-key"}},
    {"comes back from a gateway that shuts down",
     {STREAM NUMBERED(1, "Call ") SHUTS_DOWN DONE END, STREAM NUMBERED(2, "me") LAST(2) DONE END},
     {"--model", "m", "hi"},
     0,                                                                                                        "Call me\n",
     "",                                                                                                                                                {"/events?after=1 "}                                                                      },
    {"comes back twice, once refused",
     {STREAM NUMBERED(1, "Call "), JSON("503 Service Unavailable", "{}"),
      STREAM NUMBERED(2, "me") LAST(2) DONE END},
     {"--model", "m", "hi"},
     0,                                                                                                        "Call me\n",
     "",                                                                                                                                                {"/events?after=1 "}                                                                      },
    {"comes back for the end alone",
     {STREAM NUMBERED(1, "Call") LAST(1), STREAM DONE END},
     {"--model", "m", "hi"},
     0,                                                                                                        "Call\n",
     "",                                                                                                                                                {"/events?after=1e "}                                                                     },
    {"its gateway dies before a word",
     {"", STREAM NUMBERED(1, "Call") LAST(1) DONE END},
     {"--model", "m", "hi"},
     0,                                                                                                        "Call\n",
     "",                                                                                                                                                {"POST /v1/chat/completions", "Idempotency-Key: "}                                        },
    {"its answer is gone",
     {STREAM NUMBERED(1, "Call "), JSON("404 Not Found", "{\"error\":{\"message\":\"no such\"}}")},
     {"--model", "m", "hi"},
     1,                                                                                                        "Call \n",
     "HTTP 404: no such",                                                                                                                               {"/events?after=1 "}                                                                      },
    {"an error in the stream",
     {STREAM CALL CHUNK("data: {\"error\":{\"message\":\"worker lost\"}}\n\n") DONE END},
     {"--model", "m", "hi"},
     1,                                                                                                        "Call \n",
     "the answer ended early: worker lost",                                                                                                             {NULL}                                                                                    },
    {"an error without a message",
     {STREAM CHUNK("data: {\"error\":\"odd\"}\n\n") DONE END},
     {"--model", "m", "hi"},
     1,                                                                                                        "",
     "the answer ended early: no message",                                                                                                              {NULL}                                                                                    },
    {"cut on a chunk's edge",
     {STREAM CALL ME},
     {"--model", "m", "hi"},
     1,                                                                                                        "Call mé\n",
     "the connection broke",                                                                                                                            {NULL}                                                                                    },
    {"cut inside a chunk",
     {STREAM CALL "40\r\ndata: "},
     {"--model", "m", "hi"},
     1,                                                                                                        "Call \n",
     "the connection broke",                                                                                                                            {NULL}                                                                                    },
    {"ends without DONE",
     {STREAM CALL ME FINISH END},
     {"--model", "m", "hi"},
     1,                                                                                                        "Call mé\n",
     "ended without [DONE]",                                                                                                                            {NULL}                                                                                    },
    {"a bad event",
     {STREAM CALL CHUNK("data: {x\n\n") DONE END},
     {"--model", "m", "hi"},
     1,                                                                                                        "Call \n",
     "bad event",                                                                                                                                       {NULL}                                                                                    },
    {"no stream",
     {JSON("200 OK", "{}")},
     {"--model", "m", "hi"},
     1,                                                                                                        "",
     "sent no event stream",                                                                                                                            {NULL}                                                                                    },
    {"not HTTP",
     {"hello\r\n\r\n", "hello\r\n\r\n", "hello\r\n\r\n"},
     {"--model", "m", "hi"},
     1,                                                                                                        "",
     "the connection broke",                                                                                                                            {NULL}                                                                                    },
    {"hangs up at once",
     {"", "", ""},
     {"--model", "m", "hi"},
     1,                                                                                                        "",
     "the connection broke",                                                                                                                            {NULL}                                                                                    },
};

static struct http_script script_;
static struct cli_process cli_;

static void start(const char *const *replies, bool hold, const char *const *args) {
    char url[64];
    const char *argv[CLI_ARGS_MAX] = {"chat"};
    const char *env[] = {url, "FX_API_KEY=fx-key", "http_proxy=http://127.0.0.1:1", NULL};
    memset(&script_, 0, sizeof script_);
    script_.hold = hold;
    for (size_t i = 0; i < 3 && replies[i]; i++)
        script_.replies[i] = replies[i];
    for (size_t i = 0; args[i]; i++)
        argv[i + 1] = args[i];
    script_start(&script_);
    (void)snprintf(url, sizeof url, "FX_GATEWAY_URL=http://127.0.0.1:%u", script_.port);
    cli_start(&cli_, argv, env);
}

static void test_row(void **state) {
    const struct row *row = *state;
    size_t last = row->replies[1] ? 1 : 0;
    start(row->replies, false, row->args);
    cli_finish(&cli_);
    script_stop(&script_);
    cli_want(&cli_, row->status, row->out, row->err);
    for (size_t i = 0; i < 3 && row->request_part[i]; i++)
        if (!strstr(script_.requests[last], row->request_part[i]))
            fail_msg("'%s' lacks '%s'", script_.requests[last], row->request_part[i]);
}

/* Ctrl-C hangs up, so that the gateway cancels the work, and keeps what has come. */
static void test_interrupt(void **state) {
    static const char *const replies[3] = {STREAM CALL};
    static const char *const args[] = {"--model", "m", "hi", NULL};
    (void)state;
    start(replies, true, args);
    cli_await(&cli_, "Call ");
    uint64_t sent_ms = fx_clock_ms();
    assert_int_equal(kill(cli_.pid, SIGINT), 0);
    cli_finish(&cli_);
    assert_true(fx_clock_ms() - sent_ms < 2000);
    script_stop(&script_);
    cli_want(&cli_, 130, "Call \n", "cancelled");
    assert_true(script_.hung_up);
}

static void test_nobody_listens(void **state) {
    static const char *const args[] = {"chat", "--model", "m", "hi", NULL};
    static const char *const env[] = {"FX_HTTP_ADDR=127.0.0.1:1", "FX_API_KEY=k", NULL};
    (void)state;
    cli_start(&cli_, args, env);
    cli_finish(&cli_);
    cli_want(&cli_, 1, "", "127.0.0.1:1/v1/chat/completions (run ./fractal up)");
}

static void test_misuse(void **state) {
    static const struct {
        const char *args[6];
        int status;
        const char *err;
    } uses[] = {
        {{NULL},                                              2, "usage: fractal COMMAND"                  },
        {{"frobnicate", NULL},                                2, "no command 'frobnicate'"                 },
        {{"chat", NULL},                                      2, "what is the text?"                       },
        {{"chat", "--model", NULL},                           2, "--model needs a value"                   },
        {{"chat", "--max-tokens", "0", "x", NULL},            2, "want a whole number from 1"              },
        {{"chat", "--temperature", "3", "x", NULL},           2, "want a number from 0 to 2"               },
        {{"models", "x", NULL},                               2, "what is 'x'?"                            },
        {{"import", "/tmp", NULL},                            2, "--name is missing"                       },
        {{"import", "--name", "x", NULL},                     2, "want one folder, not 0"                  },
        {{"import", "/nonexistent", "--name", "x", NULL},     1, "/nonexistent: No such file"              },
        {{"import", "/tmp", "--name=x", "--dtype=f64", NULL}, 2, "want one of f32|f16|int4"                },
        {{"keys", NULL},                                      2, "want create, list, limit ID or revoke ID"},
        {{"keys", "revoke", NULL},                            2, "want create, list, limit ID or revoke ID"},
        {{"keys", "create", "x", NULL},                       2, "want create, list, limit ID or revoke ID"},
        {{"tenants", "create", NULL},                         2, "want create NAME, limit NAME or list"    },
        {{"chat", "x", NULL},                                 1, "no API key"                              },
        {{"keys", "list", NULL},                              1, "no bootstrap token"                      },
    };
    static const char *const env[] = {"FX_DATA_DIR=/nonexistent", NULL};
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(uses); i++) {
        cli_start(&cli_, uses[i].args, env);
        cli_finish(&cli_);
        cli_want(&cli_, uses[i].status, "", uses[i].err);
    }
}

static void test_help(void **state) {
    static const char *const names[] = {"chat", "models", "import", "keys", "tenants", "logits"};
    static const char *const env[] = {"FX_UNKNOWN=1", NULL}; /* help comes even so */
    (void)state;
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++) {
        const char *args[] = {names[i], "--help", NULL};
        char usage[64];
        cli_start(&cli_, args, env);
        cli_finish(&cli_);
        (void)snprintf(usage, sizeof usage, "usage: fractal %s ", names[i]);
        assert_int_equal(cli_.status, 0);
        assert_non_null(strstr(cli_.out_text, usage));
        assert_string_equal(cli_.err_text, "");
    }
    static const char *const main_help[] = {"--help", NULL};
    cli_start(&cli_, main_help, env);
    cli_finish(&cli_);
    assert_int_equal(cli_.status, 0);
    for (size_t i = 0; i < FX_TEST_COUNT(names); i++)
        assert_non_null(strstr(cli_.out_text, names[i]));
    assert_non_null(strstr(cli_.out_text, "FX_GATEWAY_URL"));
}

static void test_unknown_variable(void **state) {
    static const char *const args[] = {"chat", "x", NULL};
    static const char *const env[] = {"FX_UNKNOWN=1", NULL};
    (void)state;
    cli_start(&cli_, args, env);
    cli_finish(&cli_);
    cli_want(&cli_, 1, "", "FX_UNKNOWN: no program of Fractal reads it");
}

int main(void) {
    static struct CMUnitTest tests[FX_TEST_COUNT(rows) + 5];
    static const struct CMUnitTest others[] = {
        cmocka_unit_test(test_interrupt),        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_misuse),           cmocka_unit_test(test_help),
        cmocka_unit_test(test_unknown_variable),
    };
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++)
        tests[i] =
            (struct CMUnitTest){rows[i].name, test_row, NULL, NULL, (void *)(uintptr_t)&rows[i]};
    for (size_t i = 0; i < FX_TEST_COUNT(others); i++)
        tests[FX_TEST_COUNT(rows) + i] = others[i];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
