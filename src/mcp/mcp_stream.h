/*
 * mcp_stream.h - an answer to tools/call that is too large to be kept in memory: its content is
 * passed on while it arrives, in constant memory.
 *
 * Feed the message's bytes, cut anywhere. Parts of `result.content` are given out one after the
 * other as mcp_content.h does it; a string over MCP_STREAM_STRING of any of them goes out decoded
 * while it comes. Structured content is passed on as it came, even if a text part has the same:
 * content of this size cannot be compared. Knows neither ids of requests nor transports.
 */
#ifndef MCP_MCP_STREAM_H
#define MCP_MCP_STREAM_H

#include "base/buf.h"
#include "base/json_stream.h"
#include "base/limits.h"
#include "steno.h"

#define MCP_STREAM_STRING (64 * KIB)
#define MCP_STREAM_LEVELS 6 /* message, result, content, part, resource, and what is in it */

struct mcp_stream {
        /* NULL: nothing is given out or checked, only `id` and the like are learned, also of a
         * message that is not JSON (one that is nested too deep) */
        steno_sink sink;
        void *ctx;
        int failed; /* sticky: what the sink returned, STENO_EPROTO, STENO_ENOMEM */
        struct json_stream check;

        /* where it is */
        uint32_t depth;
        struct {
                bool object;
                char key[24];
        } level[MCP_STREAM_LEVELS + 1]; /* by depth; deeper levels have no name */
        bool in_string, is_key, escaped;
        struct buf scalar; /* a key, or a value in the message or the result */

        /* the content */
        bool begun;         /* something was given out */
        struct buf part;    /* the part at hand, without its large strings */
        size_t string_at;   /* in `part`, of the string at hand */
        bool streaming;     /* the string at hand goes out as it comes */
        bool part_text;     /* the part's text went out so */
        bool part_other;    /* another of its strings went out so */
        bool in_structured; /* raw bytes go out */
        struct buf out;
        uint8_t hex; /* digits of \uXXXX that are still to come */
        uint32_t unit;
        uint32_t high; /* a high surrogate that waits for its other half */

        /* what is known */
        bool has_id;
        uint64_t id;
        bool has_method; /* it is not an answer */
        bool has_result, has_error;
        bool has_content; /* an array, or structured content */
        bool is_error;
        struct buf error; /* the JSON-RPC error, if it is short */
        uint64_t given;   /* bytes */
};

void mcp_stream_init(struct mcp_stream *s, steno_sink sink, void *ctx);
void mcp_stream_release(struct mcp_stream *s);
/* 0 or s->failed. */
int mcp_stream_feed(struct mcp_stream *s, const char *p, size_t n);
/* Call it at the end of the message. 0: a short answer with `id`, an empty content and everything
 * else was appended to `answer`. STENO_EPROTO: it was not an answer, or was cut off. */
int mcp_stream_finish(
    struct mcp_stream *s, uint64_t id, struct buf *answer, struct steno_error *err);

#endif
