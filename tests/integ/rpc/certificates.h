#pragma once
/* Certificates for tests, made at test time by openssl. */
#include "tests/fx_test.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Two authorities; certificates of a server and of clients of the first, one of which is over, a
 * client's of the second. */
static const char make_certificates[] =
    "set -e; cd \"$0\"; exec >/dev/null 2>&1\n"
    "for ca in ca other; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
    "-keyout $ca.key -out $ca.pem -days 2 -subj /CN=$ca; done\n"
    "issue() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key "
    "-out $1.csr -subj /CN=$1; echo \"$3\" > $1.ext; openssl x509 -req -in $1.csr -CA $2.pem "
    "-CAkey "
    "$2.key -CAcreateserial -out $1.pem -days ${4:-2} -extfile $1.ext; }\n"
    "issue server ca subjectAltName=DNS:localhost,IP:127.0.0.1\n"
    "issue worker ca subjectAltName=DNS:worker-7.fractal\n"
    "issue plain ca basicConstraints=CA:FALSE\n"
    "issue expired ca subjectAltName=DNS:worker-7.fractal -1\n"
    "issue stranger other subjectAltName=DNS:worker-7.fractal\n";

/* Runs a script with one argument; its exit status. What it says goes to `out`. A new program, so
 * that no gRPC runs in the child. */
static inline int shell(const char *script, const char *argument, char *out, size_t cap) {
    int log_fd = memfd_create("out", MFD_CLOEXEC), status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(log_fd, STDOUT_FILENO);
        (void)dup2(log_fd, STDERR_FILENO);
        execl("/bin/sh", "sh", "-c", script, argument, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    ssize_t len = pread(log_fd, out, cap - 1, 0);
    out[len > 0 ? len : 0] = '\0';
    (void)close(log_fd);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline void certificates_make(const char *folder) {
    char out[256];
    assert_int_equal(shell(make_certificates, folder, out, sizeof out), 0);
}
