/*
 * bench_server.c - what the server costs beside the library, and what it bears.
 *
 *   bench_server [DIRECTORY [PART]]     (or STENO_BENCH_DIR; needs STENO_BUILD or STENO)
 *
 * 1. Durable appends of 1 KB: 64 connections to the server against 64 threads of this process on
 *    the library, in short rounds that take turns.
 * 2. Reads of a view against a file of a disk that holds the same bytes, likewise.
 * 3. 10,000 readers of a run that says nothing: memory, and how long an event takes to all.
 * 4. Other requests while 2,000 connections send their headers a byte a second.
 * 5. Other requests and memory while 100 readers of a large run do not read.
 * Prints a line of JSON for 1 and 2 and one for the others; PART is appends, reads or rest. Where
 * it says "cpuUs" it is processor time for each request, of the server, of the client and of the
 * library. STENO_BENCH_SCALE=20 takes a twentieth of the counts.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fs.h"
#include "bench.h"
#include "steno.h"

#define WRITERS 64
#define READERS 8
#define ROUNDS 9
#define SECONDS 0.6
#define MESSAGE 1024
#define PROBES 400

static _Noreturn void fail(const char *what)
{
        die(what, strerror(errno));
}

/* ---- the server ---- */

struct server {
        pid_t pid;
        int port;
        char token[128];
        char store[512];
};

static struct server server;

static void server_start(const char *program)
{
        int out[2];
        char text[1024];
        size_t n = 0;
        if (pipe(out))
                fail("pipe");
        server.pid = fork();
        if (server.pid == 0) {
                dup2(out[1], 1);
                execl(program, program, "--quiet", "--store", server.store, "serve", "--listen",
                    "127.0.0.1:0", "--json", "--no-tools", (char *)NULL);
                _exit(127);
        }
        close(out[1]);
        while (n < sizeof text - 1 && !memchr(text, '\n', n)) {
                ssize_t k = read(out[0], text + n, sizeof text - 1 - n);
                if (k <= 0)
                        fail("starting the server");
                n += (size_t)k;
        }
        text[n] = '\0';
        close(out[0]);
        const char *token = strstr(text, "#token="), *port = strstr(text, "\"port\":");
        if (!token || !port)
                fail("what the server says");
        snprintf(
            server.token, sizeof server.token, "%.*s", (int)strcspn(token + 7, "\""), token + 7);
        server.port = atoi(port + 7);
}

static double rss_mb(void)
{
        char path[64], line[256];
        long kb = 0;
        snprintf(path, sizeof path, "/proc/%d/status", (int)server.pid);
        FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
                if (sscanf(line, "VmRSS: %ld", &kb) == 1)
                        break;
        if (f)
                fclose(f);
        return (double)kb / 1024;
}

/* Processor time in seconds, of the server and of this process. */
struct cpu {
        double server;
        double own;
};

static bool read_small(const char *path, char *text, size_t size)
{
        FILE *f = fopen(path, "re");
        size_t n = f ? fread(text, 1, size - 1, f) : 0;
        text[n] = '\0';
        if (f)
                fclose(f);
        return n > 0;
}

/* Threads of low priority, which index and tidy up when there is time, are not counted. */
static double thread_seconds(const char *task)
{
        char path[128], text[1024];
        long nice = 0;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)server.pid, task);
        const char *at = read_small(path, text, sizeof text) ? strrchr(text, ')') : NULL;
        if (!at ||
            sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %ld",
                &nice) != 1)
                return 0;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/schedstat", (int)server.pid, task);
        return nice > 0 || !read_small(path, text, sizeof text) ? 0 : strtod(text, NULL) / 1e9;
}

static struct cpu cpu_now(void)
{
        struct timespec ts;
        struct cpu c = {0};
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/task", (int)server.pid);
        DIR *d = opendir(path);
        if (!d)
                fail(path);
        for (struct dirent *e; (e = readdir(d));)
                if (e->d_name[0] != '.')
                        c.server += thread_seconds(e->d_name);
        closedir(d);
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        c.own = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
        return c;
}

/* What a round gave. */
struct rate {
        double per_second;
        double server_us; /* for each */
        double own_us;
};

static struct rate rate_since(double from, struct cpu before, unsigned long count)
{
        double seconds = now() - from, n = count ? (double)count : 1;
        struct cpu after = cpu_now();
        return (struct rate){n / seconds, (after.server - before.server) / n * 1e6,
            (after.own - before.own) / n * 1e6};
}

