/*
 * answer.h - from an answer to bytes: what a handler has left in its request goes to libmicrohttpd,
 * and a request that no handler sees is refused.
 *
 * There are three ways to refuse. Before the body, answer_refuse answers at once. A client that
 * sends its body at once would have the connection reset under it before it read an early answer,
 * so answer_refuse_later lets the rest of the body be read past first. And where the library cannot
 * answer any more, answer_bare tries one write of its own.
 *
 * The functions that return an MHD_Result return what the library's callback has to return.
 */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include <microhttpd.h>
#include <stddef.h>

struct request;

/* Gives the library what is in the request: a reply, a stream, a file, or what is passed on. */
enum MHD_Result answer_queue(struct request *r);

enum MHD_Result answer_refuse(struct request *r, int status, const char *code, const char *why);
/* Refuses a request whose body is on its way. */
enum MHD_Result answer_refuse_later(
    struct request *r, int status, const char *code, const char *why);
/* One of both, for a request whose headers are sound. */
enum MHD_Result answer_turn_away(struct request *r, int status, const char *code, const char *why);
/* There is no memory left for the head of an answer. */
enum MHD_Result answer_refuse_for_room(struct request *r);
/* The error of such a request is put into it, and nothing is sent. */
void answer_no_room(struct request *r);

/* A piece of the body of a request that was refused has come. */
enum MHD_Result answer_skip_body(struct request *r, size_t size);
/* The client did not finish a body that was being read past, or the library gave up: one write is
 * tried, because without it the whole answer would be lost. */
void answer_bare(struct request *r);

#endif
