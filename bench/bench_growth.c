/*
 * bench_growth.c - how costs grow with what is stored already, beside other common ways.
 *
 *   bench_growth [DIRECTORY [PART]]     (or STENO_BENCH_DIR; the present one)
 *
 * - append: a durable append to a conversation of so many messages of 1 KB.
 * - tail: the last 50 messages of it.
 * - list: the first page of a list of so many conversations.
 * - first_list: the same from opening the store after a boot.
 * - output: a tool's output of so many bytes, stored durably; output_end: its last 200 lines.
 * Beside it: SQLite as its users use it (a table, WAL, synchronous=FULL), and a JSON file that is
 * rewritten at each turn, up to 100 MB. Beside an output: a copy of the file, hashed and synced.
 *
 * PART is messages, conversations or outputs; without it all three are measured.
 *
 * STENO_BENCH_GROWTH is the largest power of ten of messages and conversations (5); outputs have up
 * to 10,000 times as many bytes. Medians of five rounds that take turns; one of outputs over 1 GB.
 * Prints a line of JSON for each curve and each who, which bench/plot draws.
 */
#include <fcntl.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/api_store.h"
#include "base/json.h"
#include "bench.h"
#include "boot.h"
#include "fill.h"
#include "steno.h"

#define ROUNDS 5
#define POINTS_MAX 10
#define TIMES 20              /* for measurements that take microseconds */
#define JSON_MOST 100000      /* messages: 100 MB to write for each turn */
#define LAST "50"             /* messages of a tail */
#define MANY_BYTES 1000000000 /* an output with more bytes is stored once */
#define BLOCK (256 * 1024)    /* bytes of an output that arrive at once */

/* ---- curves ---- */

struct curve {
        const char *name, *who, *unit;
        long x[POINTS_MAX];
        double y[POINTS_MAX];
        int n;
        double rounds[ROUNDS]; /* of the next point */
};

static void point(struct curve *c, long x, int rounds)
{
        c->x[c->n] = x;
        c->y[c->n++] = median(c->rounds, (size_t)rounds);
}

static void show(const struct curve *c)
{
        printf("{\"bench\":\"growth\",\"curve\":\"%s\",\"who\":\"%s\",\"unit\":\"%s\",\"points\":[",
            c->name, c->who, c->unit);
        for (int i = 0; i < c->n; i++)
                printf("%s[%ld,%.3f]", i ? "," : "", c->x[i], c->y[i]);
        puts("]}");
        fflush(stdout);
}

static void must(int rc, const char *what, const struct steno_error *err)
{
        if (rc)
                die(what, err->msg);
}

static int count_bytes(void *ctx, const void *p, size_t n)
{
        (void)p;
        *(size_t *)ctx += n;
        return 0;
}

/* ---- a conversation of Steno ---- */

static struct steno_conv *conv;

static void steno_grow(long from, long to)
{
        fill(conv, (int)from, (int)to, prompt);
}

static double steno_add(const char *message)
{
        struct steno_error err = {0};
        double start = now();
        must(steno_append(conv, message, MESSAGE, NULL, NULL, &err), "append", &err);
        return now() - start;
}

static double steno_tail(void)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai", .last = 50};
        struct steno_error err = {0};
        size_t n = 0;
        double start = now();
        must(steno_view(conv, &opt, count_bytes, &n, NULL, &err), "view", &err);
        return now() - start;
}

/* ---- a table of SQLite ---- */

static sqlite3 *db;

static sqlite3_stmt *prepared(const char *sql)
{
        sqlite3_stmt *s;
        if (sqlite3_prepare_v2(db, sql, -1, &s, NULL))
                die(sql, sqlite3_errmsg(db));
        return s;
}

static void sql(const char *text)
{
        if (sqlite3_exec(db, text, NULL, NULL, NULL))
                die(text, sqlite3_errmsg(db));
}

static void lite_connect(const char *dir)
{
        char path[400];
        snprintf(path, sizeof path, "%s/messages.db", dir);
        if (sqlite3_open(path, &db))
                die(path, "cannot open");
}

static void lite_make(const char *dir)
{
        lite_connect(dir);
        sql("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
            "CREATE TABLE m (conv TEXT, seq INTEGER, body TEXT, PRIMARY KEY (conv, seq));"
            "CREATE TABLE c (id TEXT PRIMARY KEY, title TEXT, updated INTEGER, messages INTEGER);"
            "CREATE INDEX c_updated ON c (updated DESC);");
}