/* ---- requests ---- */

static int dial(void)
{
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)server.port)};
        int one = 1;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        for (int i = 0; i < 200; i++) {
                int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fd < 0)
                        fail("socket");
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
                        return fd;
                close(fd);
                usleep(10000);
        }
        fail("connect");
}

static void send_all(int fd, const char *p, size_t n)
{
        while (n) {
                ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
                if (k <= 0)
                        fail("send");
                p += k;
                n -= (size_t)k;
        }
}

static size_t make_request(
    char *to, size_t size, const char *method, const char *path, const char *body)
{
        return (size_t)snprintf(to, size,
            "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
            method, path, server.token, strlen(body), body);
}

/* One answer with a length; its status. */
static int take_answer(int fd, char *text, size_t size)
{
        size_t n = 0;
        for (;;) {
                ssize_t k = recv(fd, text + n, size - 1 - n, 0);
                if (k <= 0)
                        return -1;
                n += (size_t)k;
                text[n] = '\0';
                const char *end = memmem(text, n, "\r\n\r\n", 4);
                const char *length = end ? memmem(text, n, "Content-Length: ", 16) : NULL;
                if (length && n >= (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10))
                        return atoi(text + 9);
        }
}

static void ask(const char *method, const char *path, const char *body, char *text, size_t size)
{
        char request[4096];
        int fd = dial();
        send_all(fd, request, make_request(request, sizeof request, method, path, body));
        int status = take_answer(fd, text, size);
        close(fd);
        if (status < 200 || status > 299) {
                fprintf(stderr, "bench_server: %s %s: %d\n", method, path, status);
                exit(1);
        }
}

/* ---- 1. appends ---- */

static char message[MESSAGE + 64];

static void make_message(void)
{
        int n = snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"");
        static const char PROSE[] = "What was said is kept, and who asks for it gets it back. ";
        for (size_t i = (size_t)n; i < MESSAGE - 2; i++)
                message[i] = PROSE[(i - (size_t)n) % (sizeof PROSE - 1)];
        memcpy(message + MESSAGE - 2, "\"}", 3);
}

struct library_writer {
        struct steno_conv *conv;
        double until;
        unsigned long done;
};

static void *library_write(void *arg)
{
        struct library_writer *w = arg;
        while (now() < w->until) {
                if (steno_append(w->conv, message, MESSAGE, NULL, NULL, NULL))
                        fail("steno_append");
                w->done++;
        }
        return NULL;
}

static struct rate library_rate(struct steno_conv **convs)
{
        struct library_writer w[WRITERS];
        pthread_t t[WRITERS];
        struct cpu before = cpu_now();
        double from = now();
        unsigned long all = 0;
        for (int i = 0; i < WRITERS; i++) {
                w[i] = (struct library_writer){.conv = convs[i], .until = from + SECONDS};
                if (pthread_create(&t[i], NULL, library_write, &w[i]))
                        fail("pthread_create");
        }
        for (int i = 0; i < WRITERS; i++) {
                pthread_join(t[i], NULL);
                all += w[i].done;
        }
        return rate_since(from, before, all);
}

/* Sends a request on each connection again and again, and reads the answers. One thread, which does
 * as little as possible, because the server is what is measured. */
struct load {
        int count;
        int fds[WRITERS];
        char requests[WRITERS][2048];
        size_t sizes[WRITERS];
        size_t left[WRITERS]; /* bytes of the answer that have not arrived yet */
        int status;           /* that all answers must have */
};

/* Looks at the first bytes of an answer. The rest is discarded in the kernel. True: that was
 * all. */
static bool take_piece(struct load *l, uint32_t i)
{
        char text[4096];
        bool first = l->left[i] == 0;
        ssize_t k = first ? recv(l->fds[i], text, sizeof text, 0)
                          : recv(l->fds[i], NULL, l->left[i], MSG_TRUNC);
        if (k <= 0)
                fail("no answer");
        if (first) {
                const char *end = memmem(text, (size_t)k, "\r\n\r\n", 4);
                const char *length = memmem(text, (size_t)k, "Content-Length: ", 16);
                if (!end || !length || atoi(text + 9) != l->status)
                        fail("a request was refused");
                l->left[i] = (size_t)(end + 4 - text) + strtoul(length + 16, NULL, 10);
        }
        l->left[i] -= (size_t)k;
        return l->left[i] == 0;
}

