/*
 * acp.c - the client, the agent, and the lines between them. See acp.h
 */
#include "acp/acp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acp/acp_journal.h"
#include "acp/acp_relay.h"
#include "acp/acp_scribe.h"
#include "base/error.h"
#include "base/limits.h"

#define READ_BLOCK (64 * KIB)
#define WRITE_BLOCK 4096    /* a pipe that is ready accepts this much without blocking */
#define QUEUE_MAX (8 * MIB) /* with more waiting for one side, the other side is not read */
#define LOOK_MS 200
#define PATIENCE_MS 5000 /* time from SIGTERM to SIGKILL */

/* One direction of the lines. */
struct way {
        enum acp_side to;
        int from, into; /* -1: closed */
        struct buf in;  /* bytes that were read but are not a whole line yet */
        bool passing;   /* the rest of a line that is too long is passed on */
        struct buf out; /* bytes that wait to be written */
        size_t written; /* how many of them were written */
};

struct run {
        const struct acp_options *opt;
        const struct env *env;
        struct acp_journal *journal;
        struct acp_relay *relay;
        struct way ways[2]; /* index: enum acp_side */
        pid_t agent;
        bool asked_left; /* the outputs of the remaining terminals are being fetched */
        bool told;       /* the agent got the signal to end */
        int64_t deadline;
        struct acp_scribe_result recorded;
};

/* ---- recording the journals that were left ---- */

static void conclude(struct acp_journal *j, const struct acp_scribe_result *result)
{
        if (result->refused && !result->failed)
                acp_journal_set_aside(j);
        acp_journal_close(j, !result->failed && !result->refused);
}

static int recover(struct steno_store *store, const struct env *env, const char *path,
    const char *own, uint64_t *count, struct steno_error *err)
{
        char **names = NULL;
        int rc = acp_journal_names(env, path, &names, err);
        for (size_t i = 0; rc == 0 && names[i]; i++) {
                struct acp_journal *j = NULL;
                struct acp_scribe_result result = {0};
                if (strcmp(names[i], own) == 0 ||
                    acp_journal_open(env, path, names[i], &j, NULL) != 0)
                        continue;
                acp_scribe_read(store, j, true, &result);
                if (result.failed)
                        rc = error_set(err, result.why.code, "%s", result.why.msg);
                conclude(j, &result);
                *count += 1;
        }
        acp_journal_names_free(names);
        return rc;
}

int acp_recover(
    struct steno_store *store, const char *path, uint64_t *count, struct steno_error *err)
{
        uint64_t n = 0;
        int rc = recover(store, env_real(), path, "", &n, err);
        if (count)
                *count = n;
        return rc;
}

/* Records first what earlier recorders left, because a loaded session continues behind it. */
static void *record(void *arg)
{
        struct run *run = arg;
        struct steno_error err = {0};
        uint64_t n = 0;
        if (recover(run->opt->store, run->env, run->opt->path, acp_journal_name(run->journal), &n,
                &err) != 0)
                run->opt->warn(run->opt->warn_ctx, err.msg);
        acp_scribe_read(run->opt->store, run->journal, false, &run->recorded);
        return NULL;
}

/* ---- the agent ---- */

static int make_pipes(int to[2], int from[2], struct steno_error *err)
{
        if (pipe2(to, O_CLOEXEC) != 0)
                return error_sys(err, errno, "making a pipe");
        if (pipe2(from, O_CLOEXEC) != 0) {
                int failed = errno;
                close(to[0]);
                close(to[1]);
                return error_sys(err, failed, "making a pipe");
        }
        return 0;
}

static int spawn(char **argv, int in, int out, pid_t *pid, struct steno_error *err)
{
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attr;
        sigset_t none, back;
        sigemptyset(&none);
        sigemptyset(&back);
        sigaddset(&back, SIGPIPE);
        posix_spawn_file_actions_init(&actions);
        posix_spawnattr_init(&attr);
        posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setsigdefault(&attr, &back);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        int failed = posix_spawnp(pid, argv[0], &actions, &attr, argv, environ);
        posix_spawn_file_actions_destroy(&actions);
        posix_spawnattr_destroy(&attr);
        if (failed == ENOENT)
                return error_set(
                    err, STENO_ENOTFOUND, "cannot run \"%s\": no such program in PATH", argv[0]);
        if (failed == EACCES)
                return error_set(
                    err, STENO_EDENIED, "cannot run \"%s\": it is not executable", argv[0]);
        return failed ? error_sys(err, failed, "starting %s", argv[0]) : 0;
}

