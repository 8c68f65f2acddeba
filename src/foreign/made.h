/*
 * made.h - builds a message for a tool whose own form is not one of Steno's formats.
 *
 * Texts, thinking and calls are collected first. Then they are written as `openai`, or as
 * `modelmessage` if there is thinking, which openai cannot express. The member `entry` of the
 * message holds the unchanged entry that the message was made from.
 */
#ifndef FOREIGN_MADE_H
#define FOREIGN_MADE_H

#include "foreign/foreign.h"

struct made {
        const char *role; /* user, assistant, system */
        struct buf text;
        struct buf thinking;
        struct buf openai; /* the calls, in this form and in modelmessage's, separated by commas */
        struct buf model;
        uint32_t calls;
        struct str error; /* the decoded message of a model call that failed */
        bool hidden;      /* not part of the model's context */
        struct str key;   /* what distinguishes this version from others; "": the entry */
        bool weak;        /* as in foreign_item */
};

void made_init(struct made *m, const char *role);
void made_release(struct made *m);
/* Adds a text on a new line behind the texts so far. `v` is a string. */
void made_text(struct made *m, const struct json *j, json_ref v);
void made_thinking(struct made *m, const struct json *j, json_ref v);
/* Adds a call. `args` is any JSON value; a string is taken as the text of the arguments. */
void made_call(struct made *m, struct str id, struct str name, const struct json *j, json_ref args);
/* Adds a call with the text of its arguments. */
void made_call_text(struct made *m, struct str id, struct str name, struct str args);
/* Was anything added? */
bool made_any(const struct made *m);
/* Hands out the message. `entry` is a JSON value, or empty. */
int made_put(struct made *m, struct foreign *t, struct str id, struct str at, struct str entry);

/* A result. */
struct made_result {
        struct str call;
        struct str name;
        struct str text; /* the whole output, decoded */
        struct str seen; /* what the model was shown; p NULL: the same as `text` */
        bool error;
        bool weak; /* as in foreign_item */
        bool has_exit;
        int64_t exit_code;
        int64_t duration; /* ms; negative: not known */
};

static inline struct made_result made_result_of(struct str call, struct str name)
{
        return (struct made_result){.call = call, .name = name, .duration = -1};
}
int made_put_result(
    struct foreign *t, const struct made_result *r, struct str id, struct str at, struct str entry);

/* Finds the exit code in a text such as "Exit Code: 3" or "exited with code 3". False: none. */
bool made_find_exit(struct str text, int64_t *code);

#endif