static struct rate http_rate(struct load *l)
{
        struct epoll_event events[WRITERS];
        int ep = epoll_create1(EPOLL_CLOEXEC), waiting = l->count;
        struct cpu before = cpu_now();
        double from = now(), until = from + SECONDS;
        unsigned long all = 0;
        for (int i = 0; i < l->count; i++) {
                struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
                epoll_ctl(ep, EPOLL_CTL_ADD, l->fds[i], &e);
                send_all(l->fds[i], l->requests[i], l->sizes[i]);
        }
        while (waiting) {
                int n = epoll_wait(ep, events, WRITERS, 5000);
                if (n <= 0)
                        fail("no answer");
                bool more = now() < until;
                for (int k = 0; k < n; k++) {
                        uint32_t i = events[k].data.u32;
                        if (!take_piece(l, i))
                                continue;
                        all++;
                        if (more)
                                send_all(l->fds[i], l->requests[i], l->sizes[i]);
                        else
                                waiting--;
                }
        }
        close(ep);
        return rate_since(from, before, all);
}

static double middle(const struct rate *v, size_t field)
{
        double list[ROUNDS];
        for (int k = 0; k < ROUNDS; k++)
                memcpy(&list[k], (const char *)&v[k] + field, sizeof list[k]);
        return median(list, ROUNDS);
}

#define MIDDLE(v, field) middle(v, offsetof(struct rate, field))

static void put_ratio(const struct rate *v, const struct rate *base, double aim)
{
        double ratio[ROUNDS];
        for (int k = 0; k < ROUNDS; k++)
                ratio[k] = v[k].per_second / base[k].per_second;
        double half = median(ratio, ROUNDS); /* and the times are sorted now */
        printf("\"ratio\":%.2f,\"least\":%.2f,\"most\":%.2f,\"aim\":%.2f", half, ratio[0],
            ratio[ROUNDS - 1], aim);
}

static void load_add(struct load *l, const char *method, const char *path, const char *body)
{
        int i = l->count++;
        l->sizes[i] = make_request(l->requests[i], sizeof l->requests[i], method, path, body);
        l->fds[i] = dial();
}

static void load_end(struct load *l)
{
        for (int i = 0; i < l->count; i++)
                close(l->fds[i]);
}

static void bench_appends(struct steno_store *library)
{
        static struct load l = {.status = 201};
        struct steno_conv *convs[WRITERS];
        struct rate lib[ROUNDS], http[ROUNDS];
        char text[4096], path[128], body[64];
        for (int i = 0; i < WRITERS; i++) {
                if (steno_conv_create(library, "bench", NULL, NULL, &convs[i], NULL))
                        fail("steno_conv_create");
                snprintf(body, sizeof body, "{\"id\":\"w%d\"}", i);
                ask("POST", "/api/chat-sessions", body, text, sizeof text);
                snprintf(path, sizeof path, "/api/chat-sessions/w%d/messages", i);
                load_add(&l, "POST", path, message);
        }
        for (int k = 0; k < ROUNDS; k++) {
                lib[k] = library_rate(convs);
                http[k] = http_rate(&l);
        }
        load_end(&l);
        for (int i = 0; i < WRITERS; i++)
                steno_conv_close(convs[i]);
        printf("{\"appends\":{\"http\":%.0f,\"library\":%.0f,", MIDDLE(http, per_second),
            MIDDLE(lib, per_second));
        put_ratio(http, lib, 0.65);
        printf(",\"cpuUs\":{\"server\":%.1f,\"client\":%.1f,\"library\":%.1f}}}\n",
            MIDDLE(http, server_us), MIDDLE(http, own_us), MIDDLE(lib, own_us));
}

/* ---- 2. reads ---- */

/* The body of the answer; the caller frees it. */
static char *fetch(const char *path, size_t *n)
{
        char request[1024], head[4096];
        int fd = dial();
        send_all(fd, request, make_request(request, sizeof request, "GET", path, ""));
        ssize_t k = recv(fd, head, sizeof head, MSG_PEEK);
        const char *end = k > 0 ? memmem(head, (size_t)k, "\r\n\r\n", 4) : NULL;
        const char *length = end ? memmem(head, (size_t)k, "Content-Length: ", 16) : NULL;
        if (!length || atoi(head + 9) != 200)
                fail(path);
        *n = strtoul(length + 16, NULL, 10);
        char *body = malloc(*n + 1);
        if (!body || recv(fd, head, (size_t)(end + 4 - head), MSG_WAITALL) <= 0 ||
            recv(fd, body, *n, MSG_WAITALL) != (ssize_t)*n)
                fail(path);
        close(fd);
        return body;
}

