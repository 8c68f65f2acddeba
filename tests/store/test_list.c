/* Listing: what changed is seen, however the list of changes was passed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/scratch.h"
#include "play.h"

struct world {
        struct scratch scratch;
        struct play play;
};

static int world_make(void **state)
{
        struct world *w = malloc(sizeof *w);
        if (scratch_make(&w->scratch))
                return -1;
        play_init(&w->play, play_fs(), w->scratch.path);
        *state = w;
        return play_open(&w->play) || play_create(&w->play, 0) || play_create(&w->play, 1);
}

static int world_drop(void **state)
{
        struct world *w = *state;
        play_release(&w->play);
        scratch_remove(&w->scratch);
        free(w);
        return 0;
}

/* "lastSeq" of a conversation in the list; -1: not listed. */
static int listed(struct world *w, const char *id)
{
        char *json, want[64];
        assert_int_equal(steno_list(w->play.store, NULL, NULL, &json, NULL), 0);
        snprintf(want, sizeof want, "{\"id\":\"%s\"", id);
        char *at = strstr(json, want);
        char *seq = at ? strstr(at, "\"lastSeq\":") : NULL;
        int n = seq ? atoi(seq + 10) : -1;
        steno_free(json);
        return n;
}

static void taken_list(void **state)
{
        struct world *w = *state;
        assert_int_equal(listed(w, "conv-0"), 0);
        for (int i = 1; i <= 20; i++) {
                /* The one makes a new list, which may get the inode of the last; the other must
                 * not take it for that one. */
                play_append(&w->play, i % 2, 1, STENO_FULL, 0);
                play_append(&w->play, (i + 1) % 2, 1, STENO_FULL, 0);
                assert_int_equal(listed(w, "conv-0"), i);
                assert_int_equal(listed(w, "conv-1"), i);
        }
}

static void lost_index(void **state)
{
        struct world *w = *state;
        char path[600];
        play_append(&w->play, 0, 3, STENO_FULL, 0);
        assert_int_equal(listed(w, "conv-0"), 3);
        play_close(&w->play);
        for (int i = 0; i < 3; i++) {
                static const char *const NAMES[] = {"index.db", "index.db-wal", "index.db-shm"};
                snprintf(path, sizeof path, "%s/%s", w->scratch.path, NAMES[i]);
                unlink(path);
        }
        assert_int_equal(play_open(&w->play), 0);
        assert_int_equal(listed(w, "conv-0"), 3);
        play_close(&w->play);
        snprintf(path, sizeof path, "%s/index.db", w->scratch.path);
        FILE *f = fopen(path, "w");
        fputs("this is no database, but it has some length to it", f);
        fclose(f);
        assert_int_equal(play_open(&w->play), 0);
        assert_int_equal(listed(w, "conv-0"), 3);
}

/* A number of a conversation in the list; -1: not listed. */
static int figure(struct world *w, const char *id, const char *name)
{
        char *json, want[64];
        assert_int_equal(steno_list(w->play.store, NULL, NULL, &json, NULL), 0);
        snprintf(want, sizeof want, "{\"id\":\"%s\"", id);
        char *at = strstr(json, want);
        snprintf(want, sizeof want, "\"%s\":", name);
        char *number = at ? strstr(at, want) : NULL;
        int n = number ? atoi(number + strlen(want)) : -1;
        steno_free(json);
        return n;
}

static void append(struct steno_conv *c, const char *json)
{
        assert_int_equal(steno_append(c, json, strlen(json), NULL, NULL, NULL), 0);
}

static void amend(struct steno_conv *c, const char *kind, const char *target, const char *json)
{
        assert_int_equal(
            steno_amend(c, kind, target, json, json ? strlen(json) : 0, NULL, NULL, NULL), 0);
}

static void shown_messages(void **state)
{
        struct world *w = *state;
        struct steno_conv *c;
        assert_int_equal(steno_conv_open(w->play.store, NULL, "conv-0", &c, NULL), 0);
        append(c, "[{\"id\":\"a\",\"role\":\"user\",\"content\":\"1\"},"
                  "{\"id\":\"b\",\"role\":\"user\",\"content\":\"2\"},"
                  "{\"id\":\"c\",\"role\":\"user\",\"content\":\"3\"}]");
        assert_int_equal(figure(w, "conv-0", "messages"), 3);
        amend(c, "meta", "a", "{\"includeInContext\":false}");
        amend(c, "supersede", "a", "{\"role\":\"user\",\"content\":\"one\"}");
        amend(c, "supersede", "a", "{\"role\":\"user\",\"content\":\"One\"}");
        assert_int_equal(figure(w, "conv-0", "messages"), 3);
        amend(c, "delete", "b", NULL);
        assert_int_equal(figure(w, "conv-0", "messages"), 2);
        amend(c, "delete", "a", NULL);
        append(c, "{\"id\":\"d\",\"role\":\"user\",\"content\":\"4\"}");
        assert_int_equal(figure(w, "conv-0", "messages"), 2);
        assert_int_equal(figure(w, "conv-0", "lastSeq"), 9);
        steno_conv_close(c);
        /* However it is counted: on from what was known, from nothing, after a purge. */
        char *json = NULL, path[600];
        assert_int_equal(steno_purge(w->play.store, NULL, "conv-0", &json, NULL), 0);
        steno_free(json);
        assert_int_equal(figure(w, "conv-0", "messages"), 2);
        for (int i = 0; i < 2; i++) {
                static const char *const DERIVED[] = {
                    "index.db", "projects/default/conversations/conv-0/ids.idx"};
                for (int k = 0; k <= i; k++) {
                        snprintf(path, sizeof path, "%s/%s", w->scratch.path, DERIVED[k]);
                        assert_int_equal(unlink(path), 0);
                }
                assert_int_equal(figure(w, "conv-0", "messages"), 2);
        }
}

static void removed_while_open(void **state)
{
        struct world *w = *state;
        char path[600];
        struct steno_store *other;
        assert_int_equal(listed(w, "conv-0"), 0);
        snprintf(path, sizeof path, "%s/index.db", w->scratch.path);
        unlink(path);
        play_append(&w->play, 0, 1, STENO_FULL, 0);
        assert_int_equal(listed(w, "conv-0"), 1); /* must not keep the change to itself */
        assert_int_equal(access(path, F_OK), 0);
        struct steno_store *mine = w->play.store;
        assert_int_equal(steno_open(w->scratch.path, NULL, &other, NULL), 0);
        w->play.store = other;
        assert_int_equal(listed(w, "conv-0"), 1);
        w->play.store = mine;
        steno_close(other);
}

#define TEST(name, f)                                                                              \
        {                                                                                          \
                name, f, world_make, world_drop, NULL                                              \
        }

int main(void)
{
        cmocka_set_message_output(CM_OUTPUT_TAP);
        const struct CMUnitTest tests[] = {
            TEST("every change is listed, though lists of changes come and go", taken_list),
            TEST("an index that is lost or damaged is made anew", lost_index),
            TEST("an index that is removed under our hands is made anew", removed_while_open),
            TEST("messages are those that can be seen", shown_messages),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
