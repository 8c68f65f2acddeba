/*
 * digest_reading.c - see digest_reading.h.
 */
#include "http/digest_reading.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "http/fault.h"
#include "model/event.h"

#define STEP 500           /* records between two looks at the clock */
#define OPEN_MAX 1024      /* calls that wait for their result */
#define LINE_MAX_BYTES 240 /* of an error */

/* ---- the walk ---- */

static void failure_free(struct digest_failure *f)
{
        free(f->call);
        free(f->name);
        free(f->text);
        free(f->ref);
}

static void add_failure(struct digest_entry *e, struct digest_failure f, struct str call,
    struct str ref, const struct fault *fault)
{
        struct digest *d = &e->d;
        struct digest_day *day = digest_day_of(e, f.at);
        if (day)
                day->failed++;
        d->failed++;
        if (d->failure_count == DIGEST_FAILURES_MAX)
                return;
        struct digest_failure *grown =
            digest_grow(d->failures, d->failure_count, sizeof *d->failures);
        if (!grown) {
                e->failed = true;
                return;
        }
        d->failures = grown;
        f.call = digest_copy(call, 1200);
        f.name = strdup(f.name ? f.name : "");
        f.text = digest_copy(fault->text, LINE_MAX_BYTES);
        f.ref = digest_copy(ref, DIGEST_NAME_BYTES);
        memcpy(f.lines, fault->lines, sizeof f.lines);
        f.line_count = fault->count;
        if (f.call && f.name && f.text && f.ref) {
                d->failures[d->failure_count++] = f;
                return;
        }
        failure_free(&f);
        e->failed = true;
}

/* Joins the two neighbours whose sum is shortest. Failed pieces are joined only if nothing else can
 * be. */
static void tape_join(struct digest *d)
{
        size_t best = 0;
        uint64_t least = UINT64_MAX;
        for (int failed = 0; failed < 2 && least == UINT64_MAX; failed++) {
                for (size_t i = 0; i + 1 < d->tape_count; i++) {
                        const struct digest_piece *p = &d->tape[i];
                        if ((!failed && (p[0].kind == 'e' || p[1].kind == 'e')) ||
                            p[0].ms + p[1].ms >= least)
                                continue;
                        least = p[0].ms + p[1].ms;
                        best = i;
                }
        }
        struct digest_piece *p = &d->tape[best];
        if (p[1].kind == 'e' || (p[0].kind != 'e' && p[1].ms > p[0].ms))
                p[0].kind = p[1].kind;
        p[0].ms += p[1].ms;
        d->tape_count--;
        memmove(p + 1, p + 2, (d->tape_count - best - 1) * sizeof *p);
}

void digest_tape_add(struct digest *d, char kind, uint64_t ms)
{
        struct digest_piece *last = d->tape_count ? &d->tape[d->tape_count - 1] : NULL;
        if (last && last->kind == kind && kind != 'e') {
                last->ms += ms;
                return;
        }
        if (d->tape_count == DIGEST_TAPE)
                tape_join(d);
        d->tape[d->tape_count++] = (struct digest_piece){kind, ms};
}

/* Adds working time; overlapping times count once. */
static void take_work(struct digest_entry *e, int64_t from, int64_t to, char kind)
{
        struct digest *d = &e->d;
        if (from < d->worked_to)
                from = d->worked_to;
        digest_tape_add(d, kind, to > from ? (uint64_t)(to - from) : 1);
        if (to > from)
                d->work_ms += to - from;
        if (to > d->worked_to)
                d->worked_to = to;
}

static void take_time(struct digest_entry *e, int64_t at)
{
        if (!e->d.first_at)
                e->d.first_at = at;
        e->before_at = at;
        e->d.last_at = at;
}

/* A tool has noted how long it took. If that is longer than the times of the records say, another
 * program wrote the records together or later. */
static void take_tool_time(struct digest_entry *e, const struct walk_result *r)
{
        int64_t from = e->before_at ? e->before_at : r->at, to = r->at;
        if (r->duration >= 0) {
                from = r->at - r->duration > e->reply_at ? r->at - r->duration : e->reply_at;
                to = from + r->duration;
        }
        take_work(e, from, to, r->state == WALK_FAILED ? 'e' : 't');
        take_time(e, r->at);
}

static void take_title(struct digest_entry *e, enum digest_title_rank rank, struct str text)
{
        struct digest *d = &e->d;
        size_t n = 0;
        text = str_trim(text);
        if (rank <= e->title_rank || !text.n)
                return;
        e->title_rank = rank;
        for (size_t i = 0; i < text.n && n < sizeof d->title - 1; i++)
                d->title[n++] = (unsigned char)text.p[i] < 0x20 ? ' ' : text.p[i];
        if (n < text.n)
                while (n && ((unsigned char)text.p[n] & 0xc0) == 0x80)
                        n--;
        d->title[n] = '\0';
}

