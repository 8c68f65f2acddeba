/* A handle that was not disturbed for a while stops looking at names, and still notices every
 * change. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

#include "support/faultfs.h"
#include "play.h"

#define USER "{\"role\":\"user\",\"content\":\"hello\"}"
#define KEPT "{\"id\":\"kept\",\"role\":\"user\",\"content\":\"hello\"}"

/* Long enough for the folder's last change to be clearly older than the log's. Four appends. */
static void settle(struct fixture *f, const char *first)
{
        struct timespec pause = {.tv_nsec = 150000000};
        fixture_append(f, first);
        nanosleep(&pause, NULL);
        for (int i = 0; i < 3; i++)
                fixture_append(f, USER);
}

static int append(struct fixture *f)
{
        return steno_append(f->conv, USER, strlen(USER), NULL, NULL, NULL);
}

/* Another process, as far as locks and names are concerned. */
static void other_open(struct fixture *f, struct fixture *other)
{
        *other = (struct fixture){.scratch = f->scratch};
        fixture_open(other);
}

static uint64_t last_seq(struct fixture *f)
{
        uint64_t seq = 0;
        OK(steno_conv_last_seq(f->conv, &seq, &err));
        return seq;
}

static void names_are_not_looked_at(void **state)
{
        struct fixture *f = *state;
        struct faultfs *faults = faultfs_new(play_fs());
        struct play play;
        struct faultfs_plan plan = {.calls = FAULT_STAT, .nth = 1, .for_good = true};
        struct timespec pause = {.tv_nsec = 150000000};
        fixture_close(f);
        play_init(&play, play_fs(), f->scratch.path);
        play.env.fs = faultfs_fs(faults);
        assert_int_equal(play_open(&play) || play_create(&play, 0), 0);
        struct steno_conv *conv = play.open[0];
        OK(steno_append(conv, USER, strlen(USER), NULL, NULL, &err));
        nanosleep(&pause, NULL);
        for (int i = 0; i < 3; i++)
                OK(steno_append(conv, USER, strlen(USER), NULL, NULL, &err));
        faultfs_arm(faults, &plan);
        OK(steno_append(conv, USER, strlen(USER), NULL, NULL, &err));
        faultfs_arm(faults, NULL);
        play_release(&play);
        faultfs_free(faults);
        fixture_open(f);
}

static void removed(void **state)
{
        struct fixture *f = *state, other;
        other_open(f, &other);
        settle(f, USER);
        OK(steno_remove(other.store, NULL, "c", NULL, &err));
        assert_int_equal(append(f), STENO_ENOTFOUND);
        fixture_close(&other);
}

static void moved_by_hand(void **state)
{
        struct fixture *f = *state;
        settle(f, USER);
        assert_int_equal(rename(fixture_path(f, CONV_FOLDER), fixture_path(f, "elsewhere")), 0);
        assert_int_equal(append(f), STENO_ENOTFOUND);
        assert_int_equal(rename(fixture_path(f, "elsewhere"), fixture_path(f, CONV_FOLDER)), 0);
        assert_int_equal(append(f), 0);
        assert_int_equal(last_seq(f), 5);
}

static void purged(void **state)
{
        struct fixture *f = *state, other;
        other_open(f, &other);
        settle(f, KEPT);
        OK(steno_amend(other.conv, "delete", "kept", NULL, 0, NULL, NULL, &err));
        settle(f, USER);
        OK(steno_purge(other.store, NULL, "c", NULL, &err));
        assert_int_equal(append(f), 0);
        assert_int_equal(last_seq(&other), 10); /* four, the deletion, four, this one */
        fixture_close(&other);
}

/* "lastSeq" of the conversation in a list that another makes. */
static int listed(struct fixture *other)
{
        char *json = NULL;
        OK(steno_list(other->store, NULL, NULL, &json, &err));
        char *seq = strstr(json, "\"lastSeq\":");
        int n = seq ? atoi(seq + 10) : -1;
        steno_free(json);
        return n;
}

static void listed_meanwhile(void **state)
{
        struct fixture *f = *state, other;
        other_open(f, &other);
        settle(f, USER);
        assert_int_equal(listed(&other), 4); /* takes the list of changes away */
        fixture_append(f, USER);
        assert_int_equal(listed(&other), 5);
        settle(f, USER);
        assert_int_equal(listed(&other), 9);
        fixture_close(&other);
}

/* ---- reading ---- */

