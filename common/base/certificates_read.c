/* Reads PEM files and says whether they can be used together. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>
#include <time.h>
#include "common/base/certificates_internal.h"
#include "common/base/heap.h"

enum { CHAIN_MAX = 1024 /* certificates of a file */ };

static void x509_free(X509 *cert) {
    X509_free(cert);
}
static void bio_free(BIO *bio) {
    (void)BIO_free(bio);
}
static void pkey_free(EVP_PKEY *key) {
    EVP_PKEY_free(key);
}
FX_DEFINE_AUTO(X509, x509_free)
FX_DEFINE_AUTO(BIO, bio_free)
FX_DEFINE_AUTO(EVP_PKEY, pkey_free)

static bool given(const char *path) {
    return path && *path;
}

static void stamp(const char *path, struct fx_certs_stamp *out) {
    struct stat at;
    *out = (struct fx_certs_stamp){0};
    if (!given(path) || stat(path, &at) != 0) return;
    out->device = at.st_dev;
    out->inode = at.st_ino;
    out->bytes = at.st_size;
    out->modified = at.st_mtim;
    out->changed = at.st_ctim;
}

void fx_certs__stamps(const struct fx_certs_files *files,
                      struct fx_certs_stamp out[FX_CERTS_FILES]) {
    stamp(files->ca, &out[0]);
    stamp(files->cert, &out[1]);
    stamp(files->key, &out[2]);
}

static FX_MUST bool read_file(const char *path, char **out, fx_error *err) {
    if (!given(path)) return true;
    fx_auto(FILE) file = fopen(path, "rbe");
    if (!file) return fx_fail_errno(err, "open '%s'", path);
    struct stat at;
    if (fstat(fileno(file), &at) != 0) return fx_fail_errno(err, "read '%s'", path);
    if (!S_ISREG(at.st_mode) || at.st_size >= FX_CERTS_PEM_MAX)
        return fx_fail(err, FX_INVALID_ARGUMENT, "'%s' is no PEM file", path);
    setbuf(file, NULL); /* no copy of a key in stdio's memory */
    char *text = fx_alloc((size_t)at.st_size + 1, 1);
    if (!text) return fx_fail(err, FX_RESOURCE_EXHAUSTED, "no memory for '%s'", path);
    *out = text; /* wiped and freed with the others */
    if (fread(text, 1, (size_t)at.st_size, file) != (size_t)at.st_size)
        return fx_fail(err, FX_UNAVAILABLE, "'%s' is being written", path);
    return true;
}

static int64_t seconds(const ASN1_TIME *time) {
    struct tm tm;
    return ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

/* A key that asks for a password is no key: nobody is there to type it. */
static int no_password(char *out, int size, int writing, void *user) {
    (void)out, (void)size, (void)writing, (void)user;
    return -1;
}

static X509 *next(BIO *pem) {
    return PEM_read_bio_X509(pem, NULL, no_password, NULL);
}

/* The end of a file is an error of this name; what is cut within a certificate has another. */
static bool at_end(void) {
    unsigned long code = ERR_peek_last_error();
    return ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
}

/* Every certificate of a text; the first is handed out, and the time the last of them ends. */
static FX_MUST bool walk(const char *text, X509 **first, int64_t *expires_s) {
    fx_auto(BIO) pem = BIO_new_mem_buf(text, -1);
    if (!pem) return false;
    for (int i = 0; i < CHAIN_MAX; i++) {
        fx_auto(X509) cert = next(pem);
        if (!cert) return i > 0 && at_end();
        int64_t ends_s = seconds(X509_get0_notAfter(cert));
        if (ends_s > *expires_s) *expires_s = ends_s;
        if (!i && first) *first = fx_take(cert);
    }
    return false;
}

static FX_MUST bool check_ca(const char *prefix, const char *path, struct fx_certs_content *content,
                             fx_error *err) {
    if (!content->pems.ca || walk(content->pems.ca, NULL, &content->ca_expires_s)) return true;
    return fx_fail(err, FX_INVALID_ARGUMENT, "%s_CA: '%s' holds no PEM certificates, or a cut one",
                   prefix, path);
}

static EVP_PKEY *key_of(const char *text) {
    fx_auto(BIO) pem = BIO_new_mem_buf(text, -1);
    return pem ? PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL) : NULL;
}

static FX_MUST bool check_pair(const char *prefix, const struct fx_certs_files *files,
                               struct fx_certs_content *content, fx_error *err) {
    int64_t last_s = 0;
    if (!content->pems.cert) return true;
    fx_auto(X509) cert = NULL;
    if (!walk(content->pems.cert, &cert, &last_s))
        return fx_fail(err, FX_INVALID_ARGUMENT,
                       "%s_CERT: '%s' holds no PEM certificate chain, or a cut one", prefix,
                       files->cert);
    fx_auto(EVP_PKEY) key = key_of(content->pems.key);
    if (!key)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s_KEY: '%s' holds no PEM key without a password",
                       prefix, files->key);
    if (X509_check_private_key(cert, key) != 1)
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s_KEY: '%s' is not the key of '%s'", prefix,
                       files->key, files->cert);
    content->begins_s = seconds(X509_get0_notBefore(cert));
    content->expires_s = seconds(X509_get0_notAfter(cert));
    return true;
}

static FX_MUST bool read_all(const char *prefix, const struct fx_certs_files *files,
                             struct fx_pems *out, fx_error *err) {
    if (given(files->cert) != given(files->key))
        return fx_fail(err, FX_INVALID_ARGUMENT, "%s_CERT and %s_KEY go together", prefix, prefix);
    return (read_file(files->ca, &out->ca, err) || fx_wrap(err, "%s_CA", prefix)) &&
           (read_file(files->cert, &out->cert, err) || fx_wrap(err, "%s_CERT", prefix)) &&
           (read_file(files->key, &out->key, err) || fx_wrap(err, "%s_KEY", prefix));
}

bool fx_certs__read(const char *prefix, const struct fx_certs_files *files,
                    struct fx_certs_content *out, fx_error *err) {
    struct fx_certs_content content = {0};
    bool ok = read_all(prefix, files, &content.pems, err) &&
              check_ca(prefix, files->ca, &content, err) &&
              check_pair(prefix, files, &content, err);
    ERR_clear_error();
    if (ok)
        *out = content;
    else
        fx_pems_done(&content.pems);
    return ok;
}
