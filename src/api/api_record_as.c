/*
 * api_record_as.c - one record in another format, as it stands: nothing is repaired, nothing is
 * left out. For APIs that give back single items.
 */
#include "api/api_record_as.h"
#include "api/api_store.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/limits.h"
#include "format/format.h"
#include "format/standin.h"
#include "model/pairing.h"
#include "model/repair.h"
#include "model/token.h"

/* Earlier versions wrote the name of the tool where there was no id. */
static struct str id_or_none(const struct part *p, struct str said, struct arena *arena)
{
        struct str name = p->name.n ? token_decode(p->name, arena, NULL) : (struct str){0};
        return name.n && str_eq(name, said) ? (struct str){0} : said;
}

int api_record_give_ids(struct message *m, const struct about *a, struct arena *arena)
{
        size_t calls = 0, answers = 0, lacking = 0;
        for (size_t i = 0; i < m->count; i++)
                lacking += (m->parts[i].kind == PART_CALL || m->parts[i].kind == PART_RESULT) &&
                           !m->parts[i].id.n;
        if (!lacking)
                return 0;
        struct str *list = arena_zalloc(arena, 2 * m->count * sizeof *list);
        if (!list)
                return STENO_ENOMEM;
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                if (p->kind == PART_CALL && calls < a->call_count) {
                        list[calls] = id_or_none(p, a->calls[calls], arena);
                        calls++;
                } else if (p->kind == PART_RESULT && answers < a->answer_count) {
                        list[m->count + answers] = id_or_none(p, a->answers[answers], arena);
                        answers++;
                }
        }
        struct message_ids ids = {.calls = list,
            .call_count = calls,
            .answers = list + m->count,
            .answer_count = answers};
        return message_give_ids(m, &ids, arena);
}

/* ---- results of old records ---- */

/* The calls that the results of one record answer. */
struct answered {
        struct pairing *pairing;
        struct arena *arena;
        struct pairing_match *matches; /* of the record at `seq` */
        uint64_t seq;
};

static int pair_record(void *ctx, const struct backend_record *r)
{
        struct answered *w = ctx;
        struct about about;
        if (r->damaged)
                return 0;
        int rc = about_read(r->rec.x, w->arena, &about, NULL);
        if (rc)
                return rc == STENO_ENOMEM ? rc : 0;
        struct pairing_match *m = arena_alloc(w->arena, (about.answer_count + 1) * sizeof *m);
        rc = m ? pairing_follow(w->pairing, r->rec.seq, r->rec.id, &about, m, NULL) : STENO_ENOMEM;
        if (rc == 0 && r->rec.seq == w->seq)
                w->matches = m;
        return rc ? rc : r->rec.seq >= w->seq;
}

/* A result that has no id in its record either answers a call by name, and has its derived id. */
static int derive_answers(struct steno_conv *conv, struct message *m, uint64_t seq,
    size_t answer_count, struct arena *arena, struct steno_error *err)
{
        struct answered w = {.pairing = pairing_new(), .arena = arena, .seq = seq};
        uint64_t after = seq > PAIRING_WINDOW ? seq - PAIRING_WINDOW - 1 : 0;
        int rc =
            w.pairing ? backend_read(conv->backend, after, pair_record, &w, err) : error_nomem(err);
        size_t n = 0;
        for (size_t i = 0; rc >= 0 && w.matches && i < m->count; i++) {
                struct part *p = &m->parts[i];
                if (p->kind != PART_RESULT || n >= answer_count)
                        continue;
                const struct pairing_match *match = &w.matches[n++];
                if (p->id.n || match->verdict == PAIRING_ORPHAN)
                        continue;
                p->id = message_derived_id(match->call_seq, match->call_index, arena);
                p->given_id = true;
        }
        pairing_free(w.pairing);
        return rc < 0 ? rc : arena->failed ? error_nomem(err) : 0;
}

static bool has_nameless_answer(const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind == PART_RESULT && !m->parts[i].id.n)
                        return true;
        return false;
}

/* ---- converting ---- */

static int convert(const struct api_record_source *s, const struct format *from,
    const struct format *to, const struct json *j, struct buf *out, struct steno_error *err)
{
        struct arena arena;
        struct history h;
        arena_init(&arena);
        int rc = format_read_history(from, j, 0, &arena, &h, err);
        for (size_t i = 0; rc == 0 && i < h.count; i++) {
                struct message *m = &h.list[i];
                m->seq = s->seq;
                if (api_record_give_ids(m, s->about, &arena))
                        rc = error_nomem(err);
                if (rc == 0 && from != to && has_nameless_answer(m))
                        rc =
                            derive_answers(s->conv, m, s->seq, s->about->answer_count, &arena, err);
        }
        if (rc == 0 && repair_link(&h, &arena))
                rc = error_nomem(err);
        if (rc == 0) {
                struct writer w = {.out = out, .arena = &arena, .strip_own = from != to};
                if (from != to && standin_history(to, &w, &h, false))
                        rc = error_nomem(err);
                else
                        rc = format_write_history(to, &w, &h, err);
        }
        arena_release(&arena);
        return rc;
}

static int record_as(const struct steno_record *r, const char *format, bool whole, char **json,
    size_t *n, struct steno_error *err)
{
        const struct format *from = format_find(steno_record_format(r));
        const struct format *to = format_find(format);
        struct json j;
        struct buf out;
        char *message = NULL;
        size_t size = 0;
        struct api_record_source source = api_record_source(r);
        if (!to)
                return format_unknown(format, err);
        if (!from)
                return error_set(err, STENO_ECORRUPT, "the record is in no known format");
        json_init(&j);
        buf_init(&out, 0);
        int rc = whole ? steno_record_original(r, &message, &size, err)
                       : api_record_stubs(r, &message, &size, err);
        if (rc == 0)
                rc = json_parse(&j, message, size, NULL, err);
        if (rc == 0)
                rc = convert(&source, from, to, &j, &out, err);
        if (rc == 0)
                rc = buf_check(&out, err);
        if (rc == 0) {
                char *text = buf_take(&out, n);
                if (text)
                        *json = text;
                else
                        rc = error_nomem(err);
        }
        json_release(&j);
        buf_release(&out);
        steno_free(message);
        return rc;
}

int steno_record_as(const struct steno_record *r, const char *format, char **json, size_t *n,
    struct steno_error *err)
{
        return record_as(r, format, false, json, n, err);
}

int steno_record_whole(const struct steno_record *r, const char *format, char **json, size_t *n,
    struct steno_error *err)
{
        return record_as(r, format, true, json, n, err);
}