/* The script of the page: a file that the server has in memory and sends unchanged. */
static char *find_static(size_t *n)
{
        static char path[200];
        char *page = fetch("/", n), *at = memmem(page, *n, "src=\"", 5);
        if (!at)
                fail("the page's script");
        snprintf(path, sizeof path, "%.*s", (int)strcspn(at + 5, "\""), at + 5);
        free(page);
        free(fetch(path, n));
        return path;
}

/* A view with about as many bytes as the file, in interleaved rounds. */
static void bench_view(const char *name, const char *query, const char *file, size_t size)
{
        static struct load view, sent;
        struct rate a[ROUNDS], b[ROUNDS];
        char path[256];
        size_t n;
        snprintf(path, sizeof path, "/api/chat-sessions/read/messages?limit=%zu&%s",
            size / (MESSAGE + 1), query);
        free(fetch(path, &n));
        view = sent = (struct load){.status = 200};
        for (int i = 0; i < READERS; i++) {
                load_add(&view, "GET", path, "");
                load_add(&sent, "GET", file, "");
        }
        for (int k = 0; k < ROUNDS; k++) {
                b[k] = http_rate(&sent);
                a[k] = http_rate(&view);
                b[k].per_second *= (double)size / (double)n;
        }
        load_end(&view);
        load_end(&sent);
        printf("%s\"%s\":{\"bytes\":%zu,\"view\":%.0f,\"file\":%.0f,", name[0] == 'o' ? "" : ",",
            name, n, MIDDLE(a, per_second), MIDDLE(b, per_second));
        put_ratio(a, b, 0.7);
        printf(",\"cpuUs\":{\"view\":%.1f,\"file\":%.1f}}", MIDDLE(a, server_us),
            MIDDLE(b, server_us));
}

static void bench_reads(struct steno_store *store)
{
        struct steno_append_options opt = {.size = sizeof opt, .durability = STENO_PROCESS};
        struct steno_conv *conv;
        size_t size;
        const char *file = find_static(&size);
        if (steno_conv_create(store, "default", "read", NULL, &conv, NULL))
                fail("steno_conv_create");
        for (size_t i = 0; i <= size / MESSAGE; i++)
                if (steno_append(conv, message, MESSAGE, &opt, NULL, NULL))
                        fail("steno_append");
        steno_conv_close(conv);
        printf("{\"reads\":{");
        bench_view("openai", "format=openai&tokens=false", file, size);
        bench_view("withTokens", "format=openai", file, size);
        bench_view("chat", "tokens=false", file, size);
        printf("}}\n");
}

/* ---- probes: other requests, meanwhile ---- */

static void probe(double *p50, double *p99)
{
        static double v[PROBES];
        char request[4096], text[8192];
        size_t n = make_request(request, sizeof request, "GET", "/api/chat-sessions/probe", "");
        int fd = dial();
        for (int i = 0; i < PROBES; i++) {
                double from = now();
                send_all(fd, request, n);
                if (take_answer(fd, text, sizeof text) != 200)
                        fail("a probe was refused");
                v[i] = (now() - from) * 1e3;
                usleep(1000);
        }
        close(fd);
        *p50 = quantile(v, PROBES, 0.5);
        *p99 = quantile(v, PROBES, 0.99);
}

/* ---- 3. readers of a run ---- */

static bool take_until(int fd, const char *word, double until)
{
        char text[8192];
        size_t n = 0, m = strlen(word);
        while (now() < until) {
                struct pollfd p = {.fd = fd, .events = POLLIN};
                if (poll(&p, 1, (int)((until - now()) * 1000) + 1) <= 0)
                        return false;
                ssize_t k = recv(fd, text + n, sizeof text - n, 0);
                if (k <= 0)
                        return false;
                n += (size_t)k;
                if (memmem(text, n, word, m))
                        return true;
                if (n > sizeof text / 2) {
                        memmove(text, text + n - m, m);
                        n = m;
                }
        }
        return false;
}

/* How long an event takes to reach so many readers, in seconds. Prints more about it when asked
 * to. */
