/* digests.c - see digests.h */
#include "http/digests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "http/fault.h"
#include "http/walk.h"
#include "model/event.h"

#define STEP 500                /* records between two looks at the clock */
#define OPEN_MAX 1024           /* calls that wait for their result */
#define COUNTS_MAX 200          /* tools, and models */
#define DAYS_MAX 400            /* the newest */
#define USAGE_MAX 20000         /* replies */
#define KEPT_MAX 20000          /* digests in memory, */
#define KEPT_BYTES (128u << 20) /* and about so many bytes of them */
#define NAME_MAX_BYTES 200      /* of a tool or a call that is kept */
#define LINE_MAX_BYTES 240      /* of an error */
#define DAY_MS 86400000

struct open_call {
        uint64_t hash; /* of its id */
        uint64_t seq;
        size_t tool;
};

/* What a conversation without a title is called by. The words of the user are best, then those of
 * a reply, the first tool, what the system says, and that there is an image at all. */
enum title_rank { TITLE_NONE, TITLE_PART, TITLE_SYSTEM, TITLE_TOOL, TITLE_REPLY, TITLE_USER };

struct entry {
        struct digest d; /* the first member: a digest is its entry */
        struct entry *next, *newer, *older;
        char *project;
        char *id;
        unsigned users;
        pthread_mutex_t mutex;
        struct open_call *open;
        size_t open_count;
        int64_t before_at;      /* of the record before */
        int64_t reply_at;       /* of the last reply */
        uint64_t reply;         /* hash of the reply whose usage was taken last, */
        uint64_t reply_message; /* and of the record that it was taken from */
        uint64_t unnamed;       /* hash of the last reply's id, when its model is not known */
        size_t model;           /* that spoke last, behind the models: none */
        char last_run[80];      /* whose journal was read to its end */
        bool run_open;          /* the next was not over, and its journal is still to be read */
        char open_run[80];      /* that one, */
        uint64_t open_seq;      /* and up to where it was read */
        enum title_rank title_rank;
        bool failed;  /* out of memory on the way */
        size_t bytes; /* about; under the table's mutex */
};

#define BUCKETS 4096

struct digests {
        pthread_mutex_t mutex;
        struct entry *table[BUCKETS];
        struct entry *newest, *oldest;
        size_t count;
        size_t bytes;
};

/* ---- lists that grow ---- */

/* Room for one more in a list of `count`, whose room is always a power of two. */
static void *grow(void *list, size_t count, size_t size)
{
        if (count && (count & (count - 1)))
                return list;
        return realloc(list, (count ? count * 2 : 1) * size);
}

