/*
 * fake_store.h - the part of steno.h that the loop uses, in memory, with a trace of the order of
 * calls and with failures on request. For tests about order; other tests use the real store.
 */
#ifndef TESTS_FAKE_STORE_H
#define TESTS_FAKE_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "steno_loop.h"

/* Empties everything. */
void fake_reset(void);
struct steno_conv *fake_conv(void);
struct steno_store *fake_store(void);
/* How often the conversation was opened and not closed yet. */
int fake_conv_holds(void);

/* The trace, one line an entry; anyone may add to it. Safe for threads. */
void fake_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
const char *fake_trace_text(void);
/* Whether the trace holds this text, asked while others add to it. */
bool fake_traced(const char *text);
/* Leaves entries with this prefix out of the trace. */
void fake_trace_without(const char *prefix);

/* The n-th call from now on that writes (1 is the next) fails, and all after it; 0: none. */
void fake_fail_after(unsigned n);
unsigned fake_writes(void);

size_t fake_count(void);
const char *fake_message(size_t i);
/* Is there a message with exactly these bytes? */
bool fake_has(const char *json, size_t n);
/* The data of the i-th event of this type over all runs, or NULL. */
const char *fake_event(const char *type, size_t i);

/* Is called with the type of every event once it is stored, by the thread that stores it. */
void fake_on_event(void (*told)(void *ctx, const char *type), void *ctx);
/* An answer to a question that comes through the store. */
void fake_mail(const char *approval, bool allow);
/* Forgets the end of the log and of the newest run, as a kill would: a dead run remains. */
void fake_kill(size_t messages_kept);

#endif
