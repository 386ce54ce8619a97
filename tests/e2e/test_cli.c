/* The compiled CLI against a whole suite with f16 weights: the oracle's own words, keys, Ctrl-C. */
#include <signal.h>
#include "tests/e2e/suite.h"

enum { PROMPTS = 5, CHAT_MS = 60000, STEP_MS = 10000, BEGIN_US = 300000, CANCEL_MS = 2000 };

/* What stands before the first of `end`. */
static void copy_until(const char *text, const char *end, char *out, size_t cap) {
    (void)snprintf(out, cap, "%.*s", (int)strcspn(text, end), text);
}

static void assert_says(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("no '%s' in: %s", part, text);
}

/* -- answers -- */

static void assert_oracle(struct suite *suite, const json_t *prompt) {
    const char *text = json_string_value(json_object_get(prompt, "text"));
    const char *want = json_string_value(json_object_get(prompt, "greedy_text"));
    char line[4096];
    assert_true(text && want && *want);
    bool ends = want[strlen(want) - 1] == '\n';
    (void)snprintf(line, sizeof line, "%s%s", want, ends ? "" : "\n");
    auto_output said =
        suite_cli(suite, WORDS("chat", "--temperature", "0", "--max-tokens", "128", text));
    assert_int_equal(said.code, 0);
    assert_string_equal(said.out, line);
    assert_string_equal(said.err, "");
}

static void chat_says_what_the_oracle_says(void **state) {
    auto_json oracle = json_load_file(SUITE_MODEL_DIR "/oracle.json", 0, NULL);
    json_t *prompts = json_object_get(oracle, "prompts"), *prompt;
    size_t i;
    assert_int_equal(json_array_size(prompts), PROMPTS);
    json_array_foreach(prompts, i, prompt) assert_oracle(*state, prompt);
}

static char *with_seed(struct suite *suite, const char *seed) {
    return suite_cli_ok(suite, WORDS("chat", "--seed", seed, "--temperature", "0.8", "Call me"));
}

static void a_seed_repeats(void **state) {
    auto_text first = with_seed(*state, "7");
    auto_text again = with_seed(*state, "7");
    auto_text other = with_seed(*state, "8");
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
}

static void models_are_listed(void **state) {
    char words[6][32], name[32], dtype[32];
    int end = 0;
    auto_text said = suite_cli_ok(*state, WORDS("models"));
    assert_int_equal(sscanf(said, "%31s %31s %31s %31s %31s %31s%n", words[0], words[1], words[2],
                            words[3], words[4], words[5], &end),
                     6);
    static const char *const head[] = {"NAME", "DTYPE", "SIZE", "CONTEXT", "IMPORTED", "VERSION"};
    for (size_t i = 0; i < FX_TEST_COUNT(head); i++)
        assert_string_equal(words[i], head[i]);
    assert_int_equal(strspn(said + end, " "), strcspn(said + end, "\n")); /* nothing behind */
    const char *row = strchr(said, '\n') + 1;
    assert_int_equal(sscanf(row, "%31s %31s", name, dtype), 2);
    assert_string_equal(name, SUITE_MODEL);
    assert_string_equal(dtype, "f16");
    assert_string_equal(strchr(row, '\n'), "\n"); /* and no other */
}

/* -- keys -- */

static struct output ask_with(struct suite *suite, const char *key) {
    struct process_env env = suite_cli_env(suite);
    process_env_put(&env, "FX_API_KEY=%s", key);
    const struct process_opts opts = {
        .args = WORDS(FX_BIN_DIR "/fractal-cli", "chat", "--max-tokens", "4", "hello"),
        .env = &env};
    return process_run(&opts, CHAT_MS);
}

static bool is_refused(struct suite *suite, const char *key) {
    auto_output said = ask_with(suite, key);
    if (said.code == 0) return false;
    assert_says(said.err, "HTTP 401");
    assert_says(said.err, "./fractal keys create");
    return true;
}

