#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/hash.h"
#include "services/cli/cli.h"

enum { SECRET_BYTES = 32 };

/* Written beside, then linked: it is there whole, or not at all, and never written over. */
static FX_MUST bool write_secret(const char *path, fx_error *err) {
    uint8_t bytes[SECRET_BYTES];
    char hex[2 * SECRET_BYTES + 1], text[sizeof hex + 1], temporary[CLI_PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid()) >=
        (int)sizeof temporary)
        return fx_fail(err, FX_INVALID_ARGUMENT, "the path is too long");
    fx_random(bytes, sizeof bytes);
    fx_hex((fx_span){bytes, sizeof bytes}, hex);
    int len = snprintf(text, sizeof text, "%s\n", hex);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return fx_fail_errno(err, "%s", temporary);
    bool ok = write(fd, text, (size_t)len) == len && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && (link(temporary, path) == 0 || errno == EEXIST);
    if (!ok) fx_error_set_errno(err, "%s", path);
    (void)unlink(temporary);
    return ok;
}

static int run(const struct cli_settings *settings, int argc, char **argv) {
    fx_error err = {0};
    (void)settings;
    int left = cli_options(NULL, 0, argc, argv, NULL, &err);
    if (left >= 0 && left != 1)
        fx_error_set(&err, FX_INVALID_ARGUMENT, "want one file, not %d", left);
    if (err.code) return cli_misused(&cli_secret, &err);
    if (access(argv[0], F_OK) == 0) return CLI_OK;
    return write_secret(argv[0], &err) ? CLI_OK : cli_failed(&err);
}

const struct cli_command cli_secret = {
    .name = "secret",
    .usage = "FILE",
    .summary = "Writes 64 random hex digits to a file of mode 0600, unless it is there",
    .run = run,
    .more = "For FX_BOOTSTRAP_TOKEN_FILE.",
};
