/* Files that are replaced: what is taken, what is refused, and what is in use then. */
#include "tests/fx_issuer.h"
#include <sys/stat.h>
#include "common/base/certificates.h"
#include "common/base/clock.h"
#include "common/base/heap.h"

#define NAMES "DNS:localhost"
enum { HOUR = 3600, LOOKS_MS = 2 * FX_CERTS_LOOK_MS };

static char folder[64];
static struct issuer issuer;
static char ca[96], cert[96], key[96];
static const struct fx_certs_files files = {ca, cert, key};

static void issue(const char *file, long begins_s, long ends_s) {
    issuer_issue(&issuer, folder,
                 &(struct issue){file, "one", NAMES, .begins_s = begins_s, .ends_s = ends_s});
}

static int setup(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/fx-certs-XXXXXX");
    assert_non_null(mkdtemp(folder));
    (void)snprintf(ca, sizeof ca, "%s/ca.pem", folder);
    (void)snprintf(cert, sizeof cert, "%s/a.pem", folder);
    (void)snprintf(key, sizeof key, "%s/a.key", folder);
    issuer = issuer_open("authority");
    issuer_bundle(folder, &issuer, NULL);
    issue("a", -HOUR, HOUR);
    issue("b", -HOUR, 2 * HOUR);
    issue("expired", -HOUR, -1);
    issue("early", HOUR, 2 * HOUR);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    issuer_close(&issuer);
    issuer_remove(folder);
    return 0;
}

static fx_certs *opened(void) {
    fx_certs *certs = NULL;
    fx_error err = {0};
    if (!fx_certs_open(FX_CERTS_GRPC, &files, &certs, &err)) fail_msg("%s", err.text);
    return certs;
}

static struct fx_certs_state grpc(void) {
    struct fx_certs_state states[FX_CERTS_USES];
    fx_certs_states(states);
    assert_string_equal(states[FX_CERTS_GRPC].use, "grpc");
    return states[FX_CERTS_GRPC];
}

struct bytes {
    char at[8192];
    size_t len;
};

static struct bytes bytes_of(const char *name) {
    struct bytes bytes = {0};
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    bytes.len = fread(bytes.at, 1, sizeof bytes.at, file);
    assert_int_equal(fclose(file), 0);
    return bytes;
}

/* In place of what is there, by a rename. */
static void put(const struct bytes *bytes, const char *name) {
    char path[256];
    FILE *file = issuer_file(folder, name, path);
    assert_int_equal(fwrite(bytes->at, 1, bytes->len, file), bytes->len);
    issuer_file_end(file, path);
}

static void copy(const char *from, const char *to) {
    struct bytes bytes = bytes_of(from);
    put(&bytes, to);
}

static bool await(uint64_t (*what)(void), uint64_t than) {
    for (uint64_t end_ms = fx_clock_ms() + 10000; fx_clock_ms() < end_ms; (void)usleep(20000))
        if (what() > than) return true;
    return false;
}
static uint64_t reloads(void) {
    return grpc().reloads;
}
static uint64_t refused(void) {
    return grpc().refused;
}

static char *in_use(fx_certs *certs) {
    struct fx_pems pems = {0};
    fx_error err = {0};
    if (!fx_certs_copy(certs, &pems, &err)) fail_msg("%s", err.text);
    char *text = fx_strdup(pems.cert);
    fx_pems_done(&pems);
    return text;
}

/* -- the first time -- */

static void one_set_is_one(void **state) {
    (void)state;
    fx_certs *one = opened(), *two = opened();
    assert_ptr_equal(one, two);
    fx_certs_free(one);
    assert_true(grpc().open);
    fx_certs_free(two);
    assert_false(grpc().open);
}

static void the_variable_is_named(void **state) {
    (void)state;
    const struct {
        const char *ca, *cert, *key, *says;
    } rows[] = {
        {"/none", cert,    key,     "FX_TLS_CA"                 },
        {ca,      "/none", key,     "FX_TLS_CERT"               },
        {ca,      cert,    "/none", "FX_TLS_KEY"                },
        {key,     cert,    key,     "FX_TLS_CA"                 },
        {ca,      key,     key,     "FX_TLS_CERT"               },
        {ca,      cert,    ca,      "FX_TLS_KEY"                },
        {ca,      cert,    NULL,    "FX_TLS_CERT and FX_TLS_KEY"},
        {folder,  cert,    key,     "FX_TLS_CA"                 },
    };
    for (size_t i = 0; i < FX_TEST_COUNT(rows); i++) {
        const struct fx_certs_files bad = {rows[i].ca, rows[i].cert, rows[i].key};
        fx_certs *certs = NULL;
        fx_error err = {0};
        assert_false(fx_certs_open(FX_CERTS_GRPC, &bad, &certs, &err));
        if (!strstr(err.text, rows[i].says)) fail_msg("%zu: %s", i, err.text);
        assert_null(certs);
    }
}

static void the_end_is_told(void **state) {
    (void)state;
    fx_certs *certs = opened();
    int64_t ends_s = (int64_t)time(NULL) + HOUR;
    assert_in_range(grpc().expires_s, ends_s - 600, ends_s);
    assert_true(grpc().ca_expires_s > ends_s);
    fx_certs_free(certs);
}

/* -- replaced -- */

static void a_whole_pair_is_taken(void **state) {
    (void)state;
    fx_auto(fx_certs) certs = opened();
    uint64_t before = reloads(), generation = fx_certs_generation(certs);
    int64_t expires_s = grpc().expires_s;
    copy("b.pem", "a.pem");
    copy("b.key", "a.key");
    assert_true(await(reloads, before));
    assert_true(fx_certs_generation(certs) > generation);
    assert_true(grpc().expires_s > expires_s);
}

