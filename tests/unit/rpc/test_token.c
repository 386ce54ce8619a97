#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/rpc/service.h"
#include "tests/fx_test.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct row {
    const char *name, *content; /* NULL: no file */
    mode_t mode;
    enum fx_code want;
};
static const struct row rows[] = {
    {"with newline",    HEX "\n",                                                             0600, FX_OK               },
    {"without newline", HEX,                                                                  0600, FX_OK               },
    {"read only",       HEX "\n",                                                             0400, FX_OK               },
    {"group may read",  HEX "\n",                                                             0640, FX_PERMISSION_DENIED},
    {"all may read",    HEX "\n",                                                             0604, FX_PERMISSION_DENIED},
    {"missing",         NULL,                                                                 0,    FX_NOT_FOUND        },
    {"empty",           "",                                                                   0600, FX_INVALID_ARGUMENT },
    {"short",           "0123456789ab\n",                                                     0600, FX_INVALID_ARGUMENT },
    {"long",            HEX "00\n",                                                           0600, FX_INVALID_ARGUMENT },
    {"no hex",          "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n", 0600,
     FX_INVALID_ARGUMENT                                                                                                },
};

static void test_read(void **state) {
    const struct row *row = *state;
    char folder[] = "/tmp/fx-token-XXXXXX", path[64], token[FX_TOKEN_MAX] = "untouched";
    fx_error err = {0};
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/token", folder);
    if (row->content) {
        int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);
        assert_int_equal(write(fd, row->content, strlen(row->content)), strlen(row->content));
        assert_int_equal(fchmod(fd, row->mode), 0);
        (void)close(fd);
    }
    bool ok = fx_token_read(path, token, &err);
    assert_int_equal(ok ? FX_OK : err.code, row->want);
    assert_string_equal(token, ok ? HEX : "untouched");
    (void)unlink(path);
    (void)rmdir(folder);
}

FX_TEST_MAIN(test_read, rows)
