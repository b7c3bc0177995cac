/* fsync and fdatasync that take a millisecond more. */
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_a_millisecond(void) {
    struct timespec rest = {0, 1000000};
    while (nanosleep(&rest, &rest) != 0) {
    }
}

int fsync(int fd) {
    wait_a_millisecond();
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    wait_a_millisecond();
    return (int)syscall(SYS_fdatasync, fd);
}
