/*
 * recording_place.c - the conversation that an exchange belongs to: finds it by its history, opens,
 * makes or forks it, and removes an earlier attempt at the same reply (recording_core.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/text.h"
#include "gateway/recording_core.h"

#define TITLE_CUT 80

/* ---- finding it ---- */

/* Does the request continue with another choice than the one that is the conversation's reply? Then
 * that reply leaves the views (it stays if the conversation continued with it), and the request
 * brings the other choice. */
static void find_choice(struct recording *k)
{
        struct lineage_place *p = &k->place;
        char digest[ELEMENTS_CHAIN], conv[LINEAGE_CONV];
        uint64_t seq = 0;
        struct buf name;
        size_t at = p->from;
        if ((p->kind != LINEAGE_CONTINUE && p->kind != LINEAGE_FORK) || at == 0)
                return;
        const char *chain = k->links[at - 1].chain;
        buf_init(&name, 4 * KIB);
        recording_name_choice(p->conv, chain, &name);
        if (lineage_find_id(k->to->lineage, k->owner, buf_str(&name), digest, conv, &seq)) {
                while (at > 0 && strcmp(k->links[at - 1].chain, chain) == 0)
                        at--;
                p->from = at;
                p->seq = seq;
                k->other_choice = p->kind == LINEAGE_CONTINUE;
                if (k->other_choice)
                        p->kind = LINEAGE_AGAIN;
        }
        buf_release(&name);
}

int recording_find_place(struct recording *k, struct steno_error *err)
{
        const char *only = k->named[0] ? k->named : NULL;
        int rc = lineage_find(k->to->lineage, &k->who, only, k->links, k->count, &k->place, err);
        if (rc == 0)
                find_choice(k);
        /* A history that was not seen before continues where the request says. */
        if (rc == 0 && k->base[0] && k->place.kind == LINEAGE_NEW)
                k->place = k->behind;
        if (rc == 0 && only && k->place.kind == LINEAGE_FORK)
                k->place.kind = LINEAGE_CONTINUE; /* it was named: no other one is made */
        return rc;
}

/* ---- opening it ---- */

/* What the person asked: the last text of a user in the first request. Agents put information about
 * the environment before it. If the first request comes from the middle of a conversation, results
 * of tools follow it, which have the role of the user in three of the APIs. */
static void put_title(const struct recording *k, struct jsonw *w)
{
        const struct json *j = &k->list;
        struct buf words, text;
        buf_init(&words, MESSAGE_MAX);
        buf_init(&text, MESSAGE_MAX);
        for (json_ref m = json_child(j, 0); m != JSON_NONE; m = json_next(j, 0, m)) {
                if (!json_is(j, json_get(j, m, "role"), "user"))
                        continue;
                buf_clear(&text);
                recording_put_text(j, m, &text);
                if (str_trim(buf_str(&text)).n) {
                        struct buf older = words;
                        words = text;
                        text = older;
                }
        }
        struct str s = str_trim(buf_str(&words));
        const char *line = s.n ? memchr(s.p, '\n', s.n) : NULL;
        if (line)
                s.n = (size_t)(line - s.p);
        if (s.n > TITLE_CUT)
                s.n = text_utf8_prefix(s.p, TITLE_CUT);
        if (s.n && !words.failed)
                jsonw_field_str(w, "title", s);
        buf_release(&text);
        buf_release(&words);
}

static void put_meta(const struct recording *k, struct buf *out, bool title)
{
        char *upstream = recording_member(&k->head, 0, "upstream"),
             *parent = recording_member(&k->head, 0, "parent");
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        if (title)
                put_title(k, &w);
        jsonw_key(&w, "gateway");
        jsonw_object(&w);
        jsonw_field_cstr(&w, "upstream", upstream);
        jsonw_field_cstr(&w, "wire", k->wire->name);
        if (k->group[0])
                jsonw_field_cstr(&w, "group", k->group);
        if (parent && parent[0])
                jsonw_field_cstr(&w, "parent", parent);
        if (k->place.compacted_from[0])
                jsonw_field_cstr(&w, "compactedFrom", k->place.compacted_from);
        jsonw_object_end(&w);
        jsonw_object_end(&w);
        free(upstream);
        free(parent);
}

/* The id follows from the exchange, so that a second try finds what the first one made. */
static void make_id(const struct recording *k, char out[64])
{
        snprintf(out, 64, "conv_%s", k->exchange + strlen("ex_"));
}

static int create_conv(struct recording *k, const char *id, struct steno_error *err)
{
        struct buf meta;
        buf_init(&meta, 64 * KIB);
        put_meta(k, &meta, true);
        const char *json = buf_cstr(&meta);
        int rc = json ? steno_conv_create(k->to->store, k->project, id, json, &k->conv, err)
                      : error_nomem(err);
        if (rc == STENO_ECONFLICT)
                rc = steno_conv_open(k->to->store, k->project, id, &k->conv, err);
        else if (rc == 0 && k->named[0]) /* one of this name may have been there, and was removed */
                rc = lineage_forget(k->to->lineage, k->owner, id, err);
        buf_release(&meta);
        return rc;
}

static int fork_conv(struct recording *k, const char *id, struct steno_error *err)
{
        struct steno_conv *from = NULL;
        struct steno_fork_options opt = {.size = sizeof opt, .at_seq = k->place.seq, .id = id};
        int rc = steno_conv_open(k->to->store, k->project, k->place.conv, &from, err);
        if (rc == STENO_ENOTFOUND)
                return rc;
        if (rc == 0)
                rc = steno_fork(from, &opt, &k->conv, err);
        steno_conv_close(from);
        if (rc == STENO_ECONFLICT)
                rc = steno_conv_open(k->to->store, k->project, id, &k->conv, err);
        if (rc == 0) { /* it may belong to another session than the conversation that it was forked
                          from */
                struct buf meta;
                buf_init(&meta, 64 * KIB);
                put_meta(k, &meta, false);
                const char *json = buf_cstr(&meta);
                rc = json ? steno_conv_set_meta(k->conv, json, err) : error_nomem(err);
                buf_release(&meta);
        }
        return rc;
}

