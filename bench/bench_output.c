/*
 * bench_output.c - grep over a large artifact against `rg -j1 -n`, side by side.
 *
 *         bench_output [MiB [rounds]]        (256, 5)
 *
 * Makes a log in a temporary folder and runs ten patterns in interleaved rounds. Prints
 * one line of JSON: the medians in ms, their ratio for each pattern, and the geometric mean.
 * Matching lines are compared with rg's count; a difference fails the run.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "bench.h"
#include "output/grep.h"

extern char **environ;

struct trial {
        const char *name;
        const char *pattern;
        bool fold;
};

static const struct trial trials[] = {
    {"literal", "connection reset by peer", false},
    {"rare literal", "checksum mismatch in segment", false},
    {"literal, any case", "TIMEOUT EXCEEDED", true},
    {"common literal", "status=200", false},
    {"alternation", "FATAL|panic|segfault|oom-killer", false},
    {"alternation, any case", "exception|traceback|assertion failed", true},
    {"class", "[0-9a-f]{24}", false},
    {"anchored", "^2026-03-1[0-9]T", false},
    {"anchored end", "took [0-9]+ms$", false},
    {"ipv4", "\\b\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\b", false},
};

#define TRIALS (sizeof(trials) / sizeof(trials[0]))
#define ROUNDS_MAX 31

static double now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the file ---- */

