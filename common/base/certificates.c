#include <pthread.h>
#include <string.h>
#include <time.h>
#include "common/base/certificates_internal.h"
#include "common/base/clock.h"
#include "common/base/heap.h"
#include "common/base/log.h"

struct fx_certs {
    enum fx_certs_use use;
    char *ca, *cert, *key; /* paths, "" for none */
    uint32_t openings;
    uint64_t looked_ms;
    struct fx_certs_stamp taken[FX_CERTS_FILES], refused[FX_CERTS_FILES];
    struct fx_certs_content content;
    fx_certs *next;
};

static const struct {
    const char *label, *prefix;
} uses[FX_CERTS_USES] = {
    [FX_CERTS_GRPC] = {"grpc",  "FX_TLS"     },
    [FX_CERTS_HTTP] = {"http",  "FX_HTTP_TLS"},
    [FX_CERTS_REDIS] = {"redis", "FX_REDIS"   },
};

/* Of the process, under the lock: what is open, and how often what was taken. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fx_certs *open_certs;
static uint64_t generations, reloads[FX_CERTS_USES], refusals[FX_CERTS_USES];

static struct fx_certs_files files_of(const fx_certs *certs) {
    return (struct fx_certs_files){certs->ca, certs->cert, certs->key};
}

void fx_pems_done(struct fx_pems *pems) {
    if (pems->key) explicit_bzero(pems->key, strlen(pems->key));
    free(pems->ca);
    free(pems->cert);
    free(pems->key);
    *pems = (struct fx_pems){0};
}

static bool same(const struct fx_certs_stamp *a, const struct fx_certs_stamp *b) {
    return memcmp(a, b, FX_CERTS_FILES * sizeof *a) == 0;
}

/* A new certificate must be better than the old one: of use today. */
static FX_MUST bool check_now(const fx_certs *certs, const struct fx_certs_content *content,
                              fx_error *err) {
    int64_t now_s = (int64_t)time(NULL);
    if (!content->expires_s) return true;
    if (content->expires_s <= now_s)
        return fx_fail(err, FX_FAILED_PRECONDITION, "'%s' has expired", certs->cert);
    if (content->begins_s > now_s)
        return fx_fail(err, FX_FAILED_PRECONDITION, "'%s' is not valid yet", certs->cert);
    return true;
}

static void take(fx_certs *certs, const struct fx_certs_content *content,
                 const struct fx_certs_stamp stamps[FX_CERTS_FILES]) {
    fx_pems_done(&certs->content.pems);
    certs->content = *content;
    certs->content.pems.generation = ++generations;
    memcpy(certs->taken, stamps, sizeof certs->taken);
    memset(certs->refused, 0, sizeof certs->refused);
}

static void refuse(fx_certs *certs, const struct fx_certs_stamp stamps[FX_CERTS_FILES],
                   const fx_error *err) {
    if (same(stamps, certs->refused)) return; /* it was said */
    memcpy(certs->refused, stamps, sizeof certs->refused);
    refusals[certs->use]++;
    fx_log(FX_LOG_WARN, FX_EVENT("certificate_refused"), FX_KS("use", uses[certs->use].label),
           FX_KS("reason", err->text));
}

/* Files that change while they are read are left for the next look. */
static void look(fx_certs *certs) {
    struct fx_certs_files files = files_of(certs);
    struct fx_certs_stamp before[FX_CERTS_FILES], after[FX_CERTS_FILES];
    struct fx_certs_content content = {0};
    fx_error err = {0};
    uint64_t now_ms = fx_clock_ms();
    if (now_ms - certs->looked_ms < FX_CERTS_LOOK_MS) return;
    certs->looked_ms = now_ms;
    fx_certs__stamps(&files, before);
    if (same(before, certs->taken)) return;
    bool ok = fx_certs__read(uses[certs->use].prefix, &files, &content, &err) &&
              check_now(certs, &content, &err);
    fx_certs__stamps(&files, after);
    if (!same(before, after)) {
        fx_pems_done(&content.pems);
    } else if (!ok) {
        fx_pems_done(&content.pems);
        refuse(certs, after, &err);
    } else {
        take(certs, &content, after);
        reloads[certs->use]++;
        fx_log(FX_LOG_INFO, FX_EVENT("certificate_reloaded"), FX_KS("use", uses[certs->use].label),
               FX_KI("expires_s", content.expires_s));
    }
}

/* -- open -- */

static bool is_of(const fx_certs *certs, enum fx_certs_use use,
                  const struct fx_certs_files *files) {
    return certs->use == use && strcmp(certs->ca, files->ca) == 0 &&
           strcmp(certs->cert, files->cert) == 0 && strcmp(certs->key, files->key) == 0;
}