static const struct row {
    const char *name, *cert, *key, *ca; /* put in place; NULL: left */
} bad[] = {
    {"another's key",         NULL,          "b.key",       NULL       },
    {"another's certificate", "b.pem",       NULL,          NULL       },
    {"a cut certificate",     "cut.pem",     NULL,          NULL       },
    {"a cut chain",           "chain.pem",   NULL,          NULL       },
    {"a cut key",             NULL,          "cut.key",     NULL       },
    {"no certificate",        "empty",       NULL,          NULL       },
    {"a cut bundle",          NULL,          NULL,          "chain.pem"},
    {"no bundle",             NULL,          NULL,          "empty"    },
    {"an expired one",        "expired.pem", "expired.key", NULL       },
    {"not valid yet",         "early.pem",   "early.key",   NULL       },
    {"a key with a password", NULL,          "locked.key",  NULL       },
};

static void cut_make(void) {
    struct bytes whole = bytes_of("a.pem"), chain = whole, cut = whole, none = {0};
    cut.len /= 2;
    put(&cut, "cut.pem");
    put(&none, "empty");
    memcpy(chain.at + chain.len, cut.at, cut.len);
    chain.len += cut.len;
    put(&chain, "chain.pem");
    struct bytes half = bytes_of("a.key");
    half.len /= 2;
    put(&half, "cut.key");
}

static void locked_make(void) {
    char path[256];
    FILE *file = issuer_file(folder, "locked.key", path);
    assert_int_equal(PEM_write_PrivateKey(file, issuer.key, EVP_aes_128_cbc(), NULL, 0, NULL,
                                          (void *)(uintptr_t) "secret"),
                     1);
    issuer_file_end(file, path);
}

/* A set that is none is said once; the next whole one is taken. */
static void the_old_one_stays(void **state) {
    const struct row *row = *state;
    issue("a", -HOUR, HOUR);
    fx_auto(fx_certs) certs = opened();
    uint64_t generation = fx_certs_generation(certs), said = refused(), taken = reloads();
    struct bytes good[] = {bytes_of("ca.pem"), bytes_of("a.pem"), bytes_of("a.key")};
    cut_make();
    locked_make();
    if (row->ca) copy(row->ca, "ca.pem");
    if (row->cert) copy(row->cert, "a.pem");
    if (row->key) copy(row->key, "a.key");
    assert_true(await(refused, said));
    (void)usleep(LOOKS_MS * 1000);
    assert_int_equal(fx_certs_generation(certs), generation);
    /* Two files that are put one after the other may be seen in between. */
    assert_in_range(refused(), said + 1, said + 2);
    assert_int_equal(reloads(), taken);
    char *text = in_use(certs);
    assert_memory_equal(text, good[1].at, good[1].len);
    free(text);
    put(&good[0], "ca.pem");
    put(&good[1], "a.pem");
    put(&good[2], "a.key");
    assert_true(await(reloads, taken));
}

static void a_file_that_is_gone(void **state) {
    (void)state;
    fx_auto(fx_certs) certs = opened();
    uint64_t said = refused(), taken = reloads();
    struct bytes good = bytes_of("a.key");
    assert_int_equal(unlink(key), 0);
    assert_true(await(refused, said));
    put(&good, "a.key");
    assert_true(await(reloads, taken));
}

/* -- as Kubernetes does it -- */

static void a_link_that_is_swapped(void **state) {
    (void)state;
    char volume[96], one[128], two[128];
    struct fx_pems pems = {0};
    fx_error err = {0};
    (void)snprintf(volume, sizeof volume, "%s/volume", folder);
    (void)snprintf(one, sizeof one, "%s/..one", volume);
    (void)snprintf(two, sizeof two, "%s/..two", volume);
    issuer_volume(volume, one);
    assert_int_equal(mkdir(two, 0700), 0);
    issuer_bundle(one, &issuer, NULL);
    issuer_issue(&issuer, one, &(struct issue){"tls", "one", NAMES, -HOUR, HOUR});
    const struct fx_certs_files through = {issuer_in(volume, "ca.pem", (char[256]){0}),
                                           issuer_in(volume, "tls.pem", (char[256]){0}),
                                           issuer_in(volume, "tls.key", (char[256]){0})};
    fx_auto(fx_certs) certs = NULL;
    if (!fx_certs_open(FX_CERTS_GRPC, &through, &certs, &err)) fail_msg("%s", err.text);
    uint64_t taken = reloads(), said = refused();
    issuer_bundle(two, &issuer, NULL);
    issuer_issue(&issuer, two, &(struct issue){"tls", "two", NAMES, -HOUR, HOUR});
    issuer_swap(volume, "..two");
    assert_true(await(reloads, taken));
    assert_int_equal(refused(), said);
    assert_true(fx_certs_copy(certs, &pems, &err));
    fx_pems_done(&pems);
}

int main(void) {
    const struct CMUnitTest others[] = {
        cmocka_unit_test(one_set_is_one),      cmocka_unit_test(the_variable_is_named),
        cmocka_unit_test(the_end_is_told),     cmocka_unit_test(a_whole_pair_is_taken),
        cmocka_unit_test(a_file_that_is_gone), cmocka_unit_test(a_link_that_is_swapped),
    };
    struct CMUnitTest tests[FX_TEST_COUNT(others) + FX_TEST_COUNT(bad)];
    memcpy(tests, others, sizeof others);
    for (size_t i = 0; i < FX_TEST_COUNT(bad); i++)
        tests[FX_TEST_COUNT(others) + i] = (struct CMUnitTest){bad[i].name, the_old_one_stays, NULL,
                                                               NULL, (void *)(uintptr_t)&bad[i]};
    return cmocka_run_group_tests(tests, setup, teardown);
}
