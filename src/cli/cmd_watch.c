/*
 * cmd_watch.c - steno watch: a run's events from the start, then as they come, to the last one.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/wait.h"
#include "cli/command.h"
#include "cli/events.h"
#include "cli/interrupt.h"
#include "cli/term.h"
#include "model/event.h"

#define WAIT_MS 500 /* how long Ctrl-C may have to wait */
#define TRIES 20
#define TRY_MS 5

struct watch_opts {
        struct opt_number after;
};

struct watching {
        struct cli *c;
        struct events events;
        uint64_t seen;
        bool finished;
};

static int show(
    void *ctx, uint64_t seq, const char *at, const char *type, const char *data, size_t n)
{
        struct watching *w = ctx;
        (void)at;
        w->seen = seq;
        if (!event_is_shown(type))
                return 0;
        events_print(&w->events, seq, type, data, n);
        w->finished = event_find(type) == STENO_EVENT_RUN_FINISHED;
        return w->c->out.sys != 0 || interrupt_pending() ? STENO_EINTERRUPTED : 0;
}

/* A run whose program is gone gets its last events, so that the reader sees how it ended. */
static int end_if_dead(struct cli *c, const char *run, struct steno_error *err)
{
        char *info = NULL;
        struct json j;
        int rc = steno_run_info(c->store, c->project, run, &info, err);
        if (rc < 0)
                return rc;
        json_init(&j);
        rc = json_parse(&j, info, strlen(info), NULL, err);
        if (rc == 0 && json_is(&j, json_get(&j, 0, "state"), "dead")) {
                char *conv = json_dup_string(&j, json_get(&j, 0, "conversation"));
                rc = conv ? 0 : STENO_ENOMEM;
                if (rc == 0 && c->conv == NULL)
                        rc = steno_conv_open(c->store, c->project, conv, &c->conv, err);
                if (rc == 0)
                        rc = steno_conv_recover(c->conv, NULL, err);
                free(conv);
        }
        json_release(&j);
        steno_free(info);
        return rc;
}

/* A person who watches can answer with `steno approve`, so this notes that somebody is connected.
 * It fails while another process is just checking who is connected; then it tries again, now and in
 * the next round. Other errors are ignored: then a call does not wait longer for us. */
static void say_here(struct cli *c, struct steno_watcher **here)
{
        for (int i = 0; !*here && i < TRIES; i++) {
                if (i)
                        wait_sleep(TRY_MS);
                if (steno_watch_begin(c->store, c->project, here, NULL) != STENO_ETIMEOUT)
                        return;
        }
}

static int run_watch(struct cli *c, const void *opts, int argc, char **argv)
{
        const struct watch_opts *o = opts;
        struct steno_error err = {0};
        struct watching w = {.c = c, .seen = o->after.v};
        w.events = (struct events){.out = &c->out,
            .json = c->json,
            .remarks_out = true,
            .colours = c->out.colours,
            .width = c->out.tty ? term_width() : 0};
        (void)argc;
        struct steno_watcher *here = NULL;
        int rc = cli_open_store(c, CLI_MUST_EXIST);
        if (rc != 0)
                return rc;
        const char *run = cli_run_of(c, argv[0]);
        while (!interrupt_pending()) {
                say_here(c, &here);
                rc = steno_run_read(c->store, c->project, run, w.seen, show, &w, &err);
                if (rc < 0 || w.finished)
                        break;
                rc = steno_run_wait(c->store, c->project, run, w.seen, WAIT_MS, &err);
                if (rc == 0)
                        rc = end_if_dead(c, run, &err);
                if (rc < 0)
                        break;
        }
        steno_watch_end(here);
        if (interrupt_pending())
                return EXIT_INTERRUPTED;
        return rc < 0 ? cli_fail(c, &err) : EXIT_DONE;
}

static const struct opt watch_table[] = {
    {"after", 0, OPT_NUMBER, "SEQ", offsetof(struct watch_opts, after),
        "only events after this seq"},
    {NULL, 0, OPT_FLAG, NULL, 0, NULL},
};

const struct command cmd_watch = {
    .name = "watch",
    .group = GROUP_RUN,
    .usage = "RUN",
    .summary = "shows a run's events, from the start and live",
    .detail =
        "Any number of people can watch a run, while it is active and after its end. The id of a\n"
        "conversation stands for its active run, or else its newest. With --json, events are\n"
        "printed as lines of {\"seq\",\"type\",\"data\"}; the last one is run_finished.",
    .example = "steno watch run_01J...\n"
               "steno watch nightly --after 120 --json\n"
               "steno watch demo",
    .opts = watch_table,
    .opts_size = sizeof(struct watch_opts),
    .min_args = 1,
    .max_args = 1,
    .run = run_watch,
};
