/*
 * rounds.c - see rounds.h
 */
#include "gateway/rounds.h"

#include <stdlib.h>

#include "base/error.h"
#include "gateway/owncalls.h"
#include "gateway/veil.h"

struct rounds {
        const struct wire *wire;
        struct seams *seams;
        char *owner;
        struct splice prompt;
        struct veil *veil;
        bool stream;
        unsigned count;      /* requests that were answered */
        bool unanswered;     /* the model was asked for the last time and had nothing to say */
        struct buf messages; /* of the rounds so far, with commas between */
        struct buf shown;    /* of a stream: what the client got, to know what it will send back */
        struct buf first_id;
};

int rounds_new(const struct splice_options *opt, struct str request, struct rounds **out,
    struct steno_error *err)
{
        struct rounds *r = calloc(1, sizeof *r);
        if (!r)
                return error_nomem(err);
        r->wire = opt->wire;
        r->seams = opt->seams;
        r->owner = strdup(opt->owner);
        splice_init(&r->prompt);
        buf_init(&r->messages, 0);
        buf_init(&r->shown, 0);
        buf_init(&r->first_id, 0);
        int rc = r->owner ? splice_make(&r->prompt, opt, request, err) : error_nomem(err);
        if (rc == 0 && r->prompt.offered) {
                r->veil = veil_new(opt->wire);
                rc = r->veil ? 0 : error_nomem(err);
        }
        if (rc)
                rounds_free(r);
        else
                *out = r;
        return rc;
}

void rounds_free(struct rounds *r)
{
        if (!r)
                return;
        veil_free(r->veil);
        splice_release(&r->prompt);
        buf_release(&r->messages);
        buf_release(&r->shown);
        buf_release(&r->first_id);
        free(r->owner);
        free(r);
}

struct str rounds_body(const struct rounds *r)
{
        return buf_str(&r->prompt.body);
}

bool rounds_offered(const struct rounds *r)
{
        return r->prompt.offered;
}

bool rounds_again(const struct rounds *r)
{
        return r->count > 0;
}

bool rounds_is_unanswered(const struct rounds *r)
{
        return r->unanswered;
}

/* ---- an answer ---- */

void rounds_begin(struct rounds *r, bool stream)
{
        r->stream = stream;
        veil_begin(r->veil, stream, r->count >= OWNCALLS_ROUNDS_MAX);
}

static int keep_shown(struct rounds *r, const struct buf *out, size_t from)
{
        buf_put(&r->shown, out->p + from, out->n - from);
        return r->shown.failed;
}

int rounds_feed(struct rounds *r, const char *p, size_t n, struct buf *out)
{
        size_t from = out->n;
        int rc = veil_feed(r->veil, p, n, out);
        return rc ? rc : keep_shown(r, out, from);
}

int rounds_end(struct rounds *r, struct buf *out)
{
        size_t from = out->n;
        int rc = veil_end(r->veil, out);
        return rc ? rc : keep_shown(r, out, from);
}

bool rounds_is_busy(const struct rounds *r)
{
        return !r->stream || veil_hides(r->veil);
}

/* ---- between rounds ---- */

/* The round as the model said it, for the recorder. `final`: the turn ends with it. */
static int note_round(struct rounds *r, struct exchange *x, const struct wire_answer *reply,
    const struct owncalls *h, bool final, struct steno_error *err)
{
        struct buf line;
        buf_init(&line, 0);
        struct jsonw w = jsonw_to(&line);
        jsonw_object(&w);
        jsonw_field_bool(&w, "final", final);
        if (reply->id.n)
                jsonw_field_str(&w, "id", buf_str(&reply->id));
        if (reply->usage.n)
                jsonw_field_raw(&w, "usage", buf_str(&reply->usage));
        jsonw_key(&w, "messages");
        struct buf *b = jsonw_value(&w);
        buf_putc(b, '[');
        buf_put_str(b, buf_str(&h->messages));
        buf_putc(b, ']');
        if (h->lead.n) {
                jsonw_key(&w, "lead");
                b = jsonw_value(&w);
                buf_putc(b, '[');
                buf_put_str(b, buf_str(&h->lead));
                buf_putc(b, ']');
        }
        jsonw_object_end(&w);
        if (!line.failed)
                json_single_line(line.p, line.n);
        int rc = buf_check(&line, err);
        if (rc == 0 && (rc = exchange_note(x, buf_str(&line))) != 0)
                error_set(err, rc, "a round could not be recorded");
        (void)r;
        buf_release(&line);
        return rc;
}

