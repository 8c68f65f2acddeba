/*
 * bench_read.c - what reading costs: a long conversation as a view beside the bytes of its file,
 * the end of a long log beside the end of a short one, and lists of many conversations beside
 * lists of few.
 *
 *   bench_read [DIRECTORY]       (or STENO_BENCH_DIR; the present one)
 *
 * STENO_BENCH_CONVERSATIONS says how many "many" are (100000). The best of interleaved rounds,
 * warm caches. Prints one line of JSON.
 */
#include <fcntl.h>
#include <libgen.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "api/api_store.h"
#include "bench.h"
#include "boot.h"
#include "fill.h"
#include "steno.h"

#define ROUNDS 31

/* The best of all rounds: what is measured does not need the disk, and other load only adds
 * time. */
static double best(const double *v)
{
        double least = v[0];
        for (int i = 1; i < ROUNDS; i++)
                least = v[i] < least ? v[i] : least;
        return least;
}

static double worst(const double *v)
{
        double most = v[0];
        for (int i = 1; i < ROUNDS; i++)
                most = v[i] > most ? v[i] : most;
        return most;
}

static double ratio(const double *a, const double *b)
{
        return best(a) / best(b);
}

/* ---- histories ---- */

/* A prompt, a call, its result, an answer, and so on. */
static void with_tools(int i, char *to)
{
        char first[200];
        switch (i % 4) {
        case 0:
                prompt(i, to);
                break;
        case 1:
                snprintf(first, sizeof first,
                    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"call_%"
                    "08d\","
                    "\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{"
                    "\\\"path\\\":"
                    "\\\"",
                    i);
                pad(to, first, "\\\"}\"}}]}");
                break;
        case 2:
                snprintf(first, sizeof first,
                    "{\"role\":\"tool\",\"tool_call_id\":\"call_%08d\",\"content\":\"", i - 1);
                pad(to, first, "\"}");
                break;
        default:
                pad(to, "{\"role\":\"assistant\",\"content\":\"", "\"}");
        }
}

/* ---- views ---- */

static int take(void *ctx, const void *p, size_t n)
{
        (void)p;
        *(size_t *)ctx += n;
        return 0;
}

static double view(struct steno_conv *c, uint64_t last, size_t least)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai", .last = last};
        struct steno_error err = {0};
        size_t n = 0;
        double start = now();
        if (steno_view(c, &opt, take, &n, NULL, &err))
                die("view", err.msg);
        if (n < least)
                die("view", "too short");
        return now() - start;
}

static char *log_path(const char *root, const char *name)
{
        static char path[400];
        snprintf(
            path, sizeof path, "%s/projects/default/conversations/%s/messages.jsonl", root, name);
        return path;
}

/* Reading the bytes of the log, as a program does that only copies them. */
static double bytes(const char *root, const char *name)
{
        static char block[256 * 1024];
        const char *path = log_path(root, name);
        double start = now();
        int fd = open(path, O_RDONLY);
        if (fd < 0)
                die(path, "cannot open");
        while (read(fd, block, sizeof block) > 0)
                ;
        close(fd);
        return now() - start;
}

/* A program from its start to its end, with its output going nowhere. */
static double run(const char *program, char **args)
{
        posix_spawn_file_actions_t files;
        pid_t pid;
        int status;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
        double start = now();
        if (posix_spawnp(&pid, program, &files, NULL, args, environ) ||
            waitpid(pid, &status, 0) != pid || status != 0)
                die(program, "failed");
        double took = now() - start;
        posix_spawn_file_actions_destroy(&files);
        return took;
}

static long peak_kib(void)
{
        FILE *f = fopen("/proc/self/status", "r");
        char line[100];
        long n = 0;
        while (f && fgets(line, sizeof line, f))
                sscanf(line, "VmHWM: %ld", &n);
        if (f)
                fclose(f);
        return n;
}

static void forget_peak(void)
{
        FILE *f = fopen("/proc/self/clear_refs", "w");
        if (f) {
                fputs("5", f);
                fclose(f);
        }
}

static long peak_of_view(struct steno_conv *c, uint64_t last)
{
        forget_peak();
        long before = peak_kib();
        view(c, last, 1);
        return peak_kib() - before;
}

/* ---- lists ---- */

/* What `steno ls` does: open, list, close. */
static double list(const char *root)
{
        struct steno_store *store;
        struct steno_error err = {0};
        char *json;
        double start = now();
        if (steno_open(root, NULL, &store, &err) || steno_list(store, NULL, NULL, &json, &err))
                die(root, err.msg);
        steno_free(json);
        steno_close(store);
        return now() - start;
}

/* The same after a boot: the first page, and the time until everything was looked at. */
static double list_after_boot(const char *root, double *complete)
{
        struct env env = booted_env();
        struct steno_store *store;
        struct steno_error err = {0};
        struct steno_list_options opt = {.size = sizeof opt, .complete = 1};
        char *json;
        boots++;
        double start = now();
        if (api_store_open_in(&env, root, NULL, &store, &err) ||
            steno_list(store, NULL, NULL, &json, &err))
                die(root, err.msg);
        double first = now() - start;
        steno_free(json);
        if (complete) {
                if (steno_list(store, NULL, &opt, &json, &err))
                        die(root, err.msg);
                steno_free(json);
                *complete = now() - start;
        }
        steno_close(store);
        return first;
}

