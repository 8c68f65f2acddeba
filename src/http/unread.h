/*
 * unread.h - the memory of answers that their clients have not read yet.
 *
 * An answer is in memory until its client has read it, which may be as late as the client likes. So
 * answers are counted, those of owners apart from those of visitors and of clients without a token,
 * and one that changed nothing is taken back when there are too many: its client can ask again.
 */
#ifndef HTTP_UNREAD_H
#define HTTP_UNREAD_H

struct request;

/* Counts the answer of r until unread_release, or puts "try again later" in its place. Streams,
 * files and what is passed on count what they hold themselves. */
void unread_hold(struct request *r);
/* The client has read it, or has gone. Does nothing for an answer that was not counted. */
void unread_release(struct request *r);

#endif
