/*
 * api_search_query.h - what is searched for, and whether a text has it. Only the files of search
 * include it.
 *
 * A query is words, "phrases", words that must not occur (-word), beginnings of words (word*), one
 * /expression/, and filters such as role:user. `ask` is what of it the index can answer; the rest
 * is held against the text of each block.
 */
#ifndef API_API_SEARCH_QUERY_H
#define API_API_SEARCH_QUERY_H

#include "api/api_store.h"
#include "base/buf.h"
#include "base/words.h"
#include "output/grep_engine.h"
#include "store/backend.h"

#define API_SEARCH_TERMS_MAX 32
#define API_SEARCH_PHRASE_MAX 16
#define API_SEARCH_MATCHES_MAX 16 /* that a snippet marks */

struct api_search_term {
        struct word words[API_SEARCH_PHRASE_MAX];
        size_t count;
        bool prefix; /* the last word may go on */
        bool without;
};

struct api_search_query {
        struct api_search_term terms[API_SEARCH_TERMS_MAX];
        size_t count;
        struct finder *finders; /* one for each term, or NULL: see find_directly() */
        struct grep_code *expression;
        struct search_ask ask;
        char *project, *conversation, *tool, *model;
        bool only_outputs;
        struct buf match;
        struct steno_error *err;
};

/* `q` has `err`, an initialised `match`, and in `ask` the times INT64_MIN; it is released also
 * after a failure, and stays where it is. */
int api_search_query_parse(struct api_search_query *q, struct str text);
void api_search_query_release(struct api_search_query *q);

/* ---- api_search_match.c ---- */

struct api_search_span {
        size_t from;
        size_t end;
};

struct api_search_matched {
        struct api_search_span spans[API_SEARCH_MATCHES_MAX];
        size_t count;
        bool together; /* all on the line of the first */
};

/* The words of a block, kept so that terms are looked for without splitting it again. */
struct api_search_split {
        struct word *list;
        size_t count;
        size_t cap;
};

/* 1: the text has everything that the query asks for, and *m is where; 0: it has not. Or
 * STENO_ENOMEM. `s` is scratch, whose list the caller frees. */
int api_search_match(struct api_search_query *q, struct api_search_split *s, struct str text,
    struct api_search_matched *m);

#endif