static int keep_view(void *ctx, const void *p, size_t n)
{
        strncat(ctx, p, n);
        return 0;
}

#define VIEW_MAX 8192

/* The messages, and what the view says about them. */
static void view(struct steno_conv *conv, char out[VIEW_MAX])
{
        struct steno_view_options opt = {.size = sizeof opt, .format = "openai"};
        char *report = NULL;
        out[0] = '\0';
        OK(steno_view(conv, &opt, keep_view, out, &report, &err));
        strncat(out, report, VIEW_MAX - strlen(out) - 1);
        steno_free(report);
}

static void readers_do_not_open_the_log_again(void **state)
{
        struct fixture *f = *state;
        struct faultfs *faults = faultfs_new(play_fs());
        struct play play;
        struct faultfs_plan plan = {.calls = FAULT_OPEN, .nth = 1, .for_good = true};
        char first[VIEW_MAX], again[VIEW_MAX];
        fixture_close(f);
        play_init(&play, play_fs(), f->scratch.path);
        play.env.fs = faultfs_fs(faults);
        assert_int_equal(play_open(&play) || play_create(&play, 0), 0);
        OK(steno_append(play.open[0], USER, strlen(USER), NULL, NULL, &err));
        view(play.open[0], first);
        faultfs_arm(faults, &plan);
        view(play.open[0], again);
        faultfs_arm(faults, NULL);
        assert_string_equal(first, again);
        play_release(&play);
        faultfs_free(faults);
        fixture_open(f);
}

/* Changes one byte of the last record with this text, or changes it back. */
static void flip(struct fixture *f, const char *text)
{
        static char log[64 * 1024];
        size_t n = fixture_slurp(f, CONV_FOLDER "messages.jsonl", log, sizeof log);
        char *at = NULL;
        for (char *next = log; (next = strstr(next, text)); next++)
                at = next;
        assert_non_null(at);
        at[-1] ^= 1;
        FILE *out = fopen(fixture_path(f, CONV_FOLDER "messages.jsonl"), "r+");
        assert_int_equal(fwrite(log, 1, n, out), n);
        fclose(out);
}

static void put(struct fixture *f, const char *id, const char *text)
{
        char json[100];
        snprintf(
            json, sizeof json, "{\"id\":\"%s\",\"role\":\"user\",\"content\":\"<%s>\"}", id, text);
        fixture_append(f, json);
}

static void amend(struct fixture *f, const char *kind, const char *id, const char *json)
{
        OK(steno_amend(f->conv, kind, id, json, json ? strlen(json) : 0, NULL, NULL, &err));
}

#define STEPS 16

/* Changes by others to a conversation that this process reads. */
static void others_do(struct fixture *o, int step)
{
        static const char OTHER[] = "{\"role\":\"user\",\"content\":\"<other>\"}";
        switch (step) {
        case 0:
                put(o, "kept", "kept");
                return;
        case 1:
                put(o, "gone", "gone");
                return;
        case 2:
                amend(o, "delete", "gone", NULL);
                return;
        case 3:
                put(o, "changed", "changed");
                return;
        case 4:
                amend(o, "supersede", "changed", OTHER);
                return;
        case 5:
        case 6: /* whole again, with its former size */
                flip(o, "kept>");
                return;
        case 7:
        case 8: /* and the deletion */
                flip(o, "gone\"");
                return;
        case 9:
        case 12:
                OK(steno_purge(o->store, NULL, "c", NULL, &err));
                return;
        case 10:
                amend(o, "delete", "kept", NULL);
                return;
        case 11:
                put(o, "last", "last");
                return;
        case 13:
        case 14: /* the last record */
                flip(o, "last>");
                return;
        default:
                amend(o, "delete", "last", NULL);
        }
}

/* After each of these, handles that have read before return the same as a handle that has not: one
 * that has read from the start, and one for each step that began with it. */
static void readers_miss_nothing(void **state)
{
        struct fixture *f = *state, other, later[STEPS];
        static char fresh[VIEW_MAX], ours[VIEW_MAX], before[VIEW_MAX];
        struct timespec tick = {.tv_nsec = 20000000};
        settle(f, USER);
        view(f->conv, before);
        other_open(f, &other);
        for (int step = 0; step < STEPS; step++) {
                nanosleep(&tick, NULL); /* so that another change has another time */
                others_do(&other, step);
                unlink(fixture_path(f, CONV_FOLDER "ids.idx")); /* it would know, too */
                other_open(f, &later[step]);
                view(later[step].conv, fresh);
                view(f->conv, ours);
                assert_string_equal(ours, fresh);
                for (int i = 0; i < step; i++) {
                        view(later[i].conv, ours);
                        assert_string_equal(ours, fresh);
                }
                if (step != 9 && step != 12) /* a purge takes away what is not shown */
                        assert_string_not_equal(fresh, before);
                strcpy(before, fresh);
        }
        for (int i = 0; i < STEPS; i++)
                fixture_close(&later[i]);
        fixture_close(&other);
}

