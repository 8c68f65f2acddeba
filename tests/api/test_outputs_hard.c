/*
 * Large outputs through power cuts, failing calls, a full disk and no memory: a ref that can be
 * seen can be read, a refused append leaves none, and the conversation goes on.
 */
#include "api/rig.h"

#include <errno.h>
#include <unistd.h>

#include "support/crashfs.h"
#include "support/failalloc.h"
#include "support/faultfs.h"

enum { STREAM, APPEND, TOKENS };

struct op {
        int how;
        const char *call;
        struct buf text;
        size_t acked; /* number of calls of the world at that time; SIZE_MAX: never */
        int rc;
};

#define OPS 4

struct world {
        struct env env;
        char root[256];
        char boot[8];
        struct op ops[OPS];
        size_t (*calls)(void *ctx);
        void *calls_ctx;
        long alloc_nth; /* 0: none fails */
        bool alloc_for_good;
        bool alloc_fired;
        long alloc_count;
        char why[600];
};

static void boot_word(const struct env *self, char out[40])
{
        const struct world *w = (const struct world *)self;
        snprintf(out, 40, "%s", w->boot);
}

static void world_make(struct world *w, const char *root)
{
        static const struct {
                int how;
                const char *call;
                const char *line;
                int lines;
        } PLAN[OPS] = {{STREAM, "a", "a line of the stream \xE2\x82\xAC\n", 900},
            {APPEND, "b", "error: a line of the message\n", 700},
            {TOKENS, "", "0123456789abcdef", 4000},
            {STREAM, "../d", "{\"json\":[1,2,3]}   ", 1000}};
        memset(w, 0, sizeof *w);
        w->env = *env_real();
        w->env.fs = play_fs();
        w->env.boot = boot_word;
        snprintf(w->root, sizeof w->root, "%s", root);
        snprintf(w->boot, sizeof w->boot, "first");
        for (int i = 0; i < OPS; i++) {
                struct op *op = &w->ops[i];
                op->how = PLAN[i].how;
                op->call = PLAN[i].call;
                op->acked = SIZE_MAX;
                buf_init(&op->text, 0);
                buf_puts(&op->text, i == 3 ? "[" : "");
                for (int k = 0; k < PLAN[i].lines; k++)
                        buf_printf(&op->text, "%s%s", i == 3 && k ? "," : "", PLAN[i].line);
                buf_puts(&op->text, i == 3 ? "]" : "");
        }
}

static void world_release(struct world *w)
{
        for (int i = 0; i < OPS; i++)
                buf_release(&w->ops[i].text);
}

/* The calls that the outputs answer, stored before anything can fail. */
static void world_begin(struct world *w)
{
        struct steno_store *store;
        struct steno_conv *conv;
        static const char CALLS[] =
            "{\"id\":\"calls\",\"role\":\"assistant\",\"content\":null,\"tool_calls\":["
            "{\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}"
            "},"
            "{\"id\":\"b\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}"
            "},"
            "{\"id\":\"../"
            "d\",\"type\":\"function\",\"function\":{\"name\":\"t\",\"arguments\":\"{}\"}}]}";
        OK(api_store_open_in(&w->env, w->root, NULL, &store, &err));
        OK(steno_conv_create(store, NULL, "c", NULL, &conv, &err));
        OK(steno_append(conv, CALLS, sizeof CALLS - 1, NULL, NULL, &err));
        steno_conv_close(conv);
        steno_close(store);
}

static int stream_op(struct steno_conv *conv, const struct op *op)
{
        struct steno_output_options opt = rig_options(op->call);
        struct steno_output *o = NULL;
        char *json = NULL;
        int rc = steno_output_begin(conv, &opt, &o, NULL);
        for (size_t at = 0; rc == 0 && at < op->text.n; at += 5000) {
                size_t n = op->text.n - at < 5000 ? op->text.n - at : 5000;
                rc = steno_output_write(o, op->text.p + at, n, NULL);
        }
        if (rc == 0)
                rc = steno_output_finish(o, NULL, &json, NULL);
        steno_free(json);
        steno_output_free(o);
        return rc;
}