static char *copy(struct str s, size_t max)
{
        size_t n = s.n < max ? s.n : max;
        while (n && n < s.n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
                n--;
        return strndup(s.n ? s.p : "", n);
}

/* The entry of that name, made if there is none; COUNTS_MAX when there is no room. */
static size_t count_of(struct entry *e, struct digest_count **list, size_t *count, struct str name)
{
        char *text = copy(name, NAME_MAX_BYTES);
        for (size_t i = 0; text && i < *count; i++) {
                if (strcmp((*list)[i].name, text) == 0) {
                        free(text);
                        return i;
                }
        }
        struct digest_count *grown =
            text && *count < COUNTS_MAX ? grow(*list, *count, sizeof **list) : NULL;
        if (!grown) {
                e->failed = e->failed || !text || *count < COUNTS_MAX;
                free(text);
                return COUNTS_MAX;
        }
        *list = grown;
        grown[*count] = (struct digest_count){.name = text};
        return (*count)++;
}

static struct digest_day *day_of(struct entry *e, int64_t at)
{
        struct digest *d = &e->d;
        int64_t day = at / DAY_MS;
        for (size_t i = d->day_count; i > 0; i--)
                if (d->days[i - 1].day == day)
                        return &d->days[i - 1];
        if (d->day_count == DAYS_MAX)
                memmove(d->days, d->days + 1, --d->day_count * sizeof *d->days);
        else {
                struct digest_day *grown = grow(d->days, d->day_count, sizeof *d->days);
                if (!grown) {
                        e->failed = true;
                        return NULL;
                }
                d->days = grown;
        }
        d->days[d->day_count] = (struct digest_day){.day = day};
        return &d->days[d->day_count++];
}

/* ---- tokens ---- */

static void take_number(const struct json *j, json_ref obj, const char *key, uint64_t *to)
{
        uint64_t n = 0;
        if (json_u64(j, json_get(j, obj, key), &n))
                *to += n;
}

/* As the providers spell it. */
static struct digest_tokens tokens_of(const struct json *j, json_ref u)
{
        struct digest_tokens t = {0};
        take_number(j, u, "prompt_tokens", &t.in);
        take_number(j, u, "completion_tokens", &t.out);
        take_number(j, json_get(j, u, "prompt_tokens_details"), "cached_tokens", &t.cached);
        take_number(j, json_get(j, u, "input_tokens_details"), "cached_tokens", &t.cached);
        take_number(j, u, "output_tokens", &t.out);
        take_number(j, u, "input_tokens", &t.in);
        /* Where what was cached is counted apart, it was read all the same. */
        uint64_t apart = 0;
        take_number(j, u, "cache_read_input_tokens", &apart);
        t.cached += apart;
        t.in += apart;
        take_number(j, u, "cache_creation_input_tokens", &t.in);
        take_number(j, u, "promptTokenCount", &t.in);
        take_number(j, u, "toolUsePromptTokenCount", &t.in);
        take_number(j, u, "candidatesTokenCount", &t.out);
        take_number(j, u, "thoughtsTokenCount", &t.out);
        take_number(j, u, "cachedContentTokenCount", &t.cached);
        return t;
}

static void add_tokens(struct digest_tokens *to, struct digest_tokens t)
{
        to->in += t.in;
        to->out += t.out;
        to->cached += t.cached;
}

static void take_tokens(struct digest_tokens *from, struct digest_tokens t)
{
        from->in -= t.in;
        from->out -= t.out;
        from->cached -= t.cached;
}

#define USAGE_LOOK 64 /* as far back an earlier word about the same reply is looked for */

/* What was counted of a message: a later word about it takes the place of an earlier one. */
static void put_usage(
    struct entry *e, struct str model, uint64_t before, uint64_t message, struct digest_tokens t)
{
        struct digest *d = &e->d;
        size_t m = model.n ? count_of(e, &d->models, &d->model_count, model) : COUNTS_MAX;
        struct digest_usage *u = NULL;
        for (size_t i = d->usage_count, n = 0; i > 0 && n < USAGE_LOOK && !u; i--, n++)
                if (d->usage[i - 1].message == before)
                        u = &d->usage[i - 1];
        if (u) {
                take_tokens(&d->tokens, u->tokens);
                if (m < COUNTS_MAX)
                        take_tokens(&d->models[m].tokens, u->tokens);
                *u = (struct digest_usage){message, t};
        } else if (d->usage_count < USAGE_MAX) {
                struct digest_usage *grown = grow(d->usage, d->usage_count, sizeof *d->usage);
                if (!grown) {
                        e->failed = true;
                        return;
                }
                d->usage = grown;
                d->usage[d->usage_count++] = (struct digest_usage){message, t};
        }
        add_tokens(&d->tokens, t);
        if (m < COUNTS_MAX)
                add_tokens(&d->models[m].tokens, t);
}

/* Of an event, {"messageId","model","usage"}. */
static void take_usage(struct entry *e, const struct json *j)
{
        char *message = json_dup_string(j, json_get(j, 0, "messageId"));
        char *model = json_dup_string(j, json_get(j, 0, "model"));
        uint64_t hash = message ? hash_64(message, strlen(message)) : 0;
        if (message && model)
                put_usage(e, str_of(model), hash, hash, tokens_of(j, json_get(j, 0, "usage")));
        free(message);
        free(model);
}

/* Of a reply that says so itself, as transcripts of other tools do. */
static void take_said_usage(struct entry *e, const struct walk_message *m)
{
        uint64_t message = hash_64(m->id, strlen(m->id));
        uint64_t reply = m->reply.n ? hash_64(m->reply.p, m->reply.n) : message;
        struct json j;
        json_init(&j);
        if (json_parse(&j, m->usage.p, m->usage.n, NULL, NULL) == 0) {
                uint64_t before = reply == e->reply ? e->reply_message : message;
                put_usage(e, m->model, before, message, tokens_of(&j, 0));
                e->reply = reply;
                e->reply_message = message;
        }
        json_release(&j);
}

/* Of a reply that came through the gateway, which notes what the endpoint said about it. */
static int take_meta(struct entry *e, const struct steno_record *r)
{
        const char *target = steno_record_target(r);
        uint64_t message = hash_64(target, strlen(target));
        char *text = NULL;
        size_t n = 0;
        struct json j;
        json_init(&j);
        if (steno_record_message(r, &text, &n, NULL) == 0 &&
            json_parse(&j, text, n, NULL, NULL) == 0) {
                json_ref facts = json_get(&j, 0, "gateway");
                json_ref usage = json_get(&j, facts, "usage");
                struct str model = json_inner(&j, json_get(&j, facts, "model"));
                if (json_type(&j, usage) == JSON_OBJECT)
                        put_usage(e, model, message, message, tokens_of(&j, usage));
                size_t m = model.n && e->unnamed == message
                               ? count_of(e, &e->d.models, &e->d.model_count, model)
                               : COUNTS_MAX;
                if (m < COUNTS_MAX)
                        e->d.models[m].calls++;
                e->unnamed = 0;
        }
        json_release(&j);
        steno_free(text);
        return e->failed;
}

/* ---- the walk ---- */

static void failure_free(struct digest_failure *f)
{
        free(f->call);
        free(f->name);
        free(f->text);
        free(f->ref);
}

static void add_failure(struct entry *e, struct digest_failure f, struct str call, struct str ref,
    const struct fault *fault)
{
        struct digest *d = &e->d;
        struct digest_day *day = day_of(e, f.at);
        if (day)
                day->failed++;
        d->failed++;
        if (d->failure_count == DIGEST_FAILURES_MAX)
                return;
        struct digest_failure *grown = grow(d->failures, d->failure_count, sizeof *d->failures);
        if (!grown) {
                e->failed = true;
                return;
        }
        d->failures = grown;
        f.call = copy(call, 1200);
        f.name = strdup(f.name ? f.name : "");
        f.text = copy(fault->text, LINE_MAX_BYTES);
        f.ref = copy(ref, NAME_MAX_BYTES);
        memcpy(f.lines, fault->lines, sizeof f.lines);
        f.line_count = fault->count;
        if (f.call && f.name && f.text && f.ref) {
                d->failures[d->failure_count++] = f;
                return;
        }
        failure_free(&f);
        e->failed = true;
}

/* Joins the two neighbours that are shortest together; what failed stays, while anything else can
 * be joined. */
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

static void tape_add(struct digest *d, char kind, uint64_t ms)
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

/* Time that was worked, of which what overlaps counts once. */
static void take_work(struct entry *e, int64_t from, int64_t to, char kind)
{
        struct digest *d = &e->d;
        if (from < d->worked_to)
                from = d->worked_to;
        tape_add(d, kind, to > from ? (uint64_t)(to - from) : 1);
        if (to > from)
                d->work_ms += to - from;
        if (to > d->worked_to)
                d->worked_to = to;
}

static void take_time(struct entry *e, int64_t at)
{
        if (!e->d.first_at)
                e->d.first_at = at;
        e->before_at = at;
        e->d.last_at = at;
}

/* A tool has noted how long it took; where that is longer than its record says, the record was
 * written by somebody else later, or at once. */
static void take_tool_time(struct entry *e, const struct walk_result *r)
{
        int64_t from = e->before_at ? e->before_at : r->at, to = r->at;
        if (r->duration >= 0) {
                from = r->at - r->duration > e->reply_at ? r->at - r->duration : e->reply_at;
                to = from + r->duration;
        }
        take_work(e, from, to, r->state == WALK_FAILED ? 'e' : 't');
        take_time(e, r->at);
}

static void take_title(struct entry *e, enum title_rank rank, struct str text)
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

static void take_title_of(struct entry *e, const struct walk_message *m)
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
        struct entry *e = ctx;
        struct digest *d = &e->d;
        bool reply = strcmp(m->role, "assistant") == 0;
        d->messages++;
        if (strcmp(m->role, "user") == 0) {
                struct digest_day *day = day_of(e, m->at);
                d->turns++;
                if (day)
                        day->turns++;
        }
        take_title_of(e, m);
        if (reply) {
                d->replies++;
                e->model = COUNTS_MAX;
                if (m->model.n)
                        e->model = count_of(e, &d->models, &d->model_count, m->model);
                if (e->model < COUNTS_MAX) {
                        d->models[e->model].calls++;
                        d->models[e->model].failed += m->failed;
                        if (e->before_at && m->at > e->before_at)
                                d->models[e->model].ms += (uint64_t)(m->at - e->before_at);
                }
                e->unnamed = m->model.n ? 0 : hash_64(m->id, strlen(m->id));
                take_work(e, e->before_at ? e->before_at : m->at, m->at, m->failed ? 'e' : 'm');
                e->reply_at = m->at;
                if (m->usage.n)
                        take_said_usage(e, m);
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
        struct entry *e = ctx;
        size_t tool = count_of(e, &e->d.tools, &e->d.tool_count, c->name);
        e->d.calls++;
        take_title(e, TITLE_TOOL, c->name);
        if (tool < COUNTS_MAX)
                e->d.tools[tool].calls++;
        if (e->open_count == OPEN_MAX)
                memmove(e->open, e->open + 1, --e->open_count * sizeof *e->open);
        struct open_call *grown = grow(e->open, e->open_count, sizeof *e->open);
        if (!grown)
                return e->failed = true;
        e->open = grown;
        e->open[e->open_count++] = (struct open_call){hash_64(c->id.p, c->id.n), c->seq, tool};
        return e->failed;
}

/* The newest open call of that id. */
static struct open_call *find_open(struct entry *e, struct str id)
{
        uint64_t hash = hash_64(id.p, id.n);
        for (size_t i = e->open_count; i > 0; i--)
                if (e->open[i - 1].hash == hash)
                        return &e->open[i - 1];
        return NULL;
}

static void close_call(struct entry *e, struct open_call *o)
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
        struct entry *e = ctx;
        struct open_call *o = find_open(e, r->call);
        struct digest_count *tool = o && o->tool < COUNTS_MAX ? &e->d.tools[o->tool] : NULL;
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
        struct entry *e;
        struct walk walk;
        struct steno_error *err;
};