static double bench_readers(struct steno_store *store, int count, bool say)
{
        struct steno_conv *conv;
        struct steno_run *run;
        char path[256], request[1024], name[32];
        int *fds = calloc((size_t)count, sizeof *fds);
        double before = rss_mb();
        static int rounds;
        snprintf(name, sizeof name, "watched-%d", rounds++);
        if (!fds || steno_conv_create(store, "default", name, NULL, &conv, NULL) ||
            steno_run_begin(conv, NULL, "chat", &run, NULL) ||
            steno_run_event(run, "run_started", "{\"a\":1}", 7, STENO_PROCESS, NULL, NULL))
                fail("a run");
        snprintf(path, sizeof path, "/api/runs/%s/events", steno_run_id(run));
        size_t n = make_request(request, sizeof request, "GET", path, "");
        double from = now();
        for (int i = 0; i < count; i++) {
                fds[i] = dial();
                send_all(fds[i], request, n);
        }
        int reached = 0, ended = 0;
        for (int i = 0; i < count; i++)
                reached += take_until(fds[i], "run_started", now() + 20);
        double joined = now() - from;
        if (say)
                sleep(2); /* until the memory that joining needed is given back */
        double idle = rss_mb();
        from = now();
        steno_run_event(run, "message", "{\"text\":\"ping\"}", 15, STENO_PROCESS, NULL, NULL);
        int told = 0;
        for (int i = 0; i < count; i++)
                told += take_until(fds[i], "\"ping\"", from + 20);
        double spread = now() - from;
        double p50 = 0, p99 = 0;
        if (say)
                probe(&p50, &p99);
        steno_run_event(
            run, "run_finished", "{\"reason\":\"stop\"}", 17, STENO_PROCESS, NULL, NULL);
        for (int i = 0; i < count; i++) {
                ended += take_until(fds[i], "run_finished", now() + 20);
                close(fds[i]);
        }
        steno_run_close(run);
        steno_conv_close(conv);
        free(fds);
        if (told != count)
                fail("an event did not reach everybody");
        if (!say)
                return spread;
        printf(",\"readers\":{\"count\":%d,\"joined\":%d,\"told\":%d,\"ended\":%d,\"rssMb\":%.1f,"
               "\"rssBeforeMb\":%.1f,\"joinSeconds\":%.2f,\"eventSeconds\":%.2f,\"probeP50Ms\":%."
               "2f,\"probeP99Ms\":%.2f}",
            count, reached, told, ended, idle, before, joined, spread, p50, p99);
        return spread;
}

/* The curve for bench/plot: an event to 1, 10, 100 ... readers, medians of five. */
static void bench_followers(struct steno_store *store, int most)
{
        printf("{\"bench\":\"growth\",\"curve\":\"followers\",\"who\":\"Steno\",\"unit\":\"ms\","
               "\"points\":[");
        for (int count = 1; count <= most; count *= 10) {
                double v[5];
                for (int i = 0; i < 5; i++)
                        v[i] = bench_readers(store, count, false) * 1e3;
                printf("%s[%d,%.3f]", count > 1 ? "," : "", count, median(v, 5));
        }
        printf("]}\n");
}

/* ---- 4. slow headers ---- */