static uint64_t draw(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

static int put_line(char *p, size_t room, uint64_t *state)
{
        static const char *const levels[] = {"INFO", "DEBUG", "INFO", "WARN", "INFO", "ERROR"};
        static const char *const parts[] = {
            "http.server", "db.pool", "cache", "auth", "worker.7", "scheduler", "ingest"};
        static const char *const says[] = {"request done", "loaded configuration from disk",
            "retrying after backoff", "queue length is within bounds", "session opened for user",
            "flushed 42 pages", "connection accepted"};
        uint64_t r = draw(state);
        uint64_t q = draw(state);
        int n = snprintf(p, room, "2026-%02u-%02uT%02u:%02u:%02u.%03uZ %s %s ",
            1 + (unsigned)(r % 12), 1 + (unsigned)(r >> 8) % 28, (unsigned)(r >> 16) % 24,
            (unsigned)(r >> 24) % 60, (unsigned)(r >> 32) % 60, (unsigned)(r >> 40) % 1000,
            levels[q % 6], parts[q / 8 % 7]);
        size_t left = room - (size_t)n;
        switch (q >> 16 & 31) {
        case 0:
        case 1:
        case 2:
                return n + snprintf(p + n, left, "client=%u.%u.%u.%u status=%u took %ums\n",
                               (unsigned)(r & 255), (unsigned)(r >> 9 & 255), (unsigned)(q & 255),
                               (unsigned)(q >> 9 & 255), (q & 64) ? 200u : 503u,
                               (unsigned)(q >> 32) % 900);
        case 3:
                return n + snprintf(p + n, left, "object %016llx%016llx stored\n",
                               (unsigned long long)r, (unsigned long long)q);
        case 4:
                if ((r & 1023) == 0)
                        return n + snprintf(p + n, left, "%s\n",
                                       r & 1024 ? "java.io.IOException: broken pipe"
                                                : "panic: runtime error: index out of range");
                break;
        case 5:
                if ((r & 4095) == 0)
                        return n + snprintf(p + n, left, "%s\n",
                                       r & 4096 ? "read: Connection reset by peer"
                                                : "upstream: Timeout exceeded, giving up");
                if ((r & 4095) == 1)
                        return n + snprintf(p + n, left, "read: connection reset by peer\n");
                break;
        default:
                break;
        }
        return n + snprintf(p + n, left, "%s id=%llu path=/srv/data/%x/%x\n",
                       says[q >> 24 & 7 ? (q >> 24) % 7 : 0], (unsigned long long)(r >> 20),
                       (unsigned)(q >> 40 & 0xFFF), (unsigned)(r & 0xFF));
}

static int make_file(const char *path, size_t size)
{
        uint64_t state = 0x9E3779B97F4A7C15u;
        size_t done = 0;
        static char block[1 << 16];
        FILE *f = fopen(path, "wb");
        if (!f)
                return -1;
        while (done < size) {
                size_t n = 0;
                while (n + 512 < sizeof(block))
                        n += (size_t)put_line(block + n, sizeof(block) - n, &state);
                if (fwrite(block, 1, n, f) != n)
                        break;
                done += n;
        }
        return fclose(f) == 0 && done >= size ? 0 : -1;
}

/* ---- both sides ---- */

static int read_file(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        const int *fd = ctx;
        (void)err;
        return fs_pread_all(fs_real(), *fd, p, n, (off_t)at) == (ssize_t)n ? 0 : STENO_EIO;
}

static double run_ours(const char *path, const struct trial *t, uint64_t *count)
{
        double began = now_ms();
        struct grep_result r;
        struct steno_error err = {0};
        struct grep_options opt = {
            .pattern = str_of(t->pattern), .utf8 = true, .case_sensitive = !t->fold};
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct grep_source source = {.file = {.read = read_file, .ctx = &fd}};
        struct map map = {0};
        source.file.size = (uint64_t)lseek(fd, 0, SEEK_END);
        if (fs_real()->map(fs_real(), fd, (size_t)source.file.size, &map) == 0)
                source.map = &map;
        if (grep_run(&source, &opt, &r, &err) < 0) {
                fprintf(stderr, "%s: %s\n", t->pattern, err.msg);
                exit(1);
        }
        *count = r.total_matches;
        grep_release(&r);
        map_close(&map);
        close(fd);
        return now_ms() - began;
}

/* With `out` NULL the output goes nowhere, as ours does. */
static double run_rg(const char *path, const struct trial *t, bool count, const char *out)
{
        double began = now_ms();
        const char *argv[] = {"rg", "--no-config", "-j1", count ? "-c" : "-n",
            t->fold ? "-i" : "-s", "-e", t->pattern, path, NULL};
        posix_spawn_file_actions_t files;
        pid_t pid;
        int status = 0;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(
            &files, 1, out ? out : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (posix_spawnp(&pid, "rg", &files, NULL, (char **)argv, environ) != 0) {
                fprintf(stderr, "rg is not here\n");
                exit(77);
        }
        waitpid(pid, &status, 0);
        posix_spawn_file_actions_destroy(&files);
        return now_ms() - began;
}

static uint64_t count_rg(const char *path, const struct trial *t, const char *out)
{
        unsigned long long n = 0;
        run_rg(path, t, true, out);
        FILE *f = fopen(out, "rb");
        if (f && fscanf(f, "%llu", &n) != 1)
                n = 0;
        if (f)
                fclose(f);
        return n;
}

/* The n-th root, by halving: the one call that would need libm. */
static double root(double x, size_t n)
{
        double low = 0, high = x > 1 ? x : 1;
        for (int i = 0; i < 200; i++) {
                double mid = (low + high) / 2;
                double power = 1;
                for (size_t k = 0; k < n; k++)
                        power *= mid;
                if (power > x)
                        high = mid;
                else
                        low = mid;
        }
        return low;
}

int main(int argc, char **argv)
{
        size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 256;
        size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
        static double ours[TRIALS][ROUNDS_MAX], theirs[TRIALS][ROUNDS_MAX];
        char dir[] = "/tmp/bench_output.XXXXXX";
        char path[64], answer[64];
        double product = 1;
        double worst = 0;
        int failed = 0;
        if (rounds < 1 || rounds > ROUNDS_MAX || !mkdtemp(dir))
                return 1;
        snprintf(path, sizeof(path), "%s/log", dir);
        snprintf(answer, sizeof(answer), "%s/count", dir);
        if (make_file(path, mib << 20) < 0)
                return 1;
        for (size_t r = 0; r < rounds; r++) {
                for (size_t i = 0; i < TRIALS; i++) {
                        uint64_t count = 0;
                        ours[i][r] = run_ours(path, &trials[i], &count);
                        theirs[i][r] = run_rg(path, &trials[i], false, NULL);
                        if (r == 0 && count != count_rg(path, &trials[i], answer)) {
                                fprintf(stderr, "%s: %llu matches, rg disagrees\n", trials[i].name,
                                    (unsigned long long)count);
                                failed = 1;
                        }
                }
        }
        printf("{\"bench\":\"output\",\"mib\":%zu,\"rounds\":%zu,\"patterns\":[", mib, rounds);
        for (size_t i = 0; i < TRIALS; i++) {
                double a = median(ours[i], rounds);
                double b = median(theirs[i], rounds);
                product *= a / b;
                worst = a / b > worst ? a / b : worst;
                printf("%s{\"name\":\"%s\",\"ms\":%.1f,\"rg_ms\":%.1f,\"ratio\":%.2f}",
                    i ? "," : "", trials[i].name, a, b, a / b);
        }
        printf("],\"geomean_ratio\":%.2f,\"worst_ratio\":%.2f}\n", root(product, TRIALS), worst);
        unlink(path);
        unlink(answer);
        rmdir(dir);
        return failed;
}