/* Made before memory can run out. */
static void op_message(const struct op *op, struct buf *to)
{
        if (op->how == APPEND)
                buf_printf(to,
                    "{\"id\":\"m_%s\",\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":",
                    op->call, op->call);
        else
                buf_puts(to, "{\"id\":\"m_tokens\",\"role\":\"user\",\"content\":");
        json_put_string(to, buf_str(&op->text));
        buf_puts(to, "}");
}

static int do_op(struct world *w, struct steno_conv *conv, struct op *op)
{
        struct buf message;
        buf_init(&message, 0);
        if (op->how != STREAM)
                op_message(op, &message);
        if (w->alloc_nth && w->alloc_for_good)
                failalloc_start_for_good(w->alloc_nth);
        else if (w->alloc_nth)
                failalloc_start(w->alloc_nth < 0 ? 0 : w->alloc_nth);
        op->rc = op->how == STREAM ? stream_op(conv, op)
                                   : steno_append(conv, message.p, message.n, NULL, NULL, NULL);
        if (w->alloc_nth) {
                w->alloc_fired = failalloc_stop();
                w->alloc_count = failalloc_count();
        }
        if (op->rc == 0)
                op->acked = w->calls ? w->calls(w->calls_ctx) : 0;
        buf_release(&message);
        return op->rc;
}

/* Does all of it, and continues after failures. If `only` is not negative, does only that. */
static void world_act(struct world *w, int only)
{
        struct steno_store *store = NULL;
        struct steno_conv *conv = NULL;
        for (int i = 0; i < OPS; i++) {
                if (only >= 0 && i != only)
                        continue;
                if (!store && api_store_open_in(&w->env, w->root, NULL, &store, NULL))
                        continue;
                if (!conv && steno_conv_open(store, NULL, "c", &conv, NULL))
                        continue;
                if (do_op(w, conv, &w->ops[i]) == STENO_EPOISONED || w->ops[i].rc == STENO_EIO) {
                        steno_conv_close(conv);
                        conv = NULL;
                }
        }
        steno_conv_close(conv);
        steno_close(store);
}

/* ---- judging ---- */

struct judge {
        struct world *w;
        struct steno_conv *conv;
        bool power;  /* the machine died */
        bool strict; /* one fault only: nothing of a refused append may be seen */
        bool seen[OPS];
        char refs[OPS][64]; /* that records name */
        int bad;
};