static void assert_key_is(struct suite *suite, const char *id, const char *state) {
    char row[64];
    auto_text listed = suite_cli_ok(suite, WORDS("keys", "list", "--tenant", "acme"));
    (void)snprintf(row, sizeof row, "%s  %s", id, state);
    assert_says(listed, row);
}

static void a_revoked_key_is_refused(void **state) {
    struct suite *suite = *state;
    char key[SUITE_KEY_MAX], id[32];
    free(suite_cli_ok(suite, WORDS("tenants", "create", "acme", "--weight", "2")));
    auto_output made =
        suite_cli(suite, WORDS("keys", "create", "--tenant", "acme", "--label", "for a test"));
    assert_int_equal(made.code, 0);
    copy_until(made.out, "\n", key, sizeof key);
    assert_int_equal(sscanf(made.err, "%*s %*s %31[^, \n]", id), 1); /* the third word */
    auto_output answered = ask_with(suite, key);
    assert_int_equal(answered.code, 0);
    assert_key_is(suite, id, "active");
    free(suite_cli_ok(suite, WORDS("keys", "revoke", id)));
    assert_key_is(suite, id, "revoked");
    WAIT_FOR(is_refused(suite, key), STEP_MS, "the key still works");
}

/* -- Ctrl-C -- */

/* A chat that waits for its first word is interrupted. */
static void interrupt(struct suite *suite) {
    struct process chat;
    struct process_env env = suite_cli_env(suite);
    const struct process_opts opts = {
        .args = WORDS(FX_BIN_DIR "/fractal-cli", "chat", "--max-tokens", "900", "Call me"),
        .env = &env,
        .apart = true};
    process_start(&chat, "chat", &opts);
    (void)usleep(BEGIN_US);
    process_signal(&chat, SIGINT);
    bool ended = process_wait(&chat, CANCEL_MS);
    auto_text said = process_text(chat.err);
    int code = chat.code;
    process_close(&chat);
    assert_true(ended);
    assert_int_equal(code, 130);
    assert_says(said, "cancelled");
}

static void ctrl_c_cancels(void **state) {
    struct suite *suite = *state;
    struct service *worker = &suite->workers[0];
    process_signal(&worker->process, SIGSTOP); /* nothing is finished meanwhile */
    interrupt(suite);
    process_signal(&worker->process, SIGCONT);
    WAIT_FOR(worker_is_free(worker), STEP_MS, "slots or KV blocks stay taken");
}

/* A failed ctrl_c_cancels may have left it frozen. */
static int wake(void **state) {
    process_signal(&((struct suite *)*state)->workers[0].process, SIGCONT);
    return 0;
}

/* -- failures -- */

static void assert_fails(struct suite *suite, const char *const *args, const char *says) {
    auto_output done = suite_cli(suite, args);
    assert_int_equal(done.code, 1);
    assert_says(done.err, says);
}

static void failures_name_the_remedy(void **state) {
    struct suite *suite = *state;
    assert_fails(suite, WORDS("chat", "--model", "nope", "x"), "HTTP 404");
    assert_fails(suite, WORDS("chat", "--model", "nope", "x"), "./fractal models");
    assert_fails(suite, WORDS("import", suite->folder, "--name", "x"), "config.json");
    assert_fails(suite, WORDS("keys", "create", "--tenant", "nobody"), "no tenant 'nobody'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chat_says_what_the_oracle_says),
        cmocka_unit_test(a_seed_repeats),
        cmocka_unit_test(models_are_listed),
        cmocka_unit_test(a_revoked_key_is_refused),
        cmocka_unit_test_teardown(ctrl_c_cancels, wake),
        cmocka_unit_test(failures_name_the_remedy),
    };
    return suite_main("cli", tests, FX_TEST_COUNT(tests), &(struct suite_opts){.dtype = "f16"});
}
