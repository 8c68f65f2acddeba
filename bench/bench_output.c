/*
 * bench_output.c - grep over a large artifact against `rg -n`, with -j1 and with all cores.
 *
 *         bench_output [MiB [rounds]]        (256, 5)
 *
 * Makes four logs in a temporary folder (plain, with characters beyond ASCII, with lines of 100
 * KB, of an application with stack traces and JSON) and runs thirty patterns in interleaved rounds.
 * Prints one line of JSON: for each pattern the medians of wall-clock and processor time in ms, of
 * both and of ours with PCRE2 alone, their ratios, the worst of each and the geometric mean.
 * `ratio` is wall-clock time against -j1, `cpu_ratio` processor time (user and system), with the
 * least and the most of the rounds beside it, `all_ratio` wall-clock time against all cores. The
 * same as a table for people goes to standard error. Matching lines are compared with rg's count; a
 * difference fails the run.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "bench.h"
#include "output/grep.h"
#include "output/lines.h"

extern char **environ;

enum text { PLAIN, MIXED, LONG, TRACES };
#define TEXTS 4

struct trial {
        const char *name;
        const char *pattern;
        bool fold;
        enum text text;
};

static const struct trial trials[] = {
    {"literal", "connection reset by peer", false, PLAIN},
    {"rare literal", "checksum mismatch in segment", false, PLAIN},
    {"literal, any case", "TIMEOUT EXCEEDED", true, PLAIN},
    {"common literal", "status=200", false, PLAIN},
    {"alternation", "FATAL|panic|segfault|oom-killer", false, PLAIN},
    {"alternation, any case", "exception|traceback|assertion failed", true, PLAIN},
    {"class", "[0-9a-f]{24}", false, PLAIN},
    {"anchored", "^2026-03-1[0-9]T", false, PLAIN},
    {"anchored end", "took [0-9]+ms$", false, PLAIN},
    {"ipv4", "\\b\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\b", false, PLAIN},
    {"field, anchored", "^\\S+ (?:ERROR|FATAL) db", false, PLAIN},
    {"words, no match", "\\b[A-Z]{6,}\\b", false, PLAIN},
    {"two words, any case", "(?:error|warn).*cache", true, PLAIN},
    {"no literal, any case", "[a-f]{5}[0-9]{3}z", true, PLAIN},
    {"most lines", "id=\\d+", false, PLAIN},
    {"path at the end", "/[0-9a-f]{3}/f[0-9a-f]$", false, PLAIN},
    {"Unicode literal, any case",
        "gr\xC3\xB6\xC3\x9F"
        "e",
        true, MIXED},
    {"Unicode words", "\\w+\xE9\x8C\xAF\xE8\xAA\xA4\\s\\d{4}", false, MIXED},
    {"Cyrillic, any case", "\xD0\x9E\xD0\xA8\xD0\x98\xD0\x91\xD0\x9A\xD0\x90 [0-9]+", true, MIXED},
    {"long lines", "\"code\":5[0-9]{2},\"id\":[0-9]+7,", false, LONG},
    {"time of day", "T0[3-5]:\\d{2}:\\d{2}\\.\\d{3}Z", false, TRACES},
    {"hex address", "0x[0-9a-f]{8,16}", false, TRACES},
    {"stack frame", "^\\s+at \\S+\\(\\w+\\.java:\\d+\\)", false, TRACES},
    {"path and line", "[\\w./-]+\\.(?:c|h|py|ts):\\d+(?::\\d+)?", false, TRACES},
    {"whole word", "\\btimeout\\b", true, TRACES},
    {"URL", "https?://[^\\s\"<>]+", false, TRACES},
    {"quoted string", "\"[^\"]*refused[^\"]*\"", false, TRACES},
    {"JSON field", "\"status\":\\s*5\\d\\d", false, TRACES},
    {"levels", "\\[(?:WARN|ERROR|FATAL)\\]", false, TRACES},
    {"one word and another", "retry.*upstream", false, TRACES},
};

#define TRIALS (sizeof(trials) / sizeof(trials[0]))
#define ROUNDS_MAX 31

struct spent {
        double wall; /* ms */
        double cpu;
};