static void insert(sqlite3_stmt *s, long seq, const char *message)
{
        sqlite3_bind_text(s, 1, "one", -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, seq);
        sqlite3_bind_text(s, 3, message, MESSAGE, SQLITE_STATIC);
        if (sqlite3_step(s) != SQLITE_DONE)
                die("sqlite", sqlite3_errmsg(db));
        sqlite3_reset(s);
}

static void lite_grow(long from, long to)
{
        char message[MESSAGE];
        sqlite3_stmt *s = prepared("INSERT INTO m VALUES (?1,?2,?3)");
        prompt(0, message);
        sql("BEGIN");
        for (long i = from; i < to; i++)
                insert(s, i + 1, message);
        sql("COMMIT");
        sql("PRAGMA wal_checkpoint(TRUNCATE)");
        sqlite3_finalize(s);
}

static double lite_add(const char *message)
{
        static sqlite3_stmt *s;
        static long extra; /* beyond the part that grows, so that the length stays as stated */
        if (!s)
                s = prepared("INSERT INTO m VALUES (?1,?2,?3)");
        double start = now();
        insert(s, 1000000000 + ++extra, message);
        return now() - start;
}

static double lite_rows(const char *query, int expected)
{
        size_t n = 0;
        int rows = 0;
        double start = now();
        sqlite3_stmt *s = prepared(query);
        for (; sqlite3_step(s) == SQLITE_ROW; rows++)
                n += (size_t)sqlite3_column_bytes(s, 0);
        sqlite3_finalize(s);
        double took = now() - start;
        if (rows != expected || n == 0)
                die(query, "other rows than expected");
        return took;
}

static double lite_tail(void)
{
        return lite_rows("SELECT body FROM m WHERE conv='one' ORDER BY seq DESC LIMIT " LAST, 50);
}

/* ---- a JSON file ---- */

static struct {
        char path[400], next[410];
        char *text; /* the program has its messages in memory, as an agent does */
        size_t n, room;
} file;

static void file_put(const char *message)
{
        if (file.n + MESSAGE + 2 > file.room) {
                file.room = (file.room + MESSAGE) * 2;
                file.text = realloc(file.text, file.room);
                if (!file.text)
                        die("a JSON file", "no memory");
        }
        file.text[file.n] = file.n ? ',' : '[';
        memcpy(file.text + file.n + 1, message, MESSAGE);
        file.n += MESSAGE + 1;
}

static void file_grow(long from, long to)
{
        char message[MESSAGE];
        prompt(0, message);
        for (long i = from; i < to; i++)
                file_put(message);
}

