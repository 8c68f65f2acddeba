/*
 * topics.h - what a watch is about (watches.h lists the kinds): reading the names of topics, and
 * looking whether there is something new about one.
 */
#ifndef HTTP_TOPICS_H
#define HTTP_TOPICS_H

#include "base/json.h"
#include "http/streams.h"

struct server;

#define TOPICS_MAX 400 /* of one watch: twenty windows with a few each */
#define TOPIC_MAX 1200 /* bytes of a name: an encoded id and a ref */

enum topic_kind { TOPIC_LIST, TOPIC_APPROVALS, TOPIC_CONVERSATION, TOPIC_RUN, TOPIC_OUTPUT };

struct topic {
        struct topic *next;
        enum topic_kind kind;
        char *name; /* as the reader spelled it */
        char *what; /* the conversation or the run */
        char *ref;
        struct steno_conv *conv;
        uint64_t at;   /* seq or offset that the reader has */
        uint64_t told; /* a hash of what was told last */
        bool once;     /* something was told */
        int64_t look_ms;
        int64_t moved_ms;
        bool over;
};

/* Reads an object of names and places; JSON_NONE is an empty one. STENO_EINVAL: one of them is not
 * valid, or there are too many. */
int topics_read(const struct json *j, json_ref from, struct topic **out, size_t *count,
    struct steno_error *err);
/* False: it is not in the list. */
bool topics_drop(struct topic **list, const char *name);
void topics_free(struct topic *list);
void topic_free(struct topic *t);

struct topic_look {
        struct topic *t;
        struct server *server;
        const char *project;
        struct stream *stream;
        bool moved; /* something was sent */
};

/* Sends what is new about l->t to the stream, as far as that has room. A topic about which nothing
 * more will be said is over. */
void topic_look(struct topic_look *l);

#endif
