/*
 * test_seek.c - reading from any record on, and single records by their seqs: the same as a walk
 * over the whole log finds, however long the records are and wherever the log is damaged.
 */
#include "fixture.h"

#include "api/api_store.h"
#include "store/backend.h"
#include "support/seed.h"

#define LOG CONV_FOLDER "messages.jsonl"
#define COUNT 240

enum shape { SAME, GROWING, SHRINKING, ONE_HUGE, RANDOM, SHAPES };

static char file[8 << 20];

static size_t length_of(enum shape shape, int i, struct seed *seed)
{
        switch (shape) {
        case GROWING:
                return (size_t)i * 20;
        case SHRINKING:
                return (size_t)(COUNT - i) * 20;
        case ONE_HUGE:
                return i == COUNT / 3 ? 600000 : 10;
        case RANDOM:
                return seed_below(seed, 8) ? seed_below(seed, 300) : seed_below(seed, 20000);
        default:
                return 100;
        }
}

static void fill(struct fixture *f, enum shape shape, struct seed *seed)
{
        static char json[700000];
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        for (int i = 0; i < COUNT; i++) {
                int n = snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"");
                size_t fill = length_of(shape, i, seed);
                memset(json + n, 'a' + i % 26, fill);
                strcpy(json + n + fill, "\"}");
                OK(steno_append(f->conv, json, strlen(json), &opt, NULL, &err));
        }
}

/* Bytes of some lines change, line feeds among them. */
static size_t damage(struct seed *seed, size_t n)
{
        int times = (int)seed_below(seed, 12);
        for (int i = 0; i < times; i++) {
                size_t at = seed_below(seed, n - 1);
                char *lf = memchr(file + at, '\n', n - at);
                if (seed_below(seed, 3) == 0 && lf < file + n - 1)
                        *lf = 'x';
                else if (file[at] != '\n')
                        file[at] ^= 1;
        }
        return n;
}

/* The seqs of the records that can be read. */
struct seqs {
        uint64_t list[COUNT + 1];
        size_t count;
};

static int note(void *ctx, const struct backend_record *r)
{
        struct seqs *s = ctx;
        if (!r->damaged) {
                assert_true(s->count < COUNT);
                s->list[s->count++] = r->rec.seq;
        }
        return 0;
}

static bool has(const struct seqs *s, uint64_t seq)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->list[i] == seq)
                        return true;
        return false;
}

static void holds(struct fixture *f)
{
        struct backend_conv *conv = f->conv->backend;
        struct backend_lookup *lookup;
        struct seqs all = {0};
        OK(backend_read(conv, 0, note, &all, &err));
        OK(backend_lookup_open(conv, &lookup, &err));
        for (uint64_t seq = 0; seq <= COUNT + 1; seq++) {
                struct seqs rest = {0}, one = {0};
                OK(backend_read(conv, seq, note, &rest, &err));
                size_t before = 0;
                while (before < all.count && all.list[before] <= seq)
                        before++;
                assert_int_equal(rest.count, all.count - before);
                assert_memory_equal(rest.list, all.list + before, rest.count * sizeof *rest.list);
                OK(backend_lookup_record(lookup, seq, note, &one, &err));
                assert_int_equal(one.count, has(&all, seq));
                if (one.count)
                        assert_int_equal(one.list[0], seq);
        }
        /* From the end, with gaps: what was learned of one place must not mislead the search for
         * another. */
        for (uint64_t seq = COUNT + 2; seq > 7; seq -= seq % 7 + 1) {
                struct seqs one = {0};
                OK(backend_lookup_record(lookup, seq, note, &one, &err));
                assert_int_equal(one.count, has(&all, seq));
                if (one.count)
                        assert_int_equal(one.list[0], seq);
        }
        backend_lookup_close(lookup);
}

static void reads_alike(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        static char whole[sizeof file];
        for (int shape = 0; shape < SHAPES; shape++) {
                fixture_teardown(state);
                assert_int_equal(fixture_setup(state), 0);
                f = *state;
                fill(f, (enum shape)shape, &seed);
                holds(f);
                fixture_close(f);
                size_t n = fixture_slurp(f, LOG, whole, sizeof whole);
                assert_true(n < sizeof whole - 1);
                for (int round = 0; round < seed_rounds(40); round++) {
                        memcpy(file, whole, n);
                        fixture_spit(f, LOG, file, damage(&seed, n));
                        fixture_open(f);
                        holds(f);
                        fixture_close(f);
                }
                fixture_open(f);
        }
}

/* ---- how often it looks ---- */

static struct fs counted;
static unsigned long preads;

static ssize_t count_pread(const struct fs *self, int fd, void *p, size_t n, off_t at)
{
        (void)self;
        preads++;
        return fs_real()->pread(fs_real(), fd, p, n, at);
}

static void looks_seldom(void **state)
{
        struct fixture *f = *state;
        struct seed seed = seed_start();
        static struct env env; /* the fixture is taken down after this function */
        env = *env_real();
        counted = *fs_real();
        counted.pread = count_pread;
        env.fs = &counted;
        for (int shape = SAME; shape < RANDOM; shape++) {
                fixture_teardown(state);
                assert_int_equal(fixture_setup(state), 0);
                f = *state;
                fill(f, (enum shape)shape, &seed);
                fixture_close(f);
                struct backend_lookup *lookup;
                OK(api_store_open_in(&env, f->scratch.path, NULL, &f->store, &err));
                OK(steno_conv_open(f->store, NULL, "c", &f->conv, &err));
                OK(backend_lookup_open(f->conv->backend, &lookup, &err));
                for (uint64_t seq = 1; seq <= COUNT; seq++) {
                        struct seqs one = {0};
                        preads = 0;
                        OK(backend_lookup_record(lookup, seq, note, &one, &err));
                        assert_int_equal(one.count, 1);
                        assert_true(preads <= 40); /* a walk would take hundreds */
                }
                backend_lookup_close(lookup);
        }
}

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            {"what is read from any seq on, or by its seq, is what a walk over all finds",
                reads_alike, fixture_setup, fixture_teardown, NULL},
            {"a record is found with few looks, however lengths differ", looks_seldom,
                fixture_setup, fixture_teardown, NULL},
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
