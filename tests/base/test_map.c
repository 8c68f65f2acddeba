/* Files as memory, and what happens when they become shorter. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fs.h"
#include "base/map.h"

#define SIZE ((size_t)1 << 20)

static int file_make(void)
{
        char path[] = "/tmp/test_map.XXXXXX";
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        unlink(path);
        char *bytes = malloc(SIZE);
        memset(bytes, 'x', SIZE);
        assert_int_equal(write(fd, bytes, SIZE), SIZE);
        free(bytes);
        return fd;
}

static size_t count(const struct map *m, char c)
{
        size_t n = 0;
        for (size_t i = 0; i < m->n; i++)
                n += m->p[i] == c;
        return n;
}

static void a_map_shows_the_bytes_of_a_file(void **state)
{
        int fd = file_make();
        struct map m = {0};
        (void)state;
        assert_int_equal(fs_real()->map(fs_real(), fd, SIZE, &m), 0);
        assert_int_equal(count(&m, 'x'), SIZE);
        assert_false(map_is_broken(&m));
        map_close(&m);
        assert_null(m.p);
        map_close(&m);
        assert_true(map_open(&m, -1, SIZE) < 0);
        close(fd);
}

static void a_file_that_becomes_shorter_breaks_its_map_and_no_other(void **state)
{
        int fd[2] = {file_make(), file_make()};
        struct map m[2];
        (void)state;
        for (int i = 0; i < 2; i++)
                assert_int_equal(map_open(&m[i], fd[i], SIZE), 0);
        assert_int_equal(ftruncate(fd[0], 4096), 0);
        assert_int_equal(m[0].p[SIZE - 1], 0);
        assert_true(map_is_broken(&m[0]));
        assert_int_equal(count(&m[0], 0), SIZE);
        assert_int_equal(count(&m[1], 'x'), SIZE);
        assert_false(map_is_broken(&m[1]));
        for (int i = 0; i < 2; i++) {
                map_close(&m[i]);
                close(fd[i]);
        }
}

static void *read_cut_file(void *arg)
{
        bool *broken = arg;
        int fd = file_make();
        struct map m;
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, NULL);
        if (map_open(&m, fd, SIZE) == 0 && ftruncate(fd, 0) == 0 && count(&m, 0) == SIZE)
                *broken = map_is_broken(&m);
        map_close(&m);
        close(fd);
        return NULL;
}

static void threads_that_block_all_signals_are_safe_too(void **state)
{
        pthread_t threads[4];
        bool broken[4] = {false};
        (void)state;
        for (int i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, read_cut_file, &broken[i]), 0);
        for (int i = 0; i < 4; i++) {
                pthread_join(threads[i], NULL);
                assert_true(broken[i]);
        }
}

/* In a child: a mapping of somebody else, in a process in which maps were used. */
static void touch_foreign(void)
{
        struct rlimit none = {0, 0};
        struct map m;
        int fd = file_make();
        setrlimit(RLIMIT_CORE, &none);
        const volatile char *p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
        if (map_open(&m, fd, SIZE) || ftruncate(fd, 0))
                _exit(1);
        _exit(2 + p[SIZE - 1]);
}

static void caught(int sig)
{
        _exit(40 + (sig == SIGBUS));
}

static int status_of_child(void (*handler)(int))
{
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
                signal(SIGBUS, handler);
                touch_foreign();
        }
        waitpid(pid, &status, 0);
        return status;
}

static void a_signal_that_no_map_caused_goes_where_it_went_before(void **state)
{
        (void)state;
        int status = status_of_child(SIG_DFL);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
        status = status_of_child(caught);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 41);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_signal_that_no_map_caused_goes_where_it_went_before),
            cmocka_unit_test(a_map_shows_the_bytes_of_a_file),
            cmocka_unit_test(a_file_that_becomes_shorter_breaks_its_map_and_no_other),
            cmocka_unit_test(threads_that_block_all_signals_are_safe_too),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