static int fault(struct judge *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int fault(struct judge *j, const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(j->w->why, sizeof j->w->why, fmt, ap);
        va_end(ap);
        j->bad = 1;
        return 1;
}

static int judge_ref(struct judge *j, int i, const char *ref)
{
        struct buf got;
        struct steno_error err = {0};
        const struct op *op = &j->w->ops[i];
        buf_init(&got, 0);
        snprintf(j->refs[i], sizeof j->refs[i], "%s", ref);
        int rc = steno_context_raw(j->conv, ref, 0, 0, rig_gather, &got, &err);
        /* After many faults a record may not have been taken back, but its output was. */
        if (rc && !(strstr(err.msg, "by a failed append") && !j->strict && op->acked == SIZE_MAX))
                fault(j, "the ref of call %s cannot be read: %s", op->call, err.msg);
        else if (rc == 0 && !str_eq(buf_str(&got), buf_str(&op->text)))
                fault(j, "the ref of call %s has %zu other bytes", op->call, got.n);
        buf_release(&got);
        return j->bad;
}

static int judge_record(void *ctx, const struct steno_record *r)
{
        struct judge *j = ctx;
        struct json about, m;
        struct buf text;
        char *message = NULL;
        size_t n = 0;
        struct steno_error why = {0};
        int which = -1;
        if (strcmp(steno_record_id(r), "calls") == 0)
                return 0;
        if (strcmp(steno_record_kind(r), "message") != 0)
                return fault(j, "a record is %s", steno_record_kind(r));
        const char *x = steno_record_about(r, &n);
        json_init(&about);
        OK(json_parse(&about, x, n, NULL, &err));
        buf_init(&text, 0);
        json_string(&about, json_at(&about, json_get(&about, 0, "answers"), 0), &text, NULL);
        for (int i = 0; i < OPS; i++)
                if (str_is(buf_str(&text), j->w->ops[i].call))
                        which = i;
        buf_clear(&text);
        bool has_ref = json_string(&about, json_get(&about, 0, "ref"), &text, NULL);
        json_release(&about);
        if (which < 0 || j->seen[which]) {
                fault(j, "a record that nobody wrote, or twice: %d", which);
        } else if (has_ref) {
                judge_ref(j, which, buf_cstr(&text));
        } else if (steno_record_message(r, &message, &n, &why)) {
                fault(j, "a message cannot be read: %s", why.msg);
        } else {
                rig_parse(&m, message);
                buf_clear(&text);
                json_string(&m, json_get(&m, 0, "content"), &text, NULL);
                if (!str_eq(buf_str(&text), buf_str(&j->w->ops[which].text)))
                        fault(j, "a message has other bytes");
                json_release(&m);
        }
        if (which >= 0)
                j->seen[which] = true;
        steno_free(message);
        buf_release(&text);
        return j->bad;
}

/* Everything that is listed can be read; in a strict world it also belongs to a record, or is a
 * stream that was not finished. */
static void judge_list(struct judge *j)
{
        struct steno_error err = {0};
        struct json l;
        struct buf id, got;
        char *json = NULL;
        if (steno_context(j->conv, "list", NULL, 0, &json, &err)) {
                fault(j, "list: %s", err.msg);
                return;
        }
        rig_parse(&l, json);
        buf_init(&id, 0);
        buf_init(&got, 0);
        json_ref items = json_get(&l, 0, "items");
        for (json_ref e = json_child(&l, items); e != JSON_NONE && !j->bad;
             e = json_next(&l, items, e)) {
                char args[100], *page = NULL;
                bool named = false;
                buf_clear(&id);
                buf_clear(&got);
                json_string(&l, json_get(&l, e, "id"), &id, NULL);
                for (int i = 0; i < OPS; i++)
                        named = named || strcmp(j->refs[i], buf_cstr(&id)) == 0;
                snprintf(args, sizeof args, "{\"ref\":\"%s\"}", buf_cstr(&id));
                if (steno_context_raw(j->conv, buf_cstr(&id), 0, 0, rig_gather, &got, &err) ||
                    steno_context(j->conv, "tail", args, strlen(args), &page, &err)) {
                        fault(j, "a listed ref cannot be read: %s", err.msg);
                        break;
                }
                bool of_stream =
                    strstr(json_raw(&l, e).p, "call b") != strstr(json_raw(&l, e).p, "call ");
                if (!named && j->strict && !of_stream)
                        fault(j, "a refused append left a ref: %.*s", (int)json_raw(&l, e).n,
                            json_raw(&l, e).p);
                steno_free(page);
        }
        json_release(&l);
        steno_free(json);
        buf_release(&id);
        buf_release(&got);
}

static int judge(struct world *w, const char *dir, size_t k, bool power, bool strict)
{
        struct judge j = {.w = w, .power = power, .strict = strict};
        struct world now = *w;
        struct steno_store *store = NULL;
        struct steno_error err = {0};
        int findings = 0;
        now.env.fs = play_fs();
        now.calls = NULL;
        now.alloc_nth = 0;
        snprintf(now.boot, sizeof now.boot, power ? "second" : "first");
        if (api_store_open_in(&now.env, dir, NULL, &store, &err) ||
            steno_conv_open(store, NULL, "c", &j.conv, &err)) {
                fault(&j, "it does not open: %s", err.msg);
        } else if (steno_read(j.conv, 0, 0, judge_record, &j, &err) < 0) {
                fault(&j, "it cannot be read: %s", err.msg);
        }
        for (int i = 0; !j.bad && i < OPS; i++) {
                if (w->ops[i].acked <= k && !j.seen[i])
                        fault(&j, "call %s was acknowledged and is gone", w->ops[i].call);
                if (strict && w->ops[i].acked == SIZE_MAX && j.seen[i])
                        fault(&j, "call %s was refused and is there", w->ops[i].call);
        }
        if (!j.bad)
                judge_list(&j);
        /* What is missing is stored now, and then everything is as it should be. */
        for (int i = 0; !j.bad && i < OPS; i++)
                if (!j.seen[i] && do_op(&now, j.conv, &now.ops[i]))
                        fault(
                            &j, "call %s does not go in later: %d", now.ops[i].call, now.ops[i].rc);
        if (!j.bad) {
                memset(j.seen, 0, sizeof j.seen);
                if (steno_read(j.conv, 0, 0, judge_record, &j, &err) < 0)
                        fault(&j, "it cannot be read: %s", err.msg);
        }
        /* A torn line of the manifest is a finding that a power cut may leave. */
        if (!j.bad && !power && strict)
                findings = steno_check(store, NULL, rig_findings, NULL, &err);
        if (findings)
                fault(&j, "check: %d %s", findings, err.msg);
        steno_conv_close(j.conv);
        steno_close(store);
        return j.bad;
}

/* ---- power ---- */

static size_t calls_of(void *ctx)
{
        return crashfs_calls(ctx);
}

static int check_crash(void *ctx, const char *dir, size_t k, int state)
{
        struct world *w = ctx;
        (void)state;
        int rc = judge(w, dir, k, true, false);
        if (rc)
                printf("# %s\n", w->why);
        return rc;
}

static void a_power_cut_leaves_every_ref_readable(void **state)
{
        struct seed seed = seed_start();
        struct scratch scratch;
        struct world w;
        size_t made = 0;
        (void)state;
        assert_int_equal(scratch_make(&scratch), 0);
        world_make(&w, scratch.path);
        world_begin(&w);
        struct crashfs *c = crashfs_new(play_fs(), scratch.path);
        w.env.fs = crashfs_fs(c);
        w.calls = calls_of;
        w.calls_ctx = c;
        world_act(&w, -1);
        for (int i = 0; i < OPS; i++)
                assert_int_equal(w.ops[i].rc, 0);
        int rc =
            crashfs_sweep(c, seed.state, seed_rounds(40), seed_every(4), check_crash, &w, &made);
        printf("# %zu calls, %zu states\n", crashfs_calls(c), made);
        assert_int_equal(rc, 0);
        world_release(&w);
        crashfs_free(c);
        scratch_remove(&scratch);
}

/* ---- faults ---- */

static const struct {
        const char *name;
        enum faultfs_kind kind;
        int err;
        unsigned calls;
} FAULTS[] = {
    {"EIO", FAULT_FAIL, EIO, FAULT_ANY},
    {"ENOSPC", FAULT_FAIL, ENOSPC, FAULT_SPACE},
    {"EINTR", FAULT_FAIL, EINTR, FAULT_WRITES | FAULT_PREAD},
    {"a disk that fills up", FAULT_SHORT, ENOSPC, FAULT_WRITES | FAULT_PREAD},
};

static int run_fault(const struct faultfs_plan *plan, long *matched, bool *refused)
{
        struct scratch scratch;
        struct world w;
        assert_int_equal(scratch_make(&scratch), 0);
        world_make(&w, scratch.path);
        world_begin(&w);
        struct faultfs *f = faultfs_new(play_fs());
        w.env.fs = faultfs_fs(f);
        faultfs_arm(f, plan);
        world_act(&w, -1);
        *matched = faultfs_matched(f);
        for (int i = 0; i < OPS; i++)
                *refused = *refused || w.ops[i].rc == STENO_EFULL;
        int rc = judge(&w, scratch.path, SIZE_MAX - 1, false, !plan->for_good);
        if (rc)
                printf("# call %ld%s, error %d: %s\n", plan->nth, plan->for_good ? " and on" : "",
                    plan->err, w.why);
        world_release(&w);
        faultfs_free(f);
        scratch_remove(&scratch);
        return rc;
}

static void failing_calls_and_a_full_disk_are_refused_cleanly(void **state)
{
        struct seed seed = seed_start();
        long runs = 0;
        bool refused = false;
        int every = seed_rounds(20) == 20 ? 1 : 15 * seed_every(4);
        (void)state;
        for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
                for (int good = 0; good < 2; good++) {
                        struct faultfs_plan plan = {.kind = FAULTS[i].kind,
                            .err = FAULTS[i].err,
                            .calls = FAULTS[i].calls,
                            .for_good = good && FAULTS[i].err != EINTR};
                        long n = 0;
                        assert_int_equal(run_fault(&plan, &n, &refused), 0);
                        for (plan.nth = 1 + (long)seed_below(&seed, (uint64_t)every); plan.nth <= n;
                             plan.nth += every, runs++) {
                                long ignored;
                                if (run_fault(&plan, &ignored, &refused))
                                        fail_msg("%s", FAULTS[i].name);
                        }
                }
        }
        printf("# %ld runs\n", runs);
        assert_true(refused); /* with the code of a full disk */
}

