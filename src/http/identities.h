/*
 * identities.h - authentication: tokens, and the project or conversation that each of them reaches.
 *
 * tokens.json, a document of the store, holds only hashes:
 * {"tokens":[{"id","project","hash","createdAt", "session"?}]}. The server's own token is made at
 * the first start and kept in plain text in server.token (0600) beside it, so that the printed
 * address stays valid. A running server notices changes within a second. Comparison is in constant
 * time.
 */
#ifndef HTTP_IDENTITIES_H
#define HTTP_IDENTITIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"
#include "steno.h"

#define TOKEN_TEXT 80 /* a token with its NUL */
/* Acontext's clients accept only tokens that begin like this. Other clients accept any. */
#define TOKEN_PREFIX "sk-ac-"

struct identity {
        bool known;
        char token_id[40];
        char project[257];
        char session[257]; /* a visitor's token reaches this one conversation only; else "" */
        uint64_t version;  /* of the tokens, when it was looked up */
        bool lent;         /* it reaches the gateway's routes only */
};

struct identities;

/* Opens the tokens of a store, which is borrowed until the close. */
int identities_open(struct steno_store *store, struct identities **out, struct steno_error *err);
void identities_close(struct identities *ids);

/* Makes a token for a project, or (`session`) for one of its conversations. `label` (may be NULL)
 * tells people its purpose. */
int identities_add(struct identities *ids, const char *project, const char *session,
    const char *label, char token[TOKEN_TEXT], struct steno_error *err);
/* {"items":[{"id","project","label"?,"createdAt"}]} */
int identities_list(struct identities *ids, struct buf *out, struct steno_error *err);
int identities_remove(struct identities *ids, const char *token_id, struct steno_error *err);
/* The server's own token: made when there is none. */
int identities_own(struct identities *ids, char token[TOKEN_TEXT], struct steno_error *err);

/* Adds a token that is in no file, is valid while this is open, and only for the gateway's routes.
 * To be called before the first check. */
void identities_lend(struct identities *ids, const char *token, const char *project);

/* Looks up a token; `out->known` says whether it exists. This is cheap: the file is read again only
 * when it has changed. */
void identities_check(struct identities *ids, struct str token, struct identity *out);
/* Checks whether the file has changed. A server does so every SERVER_TICK_MS, on a thread that
 * handles no requests. */
void identities_refresh(struct identities *ids);
/* Is the token with this id still there? */
bool identities_valid(struct identities *ids, const char *token_id);
/* Is tokens.json damaged? `readable`: how many of its tokens can still be read; these stay
 * valid. */
bool identities_damaged(struct identities *ids, size_t *readable);
/* Writes a new tokens.json with the readable tokens; the damaged file stays as
 * tokens.damaged.json. */
int identities_mend(struct identities *ids, struct steno_error *err);
/* A number that differs whenever the tokens have changed. */
uint64_t identities_version(struct identities *ids);

/* A key for signing URLs, stable over restarts. 32 bytes. */
int identities_signing_key(struct identities *ids, unsigned char key[32], struct steno_error *err);

#endif