static int take_record(void *ctx, const struct steno_record *r)
{
        struct reading *g = ctx;
        int rc = strcmp(steno_record_kind(r), "meta") == 0 ? take_meta(g->e, r)
                                                           : walk_record(&g->walk, r, g->err);
        g->e->d.seq = steno_record_seq(r);
        return rc;
}

/* ---- the journals of runs: tokens of their replies, and what they do just now ---- */

static int take_event(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct entry *e = ctx;
        struct json j;
        e->open_seq = seq;
        if (doing_take(&e->d.doing, type, at, data, n))
                return e->failed = true;
        if (event_find(type) != STENO_EVENT_REPLY_USAGE)
                return 0;
        json_init(&j);
        if (json_parse(&j, data, n, NULL, NULL) == 0)
                take_usage(e, &j);
        json_release(&j);
        return e->failed;
}

/* Reads a run's journal from where it was read last. What it does is of interest while it lives. */
static void read_run(struct entry *e, struct steno_store *store, const char *project,
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
        if (!json_is(j, json_get(j, run, "state"), "running"))
                doing_clear(&e->d.doing);
        if (over)
                memcpy(e->last_run, id, strlen(id) + 1);
}

/* Reads what the journals of runs have got since the last time, oldest first. */
static void read_runs(struct entry *e, struct steno_store *store, struct steno_conv *conv)
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

