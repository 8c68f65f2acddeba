/*
 * acp_terminal.c - terminals: four shapes of output. See acp_record.h
 *
 *   terminal/...        the client runs the command and sends the whole output each time
 *   _meta.terminal_...  the agent runs it and sends pieces in updates of the call
 *   terminal_update,    the agent runs it and sends pieces, or all, in updates of their own, as
 *   terminal_output_..  base64
 *   text in a call      the agent sends the output with the call's end (acp_result.c)
 */
#include "acp/acp_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/limits.h"

#define EARLY_MAX (8 * MIB) /* bytes of pieces that wait for the call that shows the terminal */
#define AGAIN_MAX (1 * GIB) /* bytes of pieces that may be stored from before a kill */

struct acp_terminal *acp_terminal_get(struct acp_record *r, struct str id, bool make)
{
        id.n = id.n ? strnlen(id.p, id.n) : 0; /* a NUL ends a name here */
        const struct acp_node *node = acp_index_first(&r->terminals_by_id, id.p, id.n);
        if (node || !make)
                return node ? node->value : NULL;
        struct acp_terminal *t = calloc(1, sizeof *t);
        if (!t || !(t->id = strndup(id.p, id.n))) {
                free(t);
                return NULL;
        }
        buf_init(&t->text, 0);
        t->began = r->now;
        t->number = r->terminal_count++;
        t->prev = r->last_terminal;
        *(r->last_terminal ? &r->last_terminal->next : &r->terminals) = t;
        r->last_terminal = t;
        acp_index_add(&r->terminals_by_id, &t->by_id, t->id, t);
        return t;
}

void acp_terminal_free(struct acp_terminal *t)
{
        if (!t)
                return;
        steno_output_free(t->out);
        buf_release(&t->text);
        free(t->id);
        free(t->command);
        free(t->call);
        free(t->signal);
        free(t);
}

void acp_terminal_take(struct acp_record *r, struct acp_terminal *t)
{
        *(t->prev ? &t->prev->next : &r->terminals) = t->next;
        *(t->next ? &t->next->prev : &r->last_terminal) = t->prev;
        t->next = t->prev = NULL;
        acp_index_remove(&r->terminals_by_id, &t->by_id);
        if (t->call)
                acp_index_remove(&r->terminals_by_call, &t->by_call);
}

/* Sets the call that shows the terminal. */
static void set_call(struct acp_record *r, struct acp_terminal *t, const char *call)
{
        t->call = strdup(call);
        if (t->call)
                acp_index_add(&r->terminals_by_call, &t->by_call, t->call, t);
}

/* Ends a terminal. This may end its call. */
static void end(struct acp_record *r, struct acp_terminal *t)
{
        char call[CALL_ID_MAX + 1];
        t->ended = true;
        if (!t->call) {
                if (t->own_call) {
                        acp_terminal_take(r, t);
                        acp_terminal_store(r, t);
                }
                return;
        }
        snprintf(call, sizeof call, "%s", t->call); /* this may free the terminal */
        acp_call_settle(r, call);
}

/* ---- pieces ---- */

/* Writes pieces to a file as soon as their call is known. Pieces that may be stored already, or
 * that may be repeated, are held until the terminal ends. */
static void flow(struct acp_record *r, struct acp_terminal *t)
{
        struct steno_error err = {0};
        struct acp_call *c = t->call ? acp_call_find(r, t->call) : NULL;
        bool waits = r->replaying || r->stored_count;
        if (t->out || t->snapshots || r->failed || t->text.n == 0)
                return;
        if (waits ? t->text.n < AGAIN_MAX : !c && t->text.n < EARLY_MAX)
                return;
        t->own_call = !c;
        char *name = c ? acp_call_name(c) : strdup("terminal");
        char call[CALL_ID_MAX];
        acp_terminal_call_id(t, call);
        int rc = acp_output_begin(r, name ? name : "tool", c ? c->id : call, true, &t->out);
        if (rc == 0)
                rc = steno_output_write(t->out, t->text.p, t->text.n, &err);
        if (rc)
                acp_record_fail(r, rc, &err);
        buf_release(&t->text);
        buf_init(&t->text, 0);
        free(name);
}

