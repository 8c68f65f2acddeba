/*
 * recording.c - what of an exchange is stored, and in which order (recording.h).
 */
#include "gateway/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "gateway/recording_core.h"

static int append_as(struct recording *k, const char *key, struct str json, const char *format,
    bool sync, char id[LINEAGE_CONV], struct steno_error *err)
{
        struct steno_receipt *receipt = NULL;
        struct steno_append_options opt = {.size = sizeof opt,
            .flags = STENO_RECORD | STENO_ANEW,
            .durability = sync ? STENO_FULL : STENO_PROCESS,
            .format = format,
            .idempotency_key = key};
        int rc = steno_append(k->conv, json.p, json.n, &opt, &receipt, err);
        if (rc == 0) {
                k->last_seq = steno_receipt_last_seq(receipt);
                if (id)
                        snprintf(id, LINEAGE_CONV, "%s", steno_receipt_id(receipt, 0));
        }
        steno_receipt_free(receipt);
        return rc;
}

int recording_append(struct recording *k, struct str json, const char *format, bool sync,
    char id[LINEAGE_CONV], struct steno_error *err)
{
        char key[80];
        snprintf(key, sizeof key, "%s/%u", k->exchange, k->appended++);
        return append_as(k, key, json, format, sync, id, err);
}

int recording_note_node(struct recording *k, bool tip, bool open, struct steno_error *err)
{
        struct lineage_node node = {.conv = k->conv_id,
            .seq = k->last_seq,
            .chain = k->chain,
            .replied = k->replied,
            .tip = tip,
            .open = open};
        return k->chain[0] ? lineage_add(k->to->lineage, &k->who, &node, err) : 0;
}

/* A message that no model is shown. It has a key of its own: after a kill the gap is not known any
 * more, and the other records must keep their keys. */
static int store_gap(struct recording *k, struct steno_error *err)
{
        const struct gap *gap = gaps_find(k->to->gaps, k->owner);
        char words[160], key[80];
        struct buf b;
        if (!gap)
                return 0;
        snprintf(words, sizeof words, "%u request%s of this client since %s could not be recorded",
            gap->count, gap->count == 1 ? "" : "s", gap->since);
        snprintf(key, sizeof key, "%s/gap", k->exchange);
        buf_init(&b, 4 * KIB);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        jsonw_field_cstr(&w, "role", "system");
        jsonw_field_cstr(&w, "content", words);
        jsonw_field_cstr(&w, "partType", "gap");
        jsonw_field_bool(&w, "includeInContext", false);
        jsonw_object_end(&w);
        int rc = buf_check(&b, err);
        if (rc == 0)
                rc = append_as(k, key, buf_str(&b), NULL, true, NULL, err);
        k->gap_told = rc == 0;
        buf_release(&b);
        return rc;
}

static int store_answer(struct recording *k, struct steno_error *err)
{
        char id[LINEAGE_CONV] = "";
        bool whole = recording_is_whole(k);
        /* The end of the request: a client that got no whole answer may send it again, and where
         * nothing of an answer was kept it is the end of the conversation so far. */
        bool items = strcmp(k->wire->name, "responses") == 0 && k->stream; /* also of a cut one */
        bool kept = k->reply.count > 0 && (whole || items);
        char asked[ELEMENTS_CHAIN];
        uint64_t asked_seq = k->last_seq;
        memcpy(asked, k->chain, sizeof asked);
        int rc = recording_note_node(k, !kept, !whole || k->fate->gone, err);
        if (rc == 0)
                rc = recording_store_rounds(k, id, err);
        /* Items of a cut answer that belong to an earlier round are stored with it. */
        kept = kept && (k->told || k->parts.notes.n == 0);
        if (rc == 0 && kept)
                rc = recording_store_reply(k, whole, id, err);
        if (rc == 0 && whole)
                rc = recording_store_choices(k, asked, asked_seq, err);
        if (rc == 0 && whole && (k->reply.odd.n || !id[0]))
                rc = recording_store_odd(k, id, err);
        if (rc == 0 && !whole)
                rc = recording_store_failure(k, id, err);
        if (rc == 0 && id[0])
                rc = recording_store_facts(k, id, whole, err);
        return rc;
}

static int store(struct recording *k, struct steno_error *err)
{
        struct recording_brought brought = {0};
        int rc = recording_find_place(k, err);
        bool late = rc == 0 && recording_came_late(k, &brought);
        if (rc == 0)
                rc = lineage_check(k->to->lineage, err);
        if (rc == 0 && late) {
                rc = recording_store_facts(k, brought.id, true, err);
                return rc ? rc : recording_note_reply(k, err);
        }
        memcpy(k->chain, k->base, sizeof k->chain);
        k->replied = k->base[0] != '\0';
        if (rc == 0)
                rc = recording_open_conv(k, err);
        for (size_t i = 0; rc == 0 && i < k->place.from; i++)
                k->replied = k->replied || k->links[i].assistant;
        k->last_seq = k->place.seq;
        if (rc == 0)
                rc = recording_supersede(k, err);
        if (rc == 0)
                rc = lineage_continued(k->to->lineage, k->conv_id, err);
        if (rc == 0)
                rc = store_gap(k, err);
        if (rc == 0)
                rc = recording_store_beside(k, err);
        if (rc == 0)
                rc = recording_store_request(k, err);
        if (rc == 0)
                rc = store_answer(k, err);
        return rc;
}

