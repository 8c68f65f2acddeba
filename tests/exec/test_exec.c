/* Child processes: what they see, how they end, and that nothing of them stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/limits.h"
#include "exec/exec.h"
#include "support/patience.h"
#include "support/seed.h"

extern char **environ;

struct output {
        struct buf text;
        uint64_t bytes;
        bool keep;
        int fd;
};

static int take(void *ctx, const void *p, size_t n)
{
        struct output *o = ctx;

        o->bytes += n;
        if (o->keep)
                buf_put(&o->text, p, n);
        if (o->fd >= 0 && write(o->fd, p, n) != (ssize_t)n)
                return -1;
        return 0;
}

struct trial {
        struct exec_spec spec;
        struct exec_options opt;
        struct exec_result result;
        struct steno_error err;
        struct output out;
        char **env;
};

static void trial_init(struct trial *t)
{
        memset(t, 0, sizeof(*t));
        buf_init(&t->out.text, 16 * MIB);
        t->out.keep = true;
        t->out.fd = -1;
        assert_int_equal(exec_env((const char *const *)environ, NULL, NULL, &t->env, NULL), 0);
        t->spec.env = (const char *const *)t->env;
        t->opt.sink = take;
        t->opt.sink_ctx = &t->out;
        t->opt.stop_fd = -1;
        t->opt.timeout_ms = PATIENCE_MS;
}

static int trial_run(struct trial *t)
{
        return exec_run(&t->spec, &t->opt, &t->result, &t->err);
}

static const char *trial_text(struct trial *t)
{
        return buf_cstr(&t->out.text);
}

static void trial_release(struct trial *t)
{
        buf_release(&t->out.text);
        exec_env_free(t->env);
}

static int64_t now_ms(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A directory that is removed by the test that made it. */
static char *temp_dir(char *path)
{
        strcpy(path, "/tmp/steno-exec-XXXXXX");
        assert_non_null(mkdtemp(path));
        return path;
}

static void write_text(const char *dir, const char *name, const char *text)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
}

static void remove_dir(const char *path)
{
        char command[600];

        snprintf(command, sizeof(command), "rm -rf '%s'", path);
        assert_int_equal(system(command), 0);
}

/* The number of processes whose command line has `mark`. */
static int count_alive(const char *mark)
{
        DIR *proc = opendir("/proc");
        struct dirent *e;
        int found = 0;

        while ((e = readdir(proc))) {
                char path[300], line[4096];
                snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
                int fd = open(path, O_RDONLY);
                if (fd < 0)
                        continue;
                ssize_t n = read(fd, line, sizeof(line));
                close(fd);
                found += n > 0 && memmem(line, (size_t)n, mark, strlen(mark));
        }
        closedir(proc);
        return found;
}

static bool alive(const char *mark)
{
        return count_alive(mark) > 0;
}

/* A look at /proc misses a process that is being made meanwhile, so one look does not tell. */
static bool goes_away(const char *mark)
{
        int without = 0;
        for (int i = 0; i < PATIENCE_MS / 10 && without < 10; i++) {
                without = alive(mark) ? 0 : without + 1;
                usleep(10000);
        }
        return without == 10;
}

static void an_argv_reaches_the_program_argument_by_argument(void **state)
{
        (void)state;
        struct trial t;
        const char *const argv[] = {"printf", "[%s]", "a b", "$HOME", "*", "", "\"q\"", NULL};

        trial_init(&t);
        t.spec.argv = argv;
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(trial_text(&t), "[a b][$HOME][*][][\"q\"]");
        assert_int_equal(t.result.exit_code, 0);
        trial_release(&t);
}

static void a_shell_string_is_run_by_the_shell(void **state)
{
        (void)state;
        struct trial t;

        trial_init(&t);
        t.spec.shell = "x=3; echo $((x * 2)) | cat; exit 7";
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(trial_text(&t), "6\n");
        assert_int_equal(t.result.exit_code, 7);
        assert_int_equal(t.result.signal, 0);
        trial_release(&t);
}

