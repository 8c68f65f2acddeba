/* standin.c - see standin.h */
#include "format/standin.h"

#include "format/turns.h"
#include "format/writing.h"
#include "model/pairing.h"
#include "model/token.h"

static const char why[] = "written as text";

/* ---- what a format can express ---- */

static bool is_media(const struct part *p)
{
        return p->kind == PART_IMAGE || p->kind == PART_AUDIO || p->kind == PART_FILE;
}

static bool is_thinking(const struct part *p)
{
        return p->kind == PART_THINKING || p->kind == PART_REDACTED;
}

/* Can the format express the part? A provider refuses thinking that nothing follows. For media that
 * a provider does not accept, fit.h writes a note. */
static bool is_carried(const struct writer *w, const struct message *m, const struct part *p)
{
        bool own = writing_own(w, m);
        if (p->kind == PART_CALL || p->kind == PART_RESULT)
                return true;
        if (p->kind == PART_TEXT || p->kind == PART_REFUSAL)
                return !turns_is_blank(p->text);
        if (w->valid && is_media(p) && (w->format->flags & FORMAT_PROVIDER))
                return true;
        if (w->valid && is_thinking(p))
                return false;
        if (w->format->carries)
                return w->format->carries(w, m, p);
        if (is_thinking(p))
                return own || (w->format->flags & FORMAT_CARRIER);
        if (is_media(p))
                return own || p->media.data.p || p->media.url.p;
        return own;
}

/* ---- texts ---- */

/* `said` is a string (message.h). */
static struct str text_with(struct writer *w, const char *what, struct str said)
{
        struct str head = str_of(what);
        if (!said.n)
                return head;
        return token_join(token_join(head, STR(" "), w->arena), said, w->arena);
}

static struct str result_text(struct writer *w, const struct message *m, const struct part *p)
{
        bool second = p->stray == PAIRING_DUPLICATE;
        struct str head =
            second ? STR("[A second result of the call \\\"") : STR("[A result of the call \\\"");
        struct str id = p->id.n ? p->id : p->name;
        head = token_join(head, id, w->arena);
        head = token_join(head, second ? STR("\\\"]") : STR("\\\", which is not there]"), w->arena);
        struct str said = writing_output(w, m, p);
        return said.n ? token_join(token_join(head, STR(" "), w->arena), said, w->arena) : head;
}

static struct str part_text(struct writer *w, const struct message *m, const struct part *p)
{
        switch (p->kind) {
        case PART_THINKING:
                return text_with(w, "[Thinking]", p->text);
        case PART_REDACTED:
                return STR("[Thinking that only its provider can read]");
        case PART_RESULT:
                return result_text(w, m, p);
        case PART_IMAGE:
        case PART_AUDIO:
        case PART_FILE:
                return text_with(
                    w, "[A file that this format does not have]", token_make(p->raw, w->arena));
        case PART_OPAQUE:
                return text_with(
                    w, "[A part that this format does not have]", token_make(p->raw, w->arena));
        default:
                return (struct str){0}; /* a blank text */
        }
}

static void report(struct writer *w, const struct message *m, const struct part *p)
{
        static const char *const names[] = {[PART_IMAGE] = "image",
            [PART_AUDIO] = "audio",
            [PART_FILE] = "file",
            [PART_RESULT] = "result",
            [PART_THINKING] = "thinking",
            [PART_REDACTED] = "redacted_thinking",
            [PART_OPAQUE] = "part"};
        writing_lose(w, m, names[p->kind] ? names[p->kind] : "content", why);
        writing_lose_extras(w, m, "content", p->extras);
}

/* ---- messages ---- */

/* May the message stay empty? Not if a provider reads it, and not in formats that leave out
 * messages without content. */
static bool may_be_empty(const struct writer *w, const struct message *m)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->parts[i].kind != PART_TEXT && m->parts[i].kind != PART_REFUSAL)
                        return false;
        return !w->valid && !w->format->carries;
}

/* Replaces all parts of a message by one text. */
static int replace(struct writer *w, struct message *m)
{
        struct token_sum sum;
        bool any = false;
        if (may_be_empty(w, m))
                return 0;
        token_sum_begin(&sum);
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                struct str text = part_text(w, m, p);
                if (text.n && any)
                        token_sum_add(&sum, STR("\\n"));
                token_sum_add(&sum, text);
                any = any || text.n;
                report(w, m, p);
        }
        struct str all = token_sum_end(&sum, w->arena);
        if (!m->count)
                writing_lose(w, m, "content", "empty, written as text");
        struct part *made = arena_zalloc(w->arena, sizeof *made);
        if (!made || w->arena->failed)
                return STENO_ENOMEM;
        *made = (struct part){.kind = PART_TEXT, .text = all.n ? all : STR("[An empty message]")};
        m->parts = made;
        m->count = 1;
        m->shape = SHAPE_ANY;
        m->reasoning = false;
        if (m->role == ROLE_NONE || m->role == ROLE_TOOL)
                m->role = m->role == ROLE_NONE ? ROLE_ASSISTANT : ROLE_USER;
        message_touch(m);
        return 0;
}

static bool is_stray(const struct part *p)
{
        return p->kind == PART_RESULT && !p->peer;
}

static int replace_results(struct writer *w, struct message *m, bool all)
{
        if (!writing_own_parts(w, m, 0))
                return STENO_ENOMEM;
        for (size_t i = 0; i < m->count; i++) {
                struct part *p = &m->parts[i];
                if (p->kind != PART_RESULT || (!all && !is_stray(p)))
                        continue;
                report(w, m, p);
                *p = (struct part){.kind = PART_TEXT, .text = result_text(w, m, p), .seq = p->seq};
        }
        if (m->role == ROLE_TOOL && message_has(m, PART_TEXT))
                m->role = ROLE_USER;
        m->shape = SHAPE_ANY;
        return w->arena->failed;
}

int standin_results(struct writer *w, struct message *m)
{
        return replace_results(w, m, true);
}

int standin_history(const struct format *f, struct writer *w, struct history *h, bool strays)
{
        int rc = 0;
        w->format = f;
        for (size_t i = 0; i < h->count && !rc; i++) {
                struct message *m = &h->list[i];
                bool carried = false, stray = false;
                for (size_t k = 0; k < m->count; k++) {
                        carried = carried || is_carried(w, m, &m->parts[k]);
                        stray = stray || (strays && is_stray(&m->parts[k]));
                }
                if (stray)
                        rc = replace_results(w, m, false);
                else if (!carried && !m->item)
                        rc = replace(w, m);
        }
        return rc;
}