/* Somebody copies an older log over the file, in place, and it grows beyond its former size. */
static void a_log_that_was_put_back_is_read_anew(void **state)
{
        struct fixture *f = *state;
        static char old[64 * 1024], ours[VIEW_MAX], fresh[VIEW_MAX];
        struct fixture other, later;
        put(f, "kept", "kept");
        size_t n = fixture_slurp(f, CONV_FOLDER "messages.jsonl", old, sizeof old);
        for (int i = 0; i < 8; i++)
                fixture_append(f, USER);
        view(f->conv, ours);
        FILE *out = fopen(fixture_path(f, CONV_FOLDER "messages.jsonl"), "w");
        assert_int_equal(fwrite(old, 1, n, out), n);
        fclose(out);
        other_open(f, &other);
        amend(&other, "delete", "kept", NULL);
        for (int i = 0; i < 10; i++)
                fixture_append(&other, USER);
        other_open(f, &later);
        view(later.conv, fresh);
        assert_null(strstr(fresh, "<kept>"));
        view(f->conv, ours);
        assert_string_equal(ours, fresh);
        fixture_close(&later);
        fixture_close(&other);
}

/* A process begins a run and dies. A handle that knew of no runs finds it. */
static void the_first_run_is_noticed(void **state)
{
        struct fixture *f = *state;
        char text[VIEW_MAX], *runs = NULL;
        settle(f, USER);
        view(f->conv, text);
        view(f->conv, text);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                struct fixture own = {.scratch = f->scratch};
                struct steno_run *run;
                fixture_open(&own);
                _exit(steno_run_begin(own.conv, NULL, "chat", &run, NULL) != 0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        view(f->conv, text);
        OK(steno_run_list(f->conv, &runs, &err));
        assert_non_null(strstr(runs, "\"reason\":\"died\""));
        steno_free(runs);
}

/* ---- blocks that are reserved behind the end ---- */

static struct stat log_stat(struct fixture *f)
{
        struct stat st;
        assert_int_equal(stat(fixture_path(f, CONV_FOLDER "messages.jsonl"), &st), 0);
        return st;
}

static void blocks_go_back(void **state)
{
        struct fixture *f = *state;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"a\"}");
        struct stat open = log_stat(f);
        assert_true(open.st_size < 4096);
        assert_true(open.st_blocks * 512 >= 65536);
        fixture_close(f);
        struct stat closed = log_stat(f);
        assert_int_equal(open.st_size, closed.st_size);
        assert_true(closed.st_blocks * 512 <= 8192);
        fixture_open(f);
        assert_int_equal(last_seq(f), 1);
}

/* Its writer was killed: the next one gives them back. */
static void blocks_of_the_dead_go_back(void **state)
{
        struct fixture *f = *state;
        fixture_append(f, "{\"role\":\"user\",\"content\":\"a\"}");
        fixture_close(f);
        int fd = open(fixture_path(f, CONV_FOLDER "messages.jsonl"), O_RDWR);
        assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 65536), 0);
        close(fd);
        fixture_open(f);
        fixture_append(f, "{\"role\":\"user\",\"content\":\"b\"}");
        fixture_close(f);
        assert_true(log_stat(f).st_blocks * 512 <= 8192);
        fixture_open(f);
        assert_int_equal(last_seq(f), 2);
}

#define IN_STORE(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
            IN_STORE(names_are_not_looked_at),
            IN_STORE(removed),
            IN_STORE(moved_by_hand),
            IN_STORE(purged),
            IN_STORE(listed_meanwhile),
            IN_STORE(readers_do_not_open_the_log_again),
            IN_STORE(readers_miss_nothing),
            IN_STORE(a_log_that_was_put_back_is_read_anew),
            IN_STORE(the_first_run_is_noticed),
            IN_STORE(blocks_go_back),
            IN_STORE(blocks_of_the_dead_go_back),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