static double file_add(const char *message)
{
        file_put(message);
        file.text[file.n] = ']';
        double start = now();
        int fd = open(file.next, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (size_t at = 0; fd >= 0 && at <= file.n;) {
                ssize_t k = write(fd, file.text + at, file.n + 1 - at);
                if (k <= 0)
                        die(file.next, "cannot write");
                at += (size_t)k;
        }
        if (fd < 0 || fsync(fd) || close(fd) || rename(file.next, file.path))
                die(file.path, "cannot write");
        return now() - start;
}

static double file_tail(void)
{
        struct steno_error err = {0};
        struct json j;
        char *text = malloc(file.n + 1);
        double start = now();
        int fd = open(file.path, O_RDONLY);
        size_t n = 0;
        for (ssize_t k; text && (k = read(fd, text + n, file.n + 1 - n)) > 0;)
                n += (size_t)k;
        close(fd);
        json_init(&j);
        must(json_parse(&j, text, n, NULL, &err), file.path, &err);
        if (json_count(&j, 0) < 50)
                die(file.path, "too short");
        json_release(&j);
        double took = now() - start;
        free(text);
        return took;
}

/* ---- messages ---- */

struct keeper {
        const char *who;
        long most;
        void (*grow)(long from, long to);
        double (*add)(const char *message);
        double (*tail)(void);
        struct curve append, end;
};

static double repeated(double (*add)(const char *), double (*tail)(void), const char *message)
{
        double v[TIMES], sum = 0;
        int n = 0;
        for (; n < TIMES && sum < 2; n++) { /* a turn of several seconds is repeated less often */
                v[n] = add ? add(message) : tail();
                sum += v[n];
        }
        return median(v, (size_t)n) * 1e6;
}

static void messages(const char *dir, int power)
{
        struct keeper keepers[] = {
            {.who = "Steno",
                .most = 1000000000,
                .grow = steno_grow,
                .add = steno_add,
                .tail = steno_tail},
            {.who = "SQLite",
                .most = 1000000000,
                .grow = lite_grow,
                .add = lite_add,
                .tail = lite_tail},
            {.who = "JSON file",
                .most = JSON_MOST,
                .grow = file_grow,
                .add = file_add,
                .tail = file_tail},
        };
        const size_t count = sizeof keepers / sizeof *keepers;
        struct steno_error err = {0};
        struct steno_store *store;
        char root[300], message[MESSAGE];
        prompt(0, message);
        snprintf(root, sizeof root, "%s/messages", dir);
        snprintf(file.path, sizeof file.path, "%s/messages.json", dir);
        snprintf(file.next, sizeof file.next, "%s.new", file.path);
        must(steno_open(root, NULL, &store, &err), root, &err);
        must(steno_conv_create(store, NULL, "one", NULL, &conv, &err), "one", &err);
        for (size_t k = 0; k < count; k++) {
                keepers[k].append =
                    (struct curve){.name = "append", .who = keepers[k].who, .unit = "us"};
                keepers[k].end =
                    (struct curve){.name = "tail", .who = keepers[k].who, .unit = "us"};
        }
        long before = 0, size = 100;
        for (int p = 2; p <= power; p++, before = size, size *= 10) {
                for (size_t k = 0; k < count; k++)
                        if (size <= keepers[k].most)
                                keepers[k].grow(before, size);
                sync();
                for (int r = 0; r < ROUNDS; r++) {
                        for (size_t k = 0; k < count; k++) {
                                struct keeper *who = &keepers[k];
                                if (size > who->most)
                                        continue;
                                who->append.rounds[r] = repeated(who->add, NULL, message);
                                who->end.rounds[r] = repeated(NULL, who->tail, NULL);
                        }
                }
                for (size_t k = 0; k < count; k++) {
                        if (size > keepers[k].most)
                                continue;
                        point(&keepers[k].append, size, ROUNDS);
                        point(&keepers[k].end, size, ROUNDS);
                }
        }
        for (size_t k = 0; k < count; k++) {
                show(&keepers[k].append);
                show(&keepers[k].end);
        }
        steno_conv_close(conv);
        steno_close(store);
        free(file.text);
}

/* ---- conversations ---- */

static double steno_page(struct steno_store *store)
{
        struct steno_error err = {0};
        char *json;
        double start = now();
        must(steno_list(store, NULL, NULL, &json, &err), "list", &err);
        double took = now() - start;
        steno_free(json);
        return took;
}

static void lite_conversations(long from, long to)
{
        sqlite3_stmt *s = prepared("INSERT INTO c VALUES (?1,'number',?2,1)");
        char id[32];
        sql("BEGIN");
        for (long i = from; i < to; i++) {
                snprintf(id, sizeof id, "c%07ld", i);
                sqlite3_bind_text(s, 1, id, -1, SQLITE_TRANSIENT);
                sqlite3_bind_int64(s, 2, i);
                if (sqlite3_step(s) != SQLITE_DONE)
                        die("sqlite", sqlite3_errmsg(db));
                sqlite3_reset(s);
        }
        sql("COMMIT");
        sqlite3_finalize(s);
}

static double lite_page(long size)
{
        return lite_rows(
            "SELECT id, title, updated, messages FROM c ORDER BY updated DESC LIMIT 20",
            size < 20 ? (int)size : 20);
}

/* What the first `steno ls` after a boot does: open, list. It looks at all conversations again, but
 * answers first; with `complete` this waits until that is done. */
static double steno_first_page(const char *root, double *complete)
{
        struct steno_list_options all = {.size = sizeof all, .complete = 1};
        struct env env = booted_env();
        struct steno_error err = {0};
        struct steno_store *store;
        char *json;
        boots++;
        double start = now();
        must(api_store_open_in(&env, root, NULL, &store, &err), root, &err);
        must(steno_list(store, NULL, NULL, &json, &err), "list", &err);
        double took = now() - start;
        steno_free(json);
        if (complete) {
                must(steno_list(store, NULL, &all, &json, &err), "list", &err);
                *complete = now() - start;
                steno_free(json);
        }
        steno_close(store);
        return took;
}

static double lite_first_page(const char *dir, long size)
{
        sqlite3 *before = db;
        double start = now();
        lite_connect(dir);
        lite_page(size);
        double took = now() - start;
        sqlite3_close(db);
        db = before;
        return took;
}

static void conversations(const char *dir, int power)
{
        struct curve ours = {.name = "list", .who = "Steno", .unit = "us"};
        struct curve theirs = {.name = "list", .who = "SQLite", .unit = "us"};
        struct curve first = {.name = "first_list", .who = "Steno", .unit = "ms"};
        struct curve whole = {
            .name = "first_list", .who = "Steno, until it is complete", .unit = "ms"};
        struct curve lite_first = {.name = "first_list", .who = "SQLite", .unit = "ms"};
        struct steno_list_options all = {.size = sizeof all, .complete = 1};
        long before = 0, size = 10;
        for (int p = 1; p <= power; p++, before = size, size *= 10) {
                struct steno_error err = {0};
                struct steno_store *store;
                char root[300], *json;
                snprintf(root, sizeof root, "%s/list%ld", dir, size);
                populate(root, (int)size);
                lite_conversations(before, size);
                must(steno_open(root, NULL, &store, &err), root, &err);
                must(steno_list(store, NULL, &all, &json, &err), "list", &err);
                steno_free(json);
                for (int r = 0; r < ROUNDS; r++) {
                        double a[TIMES], b[TIMES];
                        for (int i = 0; i < TIMES; i++) {
                                a[i] = steno_page(store);
                                b[i] = lite_page(size);
                        }
                        ours.rounds[r] = median(a, TIMES) * 1e6;
                        theirs.rounds[r] = median(b, TIMES) * 1e6;
                }
                point(&ours, size, ROUNDS);
                point(&theirs, size, ROUNDS);
                steno_close(store);
                for (int r = 0; r < ROUNDS; r++) {
                        first.rounds[r] = steno_first_page(root, NULL) * 1e3;
                        lite_first.rounds[r] = lite_first_page(dir, size) * 1e3;
                }
                point(&first, size, ROUNDS);
                point(&lite_first, size, ROUNDS);
                steno_first_page(root, whole.rounds);
                whole.rounds[0] *= 1e3;
                point(&whole, size, 1); /* minutes for a million */
                remove_folder(root);
        }
        show(&ours);
        show(&theirs);
        show(&first);
        show(&whole);
        show(&lite_first);
}

/* ---- outputs ---- */

static char block[BLOCK];

static void make_block(void)
{
        static const char line[] =
            "2026-01-01T00:00:00Z INFO worker.7 flushed 42 pages of the log\n";
        for (size_t i = 0; i < sizeof block; i++)
                block[i] = line[i % (sizeof line - 1)];
}

static double steno_output(struct steno_conv *c, long size, char ref[64])
{
        struct steno_output_options opt = {.size = sizeof opt,
            .tool = "bench",
            .call_id = "call",
            .flags = STENO_RECORD,
            .context_tools = true};
        struct steno_error err = {0};
        struct steno_output *out;
        char *json;
        double start = now();
        must(steno_output_begin(c, &opt, &out, &err), "an output", &err);
        for (long left = size; left > 0; left -= BLOCK)
                must(steno_output_write(out, block, (size_t)(left < BLOCK ? left : BLOCK), &err),
                    "an output", &err);
        const char *named = steno_output_ref(out);
        snprintf(ref, 64, "%s", named ? named : "");
        must(steno_output_finish(out, NULL, &json, &err), "an output", &err);
        double took = now() - start;
        steno_free(json);
        steno_output_free(out);
        return took;
}

static double steno_output_end(struct steno_conv *c, const char *ref)
{
        struct steno_error err = {0};
        char args[200], *json;
        snprintf(args, sizeof args, "{\"ref\":\"%s\",\"lines\":200}", ref);
        double start = now();
        must(steno_context(c, "tail", args, strlen(args), &json, &err), "tail", &err);
        double took = now() - start;
        steno_free(json);
        return took;
}

static void run(char *const argv[])
{
        posix_spawn_file_actions_t quiet;
        pid_t pid;
        int status;
        posix_spawn_file_actions_init(&quiet);
        posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ) ||
            waitpid(pid, &status, 0) != pid || status != 0)
                die(argv[0], "failed");
        posix_spawn_file_actions_destroy(&quiet);
}

