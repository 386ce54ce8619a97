#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "common/base/hash.h"
#include "services/cli/secret.h"
#include "services/cli/cli.h"

enum { SECRET_BYTES = 32 };

/* Written beside, then linked, which never writes over another. */
bool cli_secret_write(const char *path, const char *text, fx_error *err) {
    char temporary[CLI_PATH_MAX];
    if (snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid()) >=
        (int)sizeof temporary)
        return fx_fail(err, FX_INVALID_ARGUMENT, "the path is too long");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) return fx_fail_errno(err, "%s", temporary);
    bool ok = dprintf(fd, "%s\n", text) > 0 && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && link(temporary, path) == 0;
    if (!ok) fx_error_set_errno(err, "%s", path);
    (void)unlink(temporary);
    return ok;
}

static int run(const struct cli_settings *settings, int argc, char **argv) {
    uint8_t bytes[SECRET_BYTES];
    char hex[2 * SECRET_BYTES + 1];
    fx_error err = {0};
    (void)settings;
    int left = cli_options(NULL, 0, argc, argv, NULL, &err);
    if (left >= 0 && left != 1)
        fx_error_set(&err, FX_INVALID_ARGUMENT, "want one file, not %d", left);
    if (err.code) return cli_misused(&cli_secret, &err);
    fx_random(bytes, sizeof bytes);
    fx_hex((fx_span){bytes, sizeof bytes}, hex);
    bool there = access(argv[0], F_OK) == 0 || cli_secret_write(argv[0], hex, &err) ||
                 err.code == FX_ALREADY_EXISTS;
    return there ? CLI_OK : cli_failed(&err);
}

const struct cli_command cli_secret = {
    .name = "secret",
    .usage = "FILE",
    .summary = "Writes 64 random hex digits to a file of mode 0600, unless it is there",
    .run = run,
    .more = "For FX_BOOTSTRAP_TOKEN_FILE.",
};