static double ms_of(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct spent clocks(void)
{
        return (struct spent){ms_of(CLOCK_MONOTONIC), ms_of(CLOCK_PROCESS_CPUTIME_ID)};
}

/* ---- the file ---- */

struct log {
        char path[64];
        struct buf index; /* the index of its lines, as the store writes it for each output */
};

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

/* Sometimes a line with text beyond ASCII. */
static int put_mixed(char *p, size_t room, uint64_t *state)
{
        static const char *const says[] = {"Gr\xC3\xB6\xC3\x9F"
                                           "e ge\xC3\xA4ndert",
            "\xE6\x9C\x8D\xE5\x8A\xA1\xE9\x94\x99\xE8\xAF\xAF", "caf\xC3\xA9 ouvert",
            "\xD0\xBE\xD1\x88\xD0\xB8\xD0\xB1\xD0\xBA\xD0\xB0 "
            "\xD1\x87\xD1\x82\xD0\xB5\xD0\xBD\xD0\xB8\xD1\x8F",
            "\xE9\x8C\xAF\xE8\xAA\xA4 4711", "na\xC3\xAFve r\xC3\xA9sum\xC3\xA9"};
        uint64_t r = draw(state);
        if (r & 7)
                return put_line(p, room, state);
        return snprintf(p, room, "2026-03-01T10:00:00.000Z INFO text %s %u\n", says[r / 8 % 6],
            (unsigned)(r >> 40));
}

/* A line of JSON of 100 KB. */
static int put_long(char *p, size_t room, uint64_t *state)
{
        int n = 0;
        while (n < 100000 && (size_t)n + 256 < room) {
                uint64_t r = draw(state);
                n += snprintf(p + n, room - (size_t)n,
                    "{\"code\":%u,\"id\":%u,\"name\":\"item %x\",\"tags\":[\"a\",\"b\"]},",
                    r % 1024 ? 200u : 503u, (unsigned)(r >> 20 & 0xFFFFF), (unsigned)(r >> 44));
        }
        p[n++] = '\n';
        return n;
}

/* What applications write: requests as JSON, stack traces, addresses, messages of compilers. */
static int put_trace(char *p, size_t room, uint64_t *state)
{
        static const char *const levels[] = {"INFO", "DEBUG", "INFO", "INFO", "DEBUG", "INFO",
            "INFO", "TRACE", "INFO", "INFO", "DEBUG", "INFO", "WARN", "INFO", "INFO", "ERROR"};
        static const char *const says[] = {"starting job", "retry scheduled", "cache refreshed",
            "waiting for upstream", "session closed", "config reloaded", "lease renewed",
            "batch written"};
        uint64_t r = draw(state);
        uint64_t q = draw(state);
        unsigned kind = (unsigned)(q >> 16 & 63);
        if (kind < 3)
                return snprintf(p, room, "    at com.example.%s.Handler%u.run(Handler%u.java:%u)\n",
                    kind ? "store" : "http", (unsigned)(r & 15), (unsigned)(r & 15),
                    (unsigned)(r >> 8 & 1023));
        int n = snprintf(p, room,
            "2026-03-%02uT%02u:%02u:%02u.%03uZ [%s] svc-%u: ", 1 + (unsigned)(r >> 8) % 28,
            (unsigned)(r >> 16) % 24, (unsigned)(r >> 24) % 60, (unsigned)(r >> 32) % 60,
            (unsigned)(r >> 40) % 1000, levels[q & 15], (unsigned)(q >> 4 & 7));
        char *to = p + n;
        size_t left = room - (size_t)n;
        switch (kind) {
        case 3:
                return n + snprintf(to, left, "mapped segment at 0x%012llx size=%u\n",
                               (unsigned long long)(r >> 16), (unsigned)(q >> 40 & 0xFFFF));
        case 4:
                return n + snprintf(to, left, "src/%s/part_%u.%s:%u:%u: note: in expansion\n",
                               q & 1024 ? "store" : "net", (unsigned)(r & 63), q & 2048 ? "c" : "h",
                               (unsigned)(r >> 8 & 2047), (unsigned)(r >> 20 & 63));
        case 5:
                return n + snprintf(to, left, "GET https://api.example.com/v1/items/%u?page=%u\n",
                               (unsigned)(r & 0xFFFFF), (unsigned)(r >> 20 & 31));
        case 6:
                return n + snprintf(to, left, "dial failed: \"%s%u:443\"\n",
                               r & 7 ? "no route to 10.0.0." : "connection refused by 10.0.0.",
                               (unsigned)(r >> 8 & 255));
        case 7:
                return n + snprintf(to, left, "retry %u of 5 for upstream pool-%u%s\n",
                               (unsigned)(r & 3) + 1, (unsigned)(r >> 8 & 15),
                               r & 0xE0 ? "" : " after timeout");
        default:
                break;
        }
        if (kind < 24)
                return n + snprintf(to, left,
                               "{\"method\":\"GET\",\"status\": %u,\"ms\":%u,\"user\":\"u%x\"}\n",
                               r & 31 ? 200u : 503u, (unsigned)(q >> 32) % 900,
                               (unsigned)(q >> 40 & 0xFFFF));
        return n + snprintf(to, left, "%s id=%llu shard=%u\n", says[q >> 24 & 7],
                       (unsigned long long)(r >> 24), (unsigned)(q >> 40 & 255));
}

static int make_file(struct log *log, enum text text, size_t size)
{
        static int (*const put[TEXTS])(char *, size_t, uint64_t *) = {
            put_line, put_mixed, put_long, put_trace};
        size_t longest = text == LONG ? 110000 : 512;
        uint64_t state = 0x9E3779B97F4A7C15u;
        size_t done = 0;
        static char block[1 << 18];
        struct lines_writer lines;
        FILE *f = fopen(log->path, "wb");
        if (!f)
                return -1;
        buf_init(&log->index, 0);
        lines_writer_init(&lines, &log->index);
        while (done < size) {
                size_t n = 0;
                while (n + longest < sizeof(block))
                        n += (size_t)put[text](block + n, sizeof(block) - n, &state);
                if (fwrite(block, 1, n, f) != n)
                        break;
                lines_writer_feed(&lines, block, n);
                done += n;
        }
        lines_writer_finish(&lines);
        return fclose(f) == 0 && done >= size ? 0 : -1;
}

/* ---- grep and rg ---- */

static int read_file(void *ctx, uint64_t at, void *p, size_t n, struct steno_error *err)
{
        const int *fd = ctx;
        (void)err;
        return fs_pread_all(fs_real(), *fd, p, n, (off_t)at) == (ssize_t)n ? 0 : STENO_EIO;
}

static struct spent since(struct spent began)
{
        struct spent t = clocks();
        return (struct spent){t.wall - began.wall, t.cpu - began.cpu};
}

static struct spent run_ours(
    const struct log *log, const struct trial *t, enum grep_engines engines, uint64_t *count)
{
        struct spent began = clocks();
        struct grep_result r;
        struct steno_error err = {0};
        struct grep_options opt = {.pattern = str_of(t->pattern),
            .engines = engines,
            .utf8 = true,
            .case_sensitive = !t->fold,
            .max_bytes = 12288};
        int fd = open(log->path, O_RDONLY | O_CLOEXEC);
        struct grep_source source = {.file = {.read = read_file, .ctx = &fd}};
        struct lines_index known;
        source.file.size = (uint64_t)lseek(fd, 0, SEEK_END);
        if (lines_index_open(&known, log->index.p, log->index.n, source.file.size))
                source.index = &known;
        if (grep_run(&source, &opt, &r, &err) < 0) {
                fprintf(stderr, "%s: %s\n", t->pattern, err.msg);
                exit(1);
        }
        *count = r.total_matches;
        grep_release(&r);
        close(fd);
        return since(began);
}

/* If `out` is NULL, the output is discarded, as grep's own is. `mode` is -n or -c. */
static struct spent run_rg(
    const char *path, const struct trial *t, const char *threads, const char *mode, const char *out)
{
        struct spent began = clocks();
        const char *argv[] = {"rg", "--no-config", threads, mode, t->fold ? "-i" : "-s", "-e",
            t->pattern, path, NULL};
        posix_spawn_file_actions_t files;
        struct rusage used = {0};
        pid_t pid;
        int status = 0;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(
            &files, 1, out ? out : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (posix_spawnp(&pid, "rg", &files, NULL, (char **)argv, environ) != 0) {
                fprintf(stderr, "rg is not here\n");
                exit(77);
        }
        wait4(pid, &status, 0, &used);
        posix_spawn_file_actions_destroy(&files);
        struct spent t1 = since(began);
        t1.cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
        return t1;
}

static uint64_t count_rg(const char *path, const struct trial *t, const char *out)
{
        unsigned long long n = 0;
        run_rg(path, t, "-j1", "-c", out);
        FILE *f = fopen(out, "rb");
        if (f && fscanf(f, "%llu", &n) != 1)
                n = 0;
        if (f)
                fclose(f);
        return n;
}

/* The n-th root, by bisection: this is the only call that would need libm. */
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

/* ---- rounds ---- */

enum side { OURS, PCRE2_ALONE, RG_ONE, RG_ALL, SIDES };

struct rounds {
        double wall[SIDES][ROUNDS_MAX];
        double cpu[SIDES][ROUNDS_MAX];
};

static void keep(struct rounds *t, enum side side, size_t round, struct spent spent)
{
        t->wall[side][round] = spent.wall;
        t->cpu[side][round] = spent.cpu;
}

/* Runs each once; false if the counts differ. */
static bool run_round(const struct log *log, const char *answer, const struct trial *t,
    struct rounds *all, size_t round)
{
        uint64_t count = 0;
        uint64_t alone = 0;
        keep(all, OURS, round, run_ours(log, t, GREP_FASTEST, &count));
        keep(all, RG_ONE, round, run_rg(log->path, t, "-j1", "-n", NULL));
        keep(all, PCRE2_ALONE, round, run_ours(log, t, GREP_ONLY_PCRE2, &alone));
        keep(all, RG_ALL, round, run_rg(log->path, t, "-j0", "-n", NULL));
        uint64_t theirs = round == 0 ? count_rg(log->path, t, answer) : count;
        if (count == alone && count == theirs)
                return true;
        fprintf(stderr, "%s: %llu lines, %llu with PCRE2 alone, %llu by rg\n", t->name,
            (unsigned long long)count, (unsigned long long)alone, (unsigned long long)theirs);
        return false;
}

int main(int argc, char **argv)
{
        size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 256;
        size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
        static struct rounds all[TRIALS];
        static struct log logs[TEXTS];
        char dir[] = "/tmp/bench_output.XXXXXX";
        char answer[64];
        double product = 1;
        double worst[3] = {0};
        int failed = 0;
        if (rounds < 1 || rounds > ROUNDS_MAX || !mkdtemp(dir))
                return 1;
        snprintf(answer, sizeof(answer), "%s/count", dir);
        for (int i = 0; i < TEXTS; i++) {
                snprintf(logs[i].path, sizeof(logs[i].path), "%s/log%d", dir, i);
                if (make_file(&logs[i], (enum text)i, mib << 20) < 0)
                        return 1;
        }
        for (size_t r = 0; r < rounds; r++) {
                for (size_t i = 0; i < TRIALS; i++)
                        failed |= !run_round(&logs[trials[i].text], answer, &trials[i], &all[i], r);
        }
        printf("{\"bench\":\"output\",\"mib\":%zu,\"rounds\":%zu,\"patterns\":[", mib, rounds);
        fprintf(
            stderr, "%-26s %8s %8s %6s %13s\n", "pattern", "ms", "rg -j1", "ratio", "of rounds");
        for (size_t i = 0; i < TRIALS; i++) {
                double wall[SIDES], cpu[SIDES], each[ROUNDS_MAX];
                for (size_t r = 0; r < rounds; r++)
                        each[r] = all[i].cpu[OURS][r] / all[i].cpu[RG_ONE][r];
                double low = quantile(each, rounds, 0);
                double high = quantile(each, rounds, 1);
                for (int k = 0; k < SIDES; k++) {
                        wall[k] = median(all[i].wall[k], rounds);
                        cpu[k] = median(all[i].cpu[k], rounds);
                }
                double ratio[3] = {
                    wall[OURS] / wall[RG_ONE], cpu[OURS] / cpu[RG_ONE], wall[OURS] / wall[RG_ALL]};
                for (int k = 0; k < 3; k++)
                        worst[k] = ratio[k] > worst[k] ? ratio[k] : worst[k];
                product *= ratio[0];
                printf("%s{\"name\":\"%s\",\"ms\":%.1f,\"rg_ms\":%.1f,\"rg_all_ms\":%.1f,"
                       "\"cpu_ms\":%.1f,\"rg_cpu_ms\":%.1f,\"pcre2_cpu_ms\":%.1f,"
                       "\"ratio\":%.2f,\"cpu_ratio\":%.2f,\"cpu_ratio_low\":%.2f,"
                       "\"cpu_ratio_high\":%.2f,\"all_ratio\":%.2f}",
                    i ? "," : "", trials[i].name, wall[OURS], wall[RG_ONE], wall[RG_ALL], cpu[OURS],
                    cpu[RG_ONE], cpu[PCRE2_ALONE], ratio[0], ratio[1], low, high, ratio[2]);
                fprintf(stderr, "%-26s %8.1f %8.1f %6.2f   %.2f to %.2f\n", trials[i].name,
                    cpu[OURS], cpu[RG_ONE], ratio[1], low, high);
        }
        printf("],\"geomean_ratio\":%.2f,\"worst_ratio\":%.2f,\"worst_cpu_ratio\":%.2f,"
               "\"worst_all_ratio\":%.2f}\n",
            root(product, TRIALS), worst[0], worst[1], worst[2]);
        for (int i = 0; i < TEXTS; i++) {
                unlink(logs[i].path);
                buf_release(&logs[i].index);
        }
        unlink(answer);
        rmdir(dir);
        return failed;
}
