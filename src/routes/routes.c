/*
 * routes.c - the table of routes. One line each; route.h says what the columns mean.
 */
#include "routes/handlers.h"
#include "http/http_limits.h"
#include "http/page.h"
#include "http/route.h"
#include "mcpd/mcpd.h"

#define SMALL SERVER_SMALL_BODY_MAX
#define LARGE SERVER_BODY_MAX

static const struct route ROUTES[] = {
    /* the page */
    {"GET", "/", SCOPE_OPEN, 0, 0, ERRORS_STENO, page_index, "the page"},
    {"GET", "/assets/:name", SCOPE_OPEN, 0, 0, ERRORS_STENO, page_asset, "the page's own files"},

    /* conversations */
    {"POST", "/api/chat-sessions", SCOPE_PROJECT, 0, SMALL, ERRORS_STENO, own_session_create,
        "makes a conversation"},
    {"GET", "/api/chat-sessions", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_session_list,
        "lists conversations, newest activity first: limit, cursor, q; figures; is, tool, model, "
        "after, before"},
    {"GET", "/api/chat-sessions/:id", SCOPE_SESSION, 0, 0, ERRORS_STENO, own_session_get,
        "one conversation, its last seq and its runs"},
    {"PATCH", "/api/chat-sessions/:id", SCOPE_PROJECT, 0, SMALL, ERRORS_STENO, own_session_patch,
        "changes title and metadata; null removes"},
    {"DELETE", "/api/chat-sessions/:id", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_session_delete,
        "to the trash"},
    {"POST", "/api/chat-sessions/:id/restore", SCOPE_PROJECT, 0, SMALL, ERRORS_STENO,
        own_session_restore, "back from the trash"},
    {"POST", "/api/chat-sessions/:id/fork", SCOPE_PROJECT, 0, LARGE, ERRORS_STENO, own_session_fork,
        "a new conversation with the history up to a record: at?, before?, message?, id?"},
    {"GET", "/api/chat-sessions/:id/export", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_session_export,
        "a bundle, or format=html|md|json; partial=1"},
    {"GET", "/api/chat-sessions/:id/seal", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_session_seal,
        "what is sealed; seq=N gives a proof, verify=1 what does not fit"},
    {"POST", "/api/import", SCOPE_PROJECT, ROUTE_BYTES, LARGE, ERRORS_STENO, own_import,
        "takes in a bundle (on_conflict=skip|both|replace, new_ids=1) or a transcript (name)"},
    {"GET", "/api/search", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_search,
        "words in messages, calls, results and outputs: q, limit, cursor"},
    {"GET", "/api/chat-sessions/:id/timeline", SCOPE_PROJECT, 0, 0, ERRORS_STENO,
        own_session_timeline, "every reply and call with its time: from, limit"},
    {"GET", "/api/chat-sessions/:id/errors", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_session_errors,
        "every failed call and reply: from, limit"},
    {"GET", "/api/home", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_home,
        "what runs, waits and failed, by day, tool and model: days"},
    {"GET", "/api/trash", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_trash_list,
        "conversations in the trash"},
    {"DELETE", "/api/trash/:id", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_trash_remove,
        "removes one of them for good"},
    {"GET", "/api/chat-sessions/:id/messages", SCOPE_SESSION, 0, 0, ERRORS_STENO, own_messages_get,
        "a view: format, edit_strategies, budget, before, after, limit, last, outputs, facts"},
    {"POST", "/api/chat-sessions/:id/messages", SCOPE_PROJECT, 0, LARGE, ERRORS_STENO,
        own_messages_post, "appends one message or a batch; Idempotency-Key, If-Match"},
    {"POST", "/api/chat-sessions/:id/continue", SCOPE_PROJECT, ROUTE_STREAMS | ROUTE_TURN, SMALL,
        ERRORS_STENO, own_session_continue, "goes on from the stored history"},

    /* the gateway */
    {"*", "/openai/v1/*", SCOPE_GATEWAY, ROUTE_BYTES | ROUTE_LATER, LARGE, ERRORS_OPENAI,
        upstream_pass, "passed on to the upstream openai and recorded"},
    {"*", "/anthropic/*", SCOPE_GATEWAY, ROUTE_BYTES | ROUTE_LATER, LARGE, ERRORS_ANTHROPIC,
        upstream_pass, "passed on to the upstream anthropic and recorded"},
    {"*", "/gemini/*", SCOPE_GATEWAY, ROUTE_BYTES | ROUTE_LATER, LARGE, ERRORS_GEMINI,
        upstream_pass, "passed on to the upstream gemini and recorded"},

    /* MCP */
    {"POST", "/mcp", SCOPE_PATH, ROUTE_STREAMS | ROUTE_TURN | ROUTE_LATER, MCPD_MESSAGE_MAX,
        ERRORS_MCP, mcphttp_post, "an MCP server: conversation"},

    /* context files */
    {"GET", "/api/chat-sessions/:id/context", SCOPE_SESSION, 0, 0, ERRORS_STENO, own_context_list,
        "stored outputs, newest first"},
    {"GET", "/api/chat-sessions/:id/context/:ref/read", SCOPE_SESSION, 0, 0, ERRORS_STENO,
        own_context_read, "a piece: offset and limit, or line and count"},
    {"GET", "/api/chat-sessions/:id/context/:ref/tail", SCOPE_SESSION, ROUTE_STREAMS, 0,
        ERRORS_STENO, own_context_tail, "the end: lines; follow=1 streams what comes"},
    {"GET", "/api/chat-sessions/:id/context/:ref/grep", SCOPE_SESSION, 0, 0, ERRORS_STENO,
        own_context_grep, "a search: pattern, max_results, context_lines, case_sensitive"},
    {"GET", "/api/chat-sessions/:id/context/:ref/raw", SCOPE_SIGNED, 0, 0, ERRORS_STENO,
        own_context_raw, "all of it, as it is"},

    /* watching */
    {"POST", "/api/watch", SCOPE_PROJECT, ROUTE_STREAMS, SMALL, ERRORS_STENO, own_watch,
        "one stream for many things: topics"},
    {"PATCH", "/api/watch/:id", SCOPE_PROJECT, ROUTE_URGENT, SMALL, ERRORS_STENO, own_watch_change,
        "changes what a stream is about: add, remove"},
    {"GET", "/api/approvals", SCOPE_PROJECT, ROUTE_URGENT, 0, ERRORS_STENO, own_approvals,
        "the calls that wait for permission"},

    /* runs */
    {"POST", "/api/chatbot", SCOPE_PROJECT, ROUTE_STREAMS | ROUTE_TURN, LARGE, ERRORS_STENO,
        own_chatbot, "a turn: sessionId?, message, stream?, mode?, model?"},
    {"POST", "/api/chatbot-public", SCOPE_VISITOR, ROUTE_STREAMS | ROUTE_TURN,
        SERVER_PUBLIC_BODY_MAX, ERRORS_STENO, own_chatbot_public, "a visitor's turn"},
    {"GET", "/api/runs/:id", SCOPE_SESSION, 0, 0, ERRORS_STENO, own_run_get,
        "what became of a run"},
    {"GET", "/api/runs/:id/events", SCOPE_SESSION, ROUTE_STREAMS, 0, ERRORS_STENO, own_run_events,
        "its events from Last-Event-ID on, then live: format=ui|agui"},
    {"POST", "/api/runs/:id/stop", SCOPE_SESSION, ROUTE_URGENT, SMALL, ERRORS_STENO, own_run_stop,
        "stops it"},
    {"POST", "/api/runs/:id/approvals/:call", SCOPE_PROJECT, ROUTE_URGENT, SMALL, ERRORS_STENO,
        own_run_approve, "allows or denies a call that waits: approved, approval"},

    /* pages of others: the AI SDK, AG-UI */
    {"POST", "/api/chat", SCOPE_PROJECT, ROUTE_STREAMS | ROUTE_TURN, LARGE, ERRORS_STENO,
        vercel_chat, "a turn of the AI SDK's useChat: id, messages, trigger?, messageId?"},
    {"GET", "/api/chat/:id", SCOPE_PROJECT, 0, 0, ERRORS_STENO, vercel_messages,
        "the UI messages of a chat, without those that its stream will bring"},
    {"GET", "/api/chat/:id/stream", SCOPE_PROJECT, ROUTE_STREAMS, 0, ERRORS_STENO, vercel_stream,
        "the run of a chat that goes on, from its first chunk; 204: there is none"},
    {"POST", "/api/agui", SCOPE_PROJECT, ROUTE_STREAMS | ROUTE_TURN, LARGE, ERRORS_STENO, agui_run,
        "a run for AG-UI's clients: threadId, runId, messages"},

    /* OpenAI Conversations */
    {"POST", "/v1/conversations", SCOPE_PROJECT, 0, LARGE, ERRORS_OPENAI, conversations_create,
        "makes a conversation: items?, metadata?"},
    {"GET", "/v1/conversations/:id", SCOPE_PROJECT, 0, 0, ERRORS_OPENAI, conversations_get,
        "one conversation"},
    {"POST", "/v1/conversations/:id", SCOPE_PROJECT, 0, SMALL, ERRORS_OPENAI, conversations_update,
        "replaces its metadata"},
    {"DELETE", "/v1/conversations/:id", SCOPE_PROJECT, 0, 0, ERRORS_OPENAI, conversations_delete,
        "to the trash"},
    {"GET", "/v1/conversations/:id/items", SCOPE_PROJECT, 0, 0, ERRORS_OPENAI,
        conversations_items_list, "its items: after, limit, order"},
    {"POST", "/v1/conversations/:id/items", SCOPE_PROJECT, 0, LARGE, ERRORS_OPENAI,
        conversations_items_create, "appends items"},
    {"GET", "/v1/conversations/:id/items/:item", SCOPE_PROJECT, 0, 0, ERRORS_OPENAI,
        conversations_item_get, "one item"},
    {"DELETE", "/v1/conversations/:id/items/:item", SCOPE_PROJECT, 0, 0, ERRORS_OPENAI,
        conversations_item_delete, "deletes one item"},

    /* Acontext */
    {"GET", "/api/v1/ping", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT, acontext_ping, "pong"},
    {"POST", "/api/v1/session", SCOPE_PROJECT, 0, SMALL, ERRORS_ACONTEXT, acontext_session_create,
        "makes a session"},
    {"GET", "/api/v1/session", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT, acontext_session_list,
        "sessions by creation: limit, cursor, time_desc, user, filter_by_configs"},
    {"DELETE", "/api/v1/session/:id", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT, acontext_session_delete,
        "to the trash"},
    {"GET", "/api/v1/session/:id/configs", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT,
        acontext_configs_get, "a session"},
    {"PUT", "/api/v1/session/:id/configs", SCOPE_PROJECT, 0, SMALL, ERRORS_ACONTEXT,
        acontext_configs_put, "replaces its configs"},
    {"PATCH", "/api/v1/session/:id/configs", SCOPE_PROJECT, 0, SMALL, ERRORS_ACONTEXT,
        acontext_configs_patch, "merges configs; null removes"},
    {"POST", "/api/v1/session/:id/messages", SCOPE_PROJECT, ROUTE_MULTIPART, LARGE, ERRORS_ACONTEXT,
        acontext_message_store, "stores a message: format, blob, meta; or multipart"},
    {"GET", "/api/v1/session/:id/messages", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT,
        acontext_messages_get, "messages: format, limit, cursor, time_desc, edit_strategies, pin"},
    {"PATCH", "/api/v1/session/:id/messages/:message/meta", SCOPE_PROJECT, 0, SMALL,
        ERRORS_ACONTEXT, acontext_message_meta, "merges metadata of a message"},
    {"GET", "/api/v1/session/:id/token_counts", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT,
        acontext_token_counts, "tokens of the whole session"},
    {"GET", "/api/v1/session/:id/observing_status", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT,
        acontext_observing, "how many messages are stored"},
    {"POST", "/api/v1/session/:id/flush", SCOPE_PROJECT, 0, SMALL, ERRORS_ACONTEXT, acontext_flush,
        "nothing waits: answers at once"},
    {"POST", "/api/v1/session/:id/copy", SCOPE_PROJECT, 0, SMALL, ERRORS_ACONTEXT,
        acontext_session_copy, "copies a session"},
    {"GET", "/api/v1/session/:id/task", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT, acontext_tasks,
        "tasks: none are made here"},
    {"GET", "/api/v1/session/:id/get_learning_status", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT,
        acontext_learning, "learning: none is done here"},
    {"POST", "/api/v1/session/:id/connect_to_space", SCOPE_PROJECT, 0, SMALL, ERRORS_ACONTEXT,
        acontext_connect, "spaces: accepted, without effect"},
    {"GET", "/api/v1/session/:id/asset/download", SCOPE_PROJECT, 0, 0, ERRORS_ACONTEXT,
        acontext_asset_download, "a file of a message, by s3_key"},
    {"GET", "/api/v1/session/:id/asset/:message/:part", SCOPE_SIGNED, 0, 0, ERRORS_ACONTEXT,
        acontext_asset_signed, "a file of a message, by signed address"},

    /* figures */
    {"GET", "/api/stats", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_stats, "figures of the store"},
    {"GET", "/api/routes", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_docs, "this table"},
    {"GET", "/metrics", SCOPE_PROJECT, 0, 0, ERRORS_STENO, own_metrics, "Prometheus text"},
    {"GET", "/healthz", SCOPE_OPEN, ROUTE_URGENT, 0, ERRORS_STENO, own_health, "is it there?"},
    {0},
};

const struct route *routes_table(void)
{
        return ROUTES;
}