static void forget(struct entry *e)
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
        e->model = COUNTS_MAX;
        e->title_rank = TITLE_NONE;
        e->failed = false;
}

static int catch_up(struct entry *e, struct steno_store *store, struct steno_conv *conv, int ms,
    struct steno_error *err)
{
        struct reading g = {.e = e, .err = err};
        g.walk = (struct walk){e, take_message, take_call, take_result};
        uint64_t last = 0;
        int64_t until = time_monotonic_ms() + ms;
        int rc = steno_conv_last_seq(conv, &last, err);
        if (rc)
                return rc;
        if (last < e->d.seq)
                forget(e); /* another conversation under the same id */
        bool grown = last > e->d.seq || !e->d.whole;
        while (rc == 0 && e->d.seq < last && time_monotonic_ms() <= until) {
                uint64_t from = e->d.seq;
                rc = steno_read(conv, from, STEP, take_record, &g, err);
                if (rc == 0 && e->d.seq == from)
                        break;
        }
        e->d.whole = e->d.seq >= last;
        /* A run ends a moment behind its last message. */
        if (rc == 0 && (grown || e->run_open) && e->d.whole)
                read_runs(e, store, conv);
        if (e->failed) {
                forget(e);
                return error_nomem(err);
        }
        return rc < 0 ? rc : 0;
}