/* What a script would do with an output: write it, hash it, sync it. */
static double plain_output(const char *path, long size)
{
        double start = now();
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (long left = size; left > 0; left -= BLOCK) {
                size_t n = (size_t)(left < BLOCK ? left : BLOCK);
                if (fd < 0 || write(fd, block, n) != (ssize_t)n)
                        die(path, "cannot write");
        }
        close(fd);
        run((char *[]){"sha256sum", (char *)path, NULL});
        run((char *[]){"sync", (char *)path, NULL});
        return now() - start;
}

/* By default a store does not allow an output this large. */
static void make_store_without_quota(const char *root)
{
        struct steno_error err = {0};
        must(steno_init(root,
                 "{\"maxOutputBytes\":0,\"maxConversationBytes\":0,\"maxStoreBytes\":0}", &err),
            root, &err);
}

static void outputs(const char *dir, int power)
{
        struct curve ours = {.name = "output", .who = "Steno", .unit = "ms"};
        struct curve theirs = {.name = "output", .who = "write, sha256sum, sync", .unit = "ms"};
        struct curve end = {.name = "output_end", .who = "Steno", .unit = "us"};
        struct curve tail = {.name = "output_end", .who = "tail", .unit = "us"};
        char root[300], path[300], name[32], ref[64] = "";
        make_block();
        snprintf(path, sizeof path, "%s/plain", dir);
        long size = 1000;
        for (int p = 3; p <= power; p++, size *= 10) {
                int rounds = size > MANY_BYTES ? 1 : ROUNDS;
                for (int r = 0; r < rounds; r++) {
                        struct steno_error err = {0};
                        struct steno_store *store;
                        struct steno_conv *c;
                        double v[TIMES], w[TIMES];
                        snprintf(root, sizeof root, "%s/outputs", dir);
                        make_store_without_quota(root);
                        must(steno_open(root, NULL, &store, &err), root, &err);
                        snprintf(name, sizeof name, "o%d-%d", p, r);
                        must(steno_conv_create(store, NULL, name, NULL, &c, &err), name, &err);
                        theirs.rounds[r] = plain_output(path, size) * 1e3;
                        ours.rounds[r] = steno_output(c, size, ref) * 1e3;
                        for (int i = 0; i < TIMES && *ref; i++) {
                                double start = now();
                                run((char *[]){"tail", "-n", "200", path, NULL});
                                w[i] = now() - start;
                                v[i] = steno_output_end(c, ref);
                        }
                        end.rounds[r] = *ref ? median(v, TIMES) * 1e6 : 0;
                        tail.rounds[r] = *ref ? median(w, TIMES) * 1e6 : 0;
                        steno_conv_close(c);
                        steno_close(store);
                        remove_folder(root);
                        unlink(path);
                }
                point(&ours, size, rounds);
                point(&theirs, size, rounds);
                if (*ref) { /* a small output is in its message */
                        point(&end, size, rounds);
                        point(&tail, size, rounds);
                }
        }
        show(&ours);
        show(&theirs);
        show(&end);
        show(&tail);
}

int main(int argc, char **argv)
{
        const char *given = getenv("STENO_BENCH_GROWTH");
        int power = given && *given ? atoi(given) : 5;
        char dir[260];
        if (power < 2 || power > 6)
                die("STENO_BENCH_GROWTH", "a power of ten from 2 to 6");
        const char *part = argc > 2 ? argv[2] : NULL;
        make_folder(dir, sizeof dir, argc > 1 ? argv[1] : NULL);
        lite_make(dir);
        if (!part || strcmp(part, "messages") == 0)
                messages(dir, power);
        if (!part || strcmp(part, "conversations") == 0)
                conversations(dir, power);
        if (!part || strcmp(part, "outputs") == 0)
                outputs(dir, power + 4);
        sqlite3_close_v2(db);
        remove_folder(dir);
        return 0;
}