static int start_agent(struct run *run, struct steno_error *err)
{
        int to[2], from[2];
        int rc = make_pipes(to, from, err);
        if (rc)
                return rc;
        rc = spawn(run->opt->argv, to[0], from[1], &run->agent, err);
        close(to[0]);
        close(from[1]);
        if (rc) {
                close(to[1]);
                close(from[0]);
                return rc;
        }
        fcntl(to[1], F_SETFL, O_NONBLOCK);
        run->ways[ACP_TO_AGENT].into = to[1];
        run->ways[ACP_TO_CLIENT].from = from[0];
        return 0;
}

/* ---- writing ---- */

static void queue(void *ctx, enum acp_side to, struct str bytes)
{
        struct run *run = ctx;
        if (run->ways[to].into >= 0)
                buf_put_str(&run->ways[to].out, bytes);
}

static size_t waiting(const struct way *w)
{
        return w->out.n - w->written;
}

/* Closes a direction because nobody reads its end any more. */
static void shut(struct run *run, struct way *w)
{
        if (w->to == ACP_TO_AGENT && w->into >= 0)
                close(w->into);
        w->into = -1;
        buf_clear(&w->out);
        w->written = 0;
        /* Without a client, the agent has no work left. */
        if (w->to == ACP_TO_CLIENT && run->ways[ACP_TO_AGENT].from >= 0)
                run->ways[ACP_TO_AGENT].from = -1;
}

static void write_some(struct run *run, struct way *w)
{
        size_t n = waiting(w);
        if (w->to == ACP_TO_CLIENT && n > WRITE_BLOCK)
                n = WRITE_BLOCK;
        ssize_t done = write(w->into, w->out.p + w->written, n);
        if (done > 0)
                w->written += (size_t)done;
        else if (done < 0 && errno != EAGAIN && errno != EINTR)
                shut(run, w);
        if (w->written == w->out.n) {
                buf_clear(&w->out);
                w->written = 0;
        }
}

/* ---- reading ---- */

static int take_lines(struct run *run, struct way *w, size_t seen, struct steno_error *err)
{
        size_t from = 0;
        int rc = 0;
        const char *nl;
        while (rc == 0 && (nl = memchr(w->in.p + seen, '\n', w->in.n - seen))) {
                size_t end = (size_t)(nl - w->in.p) + 1;
                struct str line = str_span(w->in.p + from, end - from);
                rc = w->passing ? acp_relay_pass(run->relay, w->to, line, false, err)
                                : acp_relay_take(run->relay, w->to, line, err);
                w->passing = false;
                from = seen = end;
        }
        buf_drop_front(&w->in, from);
        if (rc == 0 && (w->passing || w->in.n > ACP_LINE_MAX)) {
                rc = acp_relay_pass(run->relay, w->to, buf_str(&w->in), !w->passing, err);
                w->passing = true;
                buf_clear(&w->in);
        }
        return rc;
}

static int read_some(struct run *run, struct way *w, struct steno_error *err)
{
        char *room = buf_reserve(&w->in, READ_BLOCK);
        if (!room)
                return error_nomem(err);
        ssize_t n = read(w->from, room, READ_BLOCK);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
                return 0;
        if (n > 0) {
                size_t seen = w->in.n;
                w->in.n += (size_t)n;
                return take_lines(run, w, seen, err);
        }
        int rc = 0; /* end of the input, perhaps in a line without a line feed */
        if (w->in.n && !w->passing)
                rc = acp_relay_take(run->relay, w->to, buf_str(&w->in), err);
        buf_clear(&w->in);
        if (w->to == ACP_TO_CLIENT)
                close(w->from);
        w->from = -1;
        return rc;
}

/* ---- the loop ---- */

/* Asks the agent to end, and later kills it. */
static void tell_to_end(struct run *run)
{
        int64_t now = time_monotonic_ms();
        if (!run->told)
                kill(run->agent, SIGTERM);
        else if (now >= run->deadline)
                kill(run->agent, SIGKILL);
        else
                return;
        /* Do not wait for a client that does not read, either. */
        struct way *up = &run->ways[ACP_TO_CLIENT];
        if (run->told && run->opt->stopped() && up->into >= 0 && waiting(up))
                shut(run, up);
        run->told = true;
        run->deadline = now + PATIENCE_MS;
}

