/*
 * bench_search.c - the first page of a search beside the bare FTS5 query over the same shards.
 *
 *   bench_search STORE WORD...      (STENO_BENCH_ROUNDS, 41 else; bench/search.py calls it)
 *
 * The store is indexed already. Each round asks for every word once with steno_search and once
 * with a prepared "the newest 20 rows" on each shard, in one process. Prints one line of JSON for
 * all words together: medians over the rounds, in milliseconds of processor time, because the
 * longer of two times suffers more from what else the machine does.
 */
#include <sqlite3.h>

#include "bench.h"
#include "steno.h"

#define SHARDS 4096
#define ROUNDS_MAX 1001

static sqlite3_stmt *shards[SHARDS];
static int shard_count;

static double spent(void)
{
        struct timespec ts;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void open_shards(const char *store)
{
        char path[600];
        for (int i = 1; shard_count < SHARDS && i < 2 * SHARDS; i++) {
                sqlite3 *db;
                snprintf(path, sizeof path, "%s/search/%d.db", store, i);
                if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) ||
                    sqlite3_prepare_v2(db,
                        "SELECT rowid FROM ft WHERE ft MATCH ? ORDER BY rowid DESC LIMIT 20", -1,
                        &shards[shard_count], NULL))
                        sqlite3_close_v2(db);
                else
                        shard_count++;
        }
        if (!shard_count)
                die(store, "it has no index of words");
}

static double ask_bare(const char *word)
{
        char match[100];
        double began = spent();
        snprintf(match, sizeof match, "\"%s\"", word);
        for (int i = 0; i < shard_count; i++) {
                sqlite3_bind_text(shards[i], 1, match, -1, SQLITE_STATIC);
                while (sqlite3_step(shards[i]) == SQLITE_ROW)
                        ;
                sqlite3_reset(shards[i]);
        }
        return spent() - began;
}

static double ask_steno(struct steno_store *store, const char *word)
{
        struct steno_search_options opt = {.size = sizeof opt, .query = word, .catch_up_ms = -1};
        struct steno_error err = {0};
        char *json;
        double began = spent();
        if (steno_search(store, &opt, &json, &err))
                die(word, err.msg);
        double took = spent() - began;
        steno_free(json);
        return took;
}

int main(int argc, char **argv)
{
        static double ours[ROUNDS_MAX], bare[ROUNDS_MAX];
        struct steno_store *store;
        struct steno_error err = {0};
        const char *given = getenv("STENO_BENCH_ROUNDS");
        int rounds = given ? atoi(given) : 41;
        if (argc < 3) /* bench/run starts every program without arguments */
                return 0;
        rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
        if (steno_open(argv[1], NULL, &store, &err))
                die(argv[1], err.msg);
        open_shards(argv[1]);
        for (int i = -1; i < rounds; i++) { /* the first one warms up */
                double took = 0, base = 0;
                for (int k = 2; k < argc; k++) {
                        took += ask_steno(store, argv[k]);
                        base += ask_bare(argv[k]);
                }
                if (i >= 0) {
                        ours[i] = took;
                        bare[i] = base;
                }
        }
        double took = median(ours, (size_t)rounds) * 1e3, base = median(bare, (size_t)rounds) * 1e3;
        printf("{\"name\":\"search\",\"shards\":%d,\"words\":%d,\"first_pages_ms\":%.3f,"
               "\"bare_fts5_ms\":%.3f,\"ratio\":%.2f}\n",
            shard_count, argc - 2, took, base, took / base);
        steno_close(store);
        return 0;
}
