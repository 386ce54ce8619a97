/* Preloaded into services by a test: a program's wall clock (CLOCK_REALTIME, and what wakes up by
 * it) is off by what the file $CLOCK_SHIFT/PROGRAM holds, an int64_t of seconds. The file is
 * mapped: the test sets the clock by writing to it. The monotonic clock is the machine's. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_NS = 20 * 1000 * 1000, NS = 1000 * 1000 * 1000 };

static const volatile int64_t *shift;

/* Without libc's own wrappers, which are ours here. */
static long raw(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static long with_errno(long result) {
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

__attribute__((constructor)) static void open_shift(void) {
    static const int64_t none;
    const char *folder = getenv("CLOCK_SHIFT");
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder ? folder : "", program_invocation_short_name);
    int fd = folder ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof *shift, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    shift = map == MAP_FAILED ? &none : map;
    if (fd >= 0) (void)close(fd);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    int result = (int)with_errno(raw(SYS_clock_gettime, clock, (long)out, 0, 0, 0, 0));
    if (result == 0 && shift && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += *shift;
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

/* -- what sleeps until a time of that clock: as the kernel does, it looks at the clock as it is --
 */

static int64_t left_ns(const struct timespec *until) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)(until->tv_sec - now.tv_sec) * NS + until->tv_nsec - now.tv_nsec;
}

static struct timespec in_ns(int64_t ns) {
    struct timespec at;
    (void)raw(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&at, 0, 0, 0, 0);
    ns += at.tv_nsec;
    return (struct timespec){at.tv_sec + ns / NS, ns % NS};
}

static long futex_until(uint32_t *word, long op, long value, const struct timespec *until,
                        long mask) {
    for (;;) {
        int64_t ns = left_ns(until);
        if (ns <= 0) return -ETIMEDOUT;
        struct timespec slice = in_ns(ns < SLICE_NS ? ns : SLICE_NS);
        long result = raw(SYS_futex, (long)word, op & ~(long)FUTEX_CLOCK_REALTIME, value,
                          (long)&slice, 0, mask);
        if (result != -ETIMEDOUT) return result;
    }
}

long syscall(long number, ...) {
    long args[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_futex && args[3] &&
        (args[1] & ~(long)FUTEX_PRIVATE_FLAG) == (FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME))
        return with_errno(futex_until((uint32_t *)args[0], args[1], args[2],
                                      (const struct timespec *)args[3], args[5]));
    return with_errno(raw(number, args[0], args[1], args[2], args[3], args[4], args[5]));
}