static void stdout_and_stderr_come_interleaved_in_order(void **state)
{
        (void)state;
        struct trial t;

        trial_init(&t);
        t.spec.shell = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done";
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(trial_text(&t), "o1\ne1\no2\ne2\no3\ne3\no4\ne4\no5\ne5\n");
        trial_release(&t);
}

static void a_death_by_signal_is_reported(void **state)
{
        (void)state;
        struct trial t;

        trial_init(&t);
        t.spec.shell = "kill -SEGV $$";
        assert_int_equal(trial_run(&t), 0);
        assert_int_equal(t.result.signal, SIGSEGV);
        assert_int_equal(t.result.exit_code, -1);
        trial_release(&t);
}

static void a_missing_program_and_a_missing_directory_are_named(void **state)
{
        (void)state;
        struct trial t;
        const char *const missing[] = {"no-such-program-here", NULL};
        const char *const denied[] = {"/etc/passwd", NULL};

        trial_init(&t);
        t.spec.argv = missing;
        assert_int_equal(trial_run(&t), STENO_ENOTFOUND);
        assert_non_null(strstr(t.err.msg, "no-such-program-here"));
        t.spec.argv = denied;
        assert_int_equal(trial_run(&t), STENO_EDENIED);
        t.spec.shell = "true";
        t.spec.directory = "/no/such/directory";
        assert_int_equal(trial_run(&t), STENO_ENOTFOUND);
        assert_non_null(strstr(t.err.msg, "/no/such/directory"));
        trial_release(&t);
}

static void it_works_in_the_directory_it_was_given(void **state)
{
        (void)state;
        struct trial t;

        trial_init(&t);
        t.spec.shell = "pwd";
        t.spec.directory = "/usr/lib";
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(trial_text(&t), "/usr/lib\n");
        trial_release(&t);
}

static void stdin_is_empty(void **state)
{
        (void)state;
        struct trial t;

        trial_init(&t);
        t.spec.shell = "cat; readlink /proc/self/fd/0";
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(trial_text(&t), "/dev/null\n");
        trial_release(&t);
}

static void the_environment_has_only_listed_variables(void **state)
{
        (void)state;
        const char *const from[] = {"PATH=/bin:/usr/bin", "HOME=/h", "LC_ALL=C",
            "OPENAI_API_KEY=canary", "LD_PRELOAD=canary", "LANGUAGE=canary", "PATHX=canary",
            "PAT=canary", "MIN=canary", "MINE=ok", "=canary", "canary", NULL};
        const char *const allowed[] = {"MINE", NULL};
        const char *const extra[] = {"HOME=/elsewhere", "TOKEN=given", NULL};
        struct trial t;

        trial_init(&t);
        exec_env_free(t.env);
        assert_int_equal(exec_env(from, allowed, extra, &t.env, NULL), 0);
        t.spec.env = (const char *const *)t.env;
        const char *const argv[] = {"env", NULL};
        t.spec.argv = argv;
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(trial_text(&t),
            "PATH=/bin:/usr/bin\nLC_ALL=C\nMINE=ok\nHOME=/elsewhere\nTOKEN=given\n");
        trial_release(&t);
}

static void a_child_cannot_read_our_environment_through_proc(void **state)
{
        (void)state;
        struct trial t;

        setenv("STENO_CANARY", "canary-4711", 1);
        trial_init(&t);
        t.spec.shell = "for f in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $f; done 2>/dev/null"
                       " | grep -c canary-47''11";
        assert_int_equal(trial_run(&t), 0);
        if (t.result.shield == EXEC_SHIELD_NONE) {
                print_message("# no shield on this machine: not tried\n");
                return;
        }
        assert_string_equal(trial_text(&t), "0\n");
        trial_release(&t);
}