/* Every read of a search fails in turn: the answer is an error, or it is complete. */
static void a_search_on_a_bad_disk_is_whole_or_an_error(void **state)
{
        struct rig r = {0};
        struct streamed got;
        struct buf in;
        (void)state;
        buf_init(&in, 0);
        for (int i = 1; i <= 50000; i++)
                buf_printf(&in, "line %d of the output\n", i);
        assert_int_equal(scratch_make(&r.scratch), 0);
        struct faultfs *f = faultfs_new(play_fs());
        r.env = *env_real();
        r.env.fs = faultfs_fs(f);
        rig_open(&r);
        struct steno_output_options opt = rig_options(rig_call(&r));
        rig_stream(&r, &opt, in.p, in.n, NULL, &got);
        struct faultfs_plan plan = {.calls = FAULT_PREAD};
        long n = 1;
        for (; plan.nth <= n; plan.nth++) {
                char args[200];
                char *json = NULL;
                snprintf(args, sizeof args,
                    "{\"ref\":\"%s\",\"pattern\":\"line 7 \",\"context_lines\":2}", got.ref);
                faultfs_arm(f, &plan);
                int rc = steno_context(r.conv, "grep", args, strlen(args), &json, NULL);
                n = plan.nth ? n : faultfs_matched(f);
                faultfs_arm(f, NULL);
                if (rc == 0)
                        assert_int_equal(rig_number(json, "total_matches"), 1);
                else
                        assert_int_equal(rc, STENO_EIO);
                steno_free(json);
        }
        assert_true(n >= 5);
        streamed_release(&got);
        buf_release(&in);
        rig_close(&r);
        faultfs_free(f);
        scratch_remove(&r.scratch);
}

