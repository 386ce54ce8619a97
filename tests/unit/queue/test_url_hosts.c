/* TLS and sentinels. */
#include "tests/fx_test.h"
#include "common/queue/redis_url.h"

/* What is read, in one text: tls user:password host:port,... master db; NULL: refused. */
static const struct row {
    const char *url, *want;
} rows[] = {
    {"rediss://h",                                         "tls : h:6379  0"                },
    {"rediss://u:p@h:1/2",                                 "tls u:p h:1  2"                 },
    {"redis+sentinel://a/m",                               "plain : a:26379 m 0"            },
    {"redis+sentinel://a:1,b,[::1]:3/m/4",                 "plain : a:1,b:26379,::1:3 m 4"  },
    {"rediss+sentinel://u:p%2f@a,b/my%20m",                "tls u:p/ a:26379,b:26379 my m 0"},
    {"redis+sentinel://1:1,1:2,1:3,1:4,1:5,1:6,1:7,1:8/m",
     "plain : 1:1,1:2,1:3,1:4,1:5,1:6,1:7,1:8 m 0"                                          },
    {"redis+sentinel://a,b,c,d,e,f,g,h,i/m",               NULL                             },
    {"redis+sentinel://a,b",                               NULL                             },
    {"redis+sentinel://a,b/",                              NULL                             },
    {"redis+sentinel://a,,b/m",                            NULL                             },
    {"redis+sentinel:///m",                                NULL                             },
    {"redis+sentinel://a/m/x",                             NULL                             },
    {"redis://a,b",                                        "plain : a,b:6379  0"            },
    {"rediss+unix:///s",                                   NULL                             },
};

static void describe(const struct fx_redis_url *url, char *out, size_t cap) {
    size_t len = (size_t)snprintf(out, cap, "%s %s:%s ", url->tls ? "tls" : "plain", url->user,
                                  url->password);
    for (uint32_t i = 0; i < url->host_count; i++)
        len += (size_t)snprintf(out + len, cap - len, "%s%s:%u", i ? "," : "", url->hosts[i].name,
                                url->hosts[i].port);
    (void)snprintf(out + len, cap - len, " %s %u", url->master, url->db);
}

static void test_url_hosts(void **state) {
    const struct row *row = *state;
    struct fx_redis_url url;
    fx_error err = {0};
    char text[512];
    bool ok = fx_redis__url_parse(row->url, &url, &err);
    if (ok != (row->want != NULL)) fail_msg("%s", ok ? "accepted" : err.text);
    if (!ok) return;
    describe(&url, text, sizeof text);
    assert_string_equal(text, row->want);
}

FX_TEST_MAIN(test_url_hosts, rows)