static void a_child_has_three_descriptors_and_no_more(void **state)
{
        (void)state;
        struct trial t;
        /* Without O_CLOEXEC, low and high. */
        int low = open("/etc/hostname", O_RDONLY);
        int high = fcntl(low, F_DUPFD, 900);

        trial_init(&t);
        const char *const argv[] = {"ls", "/proc/self/fd", NULL};
        t.spec.argv = argv;
        assert_int_equal(trial_run(&t), 0);
        /* 3 is the directory that ls reads. */
        assert_string_equal(trial_text(&t), "0\n1\n2\n3\n");
        close(low);
        close(high);
        trial_release(&t);
}

static void a_child_has_its_own_session_and_default_signals(void **state)
{
        (void)state;
        struct trial t;

        signal(SIGPIPE, SIG_IGN);
        trial_init(&t);
        t.spec.shell = "read -r p n s pp g sid rest < /proc/self/stat; "
                       "test $$ = $sid && test $$ = $g && echo own; grep SigIgn /proc/self/status; "
                       "grep SigBlk /proc/self/status";
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(
            trial_text(&t), "own\nSigIgn:\t0000000000000000\nSigBlk:\t0000000000000000\n");
        signal(SIGPIPE, SIG_DFL);
        trial_release(&t);
}

/* Each tries to get at dir/secret/{canary,sub/canary}. */
static const char *const burglars[] = {
    "cat $D/secret/canary",
    "cat $D/secret/sub/canary",
    "cd $D/secret && cat canary",
    "cat $D/elsewhere/../secret/canary",
    "cat $D/link/canary",
    "cat $D/canary-link",
    "ln $D/secret/canary $D/elsewhere/hard && cat $D/elsewhere/hard",
    "mv $D/secret $D/moved; cat $D/moved/canary",
    "mv $D/secret/canary $D/elsewhere/c; cat $D/elsewhere/c",
    "cp -r $D/secret $D/elsewhere/copy; cat $D/elsewhere/copy/canary",
    "tar -C $D -cf - secret | cat",
    "umount $D/secret; cat $D/secret/canary",
    "umount -l $D/secret; cat $D/secret/canary",
    "mkdir -p $D/elsewhere/m && mount --bind $D $D/elsewhere/m; cat $D/elsewhere/m/secret/canary",
    "unshare -m cat $D/secret/canary",
    "unshare -Urm sh -c \"umount $D/secret; cat $D/secret/canary\"",
    "nsenter -t $PPID -m cat $D/secret/canary",
    "for p in /proc/[0-9]*; do cat $p/root$D/secret/canary; cat $p/cwd/secret/canary; done",
    "for p in /proc/[0-9]*/fd/*; do cat $p/canary; done",
    "find $D -name canary -exec cat {} +",
    "grep -r '' $D",
};

static void try_burglars(const char *directory_of_child)
{
        char dir[64], secret[128], cwd[128], path[256];
        char variable[80];

        temp_dir(dir);
        snprintf(secret, sizeof(secret), "%s/secret", dir);
        mkdir(secret, 0700);
        write_text(secret, "canary", "canary-0815\n");
        snprintf(path, sizeof(path), "%s/sub", secret);
        mkdir(path, 0700);
        write_text(path, "canary", "canary-0815\n");
        snprintf(cwd, sizeof(cwd), "%s/elsewhere", dir);
        mkdir(cwd, 0700);
        snprintf(path, sizeof(path), "%s/link", dir);
        assert_int_equal(symlink("secret", path), 0);
        snprintf(path, sizeof(path), "%s/canary-link", dir);
        assert_int_equal(symlink("secret/canary", path), 0);
        snprintf(variable, sizeof(variable), "D=%s", dir);
        const char *const extra[] = {variable, NULL};
        const char *const hidden[] = {secret, NULL};
        snprintf(path, sizeof(path), "%s/%s", dir, directory_of_child);

        for (size_t i = 0; i < sizeof(burglars) / sizeof(*burglars); i++) {
                struct trial t;
                trial_init(&t);
                exec_env_free(t.env);
                assert_int_equal(
                    exec_env((const char *const *)environ, NULL, extra, &t.env, NULL), 0);
                t.spec.env = (const char *const *)t.env;
                t.spec.shell = burglars[i];
                t.spec.hidden = hidden;
                t.spec.directory = path;
                assert_int_equal(trial_run(&t), 0);
                if (t.result.shield == EXEC_SHIELD_NONE) {
                        print_message("# no shield on this machine: not tried\n");
                        return;
                }
                if (i == 0)
                        print_message("# shield: %d\n", (int)t.result.shield);
                if (strstr(trial_text(&t), "canary-0815"))
                        fail_msg("%s got in: %s", burglars[i], trial_text(&t));
                trial_release(&t);
        }
        snprintf(path, sizeof(path), "%s/canary", secret);
        assert_int_equal(access(path, R_OK), 0);
        remove_dir(dir);
}

