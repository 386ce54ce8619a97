#pragma once
/* Authorities and certificates that tests make as they go, for seconds or hours. */
#include "tests/fx_test.h"
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct issuer {
    EVP_PKEY *key;
    X509 *cert;
};

static inline void issuer_extend(X509 *cert, X509 *by, int nid, const char *value) {
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, by, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    assert_non_null(extension);
    assert_int_equal(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* `name` for `key`, signed by `issuer` (its own key signs an authority). */
static inline X509 *issuer_sign(const struct issuer *issuer, const char *name, const char *names,
                                EVP_PKEY *key, long begins_s, long ends_s) {
    static _Atomic long serial;
    X509 *cert = X509_new(), *by = issuer->cert ? issuer->cert : cert;
    X509_NAME *subject = X509_get_subject_name(cert);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(cert), begins_s);
    X509_gmtime_adj(X509_getm_notAfter(cert), ends_s);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(by));
    X509_set_pubkey(cert, key);
    if (names)
        issuer_extend(cert, by, NID_subject_alt_name, names);
    else
        issuer_extend(cert, by, NID_basic_constraints, "critical,CA:TRUE");
    assert_true(X509_sign(cert, issuer->key, EVP_sha256()) > 0);
    return cert;
}

static inline struct issuer issuer_open(const char *name) {
    struct issuer issuer = {.key = EVP_EC_gen("P-256")};
    issuer.cert = issuer_sign(&issuer, name, NULL, issuer.key, -3600, 86400);
    return issuer;
}

static inline void issuer_close(struct issuer *issuer) {
    X509_free(issuer->cert);
    EVP_PKEY_free(issuer->key);
}

/* What lies in a folder: whole files, each put in place by a rename. */
static inline FILE *issuer_file(const char *folder, const char *name, char path[256]) {
    (void)snprintf(path, 256, "%s/%s", folder, name);
    char part[272];
    (void)snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "we");
    assert_non_null(file);
    return file;
}

static inline void issuer_file_end(FILE *file, const char path[256]) {
    char part[272];
    (void)snprintf(part, sizeof part, "%s.part", path);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(part, path), 0);
}

/* FOLDER/ca.pem of one authority, or of two. */
static inline void issuer_bundle(const char *folder, const struct issuer *one,
                                 const struct issuer *two) {
    char path[256];
    FILE *file = issuer_file(folder, "ca.pem", path);
    assert_int_equal(PEM_write_X509(file, one->cert), 1);
    if (two) assert_int_equal(PEM_write_X509(file, two->cert), 1);
    issuer_file_end(file, path);
}

struct issue {
    const char *file;      /* FOLDER/file.pem and file.key */
    const char *name;      /* the CN */
    const char *names;     /* "DNS:localhost,IP:127.0.0.1" */
    long begins_s, ends_s; /* from now */
};
static inline void issuer_issue(const struct issuer *issuer, const char *folder,
                                const struct issue *issue) {
    char path[256], name[64];
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert =
        issuer_sign(issuer, issue->name, issue->names, key, issue->begins_s, issue->ends_s);
    (void)snprintf(name, sizeof name, "%s.pem", issue->file);
    FILE *file = issuer_file(folder, name, path);
    assert_int_equal(PEM_write_X509(file, cert), 1);
    issuer_file_end(file, path);
    (void)snprintf(name, sizeof name, "%s.key", issue->file);
    file = issuer_file(folder, name, path);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    issuer_file_end(file, path);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static inline const char *issuer_in(const char *folder, const char *name, char out[256]) {
    (void)snprintf(out, 256, "%s/%s", folder, name);
    return out;
}

/* A folder as Kubernetes mounts a Secret: ca.pem, tls.pem and tls.key are links through the link
 * ..data to the folder of one generation, here `first`, beside it. */
static inline void issuer_volume(const char *folder, const char *first) {
    char path[256];
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(first, 0700), 0);
    assert_int_equal(symlink(strrchr(first, '/') + 1, issuer_in(folder, "..data", path)), 0);
    assert_int_equal(symlink("..data/ca.pem", issuer_in(folder, "ca.pem", path)), 0);
    assert_int_equal(symlink("..data/tls.pem", issuer_in(folder, "tls.pem", path)), 0);
    assert_int_equal(symlink("..data/tls.key", issuer_in(folder, "tls.key", path)), 0);
}

/* Another generation, all at once; `to` is the name of its folder. */
static inline void issuer_swap(const char *folder, const char *to) {
    char next[256], data[256];
    (void)snprintf(next, sizeof next, "%s/..data_tmp", folder);
    (void)snprintf(data, sizeof data, "%s/..data", folder);
    assert_int_equal(symlink(to, next), 0);
    assert_int_equal(rename(next, data), 0);
}

static inline int issuer_remove_one(const char *path, const struct stat *at, int type,
                                    struct FTW *place) {
    (void)at, (void)type, (void)place;
    return remove(path);
}
static inline void issuer_remove(const char *folder) {
    assert_int_equal(nftw(folder, issuer_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}