static void bench_slow(int count)
{
        double p50, p99, slow50, slow99;
        int *fds = calloc((size_t)count, sizeof *fds);
        if (!fds)
                fail("memory");
        probe(&p50, &p99);
        for (int i = 0; i < count; i++) {
                fds[i] = dial();
                send_all(fds[i], "GET /api/stats HTTP/1.1\r\nHost: 127", 34);
        }
        pid_t dripping = fork();
        if (dripping == 0) {
                /* Each connection gets a byte a second, spread over the second. */
                for (int i = 0;; i = (i + 1) % count) {
                        send(fds[i], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
                        usleep(1000000 / (unsigned)count);
                }
        }
        usleep(600000);
        probe(&slow50, &slow99);
        kill(dripping, SIGKILL);
        waitpid(dripping, NULL, 0);
        for (int i = 0; i < count; i++)
                close(fds[i]);
        free(fds);
        printf("{\"slow\":{\"connections\":%d,\"p99Ms\":%.2f,\"p99BeforeMs\":%.2f,\"p50Ms\":%.2f,"
               "\"p50BeforeMs\":%.2f,\"ratio\":%.2f,\"aim\":3}",
            count, slow99, p99, slow50, p50, slow99 / p99);
}

/* ---- 5. readers that do not read ---- */

static void bench_stuck(struct steno_store *store, int count)
{
        static char data[60000];
        struct steno_conv *conv;
        struct steno_run *run;
        char path[256], request[1024];
        int *fds = calloc((size_t)count, sizeof *fds);
        double before = rss_mb(), p50, p99;
        if (!fds || steno_conv_create(store, "default", "stuck", NULL, &conv, NULL) ||
            steno_run_begin(conv, NULL, "chat", &run, NULL))
                fail("a run");
        int n = snprintf(data, sizeof data, "{\"text\":\"");
        memset(data + n, 'y', sizeof data - (size_t)n - 3);
        memcpy(data + sizeof data - 3, "\"}", 3);
        snprintf(path, sizeof path, "/api/runs/%s/events", steno_run_id(run));
        size_t size = make_request(request, sizeof request, "GET", path, "");
        for (int i = 0; i < count; i++) {
                int small = 4096;
                fds[i] = dial();
                setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
                send_all(fds[i], request, size);
        }
        for (int i = 0; i < 400; i++)
                steno_run_event(run, "message", data, sizeof data - 1, STENO_PROCESS, NULL, NULL);
        int reader = dial();
        send_all(reader, request, size);
        steno_run_event(
            run, "run_finished", "{\"reason\":\"stop\"}", 17, STENO_PROCESS, NULL, NULL);
        double from = now();
        bool whole = take_until(reader, "run_finished", from + 30);
        double seconds = now() - from;
        probe(&p50, &p99);
        double after = rss_mb();
        close(reader);
        for (int i = 0; i < count; i++)
                close(fds[i]);
        steno_run_close(run);
        steno_conv_close(conv);
        free(fds);
        printf(",\"stuck\":{\"readers\":%d,\"rssMb\":%.1f,\"rssBeforeMb\":%.1f,\"mbEach\":%.2f,"
               "\"otherReaderWhole\":%s,\"otherReaderSeconds\":%.2f,\"probeP99Ms\":%.2f}}\n",
            count, after, before, (after - before) / count, whole ? "true" : "false", seconds, p99);
}

static void raise_limit(void)
{
        struct rlimit lim;
        if (getrlimit(RLIMIT_NOFILE, &lim) == 0) {
                lim.rlim_cur = lim.rlim_max;
                setrlimit(RLIMIT_NOFILE, &lim);
        }
}

int main(int argc, char **argv)
{
        const char *base = argc > 1 ? argv[1] : getenv("STENO_BENCH_DIR");
        const char *build = getenv("STENO_BUILD"), *steno = getenv("STENO");
        const char *by = getenv("STENO_BENCH_SCALE"), *part = argc > 2 ? argv[2] : "";
        char program[512], name[64], text[4096], library_path[600];
        struct steno_store *library, *shared;
        const struct fs *fs = env_real()->fs;
        int scale = by && atoi(by) > 0 ? atoi(by) : 1;
        snprintf(program, sizeof program, "%s%s",
            steno   ? steno
            : build ? build
                    : "build",
            steno ? "" : "/steno");
        snprintf(name, sizeof name, "server-%d", (int)getpid());
        snprintf(server.store, sizeof server.store, "%.400s/%s/store", base ? base : ".", name);
        snprintf(library_path, sizeof library_path, "%.400s/%s/library", base ? base : ".", name);
        int root = fs->open_root(fs, base ? base : ".", true);
        if (root < 0 || fs->mkdir(fs, root, name, 0700) < 0)
                fail("the folder");
        raise_limit();
        make_message();
        if (access(program, X_OK))
                fail(program);
        server_start(program);
        if (steno_open(library_path, NULL, &library, NULL) ||
            steno_open(server.store, NULL, &shared, NULL))
                fail("steno_open");
        ask("POST", "/api/chat-sessions", "{\"id\":\"probe\"}", text, sizeof text);
        if (!*part || strcmp(part, "appends") == 0)
                bench_appends(library);
        if (!*part || strcmp(part, "reads") == 0)
                bench_reads(shared);
        if (!*part || strcmp(part, "rest") == 0) {
                bench_slow(2000 / scale);
                bench_readers(shared, 10000 / scale, true);
                bench_stuck(shared, 100 / scale ? 100 / scale : 5);
        }
        if (!*part || strcmp(part, "followers") == 0)
                bench_followers(shared, 10000 / scale);
        steno_close(library);
        steno_close(shared);
        kill(server.pid, SIGTERM);
        waitpid(server.pid, NULL, 0);
        fs_remove_tree(fs, root, name);
        return 0;
}
