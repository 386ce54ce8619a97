/* examples/c: the program a stranger would begin with, run against a
 * gateway. */
#include <fcntl.h>
#include <sys/wait.h>
#include "tests/integ/gateway/stage.h"

enum { OUT_MAX = 4096 };

struct ran {
    int code;
    char out[OUT_MAX], err[OUT_MAX];
};

static void file_read(FILE *file, char out[OUT_MAX]) {
    rewind(file);
    out[fread(out, 1, OUT_MAX - 1, file)] = 0;
    (void)fclose(file);
}

static void run(struct stage *stage, const char *key, const char *text, struct ran *ran) {
    char address[32], key_file[] = "/tmp/fx-key-XXXXXX";
    FILE *out = tmpfile(), *err = tmpfile();
    int status, fd = mkstemp(key_file);
    assert_true(fd >= 0 && write(fd, key, strlen(key)) == (ssize_t)strlen(key));
    close(fd);
    (void)snprintf(address, sizeof address, "127.0.0.1:%u", gw_process_rpc_port(stage->process));
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(fileno(out), STDOUT_FILENO);
        (void)dup2(fileno(err), STDERR_FILENO);
        (void)execl(FX_BIN_DIR "/fractal-example-chat", "chat", address, key_file, STAGE_MODEL,
                    text, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(unlink(key_file), 0);
    assert_true(WIFEXITED(status));
    ran->code = WEXITSTATUS(status);
    file_read(out, ran->out);
    file_read(err, ran->err);
}

static void test_answer(void **state) {
    struct ran ran;
    run(*state, STAGE_KEY "\n", "hi", &ran);
    if (ran.code) fail_msg("%s", ran.err);
    assert_string_equal(ran.out, "Hello\n");
    assert_string_equal(ran.err, "3 tokens asked, 5 answered, each 61% likely\n");
}

static void test_refused(void **state) {
    struct ran ran;
    run(*state, "fx-bad", "hi", &ran);
    assert_int_equal(ran.code, 1);
    assert_string_equal(ran.out, "");
    assert_string_equal(ran.err, "UNAUTHENTICATED: the API key is not valid\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_answer, stage_setup, stage_teardown),
        cmocka_unit_test_setup_teardown(test_refused, stage_setup, stage_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