int main(int argc, char **argv)
{
        const char *given = getenv("STENO_BENCH_CONVERSATIONS");
        int many = given && *given ? atoi(given) : 100000;
        double whole[ROUNDS], raw[ROUNDS], end_long[ROUNDS], end_short[ROUNDS];
        double ls_many[ROUNDS], ls_few[ROUNDS], whole_tools[ROUNDS], raw_tools[ROUNDS];
        double program[ROUNDS], cat[ROUNDS];
        struct steno_store *store;
        struct steno_error err = {0};
        char steno[4200];
        snprintf(steno, sizeof steno, "%s/../steno", dirname(argv[0]));
        char dir[260], root[300], few_root[300], many_root[300];
        make_folder(dir, sizeof dir, argc > 1 ? argv[1] : NULL);
        snprintf(root, sizeof root, "%s/store", dir);
        snprintf(few_root, sizeof few_root, "%s/few", dir);
        snprintf(many_root, sizeof many_root, "%s/many", dir);
        if (steno_open(root, NULL, &store, &err))
                die("open", err.msg);
        struct steno_conv *ten = filled(store, "ten", 10000, prompt);
        struct steno_conv *tools = filled(store, "tools", 10000, with_tools);
        struct steno_conv *small = filled(store, "small", 1000, prompt);
        struct steno_conv *large = filled(store, "large", 100000, prompt);
        for (int r = 0; r < ROUNDS; r++) {
                raw[r] = bytes(root, "ten");
                whole[r] = view(ten, 0, (size_t)10000 * MESSAGE);
                raw_tools[r] = bytes(root, "tools");
                whole_tools[r] = view(tools, 0, (size_t)10000 * MESSAGE);
                end_short[r] = view(small, 50, (size_t)50 * MESSAGE);
                end_long[r] = view(large, 50, (size_t)50 * MESSAGE);
        }
        long peak_small = peak_of_view(small, 0), peak_large = peak_of_view(large, 0);
        steno_conv_close(ten);
        steno_conv_close(tools);
        steno_conv_close(small);
        steno_conv_close(large);
        steno_close(store);
        for (int r = 0; r < ROUNDS; r++) {
                program[r] =
                    run(steno, (char *[]){"steno", "--store", root, "messages", "ten", NULL});
                cat[r] = run("cat", (char *[]){"cat", log_path(root, "ten"), NULL});
        }
        populate(few_root, 100);
        populate(many_root, many);
        double scan = list(many_root);
        list(few_root);
        for (int r = 0; r < ROUNDS; r++) {
                ls_few[r] = list(few_root);
                ls_many[r] = list(many_root);
        }
        printf("{\"bench\":\"read\",\"view_10000_ms\":%.2f,\"bytes_10000_ms\":%.2f,"
               "\"view_to_bytes\":%.2f,\"last50_of_1000_us\":%.0f,\"last50_of_100000_us\":%.0f,"
               "\"last50_long_to_short\":%.2f,\"peak_growth_kib_1000\":%ld,"
               "\"peak_growth_kib_100000\":%ld,\"view_10000_with_tools_ms\":%.2f,"
               "\"view_with_tools_to_bytes\":%.2f,\"program_10000_ms\":%.2f,\"cat_10000_ms\":%.2f,"
               "\"program_to_cat\":%.2f,",
            best(whole) * 1e3, best(raw) * 1e3, ratio(whole, raw), best(end_short) * 1e6,
            best(end_long) * 1e6, ratio(end_long, end_short), peak_small, peak_large,
            best(whole_tools) * 1e3, ratio(whole_tools, raw_tools), best(program) * 1e3,
            best(cat) * 1e3, ratio(program, cat));
        double boot_many[ROUNDS], boot_few[ROUNDS], complete = 0;
        for (int r = 0; r < ROUNDS; r++) {
                boot_few[r] = list_after_boot(few_root, NULL);
                boot_many[r] = list_after_boot(many_root, r + 1 < ROUNDS ? NULL : &complete);
        }
        printf("\"conversations\":%d,\"first_scan_s\":%.2f,\"ls_100_ms\":%.2f,\"ls_many_ms\":%.2f,"
               "\"ls_many_to_100\":%.2f,",
            many, scan, best(ls_few) * 1e3, best(ls_many) * 1e3, ratio(ls_many, ls_few));
        printf(
            "\"after_boot_100_ms\":%.2f,\"after_boot_many_ms\":%.2f,\"after_boot_worst_ms\":%.2f,"
            "\"after_boot_complete_s\":%.2f}\n",
            best(boot_few) * 1e3, best(boot_many) * 1e3, worst(boot_many) * 1e3, complete);
        remove_folder(dir);
        return 0;
}
