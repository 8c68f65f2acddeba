/* histories.h - for tests of edits: a history from JSON, repaired, and back. */
#ifndef VIEW_HISTORIES_H
#define VIEW_HISTORIES_H

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "format/format.h"
#include "model/repair.h"
#include "view/work.h"

struct histories {
        struct arena arena;
        struct json j;
        struct history h;
        struct buf report;
        struct jsonw jw;
        struct work w;
        char *text;
};

static inline int histories_open(struct histories *t, const char *format, const char *json)
{
        struct steno_error err;
        struct history stored;
        struct repair_options opt = {.synthesize = true};
        memset(t, 0, sizeof *t);
        arena_init(&t->arena);
        json_init(&t->j);
        buf_init(&t->report, 0);
        t->jw = jsonw_to(&t->report);
        t->text = strdup(json);
        if (json_parse(&t->j, t->text, strlen(t->text), NULL, &err))
                return -1;
        if (format_read_history(format_find(format), &t->j, 0, &t->arena, &stored, &err))
                return -2;
        if (repair_history(&stored, &opt, &t->arena, &t->h))
                return -3;
        t->w = (struct work){.h = &t->h, .arena = &t->arena, .pin = UINT64_MAX, .report = &t->jw};
        jsonw_array(&t->jw);
        return work_init(&t->w, &err);
}

/* The history as it is now, written again; freed with free(). */
static inline char *histories_json(struct histories *t, const char *format)
{
        struct steno_error err;
        struct buf out;
        buf_init(&out, 0);
        struct writer w = {.out = &out, .arena = &t->arena, .valid = true, .strip_own = true};
        if (format_write_history(format_find(format), &w, &t->h, &err))
                return NULL;
        return buf_take(&out, NULL);
}

static inline void histories_close(struct histories *t)
{
        work_release(&t->w);
        buf_release(&t->report);
        json_release(&t->j);
        arena_release(&t->arena);
        free(t->text);
}

#endif
