#pragma once
/* What an undisturbed run got: requests and their answers, in a file that later runs read. */
#include "tests/crowd/client.h"

enum { TEXTS_MAX = 1024 };

struct texts {
    uint32_t count;
    struct request requests[TEXTS_MAX];
    struct client answers[TEXTS_MAX]; /* as far as client_same() looks at them */
};

/** @err what is wrong with the file; what was read so far is texts_free()'s */
FX_MUST bool texts_read(const char *path, struct texts *out, fx_error *err);
/** Mode 0644: there is no secret in it. */
FX_MUST bool texts_write(const char *path, const struct texts *texts, fx_error *err);
void texts_free(struct texts *texts);
