/* Preloaded into redis-server by a test: while the file that FX_SLOW_FSYNC names exists, the next
 * fdatasync takes it away and 5 s. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STALL_S = 5 };

int fdatasync(int fd);

int fdatasync(int fd) {
    const char *file = getenv("FX_SLOW_FSYNC");
    if (file && unlink(file) == 0) (void)sleep(STALL_S);
    return (int)syscall(SYS_fdatasync, fd);
}