/* The history as the client will send it, behind the answer that it got. */
static int chain_after(
    struct rounds *r, struct str shown, char chain[ELEMENTS_CHAIN], struct steno_error *err)
{
        struct wire_answer seen;
        struct json j;
        wire_answer_init(&seen);
        json_init(&j);
        memcpy(chain, r->prompt.chain, ELEMENTS_CHAIN);
        int rc = r->wire->read_answer(shown, r->stream, &seen);
        if (rc == 0 && seen.messages.n)
                rc = json_parse(&j, seen.messages.p, seen.messages.n, NULL, NULL);
        for (json_ref m = rc || !seen.messages.n ? JSON_NONE : json_child(&j, 0); m != JSON_NONE;
             m = json_next(&j, 0, m)) {
                char digest[ELEMENTS_CHAIN];
                if (elements_digest(r->wire, &j, m, digest) != 0)
                        rc = STENO_ENOMEM;
                else
                        elements_continue(chain, digest);
        }
        json_release(&j);
        wire_answer_release(&seen);
        return rc ? error_set(err, rc, "the answer could not be read") : 0;
}

static int save_seam(struct rounds *r, const struct wire_answer *reply, const struct owncalls *h,
    struct str shown, struct steno_error *err)
{
        char after[ELEMENTS_CHAIN];
        struct seam seam;
        seam_init(&seam);
        memcpy(seam.before, r->prompt.chain, sizeof seam.before);
        buf_put_str(&seam.messages, buf_str(&r->messages));
        buf_put_str(&seam.lead, buf_str(&h->lead));
        int rc = chain_after(r, shown, after, err);
        if (rc == 0 && strcmp(after, seam.before) != 0)
                rc = seams_add(r->seams, r->owner, str_of(after), &seam, err);
        /* A client names a turn by its first answer; the endpoint knows all of it by the last
         * one. */
        if (rc == 0 && strcmp(r->wire->name, "responses") == 0 && r->first_id.n) {
                buf_clear(&seam.messages);
                buf_clear(&seam.lead);
                buf_put_str(&seam.messages, buf_str(&reply->id));
                buf_put_str(&seam.lead, buf_str(&h->results));
                rc = seams_add(r->seams, r->owner, buf_str(&r->first_id), &seam, err);
        }
        seam_release(&seam);
        return rc;
}

/* The last round: makes the rest of what the client gets. */
static int finish(struct rounds *r, const struct wire_answer *reply, const struct owncalls *h,
    struct buf *out, struct steno_error *err)
{
        size_t from = out->n;
        int rc = veil_rest(r->veil, out);
        if (rc == 0)
                rc = keep_shown(r, out, from);
        if (rc)
                return error_set(err, rc, "the answer could not be put together");
        return veil_hides(r->veil) ? save_seam(r, reply, h, buf_str(&r->shown), err) : 0;
}

static int work(struct rounds *r, struct exchange *x, const struct wire_answer *reply, bool *again,
    struct buf *out, struct steno_error *err)
{
        struct owncalls h;
        owncalls_init(&h);
        bool on = veil_goes_on(r->veil);
        int rc = reply->messages.n ? owncalls_answer(r->wire, buf_str(&reply->messages),
                                         r->prompt.stubs, r->count >= OWNCALLS_ROUNDS_MAX, &h, err)
                                   : 0;
        if (rc == 0 && r->count == 0)
                buf_put_str(&r->first_id, buf_str(&reply->id));
        if (rc == 0 && r->messages.n && h.messages.n)
                buf_putc(&r->messages, ',');
        if (rc == 0)
                buf_put_str(&r->messages, buf_str(&h.messages));
        r->unanswered = rc == 0 && veil_is_called_in_vain(r->veil) && h.shown == 0;
        if (rc == 0 && veil_is_whole(r->veil))
                rc = note_round(r, x, reply, &h, !on && !r->unanswered, err);
        r->count++;
        if (rc == 0 && on)
                rc = splice_go_on(&r->prompt, buf_str(&h.messages), err);
        if (rc == 0 && on && r->count >= OWNCALLS_ROUNDS_MAX)
                rc = splice_withdraw(&r->prompt, r->wire, err);
        if (rc == 0 && r->unanswered) /* else an app would take nothing for an answer */
                rc = error_set(err, STENO_EPROTO,
                    "the model called context tools in more than %d rounds and gave no answer",
                    OWNCALLS_ROUNDS_MAX);
        if (rc == 0 && !on)
                rc = finish(r, reply, &h, out, err);
        *again = on;
        owncalls_release(&h);
        return rc;
}

int rounds_work(
    struct rounds *r, struct exchange *x, bool *again, struct buf *out, struct steno_error *err)
{
        struct wire_answer reply;
        *again = false;
        if (!veil_hides(r->veil)) { /* a whole answer that is the client's as it came */
                int rc = veil_rest(r->veil, out);
                return rc ? error_set(err, rc, "the answer could not be put together") : 0;
        }
        wire_answer_init(&reply);
        reply.answered = true;
        int rc = r->wire->read_answer(veil_raw(r->veil), r->stream, &reply);
        rc = rc ? error_set(err, rc, "the answer could not be read")
                : work(r, x, &reply, again, out, err);
        wire_answer_release(&reply);
        return rc;
}