static void add_piece(struct acp_record *r, struct acp_terminal *t, struct str bytes)
{
        struct steno_error err = {0};
        if (t->out && !r->failed) {
                int rc = steno_output_write(t->out, bytes.p, bytes.n, &err);
                if (rc)
                        acp_record_fail(r, rc, &err);
                return;
        }
        buf_put_str(&t->text, bytes);
        flow(r, t);
}

static void add_base64(struct acp_record *r, struct acp_terminal *t, struct str text, bool whole)
{
        size_t n = text.n / 4 * 3;
        struct buf bytes;
        buf_init(&bytes, 0);
        for (size_t i = text.n; i && text.p[i - 1] == '=' && text.n - i < 2; i--)
                n--;
        char *room = buf_reserve(&bytes, n ? n : 1);
        if (room && text.n % 4 == 0 && base64_take(text, room, n))
                bytes.n = n;
        if (whole && !t->out)
                buf_clear(&t->text);
        if (!whole || !t->out)
                add_piece(r, t, buf_str(&bytes));
        buf_release(&bytes);
}

static void take_exit(struct acp_terminal *t, const struct json *j, json_ref status)
{
        json_ref code = json_get(j, status, "exitCode");
        if (json_type(j, status) != JSON_OBJECT)
                return;
        if (code == JSON_NONE)
                code = json_get(j, status, "exit_code");
        t->has_exit = json_i64(j, code, &t->exit_code) || t->has_exit;
        char *signal = json_dup_string(j, json_get(j, status, "signal"));
        if (signal) {
                free(t->signal);
                t->signal = signal;
        }
}

/* ---- the client's terminals ---- */

void acp_terminal_created(
    struct acp_record *r, const struct json *j, json_ref params, struct str id)
{
        static const char *const told[] = {"command", "args", "cwd"};
        struct acp_terminal *t = acp_terminal_get(r, id, true);
        struct buf b;
        if (!t)
                return;
        t->snapshots = true;
        buf_init(&b, MESSAGE_MAX);
        struct jsonw w = jsonw_to(&b);
        jsonw_object(&w);
        for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
                json_ref v = json_get(j, params, told[i]);
                if (v != JSON_NONE)
                        jsonw_field_copy(&w, told[i], j, v);
        }
        jsonw_object_end(&w);
        free(t->command);
        t->command = buf_take(&b, NULL);
}

void acp_terminal_snapshot(
    struct acp_record *r, struct str id, const struct json *j, json_ref result)
{
        struct acp_terminal *t = acp_terminal_get(r, id, false);
        json_ref output = json_get(j, result, "output");
        if (!t)
                return;
        if (json_type(j, output) == JSON_STRING) {
                buf_clear(&t->text);
                json_string(j, output, &t->text, NULL);
                t->truncated = json_bool(j, json_get(j, result, "truncated"), false);
                take_exit(t, j, json_get(j, result, "exitStatus"));
        } else {
                take_exit(t, j, result); /* of terminal/wait_for_exit */
        }
}

void acp_terminal_released(struct acp_record *r, struct str id)
{
        struct acp_terminal *t = acp_terminal_get(r, id, false);
        if (t)
                end(r, t);
}

/* ---- the agent's terminals ---- */

static struct acp_terminal *named(
    struct acp_record *r, const struct json *j, json_ref obj, const char *key, const char *call)
{
        struct buf id;
        buf_init(&id, 64 * KIB);
        struct acp_terminal *t = NULL;
        if (json_string(j, json_get(j, obj, key), &id, NULL) && id.n)
                t = acp_terminal_get(r, buf_str(&id), true);
        buf_release(&id);
        if (t && call && !t->call)
                set_call(r, t, call);
        return t;
}

void acp_terminal_take_meta(
    struct acp_record *r, const char *call, const struct json *j, json_ref meta)
{
        static const char *const pieces[] = {"terminal_output", "terminal_output_delta"};
        json_ref info = json_get(j, meta, "terminal_info");
        json_ref over = json_get(j, meta, "terminal_exit");
        struct buf data;
        if (info != JSON_NONE)
                named(r, j, info, "terminal_id", call);
        buf_init(&data, 0);
        for (size_t i = 0; i < 2; i++) {
                json_ref piece = json_get(j, meta, pieces[i]);
                struct acp_terminal *t =
                    piece == JSON_NONE ? NULL : named(r, j, piece, "terminal_id", call);
                buf_clear(&data);
                if (t && json_string(j, json_get(j, piece, "data"), &data, NULL))
                        add_piece(r, t, buf_str(&data));
        }
        buf_release(&data);
        struct acp_terminal *t = over == JSON_NONE ? NULL : named(r, j, over, "terminal_id", call);
        if (!t)
                return;
        take_exit(t, j, over);
        if (t->call && strcmp(t->call, call) == 0)
                t->ended = true; /* this update also settles the call */
        else
                end(r, t);
}