static void take_title_of(struct digest_entry *e, const struct walk_message *m)
{
        bool reply = strcmp(m->role, "assistant") == 0, user = strcmp(m->role, "user") == 0;
        bool image = m->part.n && memmem(m->part.p, m->part.n, "image", 5);
        take_title(e, user ? TITLE_USER : reply ? TITLE_REPLY : TITLE_SYSTEM, m->text);
        if (reply)
                take_title(e, TITLE_REPLY, m->error);
        if (m->part.n && !m->text.n)
                take_title(e, TITLE_PART, image ? STR("Image") : STR("File"));
}

static int take_message(void *ctx, const struct walk_message *m)
{
        struct digest_entry *e = ctx;
        struct digest *d = &e->d;
        bool reply = strcmp(m->role, "assistant") == 0;
        d->messages++;
        if (strcmp(m->role, "user") == 0) {
                struct digest_day *day = digest_day_of(e, m->at);
                d->turns++;
                if (day)
                        day->turns++;
        }
        take_title_of(e, m);
        if (reply) {
                d->replies++;
                d->last_reply = m->seq;
                e->model = DIGEST_COUNTS_MAX;
                if (m->model.n)
                        e->model = digest_count_of(e, &d->models, &d->model_count, m->model);
                if (e->model < DIGEST_COUNTS_MAX) {
                        d->models[e->model].calls++;
                        d->models[e->model].failed += m->failed;
                        if (e->before_at && m->at > e->before_at)
                                d->models[e->model].ms += (uint64_t)(m->at - e->before_at);
                }
                e->unnamed = m->model.n ? 0 : hash_64(m->id, strlen(m->id));
                take_work(e, e->before_at ? e->before_at : m->at, m->at, m->failed ? 'e' : 'm');
                e->reply_at = m->at;
                if (m->usage.n)
                        digest_take_said_usage(e, m);
        }
        take_time(e, m->at);
        if (m->failed) {
                struct fault fault;
                fault_find(m->error.n ? m->error : m->text, false, &fault);
                fault.count = 0; /* a reply has no output */
                add_failure(e, (struct digest_failure){.seq = m->seq, .at = m->at}, STR(""),
                    STR(""), &fault);
        }
        return e->failed;
}

static int take_call(void *ctx, const struct walk_call *c)
{
        struct digest_entry *e = ctx;
        size_t tool = digest_count_of(e, &e->d.tools, &e->d.tool_count, c->name);
        e->d.calls++;
        take_title(e, TITLE_TOOL, c->name);
        if (tool < DIGEST_COUNTS_MAX)
                e->d.tools[tool].calls++;
        if (e->open_count == OPEN_MAX)
                memmove(e->open, e->open + 1, --e->open_count * sizeof *e->open);
        struct digest_open_call *grown = digest_grow(e->open, e->open_count, sizeof *e->open);
        if (!grown)
                return e->failed = true;
        e->open = grown;
        e->open[e->open_count++] =
            (struct digest_open_call){hash_64(c->id.p, c->id.n), c->seq, tool};
        return e->failed;
}

/* The newest open call of that id. */
static struct digest_open_call *find_open(struct digest_entry *e, struct str id)
{
        uint64_t hash = hash_64(id.p, id.n);
        for (size_t i = e->open_count; i > 0; i--)
                if (e->open[i - 1].hash == hash)
                        return &e->open[i - 1];
        return NULL;
}

static void close_call(struct digest_entry *e, struct digest_open_call *o)
{
        size_t at = (size_t)(o - e->open);
        memmove(o, o + 1, (--e->open_count - at) * sizeof *o);
        if (e->open_count)
                return;
        free(e->open);
        e->open = NULL;
}

static int take_result(void *ctx, const struct walk_result *r)
{
        struct digest_entry *e = ctx;
        struct digest_open_call *o = find_open(e, r->call);
        struct digest_count *tool = o && o->tool < DIGEST_COUNTS_MAX ? &e->d.tools[o->tool] : NULL;
        bool failed = r->state == WALK_FAILED; /* what a person denied did not fail */
        take_tool_time(e, r);
        e->d.kept += r->kept;
        if (e->model < e->d.model_count)
                e->d.models[e->model].kept += r->kept;
        if (tool) {
                tool->failed += failed;
                tool->kept += r->kept;
                tool->ms += r->duration > 0 ? (uint64_t)r->duration : 0;
        }
        if (failed) {
                struct fault fault;
                fault_find(r->text, r->excerpt, &fault);
                add_failure(e,
                    (struct digest_failure){.seq = o ? o->seq : r->seq,
                        .name = tool ? tool->name : NULL,
                        .at = r->at,
                        .has_exit = r->has_exit,
                        .exit = r->exit},
                    r->call, r->ref, &fault);
        }
        if (o)
                close_call(e, o);
        return e->failed;
}

struct reading {
        struct digest_entry *e;
        struct walk walk;
        struct steno_error *err;
};

static int take_record(void *ctx, const struct steno_record *r)
{
        struct reading *g = ctx;
        int rc = strcmp(steno_record_kind(r), "meta") == 0 ? digest_take_meta(g->e, r)
                                                           : walk_record(&g->walk, r, g->err);
        g->e->d.seq = steno_record_seq(r);
        return rc;
}

