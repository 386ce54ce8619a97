/* mTLS while its files are replaced: servers and clients take new ones without a restart, an
 * authority gives way to another, and no call is cut. */
#include "tests/fx_issuer.h"
#include <pthread.h>
#include "common/base/certificates.h"
#include "tests/integ/rpc/echo_service.h"

enum { HOUR = 3600, STEP_MS = 10000, MESSAGES = 3000, CALL_MS = 60000 };

/* Two volumes, as two pods have them. */
static struct fixture {
    struct echo echo;
    fx_server *server;
    fx_client *client;
    char folder[64], target[64];
    char server_dir[96], client_dir[96];
    char server_paths[3][256], client_paths[3][256];
    struct issuer old, new;
    uint32_t generation;
} fixture;

struct contents {
    const struct issuer *issuer, *trusted, *also; /* whose certificate; in ca.pem; NULL: no other */
    const char *name;
};

/* A generation of a volume, which is made when it is not there. */
static void put(const char *volume, const struct contents *contents) {
    char path[256], name[32];
    (void)snprintf(name, sizeof name, "..%u", fixture.generation++);
    (void)issuer_in(volume, name, path);
    bool first = access(volume, F_OK) != 0;
    if (first)
        issuer_volume(volume, path);
    else
        assert_int_equal(mkdir(path, 0700), 0);
    issuer_bundle(path, contents->trusted, contents->also);
    issuer_issue(contents->issuer, path,
                 &(struct issue){"tls", contents->name, "IP:127.0.0.1", -HOUR, HOUR});
    if (!first) issuer_swap(volume, name);
}

static struct fx_tls tls_of(const char *volume, char paths[3][256]) {
    return (struct fx_tls){issuer_in(volume, "ca.pem", paths[0]),
                           issuer_in(volume, "tls.pem", paths[1]),
                           issuer_in(volume, "tls.key", paths[2])};
}

static fx_client *client_new(const char *volume, char paths[3][256]) {
    fx_error err = {0};
    fx_client *client = NULL;
    struct fx_client_opts opts = {
        .target = fixture.target, .tls = tls_of(volume, paths), .attempts_max = 1};
    echo_check(fx_client_open(&opts, &client, &err), &err);
    return client;
}

static int setup(void **state) {
    (void)state;
    (void)snprintf(fixture.folder, sizeof fixture.folder, "/tmp/fx-rotate-XXXXXX");
    assert_non_null(mkdtemp(fixture.folder));
    (void)snprintf(fixture.server_dir, sizeof fixture.server_dir, "%s/server", fixture.folder);
    (void)snprintf(fixture.client_dir, sizeof fixture.client_dir, "%s/client", fixture.folder);
    fixture.old = issuer_open("old");
    fixture.new = issuer_open("new");
    put(fixture.server_dir, &(struct contents){&fixture.old, &fixture.old, NULL, "server"});
    put(fixture.client_dir, &(struct contents){&fixture.old, &fixture.old, NULL, "one"});
    struct fx_server_opts opts = {.tls = tls_of(fixture.server_dir, fixture.server_paths)};
    fixture.server = echo_open(&fixture.echo, opts, fixture.target);
    fixture.client = client_new(fixture.client_dir, fixture.client_paths);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    fx_client_free(fixture.client);
    echo_close(&fixture.echo, fixture.server);
    issuer_close(&fixture.old);
    issuer_close(&fixture.new);
    issuer_remove(fixture.folder);
    return 0;
}

static enum fx_code who(fx_client *client, char text[256]) {
    return echo_call(client, "/test.Echo/Who", 0, "", STEP_MS, text, 256);
}

/* Every call on the way succeeds, and one behind it. */
static void await_taken(uint64_t before) {
    struct fx_certs_state states[FX_CERTS_USES];
    char text[256];
    uint64_t end_ms = fx_clock_ms() + STEP_MS;
    do {
        assert_int_equal(who(fixture.client, text), FX_OK);
        fx_certs_states(states);
        assert_int_equal(states[FX_CERTS_GRPC].refused, 0);
        assert_true(fx_clock_ms() < end_ms);
    } while (states[FX_CERTS_GRPC].reloads == before);
    assert_int_equal(who(fixture.client, text), FX_OK);
}

static uint64_t reloads(void) {
    struct fx_certs_state states[FX_CERTS_USES];
    fx_certs_states(states);
    return states[FX_CERTS_GRPC].reloads;
}

/* -- calls that run -- */

struct running {
    pthread_t thread;
    _Atomic bool begun, go;
    uint32_t messages;
    enum fx_code code;
};

/* Reads three, then stands still until it may go on. */
static bool on_message(void *user, const void *message) {
    struct running *running = user;
    (void)message;
    running->messages++;
    if (running->messages < 3) return true;
    running->begun = true;
    while (!running->go)
        (void)usleep(2000);
    return true;
}

static void *run(void *user) {
    struct running *running = user;
    echo_request message = FRACTAL__V1__LIST_TENANTS_REQUEST__INIT;
    message.page_size = MESSAGES;
    message.page_token = (char *)(uintptr_t) "";
    fx_error err = {0};
    const struct fx_client_request request = {
        .method = "/test.Echo/Count",
        .message = &message,
        .reply = &fractal__v1__list_tenants_reply__descriptor,
        .deadline_ms = CALL_MS,
        .user = running,
        .on_message = on_message,
    };
    running->code = fx_client_stream_wait(fixture.client, &request, &err) ? FX_OK : err.code;
    return NULL;
}