static int transact(struct recording *k, struct steno_error *err)
{
        char digest[ELEMENTS_CHAIN];
        struct lineage *l = k->to->lineage;
        if (lineage_find_id(l, k->owner, str_of(k->exchange), digest, NULL, NULL))
                return 0; /* all of it was stored, and then the process was killed */
        int rc = lineage_begin(l, k->owner, err);
        if (rc)
                return rc;
        rc = store(k, err);
        if (rc == 0)
                rc = lineage_add_id(
                    l, k->owner, str_of(k->exchange), "", k->conv_id, k->last_seq, err);
        if (rc == 0)
                rc = lineage_commit(l, err);
        if (rc)
                lineage_rollback(l);
        else if (k->gap_told)
                gaps_forget(&k->to->gaps, k->owner);
        return rc;
}

/* ---- how it ended ---- */

static void put_fate(struct buf *out, const struct recorder_fate *f)
{
        struct jsonw w = jsonw_to(out);
        jsonw_object(&w);
        jsonw_field_bool(&w, "cut", f->cut);
        jsonw_field_bool(&w, "killed", f->killed);
        jsonw_field_bool(&w, "gone", f->gone);
        jsonw_field_bool(&w, "known", f->known);
        jsonw_field_u64(&w, "delivered", f->delivered);
        jsonw_field_cstr(&w, "why", f->why);
        jsonw_object_end(&w);
}

static bool read_fate(struct str text, struct recorder_fate *f)
{
        struct json j;
        struct buf why;
        json_init(&j);
        buf_init(&why, 4 * KIB);
        bool good = json_parse(&j, text.p, text.n, NULL, NULL) == 0 &&
                    json_string(&j, json_get(&j, 0, "why"), &why, NULL) && buf_cstr(&why);
        if (good) {
                *f = (struct recorder_fate){.cut = json_bool(&j, json_get(&j, 0, "cut"), false),
                    .killed = json_bool(&j, json_get(&j, 0, "killed"), false),
                    .gone = json_bool(&j, json_get(&j, 0, "gone"), false),
                    .known = json_bool(&j, json_get(&j, 0, "known"), false)};
                json_u64(&j, json_get(&j, 0, "delivered"), &f->delivered);
                snprintf(f->why, sizeof f->why, "%s", why.p);
        }
        buf_release(&why);
        json_release(&j);
        return good;
}

/* Before the first attempt appends anything, it writes down what it knows about the exchange. Later
 * attempts use this, because after a kill they could not know it and would make other records. */
static int agree_on_fate(
    struct recording *k, struct exchange *x, struct recorder_fate *first, struct steno_error *err)
{
        struct buf text;
        if (k->parts.fate.n && read_fate(buf_str(&k->parts.fate), first)) {
                k->fate = first;
                return 0;
        }
        if (exchange_in_memory(x))
                return 0; /* nothing of it is left after a kill */
        buf_init(&text, 4 * KIB);
        put_fate(&text, k->fate);
        int rc = buf_check(&text, err);
        if (rc == 0 && (rc = exchange_note_fate(x, buf_str(&text))) != 0)
                error_set(err, rc, "cannot write down how a request ended");
        buf_release(&text);
        return rc;
}

/* An exchange that was in memory alone is lost. */
static void note_gap(struct recording *k)
{
        if (k->owner)
                gaps_note(
                    &k->to->gaps, k->owner, json_inner(&k->head, json_get(&k->head, 0, "at")));
}

int recording_store(struct recording_target *to, struct exchange *x,
    const struct recorder_fate *fate, struct recording_outcome *out, struct steno_error *err)
{
        struct recording k = {.to = to, .fate = fate, .exchange = exchange_id(x)};
        struct recorder_fate first;
        json_init(&k.head);
        json_init(&k.answer);
        json_init(&k.request);
        json_init(&k.list);
        buf_init(&k.list_text, 0);
        wire_answer_init(&k.reply);
        lineage_trust(to->lineage);
        int rc = exchange_load(x, &k.parts, err);
        out->torn = rc == STENO_ECORRUPT;
        if (rc == 0)
                rc = recording_read_request(&k, err);
        if (rc == 0 && k.wire)
                rc = agree_on_fate(&k, x, &first, err);
        if (rc == 0 && k.wire)
                rc = recording_read_answer(&k, err);
        if (rc == 0 && k.wire)
                rc = transact(&k, err);
        if (rc && exchange_in_memory(x))
                note_gap(&k);
        out->understood = k.wire != NULL;
        steno_conv_close(k.conv);
        wire_answer_release(&k.reply);
        free(k.links);
        free(k.project);
        free(k.group);
        free(k.named);
        free(k.owner);
        buf_release(&k.list_text);
        json_release(&k.list);
        json_release(&k.request);
        json_release(&k.answer);
        json_release(&k.head);
        exchange_parts_release(&k.parts);
        return rc;
}