/* ---- the table ---- */

struct digests *digests_new(void)
{
        struct digests *all = calloc(1, sizeof *all);
        if (all)
                pthread_mutex_init(&all->mutex, NULL);
        return all;
}

static void entry_free(struct entry *e)
{
        forget(e);
        pthread_mutex_destroy(&e->mutex);
        free(e->project);
        free(e->id);
        free(e);
}

void digests_free(struct digests *all)
{
        if (!all)
                return;
        for (struct entry *e = all->newest, *older; e; e = older) {
                older = e->older;
                entry_free(e);
        }
        pthread_mutex_destroy(&all->mutex);
        free(all);
}

static size_t bucket_of(const char *project, const char *id)
{
        return (hash_64(project, strlen(project)) * 31 + hash_64(id, strlen(id))) % BUCKETS;
}

static void unlink_use(struct digests *all, struct entry *e)
{
        *(e->newer ? &e->newer->older : &all->newest) = e->older;
        *(e->older ? &e->older->newer : &all->oldest) = e->newer;
}

static void link_newest(struct digests *all, struct entry *e)
{
        e->newer = NULL;
        e->older = all->newest;
        *(all->newest ? &all->newest->newer : &all->oldest) = e;
        all->newest = e;
}

static void entry_drop(struct digests *all, struct entry *e)
{
        struct entry **at = &all->table[bucket_of(e->project, e->id)];
        while (*at != e)
                at = &(*at)->next;
        *at = e->next;
        unlink_use(all, e);
        all->count--;
        all->bytes -= e->bytes;
        entry_free(e);
}

/* Drops those that nobody has asked for longest. Under the mutex. */
static void make_room(struct digests *all)
{
        for (struct entry *e = all->oldest, *newer; e; e = newer) {
                newer = e->newer;
                if (all->count < KEPT_MAX && all->bytes < KEPT_BYTES)
                        return;
                if (!e->users)
                        entry_drop(all, e);
        }
}

/* Under the mutex. */
static struct entry *entry_find(struct digests *all, const char *project, const char *id)
{
        struct entry *e = all->table[bucket_of(project, id)];
        while (e && (strcmp(e->id, id) != 0 || strcmp(e->project, project) != 0))
                e = e->next;
        if (e) {
                unlink_use(all, e);
                link_newest(all, e);
        }
        return e;
}