/* ---- memory ---- */

static void without_memory_an_output_is_whole_or_refused(void **state)
{
        struct seed seed = seed_start();
        long runs = 0;
        int every = seed_rounds(20) == 20 ? 1 : 15 * seed_every(4);
        (void)state;
        for (int i = 0; i < OPS; i++) {
                for (int good = 0; good < 2; good++) {
                        long n = -1, count = 0;
                        for (; n < 0 || n <= count;
                             n = n < 0 ? 1 + (long)seed_below(&seed, (uint64_t)every) : n + every,
                             runs++) {
                                struct scratch scratch;
                                struct world w;
                                assert_int_equal(scratch_make(&scratch), 0);
                                world_make(&w, scratch.path);
                                world_begin(&w);
                                w.alloc_nth = n;
                                w.alloc_for_good = good && n > 0;
                                world_act(&w, i);
                                if (n < 0)
                                        count = w.alloc_count;
                                if (judge(&w, scratch.path, SIZE_MAX - 1, false, !w.alloc_for_good))
                                        fail_msg("call %s, allocation %ld%s: %s", w.ops[i].call, n,
                                            good ? " and on" : "", w.why);
                                world_release(&w);
                                scratch_remove(&scratch);
                        }
                }
        }
        printf("# %ld runs\n", runs);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_power_cut_leaves_every_ref_readable),
            cmocka_unit_test(failing_calls_and_a_full_disk_are_refused_cleanly),
            cmocka_unit_test(a_search_on_a_bad_disk_is_whole_or_an_error),
            cmocka_unit_test(without_memory_an_output_is_whole_or_refused),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