static void a_child_cannot_reach_a_hidden_directory(void **state)
{
        (void)state;
        try_burglars("elsewhere");
        try_burglars(".");
}

static void a_child_works_as_usual_around_a_hidden_directory(void **state)
{
        (void)state;
        char dir[64], secret[128];
        struct trial t;

        temp_dir(dir);
        snprintf(secret, sizeof(secret), "%s/secret", dir);
        mkdir(secret, 0700);
        const char *const hidden[] = {secret, NULL};
        trial_init(&t);
        t.spec.hidden = hidden;
        t.spec.directory = dir;
        t.spec.shell = "echo made > file && cat file && mkdir d && mv file d/ && ls d && "
                       "ls / > /dev/null && f=$(mktemp) && rm $f && echo fine";
        assert_int_equal(trial_run(&t), 0);
        if (t.result.shield == EXEC_SHIELD_NAMESPACE)
                assert_string_equal(trial_text(&t), "made\nfile\nfine\n");
        else
                print_message("# no namespaces here: not tried\n");
        trial_release(&t);
        remove_dir(dir);
}

/* As an ordinary user, where Landlock alone has to do. */
static void landlock_alone_hides_a_directory(void **state)
{
        (void)state;
        struct exec_shield_plan plan;
        char dir[64], secret[128], cwd[128];

        temp_dir(dir);
        snprintf(secret, sizeof(secret), "%s/secret", dir);
        mkdir(secret, 0700);
        write_text(secret, "canary", "c");
        snprintf(cwd, sizeof(cwd), "%s/work", dir);
        mkdir(cwd, 0700);
        const char *const hidden[] = {secret, NULL};
        assert_int_equal(exec_shield_plan(&plan, hidden, cwd, NULL), 0);
        if (plan.strict < 0) {
                print_message("# no shield on this machine: not tried\n");
                return;
        }
        pid_t pid = fork();
        if (pid == 0) {
                char a[300], b[300];
                unsigned gaps;
                snprintf(a, sizeof(a), "%s/canary", secret);
                snprintf(b, sizeof(b), "%s/new", cwd);
                if (exec_shield_apply(&plan, EXEC_WAY_LANDLOCK, &gaps) != EXEC_SHIELD_LANDLOCK)
                        _exit(1);
                if (open(a, O_RDONLY) >= 0 || errno != EACCES)
                        _exit(2);
                if (open(secret, O_RDONLY | O_DIRECTORY) >= 0)
                        _exit(3);
                if (open(b, O_WRONLY | O_CREAT, 0600) < 0)
                        _exit(4);
                if (unlink(a) == 0)
                        _exit(5);
                if (open("/etc/passwd", O_RDONLY) < 0 || open("/dev/null", O_RDWR) < 0)
                        _exit(6);
                _exit(0);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 0);
        exec_shield_release(&plan);
        remove_dir(dir);
}

static void a_time_out_ends_the_command(void **state)
{
        (void)state;
        bool in_time = false;

        /* On a busy machine the time may be over before the command has begun, and the grace before
         * it has ended. */
        for (int limit = 2000; !in_time; limit *= 2) {
                struct trial t;
                assert_true(limit < PATIENCE_MS);
                trial_init(&t);
                t.opt.timeout_ms = limit;
                t.spec.shell = "echo before; sleep " FOREVER_S;
                int64_t start = now_ms();
                assert_int_equal(trial_run(&t), 0);
                assert_true(t.result.timed_out);
                assert_true(now_ms() - start < limit + PATIENCE_MS);
                in_time = t.result.signal == SIGTERM && strcmp(trial_text(&t), "before\n") == 0;
                trial_release(&t);
        }
}