/* ---- the journals of runs: tokens of their replies, and what they do just now ---- */

static int take_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct digest_entry *e = ctx;
        struct json j;
        e->open_seq = seq;
        if (doing_take(&e->d.doing, type, at, data, n))
                return e->failed = true;
        if (event_find(type) != STENO_EVENT_REPLY_USAGE)
                return 0;
        json_init(&j);
        if (json_parse(&j, data, n, NULL, NULL) == 0)
                digest_take_usage(e, &j);
        json_release(&j);
        return e->failed;
}

/* Reads a run's journal from where it was read last. What it does is of interest while it lives. */
static void read_run(struct digest_entry *e, struct steno_store *store, const char *project,
    const char *id, const struct json *j, json_ref run)
{
        bool over = json_is(j, json_get(j, run, "state"), "finished");
        if (strlen(id) >= sizeof e->open_run)
                return;
        if (strcmp(e->open_run, id) != 0) {
                doing_clear(&e->d.doing);
                memcpy(e->open_run, id, strlen(id) + 1);
                e->open_seq = 0;
        }
        steno_run_read(store, project, id, e->open_seq, take_event, e, NULL);
        e->d.doing.live = json_is(j, json_get(j, run, "state"), "running");
        if (!e->d.doing.live)
                doing_clear(&e->d.doing);
        if (over)
                memcpy(e->last_run, id, strlen(id) + 1);
}

/* Reads what the journals of runs have got since the last time, oldest first. */
static void read_runs(struct digest_entry *e, struct steno_store *store, struct steno_conv *conv)
{
        struct json j;
        char *text = NULL;
        json_init(&j);
        if (steno_run_list(conv, &text, NULL) || json_parse(&j, text, strlen(text), NULL, NULL)) {
                json_release(&j);
                steno_free(text);
                return;
        }
        json_ref items = json_get(&j, 0, "items");
        uint32_t count = json_count(&j, items), fresh = 0;
        while (fresh < count && !json_is(&j, json_get(&j, json_at(&j, items, fresh), "id"),
                                    e->last_run[0] ? e->last_run : " "))
                fresh++;
        e->run_open = false;
        for (uint32_t i = fresh; i > 0 && !e->run_open; i--) {
                json_ref run = json_at(&j, items, i - 1);
                char *id = json_dup_string(&j, json_get(&j, run, "id"));
                if (id)
                        read_run(e, store, steno_conv_project(conv), id, &j, run);
                e->run_open = !json_is(&j, json_get(&j, run, "state"), "finished");
                free(id);
        }
        json_release(&j);
        steno_free(text);
}

/* ---- bringing one up to date ---- */

static void names_free(struct digest_count *list, size_t n)
{
        for (size_t i = 0; i < n; i++)
                free(list[i].name);
        free(list);
}

void digest_forget(struct digest_entry *e)
{
        struct digest *d = &e->d;
        for (size_t i = 0; i < d->failure_count; i++)
                failure_free(&d->failures[i]);
        free(d->failures);
        names_free(d->tools, d->tool_count);
        names_free(d->models, d->model_count);
        free(d->days);
        free(d->usage);
        doing_clear(&d->doing);
        *d = (struct digest){0};
        free(e->open);
        e->open = NULL;
        e->open_count = 0;
        e->before_at = e->reply_at = 0;
        e->reply = e->reply_message = e->unnamed = 0;
        e->last_run[0] = e->open_run[0] = '\0';
        e->open_seq = 0;
        e->run_open = false;
        e->model = DIGEST_COUNTS_MAX;
        e->title_rank = TITLE_NONE;
        e->failed = false;
}

int digest_catch_up(struct digest_entry *e, struct steno_store *store, struct steno_conv *conv,
    int ms, struct steno_error *err)
{
        struct reading g = {.e = e, .err = err};
        g.walk = (struct walk){e, take_message, take_call, take_result};
        uint64_t last = 0;
        int64_t until = time_monotonic_ms() + ms;
        int rc = steno_conv_last_seq(conv, &last, err);
        if (rc)
                return rc;
        if (last < e->d.seq)
                digest_forget(e); /* another conversation under the same id */
        bool grown = last > e->d.seq || !e->d.whole;
        while (rc == 0 && e->d.seq < last && time_monotonic_ms() <= until) {
                uint64_t from = e->d.seq;
                rc = steno_read(conv, from, STEP, take_record, &g, err);
                if (rc == 0 && e->d.seq == from)
                        break;
        }
        e->d.whole = e->d.seq >= last;
        /* A run ends a moment behind its last message. One that continues a conversation stores
         * nothing when it begins. */
        if (rc == 0 && e->d.whole && (atomic_exchange(&e->at_work, false) || grown || e->run_open))
                read_runs(e, store, conv);
        if (e->failed) {
                digest_forget(e);
                return error_nomem(err);
        }
        return rc < 0 ? rc : 0;
}