void acp_terminal_update(struct acp_record *r, const struct json *j, json_ref update)
{
        struct acp_terminal *t = named(r, j, update, "terminalId", NULL);
        json_ref output = json_get(j, update, "output"), over = json_get(j, update, "exitStatus");
        json_ref command = json_get(j, update, "command");
        if (!t)
                return;
        if (json_type(j, command) == JSON_STRING && !t->command) {
                struct buf b;
                buf_init(&b, MESSAGE_MAX);
                struct jsonw w = jsonw_to(&b);
                jsonw_object(&w);
                jsonw_field_copy(&w, "command", j, command);
                if (json_type(j, json_get(j, update, "cwd")) == JSON_STRING)
                        jsonw_field_copy(&w, "cwd", j, json_get(j, update, "cwd"));
                jsonw_object_end(&w);
                t->command = buf_take(&b, NULL);
        }
        if (json_type(j, output) == JSON_OBJECT)
                add_base64(r, t, json_inner(j, json_get(j, output, "data")), true);
        if (json_type(j, over) == JSON_OBJECT) {
                take_exit(t, j, over);
                end(r, t);
        }
}

void acp_terminal_chunk(struct acp_record *r, const struct json *j, json_ref update)
{
        struct acp_terminal *t = named(r, j, update, "terminalId", NULL);
        if (t)
                add_base64(r, t, json_inner(j, json_get(j, update, "data")), false);
}

/* ---- calls and their terminals ---- */

void acp_terminal_attach(struct acp_record *r, struct str id, const struct acp_call *c)
{
        struct acp_terminal *t = acp_terminal_get(r, id, true);
        if (!t || t->call || t->own_call)
                return;
        set_call(r, t, c->id);
        flow(r, t);
}

struct acp_terminal *acp_terminal_of_call(struct acp_record *r, const struct acp_call *c)
{
        struct acp_terminal *first = NULL;
        for (const struct acp_node *n =
                 acp_index_first(&r->terminals_by_call, c->id, strlen(c->id));
             n; n = acp_index_next(n)) {
                struct acp_terminal *t = n->value;
                if (!t->own_call && (!first || t->number < first->number))
                        first = t;
        }
        return first;
}

bool acp_terminals_open(struct acp_record *r, const struct acp_call *c)
{
        struct acp_terminal *t = acp_terminal_of_call(r, c);
        return t && !t->ended;
}

void acp_terminals_turn_over(struct acp_record *r)
{
        for (struct acp_terminal *t = r->terminals; t; t = t->next) {
                const struct acp_call *c = t->call ? acp_call_find(r, t->call) : NULL;
                if (!t->snapshots && c && c->over)
                        t->ended = true;
                if (t->ended && !t->call)
                        t->own_call = true;
        }
}

void acp_terminals_settle_of(struct acp_record *r, const char *call)
{
        bool known = acp_call_find(r, call) != NULL;
        struct acp_node *n = acp_index_first(&r->terminals_by_call, call, strlen(call));
        while (n) {
                struct acp_terminal *t = n->value;
                n = acp_index_next(n);
                if (t->ended && (t->own_call || !known)) {
                        acp_terminal_take(r, t);
                        acp_terminal_store(r, t);
                }
        }
}

void acp_terminals_settle(struct acp_record *r, bool all)
{
        struct acp_terminal *t = r->terminals;
        while (t) {
                struct acp_terminal *next = t->next;
                bool claimed = t->call && !t->own_call && acp_call_find(r, t->call);
                /* A terminal that has just ended may still be shown by a later call. */
                if (all || (t->ended && !claimed && (t->call || t->own_call))) {
                        acp_terminal_take(r, t);
                        acp_terminal_store(r, t);
                }
                t = next;
        }
}
