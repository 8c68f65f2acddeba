/*
 * Two servers on one store: at whatever moment one of them looks for requests that another left
 * behind, each request belongs to exactly one process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fs.h"
#include "gateway/exchange.h"
#include "support/scratch.h"

/* What another process does between the opening of a file and its locking here. */
enum meanwhile { NOTHING, LOCKS_IT, ENDS_IT };
static enum meanwhile meanwhile;
static struct exchange *ending;
static int other = -1;

static int flock_later(const struct fs *self, int fd, int operation)
{
        char path[64];
        enum meanwhile what = meanwhile;
        (void)self;
        meanwhile = NOTHING;
        if (what == ENDS_IT)
                exchange_remove(ending);
        if (what == LOCKS_IT) {
                snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
                other = open(path, O_RDWR);
                assert_int_equal(flock(other, LOCK_EX | LOCK_NB), 0);
        }
        return fs_real()->flock(fs_real(), fd, operation);
}

struct place {
        struct scratch scratch;
        struct fs fs;
        struct env env;
        struct exchanges *all;
};

static void place_open(struct place *p)
{
        scratch_make(&p->scratch);
        p->fs = *fs_real();
        p->fs.flock = flock_later;
        p->env = *env_real();
        p->env.fs = &p->fs;
        assert_int_equal(exchanges_open(&p->env, p->scratch.path, &p->all, NULL), 0);
}

static void place_close(struct place *p)
{
        exchanges_close(p->all);
        scratch_remove(&p->scratch);
}

static struct exchange *create(struct place *p)
{
        struct exchange *x = NULL;
        assert_int_equal(exchange_create(p->all, STR("{}"), STR("body"), false, &x, NULL), 0);
        return x;
}

static void what_was_recorded_meanwhile_is_not_taken_up_again(void **state)
{
        struct place p;
        struct exchange *x = NULL;
        char id[EXCHANGE_ID];
        (void)state;
        place_open(&p);
        ending = create(&p);
        snprintf(id, sizeof id, "%s", exchange_id(ending));
        meanwhile = ENDS_IT;
        assert_int_equal(exchange_open(p.all, id, &x, NULL), STENO_ECONFLICT);
        place_close(&p);
}

static void a_file_that_another_process_has_found_is_left_to_it(void **state)
{
        struct place p;
        struct exchange *again = NULL;
        char first[EXCHANGE_ID];
        struct stat st;
        (void)state;
        place_open(&p);
        meanwhile = LOCKS_IT;
        struct exchange *x = create(&p);
        assert_true(other >= 0);
        assert_int_equal(fstat(other, &st), 0);
        assert_int_equal(st.st_size, 0); /* nothing of the request is in theirs */
        snprintf(first, sizeof first, "%s", exchange_id(x));
        assert_int_equal(exchange_open(p.all, first, &again, NULL), STENO_ECONFLICT); /* is ours */
        close(other);
        exchange_remove(x);
        place_close(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_was_recorded_meanwhile_is_not_taken_up_again),
            cmocka_unit_test(a_file_that_another_process_has_found_is_left_to_it),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