static void a_command_that_prints_without_end_is_ended_at_the_limit(void **state)
{
        (void)state;
        static const char *const forms[] = {
            "yes", "trap '' TERM; yes & yes; wait", "printf 12345678"};
        static const uint64_t limits[] = {1, 4096, 1000000};

        for (size_t i = 0; i < 3; i++) {
                for (size_t k = 0; k < 3; k++) {
                        struct trial t;
                        trial_init(&t);
                        t.opt.output_max = limits[k];
                        t.spec.shell = forms[i];
                        assert_int_equal(trial_run(&t), 0);
                        bool small = i == 2 && limits[k] >= 8;
                        assert_int_equal(t.result.overflowed, !small);
                        assert_int_equal(t.result.bytes, small ? 8 : limits[k]);
                        assert_int_equal(strlen(trial_text(&t)), t.result.bytes);
                        trial_release(&t);
                }
        }
}

static void a_command_that_ignores_sigterm_is_killed_after_the_grace(void **state)
{
        (void)state;
        bool ignored = false;

        /* On a busy machine the time may be over before the command ignores anything. */
        for (int limit = 2000; !ignored; limit *= 2) {
                struct trial t;
                assert_true(limit < PATIENCE_MS);
                trial_init(&t);
                t.opt.timeout_ms = limit;
                t.spec.shell = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
                int64_t start = now_ms();
                assert_int_equal(trial_run(&t), 0);
                int64_t took = now_ms() - start;
                assert_true(t.result.timed_out);
                ignored = strcmp(trial_text(&t), "ready\n") == 0;
                if (ignored) {
                        assert_int_equal(t.result.signal, SIGKILL);
                        assert_true(took >= EXEC_GRACE_MS && took < limit + PATIENCE_MS);
                }
                trial_release(&t);
        }
}

struct family {
        char mark[64];
        int size; /* processes whose command line has the mark */
};

static bool all_are_born(void *ctx)
{
        struct family *f = ctx;
        return count_alive(f->mark) >= f->size;
}

static void a_stop_ends_the_whole_tree_however_it_detached(void **state)
{
        (void)state;
        struct trial t;
        struct family f = {.size = 5};
        char script[900];

        snprintf(f.mark, sizeof(f.mark), "marker-%d-%lld", (int)getpid(), (long long)now_ms());
        /* The shell, a child, a detached session, a double fork with descriptors closed, and one
         * that ignores SIGTERM. */
        snprintf(script, sizeof(script),
            "sh -c 'sleep 61; : %1$s' & setsid sh -c 'sleep 62; : %1$s' & "
            "(setsid sh -c '(exec 0<&- 1>&- 2>&-; sleep 63; : %1$s) & ' &) ; "
            "(setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done; : %1$s' &) ; "
            "wait; sleep 60; : %1$s",
            f.mark);
        trial_init(&t);
        t.spec.shell = script;
        t.opt.stopped = all_are_born;
        t.opt.stopped_ctx = &f;
        assert_int_equal(trial_run(&t), 0);
        assert_true(t.result.stopped);
        assert_false(alive(f.mark));
        trial_release(&t);
}

static void a_stop_descriptor_stops_it_too(void **state)
{
        (void)state;
        struct trial t;
        int fd = eventfd(1, EFD_CLOEXEC);
        int64_t start = now_ms();

        trial_init(&t);
        t.opt.stop_fd = fd;
        t.spec.shell = "sleep " FOREVER_S;
        assert_int_equal(trial_run(&t), 0);
        assert_true(t.result.stopped);
        assert_true(now_ms() - start < PATIENCE_MS);
        close(fd);
        trial_release(&t);
}