static void begin(struct running *running) {
    assert_int_equal(pthread_create(&running->thread, NULL, run, running), 0);
    uint64_t end_ms = fx_clock_ms() + STEP_MS;
    while (!running->begun) {
        assert_true(fx_clock_ms() < end_ms);
        (void)usleep(2000);
    }
}

static void end(struct running *running) {
    running->go = true;
    assert_int_equal(pthread_join(running->thread, NULL), 0);
    assert_int_equal(running->code, FX_OK);
    assert_int_equal(running->messages, MESSAGES);
}

static void replace(const char *volume, const struct contents *contents) {
    uint64_t before = reloads();
    put(volume, contents);
    await_taken(before);
}

/* The order in which an authority is replaced: trusted, used, alone. A stream runs through it all.
 */
static void an_authority_gives_way(void **state) {
    const struct issuer *old = &fixture.old, *new = &fixture.new;
    struct running running = {0};
    char paths[3][256], text[256];
    (void)state;
    begin(&running);
    replace(fixture.server_dir, &(struct contents){old, old, new, "server"});
    replace(fixture.client_dir, &(struct contents){old, old, new, "one"});
    replace(fixture.server_dir, &(struct contents){new, old, new, "server"});
    replace(fixture.client_dir, &(struct contents){new, old, new, "one"});
    replace(fixture.server_dir, &(struct contents){new, new, NULL, "server"});
    replace(fixture.client_dir, &(struct contents){new, new, NULL, "one"});
    end(&running);
    /* A stranger now. */
    char volume[128];
    (void)snprintf(volume, sizeof volume, "%s/stranger", fixture.folder);
    put(volume, &(struct contents){old, new, NULL, "stranger"});
    fx_client *stranger = client_new(volume, paths);
    assert_int_equal(who(stranger, text), FX_UNAVAILABLE);
    fx_client_free(stranger);
}

/* A server that shows another authority's certificate is not believed, a client that does is not
 * let in, until the other side has it too. */
static void both_sides_check(void **state) {
    char paths[3][256], text[256], volume[128];
    (void)state;
    (void)snprintf(volume, sizeof volume, "%s/late", fixture.folder);
    put(volume, &(struct contents){&fixture.old, &fixture.old, NULL, "late"});
    fx_client *late = client_new(volume, paths);
    assert_int_equal(who(late, text), FX_UNAVAILABLE);
    uint64_t before = reloads();
    put(volume, &(struct contents){&fixture.new, &fixture.new, NULL, "late"});
    await_taken(before);
    assert_int_equal(who(late, text), FX_OK);
    fx_client_free(late);
}

/* -- who a client is -- */

static void the_name_changes(void **state) {
    char text[256], path[256];
    (void)state;
    uint64_t before = reloads();
    (void)issuer_in(fixture.client_dir, "..named", path);
    assert_int_equal(mkdir(path, 0700), 0);
    issuer_bundle(path, &fixture.new, NULL);
    issuer_issue(&fixture.new, path,
                 &(struct issue){"tls", "two", "DNS:worker-2.fractal", -HOUR, HOUR});
    issuer_swap(fixture.client_dir, "..named");
    await_taken(before);
    assert_int_equal(who(fixture.client, text), FX_OK);
    assert_non_null(strstr(text, " worker-2.fractal"));
}

/* -- a pair that is none -- */

static void a_wrong_pair_is_refused(void **state) {
    struct fx_certs_state states[FX_CERTS_USES];
    char path[256], text[256], paths[3][256];
    (void)state;
    fx_certs_states(states);
    uint64_t before = states[FX_CERTS_GRPC].refused;
    (void)issuer_in(fixture.server_dir, "..mixed", path);
    assert_int_equal(mkdir(path, 0700), 0);
    issuer_bundle(path, &fixture.new, NULL);
    issuer_issue(&fixture.new, path, &(struct issue){"tls", "a", "IP:127.0.0.1", -HOUR, HOUR});
    issuer_issue(&fixture.new, path, &(struct issue){"other", "b", "IP:127.0.0.1", -HOUR, HOUR});
    char from[256], to[256];
    assert_int_equal(rename(issuer_in(path, "other.key", from), issuer_in(path, "tls.key", to)), 0);
    issuer_swap(fixture.server_dir, "..mixed");
    uint64_t end_ms = fx_clock_ms() + STEP_MS;
    do {
        fx_certs_states(states);
        assert_true(fx_clock_ms() < end_ms);
        (void)usleep(5000);
    } while (states[FX_CERTS_GRPC].refused == before);
    /* New connections are served with what was there. */
    fx_client *fresh = client_new(fixture.client_dir, paths);
    assert_int_equal(who(fresh, text), FX_OK);
    fx_client_free(fresh);
    assert_int_equal(who(fixture.client, text), FX_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_authority_gives_way),
        cmocka_unit_test(both_sides_check),
        cmocka_unit_test(the_name_changes),
        cmocka_unit_test(a_wrong_pair_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
