/* Listing: every change is seen, however the list of changes was passed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
                /* One process makes a new list, which may get the inode of the last one; the other
                 * process must not take it for the last one. */
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
        /* However it is counted: on from an earlier state, from the beginning, after a purge. */
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

static off_t log_path(struct world *w, const char *id, char path[600])
{
        struct stat st;
        snprintf(
            path, 600, "%s/projects/default/conversations/%s/messages.jsonl", w->scratch.path, id);
        assert_int_equal(stat(path, &st), 0);
        return st.st_size;
}

/* Appends a message whose record makes the log exactly `size` bytes long. */
static void append_up_to(struct world *w, struct steno_conv *c, const char *id, off_t size)
{
        char path[600], json[1000], filler[600] = "";
        off_t before = log_path(w, id, path);
        append(c, "{\"id\":\"2\",\"role\":\"user\",\"content\":\"\"}");
        off_t one = log_path(w, id, path) - before;
        off_t left = size - before - 2 * one;
        assert_true(left >= 0 && left < (off_t)sizeof filler);
        memset(filler, 'x', (size_t)left);
        snprintf(json, sizeof json, "{\"id\":\"3\",\"role\":\"user\",\"content\":\"%s\"}", filler);
        append(c, json);
        assert_int_equal(log_path(w, id, path), size);
}

static void copy_file(const char *from, const char *to)
{
        char bytes[8192];
        FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
        size_t n = fread(bytes, 1, sizeof bytes, in);
        assert_true(n < sizeof bytes);
        assert_int_equal(fwrite(bytes, 1, n, out), n);
        fclose(in);
        fclose(out);
}

/* A backup that was restored may be as long as the log that it replaces. */
static void same_size(void **state)
{
        struct world *w = *state;
        struct steno_conv *c;
        char from[600], to[600];
        assert_int_equal(steno_conv_open(w->play.store, NULL, "conv-0", &c, NULL), 0);
        append(c, "{\"id\":\"1\",\"role\":\"user\",\"content\":\"\"}");
        append(c, "{\"id\":\"2\",\"role\":\"user\",\"content\":\"with some more words in it\"}");
        amend(c, "delete", "1", NULL);
        steno_conv_close(c);
        assert_int_equal(figure(w, "conv-0", "messages"), 1);
        off_t size = log_path(w, "conv-0", to);
        assert_int_equal(steno_conv_open(w->play.store, NULL, "conv-1", &c, NULL), 0);
        append(c, "{\"id\":\"1\",\"role\":\"user\",\"content\":\"\"}");
        append_up_to(w, c, "conv-1", size);
        steno_conv_close(c);
        assert_int_equal(figure(w, "conv-1", "messages"), 3);
        log_path(w, "conv-1", from);
        play_close(&w->play);
        copy_file(from, to);
        snprintf(
            from, sizeof from, "%s/projects/default/conversations/conv-0/ids.idx", w->scratch.path);
        unlink(from);
        snprintf(from, sizeof from, "%s/recent", w->scratch.path);
        FILE *recent = fopen(from, "ab");
        fputs("default/conv-0\n", recent);
        fclose(recent);
        assert_int_equal(play_open(&w->play), 0);
        assert_int_equal(figure(w, "conv-0", "messages"), 3);
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
        assert_int_equal(listed(w, "conv-0"), 1); /* must not keep the change for itself */
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
            TEST("an index that is lost or damaged is rebuilt", lost_index),
            TEST("an index that is removed while it is open is rebuilt", removed_while_open),
            TEST("messages are those that can be seen", shown_messages),
            TEST("a log that was replaced by another of the same size is counted again", same_size),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
