/* The README's console lines print what the README shows, ids and times apart. */
#include <sys/stat.h>
#include "tests/e2e/suite.h"

#define FENCE "\n```console\n"
enum { TEXT_MAX = 16384, RUN_MS = 60000, EXAMPLES_MIN = 6, ID_DIGITS = 40 };

/* -- the README -- */

static char *readme(void) {
    FILE *file = fopen(FX_SOURCE_DIR "/README.md", "rbe");
    struct stat stat_;
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &stat_), 0);
    char *text = calloc((size_t)stat_.st_size + 1, 1);
    assert_non_null(text);
    assert_int_equal(fread(text, (size_t)stat_.st_size, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* A `$ ` line and what stands below it. */
struct example {
    char command[TEXT_MAX], want[TEXT_MAX];
};

/* The example at `at`, which begins with "$ "; where the next one begins. */
static const char *example_read(const char *at, struct example *out) {
    const char *end = strchrnul(at, '\n'), *next = strstr(end, "\n$ ");
    assert_int_equal(strncmp(at, "$ ", 2), 0);
    next = next ? next + 1 : strchr(end, 0);
    int command = (int)(end - at) - 2, want = (int)(next - end);
    assert_true(command < TEXT_MAX && want < TEXT_MAX);
    (void)snprintf(out->command, TEXT_MAX, "%.*s", command, at + 2);
    (void)snprintf(out->want, TEXT_MAX, "%.*s", want, end);
    return next;
}

/* -- what may differ -- */

static void append(char *out, size_t *len, const char *text, size_t count) {
    assert_true(*len + count < TEXT_MAX);
    memcpy(out + *len, text, count);
    *len += count;
    out[*len] = 0;
}

/* How long a time or an id is at `at`, and what stands in its place; 0: it is none. */
static size_t changing(const char *at, const char **instead) {
    static const char created[] = "\"created\":", id[] = "cmpl-";
    if (strncmp(at, created, sizeof created - 1) == 0) {
        *instead = "\"created\":0";
        return sizeof created - 1 + strspn(at + sizeof created - 1, "0123456789");
    }
    *instead = "cmpl-0";
    bool is_id = strncmp(at, id, sizeof id - 1) == 0 &&
                 strspn(at + sizeof id - 1, "0123456789abcdef") == ID_DIGITS;
    return is_id ? sizeof id - 1 + ID_DIGITS : 0;
}

/* Times and ids are 0; no space around. */
static const char *plain(const char *text, char out[TEXT_MAX]) {
    static const char space[] = " \t\r\n";
    size_t len = 0;
    *out = 0;
    text += strspn(text, space);
    while (*text) {
        const char *instead;
        size_t skip = changing(text, &instead);
        append(out, &len, skip ? instead : text, skip ? strlen(instead) : 1);
        text += skip ? skip : 1;
    }
    while (len && strchr(space, out[len - 1]))
        out[--len] = 0;
    return out;
}

/* -- the test -- */

/* The command with the suite's own port, behind the lines that set variables. */
static void command_make(const struct suite *suite, const char *setup, const char *command,
                         char out[TEXT_MAX]) {
    static const char port[] = "localhost:5000";
    char own[32];
    size_t len = 0;
    *out = 0;
    (void)snprintf(own, sizeof own, "127.0.0.1:%u", suite->gateways[0].port);
    append(out, &len, setup, strlen(setup));
    for (const char *at; (at = strstr(command, port)); command = at + sizeof port - 1) {
        append(out, &len, command, (size_t)(at - command));
        append(out, &len, own, strlen(own));
    }
    append(out, &len, command, strlen(command));
}

/* False: it shows no output, and sets a variable for the lines below. */
static bool example_check(const struct suite *suite, const struct example *example,
                          char setup[TEXT_MAX]) {
    static char command[TEXT_MAX], want[TEXT_MAX], got[TEXT_MAX];
    if (!*plain(example->want, want)) {
        size_t len = strlen(setup);
        append(setup, &len, example->command, strlen(example->command));
        append(setup, &len, "\n", 1);
        return false;
    }
    command_make(suite, setup, example->command, command);
    auto_output said = process_run(&(struct process_opts){.args = WORDS("sh", "-c", command),
                                                          .env = &suite->env,
                                                          .folder = suite->folder},
                                   RUN_MS);
    if (strcmp(plain(said.out, got), want) != 0)
        fail_msg("%s\nprints %s\nthe README shows %s", example->command, got, want);
    return true;
}

/* Where `./fractal up` leaves it. */
static void key_write(const struct suite *suite) {
    char path[128];
    (void)snprintf(path, sizeof path, "%s/.fractal", suite->folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/.fractal/api-key", suite->folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fprintf(file, "%s\n", suite->key) > 0);
    assert_int_equal(fclose(file), 0);
}

static void every_line_prints_what_it_shows(void **state) {
    static struct example example;
    static char setup[TEXT_MAX];
    uint32_t count = 0;
    auto_text text = readme();
    key_write(*state);
    for (char *block = text, *end; (block = strstr(block, FENCE)); block = end + 1) {
        block += sizeof FENCE - 1;
        end = strstr(block, "\n```");
        assert_non_null(end);
        *end = 0;
        for (const char *at = block; *at;) {
            at = example_read(at, &example);
            count += example_check(*state, &example, setup);
        }
    }
    assert_true(count >= EXAMPLES_MIN);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_line_prints_what_it_shows)};
    return suite_main("readme", tests, FX_TEST_COUNT(tests), &(struct suite_opts){0});
}
