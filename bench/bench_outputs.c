/*
 * bench_outputs.c - a large output on its way into a store, beside `cp` followed by `sha256sum`
 * and `sync` of the same file; and what the end of a huge one costs.
 *
 *         bench_outputs [MiB [rounds]]       (1024, 3)
 *
 * Works below TMPDIR, in a folder that is removed. Each kind of output is made once and taken in
 * interleaved rounds, ours in a process of its own so that its memory can be told. Prints one line
 * of JSON a kind: medians in ms, their ratio (the promise: at most 2), the peak memory in MiB (at
 * most 32). A last line has tail of 200 lines in ms for 1 MiB and for the largest.
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

#include "bench.h"
#include "steno.h"

#define BLOCK ((size_t)256 * 1024)
#define ROUNDS_MAX 15

extern char **environ;

static double now_ms(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void must(bool ok, const char *what)
{
        if (ok)
                return;
        fprintf(stderr, "bench_outputs: %s failed\n", what);
        exit(1);
}

/* ---- the outputs ---- */

static uint64_t draw(uint64_t *state)
{
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state;
}

static size_t put_log(char *to, size_t n, uint64_t *state)
{
        size_t at = 0;
        while (at + 200 < n)
                at += (size_t)sprintf(to + at,
                    "2026-03-1%u 12:%02u:%02u %s worker-%u request %016llx took %ums status=200\n",
                    (unsigned)(draw(state) % 10), (unsigned)(draw(state) % 60),
                    (unsigned)(draw(state) % 60), draw(state) % 40 ? "INFO " : "ERROR",
                    (unsigned)(draw(state) % 16), (unsigned long long)draw(state),
                    (unsigned)(draw(state) % 900));
        memset(to + at, '.', n - at);
        to[n - 1] = '\n';
        return n;
}

static size_t put_cyrillic(char *to, size_t n, uint64_t *state)
{
        for (size_t i = 0; i + 1 < n; i += 2) {
                unsigned k = (unsigned)(draw(state) % 32);
                to[i] = (char)0xD0;
                to[i + 1] = (char)(0x90 + k);
        }
        to[n - 2] = ' ';
        to[n - 1] = '\n';
        return n;
}

static size_t put_binary(char *to, size_t n, uint64_t *state)
{
        for (size_t i = 0; i + 8 <= n; i += 8) {
                uint64_t v = draw(state);
                memcpy(to + i, &v, 8);
        }
        return n;
}

static size_t put_line(char *to, size_t n, uint64_t *state)
{
        (void)state;
        memset(to, 'x', n);
        return n;
}

static size_t put_json(char *to, size_t n, uint64_t *state)
{
        size_t at = 0;
        while (at + 200 < n)
                at += (size_t)sprintf(to + at,
                    "{\"id\":%llu,\"name\":\"order %u\",\"lines\":[1,2,3],\"note\":null},\n",
                    (unsigned long long)(draw(state) >> 12), (unsigned)(draw(state) % 999));
        memset(to + at, ' ', n - at);
        return n;
}

static const struct {
        const char *name;
        size_t (*put)(char *to, size_t n, uint64_t *state);
} KINDS[] = {{"log", put_log}, {"cyrillic", put_cyrillic}, {"binary", put_binary},
    {"one line", put_line}, {"json", put_json}};
#define KIND_COUNT (sizeof KINDS / sizeof *KINDS)

static void make_file(const char *path, size_t kind, size_t mib)
{
        char *block = malloc(1 << 20);
        uint64_t state = 88172645463325252u + kind;
        bool json = strcmp(KINDS[kind].name, "json") == 0;
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        must(block && fd >= 0, path);
        for (size_t i = 0; i < mib; i++) {
                size_t n = KINDS[kind].put(block, 1 << 20, &state);
                if (json && i == 0)
                        block[n - 1] = ' ';
                if (json && i == 0)
                        must(write(fd, "[\n", 2) == 2, "write");
                if (json && i + 1 == mib)
                        memcpy(block + n - 8, "null]\n  ", 8);
                must(write(fd, block, n) == (ssize_t)n, "write");
        }
        must(fsync(fd) == 0 && close(fd) == 0, "sync");
        free(block);
}

/* ---- theirs ---- */

static void run(char *const argv[])
{
        pid_t pid;
        int status;
        posix_spawn_file_actions_t quiet;
        posix_spawn_file_actions_init(&quiet);
        posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
        must(posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ) == 0, argv[0]);
        must(waitpid(pid, &status, 0) == pid && status == 0, argv[0]);
        posix_spawn_file_actions_destroy(&quiet);
}

static double theirs(char *from, char *to)
{
        double begun = now_ms();
        run((char *[]){"cp", from, to, NULL});
        run((char *[]){"sha256sum", to, NULL});
        run((char *[]){"sync", to, NULL});
        double ms = now_ms() - begun;
        unlink(to);
        return ms;
}

/* ---- ours ---- */

