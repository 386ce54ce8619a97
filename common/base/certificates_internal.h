#pragma once
/* Private to common/base/certificates*.c. */
#include <sys/stat.h>
#include "common/base/certificates.h"

/** What tells that a file is another one, or was written to; by its target, so that the swapped
 *  symbolic link of a Kubernetes volume is seen. */
struct fx_certs_stamp {
    dev_t device;
    ino_t inode;
    off_t bytes;
    struct timespec modified, changed;
};
enum { FX_CERTS_FILES = 3 };

struct fx_certs_content {
    struct fx_pems pems;
    int64_t begins_s, expires_s, ca_expires_s; /* 0: no certificate */
};

/** Of the three files; a file that is not there has a stamp of zeroes. */
void fx_certs__stamps(const struct fx_certs_files *files,
                      struct fx_certs_stamp out[FX_CERTS_FILES]);
/** Reads and checks; `prefix` names the variables. @own caller, fx_pems_done */
FX_MUST bool fx_certs__read(const char *prefix, const struct fx_certs_files *files,
                            struct fx_certs_content *out, fx_error *err);
