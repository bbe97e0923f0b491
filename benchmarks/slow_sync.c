/* Makes every fsync and fdatasync slower by $SLOW_SYNC_US microseconds, as on a
 * laptop's disk. Preloaded into whole processes, so that both sides of a
 * comparison pay the same. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void wait_first(void)
{
    const char *given = getenv("SLOW_SYNC_US");
    long us = given ? atol(given) : 0;
    struct timespec rest = {us / 1000000, (us % 1000000) * 1000};
    while (us > 0 && nanosleep(&rest, &rest) != 0)
        ;
}

int fsync(int fd)
{
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    wait_first();
    return real(fd);
}

int fdatasync(int fd)
{
    static int (*real)(int);
    if (!real)
        real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    wait_first();
    return real(fd);
}