static void what_a_command_leaves_behind_ends_with_it(void **state)
{
        (void)state;
        struct trial t;
        char mark[64], script[500], dir[64];
        int64_t start = now_ms();

        temp_dir(dir);
        snprintf(mark, sizeof(mark), "leftover-%d", (int)getpid());
        snprintf(script, sizeof(script),
            "(setsid sh -c 'echo late; : >%2$s/said; sleep " FOREVER_S "; : %1$s' &); "
            "while [ ! -e %2$s/said ]; do sleep 0.01; done; echo done",
            mark, dir);
        trial_init(&t);
        t.spec.shell = script;
        assert_int_equal(trial_run(&t), 0);
        assert_int_equal(t.result.exit_code, 0);
        assert_true(t.result.leftover > 0);
        assert_non_null(strstr(trial_text(&t), "done\n"));
        assert_non_null(strstr(trial_text(&t), "late\n"));
        assert_false(alive(mark));
        assert_true(now_ms() - start < PATIENCE_MS);
        remove_dir(dir);
        trial_release(&t);
}

static void the_tree_ends_when_we_are_killed(void **state)
{
        (void)state;
        char mark[64], script[200];

        snprintf(mark, sizeof(mark), "orphan-%d", (int)getpid());
        snprintf(script, sizeof(script), "setsid sh -c 'sleep " FOREVER_S "; : %s' & wait", mark);
        pid_t pid = fork();
        if (pid == 0) {
                struct trial t;
                trial_init(&t);
                t.spec.shell = script;
                trial_run(&t);
                _exit(0);
        }
        for (int i = 0; i < PATIENCE_MS / 10 && !alive(mark); i++)
                usleep(10000);
        assert_true(alive(mark));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_true(goes_away(mark));
}

static void memory_is_limited(void **state)
{
        (void)state;
        struct trial t;
        const char *const argv[] = {"python3", "-c",
            "try:\n x = bytearray(400 << 20)\n print('got it')\nexcept MemoryError:\n "
            "print('refused')",
            NULL};

        trial_init(&t);
        t.spec.argv = argv;
        t.spec.memory_bytes = 200 * MIB;
        assert_int_equal(trial_run(&t), 0);
        assert_string_equal(trial_text(&t), "refused\n");
        trial_release(&t);
}

static void processor_time_is_limited(void **state)
{
        (void)state;
        struct trial t;

        trial_init(&t);
        t.spec.shell = "while :; do :; done";
        t.spec.cpu_seconds = 1;
        assert_int_equal(trial_run(&t), 0);
        assert_int_equal(t.result.signal, SIGXCPU);
        trial_release(&t);
}

static int refuse(void *ctx, const void *p, size_t n)
{
        (void)ctx, (void)p, (void)n;
        return 1;
}

static void a_sink_that_refuses_ends_the_command(void **state)
{
        (void)state;
        struct trial t;

        trial_init(&t);
        t.opt.sink = refuse;
        t.spec.shell = "yes";
        assert_int_equal(trial_run(&t), STENO_EINTERRUPTED);
        trial_release(&t);
}

/* 50 MB by default, 1 GB with STENO_TEST_LONG=1: whole and in constant memory. How long it takes
 * beside a shell is shown. */
static void a_flood_is_whole_and_needs_constant_memory(void **state)
{
        (void)state;
        struct trial t;
        struct rusage before, after;
        uint64_t total = (uint64_t)seed_rounds(1000) * 1000000;
        char script[200], path[] = "/tmp/steno-flood-XXXXXX";

        trial_init(&t);
        t.out.keep = false;
        t.out.fd = mkstemp(path);
        t.opt.timeout_ms = FOREVER_MS;
        snprintf(script, sizeof(script), "yes 'a line of output' | head -c %llu",
            (unsigned long long)total);
        t.spec.shell = script;
        getrusage(RUSAGE_SELF, &before);
        int64_t start = now_ms();
        assert_int_equal(trial_run(&t), 0);
        int64_t took = now_ms() - start;
        getrusage(RUSAGE_SELF, &after);
        assert_int_equal(t.out.bytes, total);
        assert_int_equal(t.result.bytes, total);
        assert_true(after.ru_maxrss - before.ru_maxrss < 16 * 1024);

        char direct[300];
        snprintf(direct, sizeof(direct), "%s > %s", script, path);
        start = now_ms();
        assert_int_equal(system(direct), 0);
        int64_t plain = now_ms() - start;
        print_message("# %llu bytes: %lld ms here, %lld ms to a file\n", (unsigned long long)total,
            (long long)took, (long long)plain);
        close(t.out.fd);
        unlink(path);
        trial_release(&t);
}

