/*
 * cli_follow.c - see cli_follow.h. It polls, because the writer may be on another machine, whose
 * writes the kernel does not report.
 */
#include "cli/cli_follow.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/wait.h"
#include "cli/interrupt.h"

#define POLL_MS 100
#define START_BYTES (64 * KIB) /* the first lines are looked for in this much of the end */

static int collect(void *ctx, const void *p, size_t n)
{
        struct buf *b = ctx;

        buf_put(b, p, n);
        return b->failed != 0 || interrupt_pending();
}

static int artifact_size(
    struct cli *c, const char *ref, uint64_t *size, bool *finished, struct steno_error *err)
{
        struct buf args;
        struct json j;
        char *answer = NULL;
        int rc;

        buf_init(&args, 0);
        json_init(&j);
        buf_puts(&args, "{\"ref\":");
        json_put_string(&args, str_of(ref));
        buf_puts(&args, ",\"offset\":0,\"limit\":1}");
        rc = buf_check(&args, err);
        if (rc == 0)
                rc = steno_context(c->conv, "read", args.p, args.n, &answer, err);
        if (rc == 0)
                rc = json_parse(&j, answer, strlen(answer), NULL, err);
        if (rc == 0) {
                json_u64(&j, json_get(&j, 0, "total_bytes"), size);
                *finished = !json_bool(&j, json_get(&j, 0, "unfinished"), false);
        }
        json_release(&j);
        buf_release(&args);
        steno_free(answer);
        return rc;
}

/* The last `lines` lines of a text; a line feed at its very end begins no line. */
static struct str last_lines(struct str s, uint64_t lines)
{
        size_t at = s.n;

        if (lines == 0)
                return str_span(s.p + s.n, 0);
        if (at > 0 && s.p[at - 1] == '\n')
                at--;
        for (; at > 0; at--) {
                if (s.p[at - 1] == '\n' && --lines == 0)
                        break;
        }
        return str_span(s.p + at, s.n - at);
}

static int put_start(
    struct cli *c, const char *ref, uint64_t size, uint64_t lines, struct steno_error *err)
{
        uint64_t from = size > START_BYTES ? size - START_BYTES : 0;
        struct buf b;
        int rc = 0;

        buf_init(&b, 0);
        if (size > from)
                rc = steno_context_raw(c->conv, ref, from, size - from, collect, &b, err);
        if (rc == 0)
                out_text_piece(&c->out, last_lines(buf_str(&b), lines));
        buf_release(&b);
        return rc;
}

int cli_follow_artifact(struct cli *c, const char *ref, uint64_t lines)
{
        struct steno_error err = {0};
        uint64_t at = 0, size = 0;
        bool finished = false;
        int rc = artifact_size(c, ref, &at, &finished, &err);

        if (rc == 0)
                rc = put_start(c, ref, at, lines, &err);
        while (rc == 0 && out_flush(&c->out) == 0 && !interrupt_pending()) {
                if (finished)
                        return EXIT_DONE;
                wait_sleep(POLL_MS);
                rc = steno_conv_wait(c->conv, UINT64_MAX, 0, &err); /* is it still there? */
                if (rc == 0)
                        rc = artifact_size(c, ref, &size, &finished, &err);
                if (rc == 0 && size > at) {
                        rc =
                            steno_context_raw(c->conv, ref, at, size - at, out_sink, &c->out, &err);
                        at = size;
                }
        }
        if (rc < 0)
                return cli_fail(c, &err);
        return interrupt_pending() ? EXIT_INTERRUPTED : EXIT_IO;
}