/* Finds it or makes it. Under the mutex. */
static struct entry *entry_get(struct digests *all, const char *project, const char *id)
{
        size_t b = bucket_of(project, id);
        struct entry *found = entry_find(all, project, id);
        if (found)
                return found;
        make_room(all);
        struct entry *e = calloc(1, sizeof *e);
        if (!e)
                return NULL;
        pthread_mutex_init(&e->mutex, NULL);
        e->model = COUNTS_MAX;
        e->project = strdup(project);
        e->id = strdup(id);
        if (!e->project || !e->id) {
                entry_free(e);
                return NULL;
        }
        e->next = all->table[b];
        all->table[b] = e;
        link_newest(all, e);
        all->count++;
        return e;
}

/* About what it takes. The caller has its mutex. */
static size_t weigh(const struct entry *e)
{
        const struct digest *d = &e->d;
        return sizeof *e + d->failure_count * (sizeof *d->failures + 320) +
               (d->tool_count + d->model_count) * (sizeof *d->tools + 40) +
               d->usage_count * sizeof *d->usage + d->day_count * sizeof *d->days +
               (e->open_count * sizeof *e->open) + d->doing.count * sizeof *d->doing.calls;
}

static void leave(struct digests *all, struct entry *e, size_t bytes)
{
        pthread_mutex_lock(&all->mutex);
        all->bytes += bytes - e->bytes;
        e->bytes = bytes;
        e->users--;
        pthread_mutex_unlock(&all->mutex);
}

int digests_open(struct digests *all, struct steno_store *store, struct steno_conv *conv, int ms,
    const struct digest **out, struct steno_error *err)
{
        pthread_mutex_lock(&all->mutex);
        struct entry *e = entry_get(all, steno_conv_project(conv), steno_conv_id(conv));
        if (e)
                e->users++;
        pthread_mutex_unlock(&all->mutex);
        if (!e)
                return error_nomem(err);
        pthread_mutex_lock(&e->mutex);
        int rc = catch_up(e, store, conv, ms, err);
        if (rc) {
                size_t bytes = weigh(e);
                pthread_mutex_unlock(&e->mutex);
                leave(all, e, bytes);
                return rc;
        }
        *out = &e->d;
        return 0;
}

const struct digest *digests_known(
    struct digests *all, const char *project, const char *id, uint64_t seq)
{
        pthread_mutex_lock(&all->mutex);
        struct entry *e = entry_find(all, project, id);
        if (e && pthread_mutex_trylock(&e->mutex) != 0)
                e = NULL;
        if (e)
                e->users++;
        pthread_mutex_unlock(&all->mutex);
        if (!e || (e->d.whole && e->d.seq == seq && !e->run_open))
                return e ? &e->d : NULL;
        digests_close(all, &e->d);
        return NULL;
}

void digests_close(struct digests *all, const struct digest *d)
{
        struct entry *e = (struct entry *)d;
        if (!e)
                return;
        size_t bytes = weigh(e);
        pthread_mutex_unlock(&e->mutex);
        leave(all, e, bytes);
}

void digest_now(const struct digest *d, int64_t now, struct digest_now *out)
{
        struct digest copy = *d; /* its lists are not touched */
        int64_t from, to;
        char kind = doing_work(&d->doing, now, &from, &to);
        if (from < d->worked_to)
                from = d->worked_to;
        if (kind && to > from) {
                tape_add(&copy, kind, (uint64_t)(to - from));
                copy.work_ms += to - from;
        }
        *out = (struct digest_now){.work_ms = copy.work_ms, .tape_count = copy.tape_count};
        memcpy(out->tape, copy.tape, sizeof out->tape);
}

bool digest_usage_of(const struct digest *d, const char *message, struct digest_tokens *out)
{
        uint64_t hash = hash_64(message, strlen(message));
        for (size_t i = d->usage_count; i > 0; i--) {
                if (d->usage[i - 1].message == hash) {
                        *out = d->usage[i - 1].tokens;
                        return true;
                }
        }
        return false;
}
