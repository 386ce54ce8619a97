#pragma once
#include <stdint.h>
#include "common/base/error.h"

/** PEM files that may be replaced while the process runs. They are looked at when somebody asks, at
 *  most every FX_CERTS_LOOK_MS, and taken when all of them are whole, of one moment, and the key is
 *  the certificate's; else what was there before stays in use. Either is logged once
 *  (event=certificate_reloaded, certificate_refused). One set of files is one fx_certs of the
 *  process, however often it is opened. @thread any, all of it */
typedef struct fx_certs fx_certs;

/** Whose they are: FX_TLS_*, FX_HTTP_TLS_*, FX_REDIS_*. */
enum fx_certs_use { FX_CERTS_GRPC, FX_CERTS_HTTP, FX_CERTS_REDIS, FX_CERTS_USES };
enum { FX_CERTS_LOOK_MS = 200, FX_CERTS_PEM_MAX = 1024 * 1024 /* bytes of a file */ };

/** Paths; NULL or "": none. Certificate and key go together. */
struct fx_certs_files {
    const char *ca, *cert, *key;
};

/** Reads them for the first time; `files` is copied. @own caller, fx_certs_free
 *  @err NOT_FOUND, INVALID_ARGUMENT naming the variable and the file, RESOURCE_EXHAUSTED */
FX_MUST bool fx_certs_open(enum fx_certs_use use, const struct fx_certs_files *files,
                           fx_certs **out, fx_error *err);
/** One opening less; NULL is fine. */
void fx_certs_free(fx_certs *certs);
FX_DEFINE_AUTO(fx_certs, fx_certs_free)
/** Which contents are in use now, after a look where one is due: grows with each that is taken. */
uint64_t fx_certs_generation(fx_certs *certs);

/** What the files held; NULL where there is no file. */
struct fx_pems {
    char *ca, *cert, *key;
    uint64_t generation;
};
/** What is in use now, without a look. @own caller, fx_pems_done @err RESOURCE_EXHAUSTED */
FX_MUST bool fx_certs_copy(fx_certs *certs, struct fx_pems *out, fx_error *err);
/** Wipes the key. */
void fx_pems_done(struct fx_pems *pems);
#define fx_auto_pems __attribute__((cleanup(fx_pems_done))) struct fx_pems

/** For /metrics: all sets of one use together. */
struct fx_certs_state {
    const char *use;           /* "grpc", "http", "redis" */
    bool open;                 /* some are in use */
    int64_t expires_s;         /* seconds of the epoch, the soonest own certificate; 0: none */
    int64_t ca_expires_s;      /* the last of the soonest bundle; 0: none */
    uint64_t reloads, refused; /* since the start of the process */
};
/** Looks at all of them where it is due. */
void fx_certs_states(struct fx_certs_state out[FX_CERTS_USES]);