static void take_in(const char *store_path, const char *path, const char *call)
{
        static char block[BLOCK];
        struct steno_store *store = NULL;
        struct steno_conv *conv = NULL;
        struct steno_output *out = NULL;
        struct steno_output_options opt = {.size = sizeof opt,
            .tool = "bench",
            .call_id = call,
            .flags = STENO_RECORD,
            .context_tools = true};
        char *json = NULL;
        int fd = open(path, O_RDONLY);
        must(fd >= 0 && steno_open(store_path, NULL, &store, NULL) == 0, "opening");
        if (steno_conv_open(store, NULL, "bench", &conv, NULL))
                must(steno_conv_create(store, NULL, "bench", NULL, &conv, NULL) == 0, "creating");
        must(steno_output_begin(conv, &opt, &out, NULL) == 0, "beginning");
        for (ssize_t n; (n = read(fd, block, sizeof block)) > 0;)
                must(steno_output_write(out, block, (size_t)n, NULL) == 0, "writing");
        must(steno_output_finish(out, NULL, &json, NULL) == 0, "finishing");
        steno_free(json);
        steno_output_free(out);
        steno_conv_close(conv);
        steno_close(store);
        close(fd);
}

static double ours(const char *store_path, const char *path, const char *call, long *rss_kib)
{
        double begun = now_ms();
        int status;
        struct rusage usage;
        pid_t pid = fork();
        must(pid >= 0, "fork");
        if (pid == 0) {
                take_in(store_path, path, call);
                _exit(0);
        }
        must(wait4(pid, &status, 0, &usage) == pid && status == 0, "ours");
        if (usage.ru_maxrss > *rss_kib)
                *rss_kib = usage.ru_maxrss;
        return now_ms() - begun;
}

/* ---- reading the end ---- */

static double tail_ms(struct steno_conv *conv, const char *ref)
{
        char args[200], *json = NULL;
        double begun = now_ms();
        snprintf(args, sizeof args, "{\"ref\":\"%s\",\"lines\":200}", ref);
        for (int i = 0; i < 20; i++) {
                must(steno_context(conv, "tail", args, strlen(args), &json, NULL) == 0, "tail");
                steno_free(json);
        }
        return (now_ms() - begun) / 20;
}

static void find_ref(const char *list, const char *call, char *ref, size_t n)
{
        const char *at = strstr(list, call);
        must(at != NULL, call);
        while (strncmp(at, "{\"id\":\"", 7) != 0)
                at--;
        snprintf(ref, n, "%.*s", (int)strcspn(at + 7, "\""), at + 7);
}

static void show_tails(const char *store_path)
{
        struct steno_store *store = NULL;
        struct steno_conv *conv = NULL;
        char *list = NULL, small[64], large[64];
        must(steno_open(store_path, NULL, &store, NULL) == 0, "opening");
        must(steno_conv_open(store, NULL, "bench", &conv, NULL) == 0, "opening");
        must(steno_context(conv, "list", "{\"limit\":1000}", 14, &list, NULL) == 0, "list");
        find_ref(list, "call small,", small, sizeof small);
        find_ref(list, "call log,", large, sizeof large);
        double a = tail_ms(conv, small), b = tail_ms(conv, large);
        printf("{\"bench\":\"outputs\",\"kind\":\"tail\",\"small_ms\":%.3f,\"large_ms\":%.3f}\n", a,
            b);
        steno_free(list);
        steno_conv_close(conv);
        steno_close(store);
}

int main(int argc, char **argv)
{
        size_t mib = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024;
        int rounds = argc > 2 ? atoi(argv[2]) : 3;
        const char *tmp = getenv("TMPDIR");
        char dir[200], file[240], copy[240], store[240], call[32];
        if (mib == 0 || rounds < 1 || rounds > ROUNDS_MAX) {
                fprintf(stderr, "usage: bench_outputs [MiB [rounds]]\n");
                return 2;
        }
        snprintf(dir, sizeof dir, "%s/bench-outputs-XXXXXX", tmp && *tmp ? tmp : "/tmp");
        must(mkdtemp(dir) != NULL, "making a folder");
        snprintf(file, sizeof file, "%s/file", dir);
        snprintf(copy, sizeof copy, "%s/copy", dir);
        snprintf(store, sizeof store, "%s/store", dir);
        make_file(file, 0, 1);
        long small_rss = 0;
        ours(store, file, "small", &small_rss);
        for (size_t k = 0; k < KIND_COUNT; k++) {
                double a[ROUNDS_MAX], b[ROUNDS_MAX];
                long rss = 0;
                make_file(file, k, mib);
                for (int i = 0; i < rounds; i++) {
                        char folder[300];
                        snprintf(call, sizeof call, "%s", k ? "other" : "log");
                        /* Only the last output of the first kind stays, for tail. */
                        snprintf(folder, sizeof folder, "%s%s", store,
                            k || i + 1 < rounds ? "-gone" : "");
                        b[i] = theirs(file, copy);
                        a[i] = ours(folder, file, call, &rss);
                        if (strcmp(folder, store) != 0)
                                run((char *[]){"rm", "-r", folder, NULL});
                }
                double mine = median(a, rounds), their = median(b, rounds);
                printf("{\"bench\":\"outputs\",\"kind\":\"%s\",\"mib\":%zu,\"ms\":%.0f,"
                       "\"cp_sha256sum_sync_ms\":%.0f,\"ratio\":%.2f,\"peak_mib\":%.1f}\n",
                    KINDS[k].name, mib, mine, their, mine / their, (double)rss / 1024);
                fflush(stdout);
        }
        show_tails(store);
        run((char *[]){"rm", "-r", dir, NULL});
        return 0;
}