static fx_certs *find(enum fx_certs_use use, const struct fx_certs_files *files) {
    for (fx_certs *certs = open_certs; certs; certs = certs->next)
        if (is_of(certs, use, files)) return certs;
    return NULL;
}

static void certs_free(fx_certs *certs) {
    if (!certs) return;
    fx_pems_done(&certs->content.pems);
    free(certs->ca);
    free(certs->cert);
    free(certs->key);
    free(certs);
}

static fx_certs *certs_new(enum fx_certs_use use, const struct fx_certs_files *files) {
    fx_certs *certs = fx_alloc(1, sizeof *certs);
    if (!certs) return NULL;
    certs->use = use;
    certs->ca = fx_strdup(files->ca);
    certs->cert = fx_strdup(files->cert);
    certs->key = fx_strdup(files->key);
    if (certs->ca && certs->cert && certs->key) return certs;
    certs_free(certs);
    return NULL;
}

/* An expired one is taken at first: the process starts, and its peers say what is wrong. */
static FX_MUST bool first(enum fx_certs_use use, const struct fx_certs_files *files, fx_certs **out,
                          fx_error *err) {
    struct fx_certs_stamp stamps[FX_CERTS_FILES];
    struct fx_certs_content content;
    fx_certs__stamps(files, stamps); /* before: what changes meanwhile is seen by the first look */
    if (!fx_certs__read(uses[use].prefix, files, &content, err)) return false;
    fx_certs *certs = certs_new(use, files);
    if (!certs) {
        fx_pems_done(&content.pems);
        return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for certificates");
    }
    take(certs, &content, stamps);
    certs->looked_ms = fx_clock_ms();
    certs->next = open_certs;
    open_certs = certs;
    *out = certs;
    return true;
}

bool fx_certs_open(enum fx_certs_use use, const struct fx_certs_files *given, fx_certs **out,
                   fx_error *err) {
    const struct fx_certs_files files = {given->ca ? given->ca : "", given->cert ? given->cert : "",
                                         given->key ? given->key : ""};
    pthread_mutex_lock(&lock);
    fx_certs *certs = find(use, &files);
    bool ok = certs || first(use, &files, &certs, err);
    if (ok) {
        certs->openings++;
        *out = certs;
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

void fx_certs_free(fx_certs *certs) {
    if (!certs) return;
    pthread_mutex_lock(&lock);
    bool last = --certs->openings == 0;
    for (fx_certs **at = &open_certs; last && *at; at = &(*at)->next)
        if (*at == certs) {
            *at = certs->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    if (last) certs_free(certs);
}

/* -- in use -- */

uint64_t fx_certs_generation(fx_certs *certs) {
    pthread_mutex_lock(&lock);
    look(certs);
    uint64_t generation = certs->content.pems.generation;
    pthread_mutex_unlock(&lock);
    return generation;
}

static FX_MUST bool copy(const char *text, char **out) {
    if (text) *out = fx_strdup(text);
    return !text || *out;
}

bool fx_certs_copy(fx_certs *certs, struct fx_pems *out, fx_error *err) {
    struct fx_pems pems = {0};
    pthread_mutex_lock(&lock);
    const struct fx_pems *from = &certs->content.pems;
    bool ok =
        copy(from->ca, &pems.ca) && copy(from->cert, &pems.cert) && copy(from->key, &pems.key);
    pems.generation = from->generation;
    pthread_mutex_unlock(&lock);
    if (ok) {
        *out = pems;
        return true;
    }
    fx_pems_done(&pems);
    return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for certificates");
}

static void sooner(int64_t *out, int64_t expires_s) {
    if (expires_s && (!*out || expires_s < *out)) *out = expires_s;
}

void fx_certs_states(struct fx_certs_state out[FX_CERTS_USES]) {
    pthread_mutex_lock(&lock);
    for (size_t use = 0; use < FX_CERTS_USES; use++)
        out[use] = (struct fx_certs_state){.use = uses[use].label};
    for (fx_certs *certs = open_certs; certs; certs = certs->next) {
        struct fx_certs_state *state = &out[certs->use];
        look(certs);
        state->open = true;
        sooner(&state->expires_s, certs->content.expires_s);
        sooner(&state->ca_expires_s, certs->content.ca_expires_s);
    }
    for (size_t use = 0; use < FX_CERTS_USES; use++) {
        out[use].reloads = reloads[use];
        out[use].refused = refusals[use];
    }
    pthread_mutex_unlock(&lock);
}
