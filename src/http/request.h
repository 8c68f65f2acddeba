/*
 * request.h - what a handler sees of a request, and how it answers.
 *
 * A handler runs on a worker thread, after identity, headers and limits were checked and the whole
 * body was read. It answers exactly once: with JSON, with bytes, with an error, or with a stream
 * (stream.h). Strings live as long as the request.
 */
#ifndef HTTP_REQUEST_H
#define HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include "http/identities.h"
#include "http/unread.h"
#include "steno.h"

struct server;
struct stream;
struct file_answer;
struct passing;
struct MHD_Connection;

#define REQUEST_PARAMS 4

/* The shape of an error's body, by the API the route belongs to. */
enum error_style {
        ERRORS_STENO,     /* {"error":{"code","message"},"request_id"} */
        ERRORS_OPENAI,    /* {"error":{"message","type","param","code"}} */
        ERRORS_ACONTEXT,  /* {"code","msg","error"} */
        ERRORS_ANTHROPIC, /* {"type":"error","error":{"type","message"},"request_id"} */
        ERRORS_GEMINI,    /* {"error":{"code","message","status"}} */
        ERRORS_MCP,       /* {"jsonrpc","id":null,"error":{"code","message"}} */
};

struct request {
        struct server *server;
        const struct route *route;
        struct steno_store *store;
        struct identity who;
        char id[40]; /* request id, also in X-Request-Id */
        const char *method;
        struct str path;                   /* raw, without path_token */
        const char *target;                /* of the request line, in the library's memory, */
        const char *target_end;            /* where it ends for us */
        struct str path_token;             /* of /~TOKEN/..., for SCOPE_GATEWAY and SCOPE_PATH */
        struct str params[REQUEST_PARAMS]; /* of the pattern, decoded, NUL-terminated */
        struct buf body;                   /* of a route with ROUTE_SPOOL: its end (spool.h) */
        struct arena arena;

        /* the answer */
        int status;
        struct buf reply;
        struct str still; /* instead of it, data that outlives every request */
        const char *content_type;
        struct stream *stream;
        struct file_answer *file;
        struct passing *passing; /* an answer of the gateway */
        const char *param;       /* the parameter that the error is about; NULL: none */
        const char *headers[8][2];
        unsigned header_count;

        /* http.c's own */
        struct MHD_Connection *connection;
        struct str query;
        enum error_style errors;
        bool checked;
        bool guest; /* it came without a token of a whole project */
        bool handed_over;
        bool over; /* answered; a worker frees it, because it is large */
        bool done;
        bool answered; /* the library has its stream */
        bool refused;
        bool late;     /* refused; answered when its body has been read past */
        bool skipping; /* counted among those whose body is read past */
        uint64_t body_skipped;
        bool shrunk; /* path and method are on the heap */
        bool counted;
        uint64_t body_counted;
        struct unread_answer held; /* its answer, while that is not read */
        int spool;                 /* spool.h: the file, where it is open */
        bool spool_open;
        bool spooling; /* a worker is writing to it */
        int spool_failed;
        uint64_t spooled; /* bytes in it */
        int64_t started_us;
        struct request *next;
};

/* A query parameter, decoded, or NULL. Empty ("a=") is "". */
const char *request_query(struct request *r, const char *name);
/* A header, or NULL. */
const char *request_header(const struct request *r, const char *name);
/* A whole number in the query: `fallback` when absent, clamped to [min, max]; false (and a 400 was
 * answered) when it is not a number. */
bool request_number(struct request *r, const char *name, uint64_t fallback, uint64_t min,
    uint64_t max, uint64_t *out);
/* Checks that the query can be decoded, and that flags are true, false, 1 or 0. False: a 400 was
 * answered. It is called before the handler, for every route whose query is not passed on. */
bool request_query_keeps(struct request *r);
/* A flag in the query. */
bool request_flag(struct request *r, const char *name, bool fallback);
/* One of the words of a NULL-terminated list in the query: *out is its place, 0 when it is absent;
 * false (and a 400 was answered) when it is another word. */
bool request_choice(struct request *r, const char *name, const char *const *words, unsigned *out);

/* The type of a member of a body. Null always means absent. */
enum body_kind {
        BODY_NAME = 1, /* a string without NUL and lone surrogates: an id, a word, a path */
        BODY_TEXT = 2, /* any string; the handler keeps its bytes */
        BODY_BOOL = 4,
        BODY_SEQ = 8, /* a whole number from 1 on */
        BODY_OBJECT = 16,
        BODY_LIST = 32,
        BODY_OURS = 64, /* Steno writes it; who sends it is refused */
};

/* The members that a handler reads; the last entry has no name. Other members are ignored. */
struct body_rule {
        const char *name;
        unsigned kinds;
};

/*
 * Parses the body as JSON; an empty body is {}. With rules it must be an object whose members
 * follow them; NULL: the handler checks the whole body itself. False: a 400 was answered.
 */
bool request_json(struct request *r, struct json *j, const struct body_rule *rules);
/* Parses JSON that came in another way; `name` is what the answer calls it. False: a 400 was
 * answered. */
bool request_parse(struct request *r, struct json *j, struct str text, const char *name);
/* The members of a document that has been parsed, such as a part of a form, held against the
 * rules. */
bool request_keeps(struct request *r, const struct json *j, const struct body_rule *rules);
/* Can this string be a C string without a loss? */
bool request_is_name(const struct json *j, json_ref v);
/* A string of a JSON object, decoded, or NULL when it is absent, null or no string. */
const char *request_member(struct request *r, const struct json *j, json_ref obj, const char *key);

void request_header_out(struct request *r, const char *name, const char *value);
/* The answer is what is in r->reply. */
void request_reply_json(struct request *r, int status);
/* An error as the route's API words it. `code` is a short word. */
void request_error(struct request *r, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same about one parameter, which OpenAI's errors name: "limit", "items[3]". */
void request_error_in(struct request *r, const char *param, int status, const char *code,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The same for what the library answered. */
void request_failed(struct request *r, int rc, const struct steno_error *err);
/* Reserves `size` more bytes of memory for this request, until it ends. False: a 503 was answered,
 * because the requests under way use too much already. */
bool request_charge(struct request *r, size_t size);

/* Answers with the JSON that a library call returned, and frees it, or with the call's error.
 */
void request_reply_made(struct request *r, int rc, char *json, const struct steno_error *err);

/* A hash of the Idempotency-Key, the caller's project and a purpose, from which the ids of new
 * objects are made. False: there is no key. */
bool request_keyed(const struct request *r, struct str purpose, char hex[SHA256_HEX]);
/*
 * Makes a conversation. `id` NULL: the id follows from the Idempotency-Key (an existing
 * conversation is then opened, and *again is set, which may be NULL), or is a new one. The caller
 * answers the error.
 */
int request_conv_create(struct request *r, const char *id, const char *meta,
    struct steno_conv **out, bool *again, struct steno_error *err);

/* Opens the conversation named by a parameter in the caller's project, or answers 404. */
struct steno_conv *request_conv(struct request *r, const char *id);
/* Moves it to the trash. False: there is none, or it cannot be moved; that was answered. */
bool request_conv_remove(struct request *r, const char *id);

#endif