/* ThreadSanitizer's own locks do not survive a fork beside other threads. */
#ifdef __SANITIZE_THREAD__
#define FORKING_THREADS 1
#else
#define FORKING_THREADS 8
#endif

static size_t open_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        size_t n = 0;

        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}

static void *run_many(void *arg)
{
        int *failures = arg;

        for (int i = 0; i < 20; i++) {
                struct trial t;
                char text[64];
                trial_init(&t);
                snprintf(text, sizeof(text), "%p-%d", arg, i);
                const char *argv[] = {"echo", "-n", text, NULL};
                t.spec.argv = argv;
                if (trial_run(&t) != 0 || !trial_text(&t) || strcmp(trial_text(&t), text) != 0) {
                        print_message("# %s: %s\n", text, t.err.msg);
                        (*failures)++;
                }
                trial_release(&t);
        }
        return NULL;
}

static void many_threads_may_run_commands_and_nothing_leaks(void **state)
{
        (void)state;
        size_t before = open_descriptors();
        pthread_t threads[FORKING_THREADS];
        int failures[FORKING_THREADS] = {0};

        for (int i = 0; i < FORKING_THREADS; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, run_many, &failures[i]), 0);
        for (int i = 0; i < FORKING_THREADS; i++)
                pthread_join(threads[i], NULL);
        for (int i = 0; i < FORKING_THREADS; i++)
                assert_int_equal(failures[i], 0);
        assert_int_equal(open_descriptors(), before);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_argv_reaches_the_program_argument_by_argument),
            cmocka_unit_test(a_shell_string_is_run_by_the_shell),
            cmocka_unit_test(stdout_and_stderr_come_interleaved_in_order),
            cmocka_unit_test(a_death_by_signal_is_reported),
            cmocka_unit_test(a_missing_program_and_a_missing_directory_are_named),
            cmocka_unit_test(it_works_in_the_directory_it_was_given),
            cmocka_unit_test(stdin_is_empty),
            cmocka_unit_test(the_environment_has_only_listed_variables),
            cmocka_unit_test(a_child_cannot_read_our_environment_through_proc),
            cmocka_unit_test(a_child_has_three_descriptors_and_no_more),
            cmocka_unit_test(a_child_has_its_own_session_and_default_signals),
            cmocka_unit_test(a_child_cannot_reach_a_hidden_directory),
            cmocka_unit_test(a_child_works_as_usual_around_a_hidden_directory),
            cmocka_unit_test(landlock_alone_hides_a_directory),
            cmocka_unit_test(a_time_out_ends_the_command),
            cmocka_unit_test(a_command_that_prints_without_end_is_ended_at_the_limit),
            cmocka_unit_test(a_command_that_ignores_sigterm_is_killed_after_the_grace),
            cmocka_unit_test(a_stop_ends_the_whole_tree_however_it_detached),
            cmocka_unit_test(a_stop_descriptor_stops_it_too),
            cmocka_unit_test(what_a_command_leaves_behind_ends_with_it),
            cmocka_unit_test(the_tree_ends_when_we_are_killed),
            cmocka_unit_test(memory_is_limited),
            cmocka_unit_test(processor_time_is_limited),
            cmocka_unit_test(a_sink_that_refuses_ends_the_command),
            cmocka_unit_test(many_threads_may_run_commands_and_nothing_leaks),
            cmocka_unit_test(a_flood_is_whole_and_needs_constant_memory),
        };

        cmocka_set_message_output(CM_OUTPUT_TAP);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
