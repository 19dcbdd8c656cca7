/* A program that only reads the clock, and tells when it could not: every pause of 20 µs or more, in nanoseconds, a line each.
 *
 *   pauses SECONDS
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SHORTEST = 20000, MOST = 1 << 20 };

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int count, char **given) {
    static int64_t seen[MOST];
    int many = 0;
    int64_t before = now(), end = before + (int64_t)((count > 1 ? atof(given[1]) : 1) * 1e9);
    while (before < end) {
        int64_t at = now();
        if (at - before >= SHORTEST && many < MOST) seen[many++] = at - before;
        before = at;
    }
    for (int i = 0; i < many; i++) printf("%ld\n", (long)seen[i]);
    return 0;
}
