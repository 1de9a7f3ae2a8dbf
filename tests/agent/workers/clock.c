/* A wall clock that can be set without setting the machine's: preloaded into a program, it adds the seconds in the file that
   FOLDPLANE_TEST_CLOCK names to CLOCK_REALTIME, and leaves every other clock as it is. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    long outcome = syscall(SYS_clock_gettime, clock, now);
    const char *path = getenv("FOLDPLANE_TEST_CLOCK");
    if (outcome == 0 && clock == CLOCK_REALTIME && path != NULL) {
        FILE *file = fopen(path, "r");
        long seconds = 0;
        if (file != NULL) {
            if (fscanf(file, "%ld", &seconds) == 1)
                now->tv_sec += seconds;
            fclose(file);
        }
    }
    return (int)outcome;
}
