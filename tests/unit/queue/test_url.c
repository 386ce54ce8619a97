#include "tests/fx_test.h"
#include "common/queue/redis.h"
#include "common/queue/redis_url.h"

struct row {
    const char *name, *url;
    bool ok;
    const char *host, *path, *user, *password;
    unsigned port, db;
};

static const struct row rows[] = {
    {"host only",                  "redis://cache",          true,  "cache",     "",                "",  "",    6379, 0 },
    {"host and port",              "redis://127.0.0.1:6380", true,  "127.0.0.1", "",                "",  "",    6380, 0 },
    {"database",                   "redis://h:1/12",         true,  "h",         "",                "",  "",    1,    12},
    {"empty database",             "redis://h/",             true,  "h",         "",                "",  "",    6379, 0 },
    {"user and password",          "redis://u:p@h:1",        true,  "h",         "",                "u", "p",   1,    0 },
    {"password only",              "redis://:p@h",           true,  "h",         "",                "",  "p",   6379, 0 },
    {"escaped password",           "redis://u:p%40%3a@h",    true,  "h",         "",                "u", "p@:", 6379, 0 },
    {"password with @",            "redis://u:p@q@h",        true,  "h",         "",                "u", "p@q", 6379, 0 },
    {"ipv6",                       "redis://[::1]:7/3",      true,  "::1",       "",                "",  "",    7,    3 },
    {"ipv6 without port",          "redis://[fe80::1]",      true,  "fe80::1",   "",                "",  "",    6379, 0 },
    {"unix",                       "unix:///run/redis.sock", true,  "",          "/run/redis.sock", "",  "",    0,    0 },
    {"unix with database",         "unix:///s?db=4",         true,  "",          "/s",              "",  "",    0,    4 },
    {"unix with password",         "unix://u:p@/s",          true,  "",          "/s",              "u", "p",   0,    0 },
    {"no scheme",                  "localhost:6379",         false, "",          "",                "",  "",    0,    0 },
    {"database too large",         "redis://h/99999999",     false, "",          "",                "",  "",    0,    0 },
    {"no host",                    "redis://",               false, "",          "",                "",  "",    0,    0 },
    {"no host but a port",         "redis://:1",             false, "",          "",                "",  "",    0,    0 },
    {"port 0",                     "redis://h:0",            false, "",          "",                "",  "",    0,    0 },
    {"port too large",             "redis://h:65536",        false, "",          "",                "",  "",    0,    0 },
    {"port is no number",          "redis://h:6e3",          false, "",          "",                "",  "",    0,    0 },
    {"database is no number",      "redis://h/x",            false, "",          "",                "",  "",    0,    0 },
    {"user without password",      "redis://u@h",            false, "",          "",                "",  "",    0,    0 },
    {"bad escape",                 "redis://u:%zz@h",        false, "",          "",                "",  "",    0,    0 },
    {"escaped NUL",                "redis://u:a%00b@h",      false, "",          "",                "",  "",    0,    0 },
    {"cut escape",                 "redis://u:%4@h",         false, "",          "",                "",  "",    0,    0 },
    {"open bracket",               "redis://[::1",           false, "",          "",                "",  "",    0,    0 },
    {"text after bracket",         "redis://[::1]x",         false, "",          "",                "",  "",    0,    0 },
    {"relative path",              "unix://run/s",           false, "",          "",                "",  "",    0,    0 },
    {"unknown query",              "unix:///s?x=1",          false, "",          "",                "",  "",    0,    0 },
    {"path too long for a socket",
     "unix:///"
     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
     "aaaaaaaaaaaaaaaaaaa",                                  false, "",          "",                "",  "",    0,    0 },
};

static void test_url(void **state) {
    const struct row *row = *state;
    struct fx_redis_url url;
    fx_error err = {0};
    memset(&url, 0xee, sizeof url);
    struct fx_redis_url before = url;
    assert_int_equal(fx_redis__url_parse(row->url, &url, &err), row->ok);
    assert_int_equal(fx_redis_url_check(row->url, &(fx_error){0}), row->ok);
    if (!row->ok) {
        assert_int_equal(err.code, FX_INVALID_ARGUMENT);
        assert_memory_equal(&url, &before, sizeof url);
        return;
    }
    assert_string_equal(url.hosts[0].name, row->host);
    assert_string_equal(url.path, row->path);
    assert_string_equal(url.user, row->user);
    assert_string_equal(url.password, row->password);
    assert_int_equal(url.hosts[0].port, row->port);
    assert_int_equal(url.host_count, row->port ? 1 : 0);
    assert_false(url.tls);
    assert_string_equal(url.master, "");
    assert_int_equal(url.db, row->db);
}

FX_TEST_MAIN(test_url, rows)