static int step(struct run *run, struct steno_error *err)
{
        struct way *down = &run->ways[ACP_TO_AGENT], *up = &run->ways[ACP_TO_CLIENT];
        int wait = acp_relay_tick(run->relay);
        bool gone = up->into < 0;
        struct pollfd p[4] = {{.fd = waiting(down) < QUEUE_MAX ? down->from : -1, .events = POLLIN},
            {.fd = waiting(up) < QUEUE_MAX ? up->from : -1, .events = POLLIN},
            {.fd = waiting(down) ? down->into : -1, .events = POLLOUT},
            {.fd = waiting(up) ? up->into : -1, .events = POLLOUT}};
        int rc = 0;
        if (run->opt->stopped() || gone)
                tell_to_end(run);
        if (poll(p, 4, wait >= 0 && wait < LOOK_MS ? wait : LOOK_MS) <= 0)
                return 0;
        if (p[2].revents)
                write_some(run, down);
        if (p[3].revents)
                write_some(run, up);
        if (p[0].revents)
                rc = read_some(run, down, err);
        if (rc == 0 && p[1].revents)
                rc = read_some(run, up, err);
        return rc;
}

static bool is_over(struct run *run)
{
        const struct way *up = &run->ways[ACP_TO_CLIENT];
        return up->from < 0 && waiting(up) == 0 &&
               (acp_relay_tick(run->relay) < 0 || run->ways[ACP_TO_AGENT].from < 0);
}

static int pass(struct run *run, struct steno_error *err)
{
        struct way *down = &run->ways[ACP_TO_AGENT], *up = &run->ways[ACP_TO_CLIENT];
        int rc = 0;
        while (rc == 0 && !is_over(run)) {
                rc = step(run, err);
                if (down->from < 0 && down->into >= 0 && !waiting(down))
                        shut(run, down);
                if (rc == 0 && up->from < 0 && up->into >= 0 && !run->asked_left) {
                        rc = acp_relay_agent_over(run->relay, err);
                        run->asked_left = true;
                }
                if (down->out.failed || up->out.failed)
                        rc = error_nomem(err);
        }
        return rc;
}

static int wait_for_agent(struct run *run)
{
        int status = 0;
        struct way *down = &run->ways[ACP_TO_AGENT], *up = &run->ways[ACP_TO_CLIENT];
        if (down->into >= 0)
                close(down->into);
        if (up->from >= 0)
                close(up->from);
        while (waitpid(run->agent, &status, WNOHANG) == 0) {
                if (run->opt->stopped() || up->into < 0 || up->from >= 0)
                        tell_to_end(run);
                poll(NULL, 0, 10);
        }
        return status;
}

static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

static int run_agent(struct run *run, struct acp_result *out, struct steno_error *err)
{
        pthread_t scribe;
        struct acp_relay_options relay = {.env = run->env,
            .journal = run->journal,
            .path = run->opt->path,
            .project = run->opt->project,
            .agent = base_name(run->opt->argv[0]),
            .program = run->opt->program,
            .url = run->opt->url,
            .send = queue,
            .send_ctx = run};
        int rc = acp_relay_new(&relay, &run->relay, err);
        if (rc == 0)
                rc = start_agent(run, err);
        if (rc)
                return rc;
        bool recording = pthread_create(&scribe, NULL, record, run) == 0;
        if (!recording)
                rc = error_set(err, STENO_EIO, "cannot start a thread");
        else
                rc = pass(run, err);
        out->status = wait_for_agent(run);
        acp_journal_end(run->journal);
        if (recording)
                pthread_join(scribe, NULL);
        return rc;
}

int acp_run(const struct acp_options *opt, struct acp_result *out, struct steno_error *err)
{
        struct run run = {.opt = opt, .env = env_real()};
        run.ways[ACP_TO_AGENT] = (struct way){.to = ACP_TO_AGENT, .from = opt->in, .into = -1};
        run.ways[ACP_TO_CLIENT] = (struct way){.to = ACP_TO_CLIENT, .from = -1, .into = opt->out};
        int rc = acp_journal_create(run.env, opt->path, opt->project, &run.journal, err);
        if (rc)
                return rc;
        for (int i = 0; i < 2; i++) {
                buf_init(&run.ways[i].in, ACP_LINE_MAX + 2 * READ_BLOCK);
                buf_init(&run.ways[i].out, 0);
        }
        void (*old)(int) = signal(SIGPIPE, SIG_IGN);
        rc = run_agent(&run, out, err);
        signal(SIGPIPE, old);
        if (run.recorded.failed || run.recorded.refused)
                opt->warn(opt->warn_ctx, run.recorded.why.msg);
        out->sessions = run.recorded.sessions;
        out->unrecorded = run.recorded.failed || run.recorded.refused;
        conclude(run.journal, &run.recorded);
        acp_relay_free(run.relay);
        for (int i = 0; i < 2; i++) {
                buf_release(&run.ways[i].in);
                buf_release(&run.ways[i].out);
        }
        return rc;
}
