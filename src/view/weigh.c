/* weigh.c - see weigh.h */
#include "view/weigh.h"

#include "base/error.h"
#include "model/token.h"
#include "view/tokens.h"

void weigher_init(struct weigher *w)
{
        buf_init(&w->text, 0);
        arena_init(&w->decode);
}

void weigher_release(struct weigher *w)
{
        buf_release(&w->text);
        arena_release(&w->decode);
}

void weigh_forget(struct weigher *w)
{
        arena_reset(&w->decode);
}

int weigher_check(const struct weigher *w, struct steno_error *err)
{
        return w->decode.failed ? error_nomem(err) : buf_check(&w->text, err);
}

static struct str joined(struct weigher *w, const struct part *of)
{
        struct token_sum text;
        token_sum_begin(&text);
        token_sum_add(&text, STR(""));
        for (size_t i = 0; i < of->child_count; i++)
                if (of->children[i].kind == PART_TEXT)
                        token_sum_add(&text, token_decode(of->children[i].text, &w->decode, NULL));
        return token_sum_end(&text, &w->decode);
}

struct str weigh_output(struct weigher *w, const struct part *result)
{
        switch (result->output_kind) {
        case OUTPUT_TEXT:
                return token_decode(result->output, &w->decode, NULL);
        case OUTPUT_DATA:
                return result->output;
        case OUTPUT_PARTS:
                return joined(w, result);
        case OUTPUT_NONE:
                break;
        }
        return STR("");
}

struct str weigh_arguments(struct weigher *w, const struct part *call)
{
        if (!call->arguments_text)
                return call->arguments;
        return token_decode(call->arguments, &w->decode, NULL);
}

/* Writes a string as Go's json.Marshal does: with escapes for <, >, & and the two line
 * separators. */
static void put_go_string(struct buf *b, struct str s)
{
        size_t done = 0;
        buf_putc(b, '"');
        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = (unsigned char)s.p[i];
                bool separator = c == 0xE2 && s.n - i >= 3 && (unsigned char)s.p[i + 1] == 0x80 &&
                                 ((unsigned char)s.p[i + 2] & 0xFE) == 0xA8;
                if (c != '<' && c != '>' && c != '&' && !separator)
                        continue;
                json_put_escaped(b, str_span(s.p + done, i - done));
                if (separator)
                        buf_printf(b, "\\u20%x", (unsigned char)s.p[i + 2] == 0xA8 ? 0x28 : 0x29);
                else
                        buf_printf(b, "\\u00%02x", c);
                i += separator ? 2 : 0;
                done = i + 1;
        }
        json_put_escaped(b, str_span(s.p + done, s.n - done));
        buf_putc(b, '"');
}

static void put_call(struct weigher *w, const struct part *call)
{
        buf_puts(&w->text, "{\"arguments\":");
        put_go_string(&w->text, weigh_arguments(w, call));
        buf_puts(&w->text, ",\"name\":");
        put_go_string(&w->text, token_decode(call->name, &w->decode, NULL));
        buf_puts(&w->text, "}");
}

uint64_t weigh_message(struct weigher *w, const struct message *m,
    struct str (*instead)(void *ctx, const struct message *m, const struct part *result), void *ctx)
{
        buf_clear(&w->text);
        weigh_forget(w);
        for (size_t i = 0; i < m->count; i++) {
                const struct part *p = &m->parts[i];
                struct str other = {0};
                if (p->kind == PART_RESULT && instead)
                        other = instead(ctx, m, p);
                if (other.p)
                        buf_put_str(&w->text, other);
                else if (p->kind == PART_RESULT)
                        buf_put_str(&w->text, weigh_output(w, p));
                else if (p->kind == PART_CALL)
                        put_call(w, p);
                else if (p->kind == PART_OPAQUE)
                        buf_put_str(&w->text, p->raw);
                else
                        buf_put_str(&w->text, token_decode(p->text, &w->decode, NULL));
                buf_putc(&w->text, '\n');
        }
        return tokens_count(w->text.p ? w->text.p : "", w->text.n);
}