int recording_open_conv(struct recording *k, struct steno_error *err)
{
        char id[64];
        int rc;
        make_id(k, id);
        if (k->place.kind == LINEAGE_FORK) {
                rc = fork_conv(k, id, err);
        } else if (k->place.kind != LINEAGE_NEW) {
                rc = steno_conv_open(k->to->store, k->project, k->place.conv, &k->conv, err);
        } else {
                rc = create_conv(k, k->named[0] ? k->named : id, err);
        }
        if (rc == STENO_ENOTFOUND) { /* it was removed meanwhile: made again, or one of its own */
                k->place = (struct lineage_place){.kind = LINEAGE_NEW};
                rc = create_conv(k, k->named[0] ? k->named : id, err);
        }
        k->conv_id = k->conv ? steno_conv_id(k->conv) : NULL;
        return rc;
}

/* ---- another attempt ---- */

struct superseded {
        struct buf ids; /* NUL-terminated, one after the other */
        bool replies;   /* only what is a reply, not what stands beside it */
};

/* Is it something about an answer that no model is shown? */
static bool is_beside(const struct steno_record *r)
{
        char *text = NULL;
        size_t n = 0;
        struct json j;
        json_init(&j);
        bool is = steno_record_message(r, &text, &n, NULL) == 0 &&
                  json_parse(&j, text, n, NULL, NULL) == 0 &&
                  (json_is(&j, json_get(&j, 0, "partType"), "choice") ||
                      json_is(&j, json_get(&j, 0, "partType"), "answer"));
        json_release(&j);
        steno_free(text);
        return is;
}

static int collect_id(void *ctx, const struct steno_record *r)
{
        struct superseded *s = ctx;
        if (strcmp(steno_record_kind(r), "message") == 0 && !(s->replies && is_beside(r))) {
                buf_puts(&s->ids, steno_record_id(r));
                buf_putc(&s->ids, '\0');
        }
        return 0;
}

int recording_supersede(struct recording *k, struct steno_error *err)
{
        struct superseded s = {.replies = k->other_choice};
        if (k->place.kind != LINEAGE_AGAIN)
                return 0;
        buf_init(&s.ids, 0);
        int rc = steno_read(k->conv, k->place.seq, 0, collect_id, &s, err);
        for (size_t at = 0; at < s.ids.n && rc == 0; at += strlen(s.ids.p + at) + 1) {
                rc = steno_amend(k->conv, "delete", s.ids.p + at, NULL, 0, NULL, NULL, err);
                if (rc == STENO_ENOTFOUND)
                        rc = 0; /* deleted by an earlier try */
        }
        buf_release(&s.ids);
        return rc ? rc : lineage_set_open(k->to->lineage, k->place.node, false, err);
}

/* ---- exchanges that come late ---- */

/* The history behind the answer. False: there is none. */
static bool chain_of_answer(const struct recording *k, char chain[ELEMENTS_CHAIN])
{
        struct json j;
        char digest[ELEMENTS_CHAIN];
        json_init(&j);
        bool good = k->count && recording_is_whole(k) && k->reply.messages.n &&
                    json_parse(&j, k->reply.messages.p, k->reply.messages.n, NULL, NULL) == 0;
        memcpy(chain, k->count ? k->links[k->count - 1].chain : "", k->count ? ELEMENTS_CHAIN : 1);
        for (json_ref m = good ? json_child(&j, 0) : JSON_NONE; m != JSON_NONE && good;
             m = json_next(&j, 0, m)) {
                good = elements_digest(k->wire, &j, m, digest) == 0;
                if (good)
                        elements_continue(chain, digest);
        }
        json_release(&j);
        return good;
}

static int keep_brought(void *ctx, const struct steno_record *r)
{
        struct recording_brought *b = ctx;
        if (strcmp(steno_record_kind(r), "message") == 0) {
                snprintf(b->id, sizeof b->id, "%s", steno_record_id(r));
                snprintf(b->at, sizeof b->at, "%s", steno_record_at(r));
        }
        return 1; /* the first */
}

bool recording_came_late(struct recording *k, struct recording_brought *b)
{
        char name[ELEMENTS_CHAIN + 8], digest[ELEMENTS_CHAIN];
        struct lineage_place p = {.kind = LINEAGE_CONTINUE};
        struct str began = json_inner(&k->head, json_get(&k->head, 0, "at"));
        if ((k->place.kind != LINEAGE_FORK && k->place.kind != LINEAGE_NEW) ||
            !chain_of_answer(k, k->chain))
                return false;
        recording_name_told(k->chain, name);
        if (!lineage_find_chain(k->to->lineage, k->owner, k->chain, p.conv, &p.seq) ||
            lineage_find_id(k->to->lineage, k->owner, str_of(name), digest, NULL, NULL) ||
            steno_conv_open(k->to->store, k->project, p.conv, &k->conv, NULL) != 0)
                return false;
        steno_read(k->conv, p.seq - 1, 1, keep_brought, b, NULL);
        /* Times are spelled alike, so their order is that of their letters. */
        bool late = b->id[0] && began.n == strlen(b->at) && memcmp(b->at, began.p, began.n) >= 0;
        if (late) {
                k->place = p;
                k->conv_id = steno_conv_id(k->conv);
                k->last_seq = p.seq;
        } else {
                steno_conv_close(k->conv);
                k->conv = NULL;
        }
        return late;
}
