/* gen.c - see gen.h */
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../support/seed.h"

uint64_t gen_seed(void)
{
        const char *given = getenv("STENO_TEST_SEED");
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t seed = given ? strtoull(given, NULL, 0)
                              : (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
        printf("# seed %llu (STENO_TEST_SEED)\n", (unsigned long long)seed);
        return seed;
}

unsigned gen_count(unsigned share)
{
        return (unsigned)seed_rounds(100000) / share;
}

uint64_t gen_next(struct gen *g)
{
        uint64_t z = (g->state += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        return z ^ (z >> 31);
}

unsigned gen_below(struct gen *g, unsigned n)
{
        return (unsigned)(gen_next(g) % n);
}

static bool one_in(struct gen *g, unsigned n)
{
        return gen_below(g, n) == 0;
}

#define PUT(g, ...) buf_printf((g)->out, __VA_ARGS__)

/* ---- values ---- */

static void put_inner(struct gen *g, bool blank)
{
        static const char *const words[] = {"hello", "the build failed", "caf\xc3\xa9",
            "\xf0\x9f\x98\x80", "a\\nb", "tab\\t", "quote \\\"x\\\"", "back\\\\slash", "sl\\/ash",
            "\\u00e9", "\\ud83d\\ude00", "\\u0000", "\\ud800", "</function_call>", "1 < 2"};
        unsigned n = gen_below(g, 4);
        if (!blank)
                n++;
        for (unsigned i = 0; i < n; i++)
                PUT(g, "%s%s", i ? " " : "", words[gen_below(g, g->tame ? 6 : 15)]);
}

static void put_text(struct gen *g, bool blank)
{
        PUT(g, "\"");
        put_inner(g, blank);
        PUT(g, "\"");
}

static void put_value(struct gen *g, int depth)
{
        static const char *const atoms[] = {"1", "-0", "1.0", "1e2", "12E+3", "true", "false",
            "null", "123456789012345678901234567890", "\"x\"", "\"\\u0041\"", "[]", "{}"};
        unsigned kind = gen_below(g, depth > 0 ? 4 : 2);
        if (kind < 2) {
                PUT(g, "%s", atoms[gen_below(g, 13)]);
        } else if (kind == 2) {
                PUT(g, "[");
                put_value(g, depth - 1);
                PUT(g, one_in(g, 2) ? ", " : ",");
                put_value(g, depth - 1);
                PUT(g, "]");
        } else {
                PUT(g, "{\"k\":");
                put_value(g, depth - 1);
                PUT(g, ",\"z z\": ");
                put_value(g, depth - 1);
                PUT(g, "}");
        }
}

/* Members that no format knows, each with its comma. */
static void put_extras(struct gen *g)
{
        if (g->tame || !one_in(g, 4))
                return;
        PUT(g, ",\"x_%u\":", gen_below(g, 9));
        put_value(g, 2);
        if (one_in(g, 4))
                PUT(g, ",\"x_dup\":1,\"x_dup\":2.50");
}

static void put_object(struct gen *g)
{
        static const char *const objects[] = {"{}", "{\"a\":1}", "{\"path\": \"x/y\", \"n\": 1e3}",
            "{\"b\":[1,2,{\"c\":null}]}", "{\"s\":\"\\u00e9\\n\"}", "{\"a\":1,\"a\":2}"};
        PUT(g, "%s", objects[gen_below(g, 6)]);
}

/* Arguments as a string token. */
static void put_arguments(struct gen *g)
{
        static const char *const strings[] = {"{}", "{\\\"a\\\":1}",
            "{\\\"path\\\": \\\"x\\/y\\\"}", "{\\n \\\"b\\\" : [1, 2]\\n}",
            "{\\\"s\\\":\\\"\\\\u00e9\\\"}", "{\\\"cut\\\": tr", "not json", "", "[1,2]",
            "\\\"x\\\"", "{\\\"lone\\\":\\\"\\ud800\\\"}"};
        PUT(g, "\"%s\"", strings[gen_below(g, g->tame ? 5 : 11)]);
}

static const char *call_id(struct gen *g, unsigned turn, unsigned i)
{
        static _Thread_local char id[8][48];
        static _Thread_local unsigned at;
        char *to = id[at++ % 8];
        switch (turn % 3) {
        case 0:
                snprintf(to, 48, "call_%u", i);
                break;
        case 1:
                snprintf(to, 48, "toolu_%u_%u", turn, i);
                break;
        default:
                snprintf(to, 48, g->tame ? "c%u-%u" : "c%u:%u/\xc3\xa9", turn, i);
        }
        return to;
}

static const char *tool_name(unsigned i)
{
        static const char *const names[] = {"read_file", "run", "search", "get_weather"};
        return names[i % 4];
}

static bool is(const struct gen *g, const char *format)
{
        return strcmp(g->format, format) == 0;
}

static bool is_toolmessage(const struct gen *g)
{
        return strncmp(g->format, "toolmessage", 11) == 0;
}

/* ---- messages ---- */

static void begin(struct gen *g)
{
        if (g->comma)
                PUT(g, one_in(g, 8) ? " ,\n " : ",");
        g->comma = true;
        PUT(g, "{");
}

static void put_id(struct gen *g)
{
        static _Thread_local unsigned long n;
        if (one_in(g, 4))
                PUT(g, "\"id\":\"m_%lu\",", ++n);
}

static void sep(struct gen *g)
{
        if (g->inner_comma)
                PUT(g, ",");
        g->inner_comma = true;
}

static void put_image(struct gen *g)
{
        static const char data[] = "iVBORw0KGgo=";
        bool url = one_in(g, 4);
        sep(g);
        if (is(g, "openai") || is(g, "legacy"))
                PUT(g, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"%s%s\"%s",
                    url ? "https://x.test/i.png" : "data:image/png;base64,", url ? "" : data,
                    one_in(g, 2) ? ",\"detail\":\"low\"}" : "}");
        else if (is(g, "responses"))
                PUT(g, "{\"type\":\"input_image\",\"image_url\":\"%s%s\"",
                    url ? "https://x.test/i.png" : "data:image/png;base64,", url ? "" : data);
        else if (is(g, "anthropic") && url)
                PUT(g, "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://x.test/"
                       "i\"}");
        else if (is(g, "anthropic"))
                PUT(g,
                    "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/"
                    "png\","
                    "\"data\":\"%s\"}",
                    data);
        else if (is(g, "gemini") && url)
                PUT(g, "{\"fileData\":{\"mimeType\":\"image/png\",\"fileUri\":\"gs://x/i.png\"}");
        else if (is(g, "gemini"))
                PUT(g, "{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"%s\"}", data);
        else if (is(g, "langchain"))
                PUT(g, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"%s%s\"}",
                    url ? "https://x.test/i.png" : "data:image/png;base64,", url ? "" : data);
        else if (is(g, "uimessage"))
                PUT(g, "{\"type\":\"file\",\"mediaType\":\"image/png\",\"url\":\"%s%s\"",
                    url ? "https://x.test/i.png" : "data:image/png;base64,", url ? "" : data);
        else if (is(g, "modelmessage") && one_in(g, 2))
                PUT(g, "{\"type\":\"file\",\"data\":\"%s\",\"mediaType\":\"image/png\"",
                    url ? "https://x.test/i.png" : data);
        else if (is(g, "modelmessage"))
                PUT(g, "{\"type\":\"image\",\"image\":\"%s\",\"mediaType\":\"image/png\"",
                    url ? "https://x.test/i.png" : data);
        else if (is(g, "acontext"))
                PUT(g,
                    "{\"type\":\"image\",\"meta\":{\"media_type\":\"image/png\",\"data\":\"%s\"}",
                    data);
        else
                PUT(g, "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"%s\"", data);
        put_extras(g);
        PUT(g, "}");
}

static void put_text_part(struct gen *g, bool assistant, bool blank)
{
        const char *type = !is(g, "responses") ? "text" : assistant ? "output_text" : "input_text";
        sep(g);
        if (is(g, "gemini"))
                PUT(g, "{\"text\":");
        else
                PUT(g, "{\"type\":\"%s\",\"text\":", type);
        put_text(g, blank);
        if (is(g, "responses") && assistant)
                PUT(g, ",\"annotations\":[]");
        if (is(g, "anthropic") && one_in(g, 6))
                PUT(g, ",\"cache_control\":{\"type\":\"ephemeral\"}");
        if (is(g, "acontext") && one_in(g, 6))
                PUT(g, ",\"meta\":null,\"file_field\":null");
        put_extras(g);
        PUT(g, "}");
}

static void put_unknown_part(struct gen *g)
{
        if (g->tame || g->known || !one_in(g, 12) || is(g, "chat"))
                return;
        sep(g);
        if (is(g, "gemini"))
                PUT(g, "{\"executableCode\":{\"language\":\"PYTHON\",\"code\":\"1\"}}");
        else
                PUT(g, "{\"type\":\"novel_type\",\"payload\":{\"deep\":[1,null]}}");
}

/* LangChain's word for a role; what follows stands in `data`, which is left open. */
static void put_langchain_type(struct gen *g, const char *role)
{
        const char *type = strcmp(role, "user") == 0        ? "human"
                           : strcmp(role, "assistant") == 0 ? "ai"
                                                            : role;
        if (one_in(g, 3))
                PUT(g,
                    "\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain_core\",\"messages\","
                    "\"%c%sMessage\"],\"kwargs\":{",
                    strcmp(type, "ai") == 0 ? 'A' : type[0] - 'a' + 'A',
                    strcmp(type, "ai") == 0 ? "I" : type + 1);
        else
                PUT(g, "\"type\":\"%s\",\"data\":{", type);
        put_id(g);
        PUT(g, "\"response_metadata\":{}");
}

static void put_role(struct gen *g, const char *role)
{
        if (is(g, "langchain")) {
                put_langchain_type(g, role);
                return;
        }
        if (is(g, "responses"))
                PUT(g, "\"type\":\"message\",");
        if (is(g, "gemini") && strcmp(role, "assistant") == 0)
                role = "model";
        PUT(g, "\"role\":\"%s\"", role);
}

static const char *list_key(const struct gen *g)
{
        return is(g, "gemini") || is(g, "acontext") || is(g, "uimessage") ? "parts" : "content";
}

static bool knows_strings(const struct gen *g)
{
        return !is(g, "gemini") && !is(g, "acontext") && !is(g, "uimessage");
}

/* Unknown members and the end of a message. */
static void end(struct gen *g)
{
        put_extras(g);
        PUT(g, is(g, "langchain") ? "}}" : "}");
}

/* What an app stored where a text should be. */
static const char *odd_content(struct gen *g)
{
        static const char *const odd[] = {"5", "true", "{\"a\":[1.0e5,\"\\u00e9\"]}"};
        return odd[gen_below(g, 3)];
}

static void put_user(struct gen *g, const char *role)
{
        bool blank = g->damage && one_in(g, 4);
        bool user = strcmp(role, "user") == 0;
        bool named = one_in(g, 8) && (is(g, "openai") || is(g, "legacy") || is(g, "langchain"));
        const char *shown = role;
        if (!user && (is(g, "anthropic") || is(g, "gemini") || is(g, "acontext")))
                shown = "user";
        if (!user && (is(g, "uimessage") || is(g, "modelmessage")))
                shown = "system";
        begin(g);
        if (!is(g, "langchain"))
                put_id(g);
        put_role(g, shown);
        if (named)
                PUT(g, ",\"name\":\"ann\"");
        if (is(g, "acontext") && !user)
                PUT(g, ",\"meta\":{\"original_role\":\"%s\"}", role);
        bool string = is(g, "chat") || (is(g, "modelmessage") && !user);
        if (knows_strings(g) && (string || one_in(g, 2))) {
                PUT(g, ",\"content\":");
                put_text(g, blank);
                if (is(g, "chat") && user && one_in(g, 3)) {
                        PUT(g, ",\"attachments\":[");
                        g->inner_comma = false;
                        put_image(g);
                        PUT(g, "]");
                }
        } else if (blank && knows_strings(g) && one_in(g, 3)) {
                PUT(g, ",\"content\":%s", odd_content(g));
        } else if (blank && one_in(g, 3)) {
                PUT(g, ",\"%s\":%s", list_key(g), knows_strings(g) && one_in(g, 2) ? "null" : "[]");
        } else {
                PUT(g, ",\"%s\":[", list_key(g));
                g->inner_comma = false;
                put_text_part(g, false, blank);
                if (user && one_in(g, 3))
                        put_image(g);
                if (one_in(g, 4))
                        put_text_part(g, false, blank);
                put_unknown_part(g);
                PUT(g, "]");
        }
        end(g);
}

static void put_thinking(struct gen *g)
{
        if (!one_in(g, 3) || is(g, "responses") || is(g, "legacy") || is(g, "openai") ||
            is(g, "chat") || is(g, "langchain"))
                return;
        sep(g);
        if (is(g, "gemini"))
                PUT(g, "{\"text\":\"hmm\",\"thought\":true,\"thoughtSignature\":\"c2ln\"");
        else if (is_toolmessage(g) || is(g, "uimessage") || is(g, "modelmessage"))
                PUT(g, "{\"type\":\"reasoning\",\"text\":\"hmm\"");
        else if (is(g, "acontext"))
                PUT(g, "{\"type\":\"thinking\",\"text\":\"hmm\",\"meta\":{\"signature\":\"c2ln\"}");
        else if (one_in(g, 4))
                PUT(g, "{\"type\":\"redacted_thinking\",\"data\":\"ZGF0YQ==\"");
        else
                PUT(g, "{\"type\":\"thinking\",\"thinking\":\"hmm\",\"signature\":\"c2ln\"");
        put_extras(g);
        PUT(g, "}");
}

/* A call as a part of a list; responses makes items of its own. */
static void put_call_part(struct gen *g, unsigned turn, unsigned i, bool ids)
{
        const char *id = call_id(g, turn, i);
        sep(g);
        if (is(g, "gemini")) {
                PUT(g, "{\"functionCall\":{");
                if (ids)
                        PUT(g, "\"id\":\"%s\",", id);
                PUT(g, "\"name\":\"%s\",\"args\":", tool_name(i));
                put_object(g);
                PUT(g, "}%s", one_in(g, 3) ? ",\"thoughtSignature\":\"c2ln\"" : "");
        } else if (is(g, "acontext")) {
                PUT(g,
                    "{\"type\":\"tool-call\",\"meta\":{\"id\":\"%s\",\"name\":\"%s\","
                    "\"arguments\":",
                    id, tool_name(i));
                put_arguments(g);
                PUT(g, ",\"type\":\"function\"}");
        } else if (is(g, "modelmessage")) {
                PUT(g,
                    "{\"type\":\"tool-call\",\"toolCallId\":\"%s\",\"toolName\":\"%s\",\"input\":",
                    id, tool_name(i));
                put_object(g);
        } else if (is(g, "langchain")) {
                PUT(g, "{\"name\":\"%s\",\"args\":", tool_name(i));
                put_object(g);
                PUT(g, ",\"id\":\"%s\",\"type\":\"tool_call\"", id);
        } else if (is(g, "openai")) {
                PUT(g,
                    "{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":\"%s\","
                    "\"arguments\":",
                    id, tool_name(i));
                put_arguments(g);
                PUT(g, "}%s",
                    one_in(g, 5)
                        ? ",\"extra_content\":{\"google\":{\"thought_signature\":\"c2ln\"}}"
                        : "");
        } else {
                PUT(g, "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"%s\",\"input\":", id,
                    tool_name(i));
                put_object(g);
                if (is_toolmessage(g) && one_in(g, 4))
                        PUT(g, ",\"displayName\":\"Read\"");
        }
        put_extras(g);
        PUT(g, "}");
}

static const char *entry_state(struct gen *g, bool answered, bool failed)
{
        static const char *const ended[] = {"denied", "interrupted", "cut"};
        if (!answered)
                return one_in(g, 2) ? "pending" : "unrecorded";
        if (failed && one_in(g, 3))
                return ended[one_in(g, 3) + one_in(g, 3)];
        return failed ? "error" : "complete";
}

/* A call that holds its result: in chat, and in openai entries of some apps. */
static void put_entry(struct gen *g, unsigned turn, unsigned i, bool answered)
{
        sep(g);
        bool inner = is(g, "openai") && answered && one_in(g, 3);
        PUT(g, "{\"id\":\"%s\",%s\"name\":\"%s\",\"arguments\":", call_id(g, turn, i),
            inner ? "\"type\":\"function\",\"function\":{" : "", tool_name(i));
        put_arguments(g);
        if (inner)
                PUT(g, "}");
        bool failed = answered && one_in(g, 4);
        if (is(g, "chat"))
                PUT(g, ",\"state\":\"%s\"", entry_state(g, answered, failed));
        if (answered) {
                PUT(g, ",\"%s\":", failed ? "error" : "result");
                put_text(g, true);
                PUT(g, ",\"duration\":12,\"steps\":[],\"invokedAt\":\"2026-01-01T00:00:00.000Z\"");
                if (is(g, "chat") && one_in(g, 3))
                        PUT(g,
                            ",\"display\":{\"returnDisplay\":\"**d**\",\"displayName\":\"Read\"}");
        }
        put_extras(g);
        PUT(g, "}");
}

/* A call of a UIMessage, which holds its result. */
static void put_tool_part(struct gen *g, unsigned turn, unsigned i, bool answered)
{
        bool failed = answered && one_in(g, 4);
        sep(g);
        if (one_in(g, 2))
                PUT(g, "{\"type\":\"tool-%s\"", tool_name(i));
        else
                PUT(g, "{\"type\":\"dynamic-tool\",\"toolName\":\"%s\"", tool_name(i));
        PUT(g, ",\"toolCallId\":\"%s\",\"state\":\"%s\",\"input\":", call_id(g, turn, i),
            !answered ? "input-available"
            : failed  ? "output-error"
                      : "output-available");
        put_object(g);
        if (failed) {
                PUT(g, ",\"errorText\":");
                put_text(g, false);
        } else if (answered) {
                PUT(g, ",\"output\":");
                if (one_in(g, 3))
                        put_object(g);
                else
                        put_text(g, true);
        }
        put_extras(g);
        PUT(g, "}");
}

static void put_legacy_call(struct gen *g, unsigned turn, unsigned i, bool answered)
{
        PUT(g,
            "<function_call>{\\\"id\\\":\\\"%s\\\",\\\"name\\\":\\\"%s\\\",\\\"arguments\\\":"
            "\\\"{\\\\\\\"a\\\\\\\": %u}\\\"",
            call_id(g, turn, i), tool_name(i), i);
        if (answered)
                PUT(g, ",\\\"response\\\":\\\"done \\\\u003c/function_call> %u\\\"", i);
        PUT(g, "}</function_call>");
}

/* An assistant's turn with `calls` calls; `embedded` of them hold their results. */
static void put_assistant(struct gen *g, unsigned turn, unsigned calls, unsigned embedded, bool ids)
{
        bool text = !calls || one_in(g, 2);
        if (is(g, "responses")) {
                if (one_in(g, 4)) {
                        begin(g);
                        PUT(g,
                            "\"type\":\"reasoning\",\"id\":\"rs_%u\",\"summary\":[],"
                            "\"encrypted_content\":\"ZW5j\"}",
                            turn);
                }
                if (text) {
                        begin(g);
                        put_id(g);
                        put_role(g, "assistant");
                        PUT(g, ",\"content\":[");
                        g->inner_comma = false;
                        put_text_part(g, true, g->damage && one_in(g, 6));
                        PUT(g, "],\"status\":\"completed\"}");
                }
                for (unsigned i = 0; i < calls; i++) {
                        begin(g);
                        PUT(g,
                            "\"type\":\"function_call\",\"call_id\":\"%s\",\"name\":\"%s\","
                            "\"arguments\":",
                            call_id(g, turn, i), tool_name(i));
                        put_arguments(g);
                        put_extras(g);
                        PUT(g, "}");
                }
                return;
        }
        begin(g);
        if (!is(g, "langchain"))
                put_id(g);
        put_role(g, "assistant");
        if (is(g, "legacy")) {
                PUT(g, ",\"content\":\"");
                if (text)
                        put_inner(g, false);
                for (unsigned i = 0; i < calls; i++)
                        put_legacy_call(g, turn, i, i < embedded);
                PUT(g, "\"");
        } else if (is(g, "openai") || is(g, "chat") || is(g, "langchain")) {
                if (text || is(g, "chat") || is(g, "langchain")) {
                        PUT(g, ",\"content\":");
                        put_text(g, (g->damage && one_in(g, 5)) || !text);
                } else if (one_in(g, 2)) {
                        PUT(g, ",\"content\":null");
                }
                if (is(g, "openai") && one_in(g, 5))
                        PUT(g, ",\"reasoning_content\":\"hmm\"");
                if (is(g, "openai") && one_in(g, 5))
                        PUT(g, ",\"refusal\":null");
                if (calls) {
                        PUT(g, ",\"%s\":[", is(g, "chat") ? "toolCalls" : "tool_calls");
                        g->inner_comma = false;
                        for (unsigned i = 0; i < calls; i++) {
                                if (is(g, "chat") || i < embedded)
                                        put_entry(g, turn, i, i < embedded);
                                else
                                        put_call_part(g, turn, i, true);
                        }
                        PUT(g, "]");
                }
        } else {
                PUT(g, ",\"%s\":[", list_key(g));
                g->inner_comma = false;
                put_thinking(g);
                if (text)
                        put_text_part(g, true, g->damage && one_in(g, 5));
                put_unknown_part(g);
                for (unsigned i = 0; i < calls; i++) {
                        if (is(g, "uimessage"))
                                put_tool_part(g, turn, i, i < embedded);
                        else
                                put_call_part(g, turn, i, ids);
                }
                PUT(g, "]");
        }
        end(g);
}

static void put_result_part(struct gen *g, unsigned turn, unsigned i, bool ids)
{
        const char *id = call_id(g, turn, i);
        sep(g);
        if (is(g, "anthropic")) {
                PUT(g, "{\"type\":\"tool_result\",\"tool_use_id\":\"%s\"", id);
                if (one_in(g, 3)) {
                        bool inner = g->inner_comma;
                        PUT(g, ",\"content\":[");
                        g->inner_comma = false;
                        put_text_part(g, false, false);
                        if (one_in(g, 2))
                                put_image(g);
                        PUT(g, "]");
                        g->inner_comma = inner;
                } else if (!one_in(g, 6)) {
                        PUT(g, ",\"content\":");
                        put_text(g, true);
                }
                if (one_in(g, 4))
                        PUT(g, ",\"is_error\":%s", one_in(g, 2) ? "true" : "false");
        } else if (is(g, "gemini")) {
                PUT(g, "{\"functionResponse\":{");
                if (ids)
                        PUT(g, "\"id\":\"%s\",", id);
                PUT(g, "\"name\":\"%s\",\"response\":", tool_name(i));
                if (one_in(g, 2))
                        put_object(g);
                else
                        PUT(g, "{\"%s\":\"text %u\"}", one_in(g, 3) ? "error" : "output", i);
                PUT(g, "}");
        } else if (is(g, "modelmessage")) {
                bool failed = one_in(g, 4), data = one_in(g, 3);
                PUT(g,
                    "{\"type\":\"tool-result\",\"toolCallId\":\"%s\",\"toolName\":\"%s\","
                    "\"output\":{"
                    "\"type\":\"%s%s\",\"value\":",
                    id, tool_name(i), failed ? "error-" : "", data ? "json" : "text");
                if (data)
                        put_object(g);
                else
                        put_text(g, true);
                PUT(g, "}");
        } else if (is(g, "acontext")) {
                PUT(g, "{\"type\":\"tool-result\",\"text\":");
                put_text(g, true);
                PUT(g, ",\"meta\":{\"tool_call_id\":\"%s\"%s}", id,
                    one_in(g, 4) ? ",\"is_error\":true" : "");
        } else {
                bool older = is(g, "toolmessage");
                PUT(g, "{\"type\":\"%s\",\"%s\":\"%s\",\"%s\":\"%s\",\"result\":{\"llmContent\":",
                    older ? "tool_result" : "tool-result", older ? "id" : "toolCallId", id,
                    older ? "name" : "toolName", tool_name(i));
                if (one_in(g, 4))
                        put_object(g);
                else
                        put_text(g, true);
                if (one_in(g, 3))
                        PUT(g, ",\"returnDisplay\":\"**done**\"");
                if (one_in(g, 4))
                        PUT(g, ",\"isError\":true");
                PUT(g, "}");
        }
        put_extras(g);
        PUT(g, "}");
}

static void put_single_result(struct gen *g, unsigned turn, unsigned i)
{
        begin(g);
        if (is(g, "responses")) {
                PUT(g, "\"type\":\"function_call_output\",\"call_id\":\"%s\",\"output\":",
                    call_id(g, turn, i));
                if (one_in(g, 4)) {
                        PUT(g, "[");
                        g->inner_comma = false;
                        put_text_part(g, false, false);
                        put_image(g);
                        PUT(g, "]");
                } else {
                        put_text(g, true);
                }
        } else if (is(g, "langchain")) {
                put_langchain_type(g, "tool");
                PUT(g, ",\"tool_call_id\":\"%s\",\"name\":\"%s\",\"content\":", call_id(g, turn, i),
                    tool_name(i));
                put_text(g, true);
                if (one_in(g, 3))
                        PUT(g, ",\"status\":\"%s\"", one_in(g, 2) ? "error" : "success");
        } else {
                put_id(g);
                PUT(g,
                    "\"role\":\"tool\",\"tool_call_id\":\"%s\",\"content\":", call_id(g, turn, i));
                if (g->damage && one_in(g, 8))
                        PUT(g, "null");
                else
                        put_text(g, true);
                if (one_in(g, 4))
                        PUT(g, ",\"toolName\":\"%s\",\"duration\":5%s", tool_name(i),
                            one_in(g, 2) ? ",\"isError\":true" : "");
        }
        end(g);
}

/* The results of calls order[0 .. n), in one message or in several where the format can. */
static void put_results(struct gen *g, unsigned turn, const unsigned *order, unsigned n, bool ids)
{
        if (is(g, "openai") || is(g, "responses") || is(g, "langchain")) {
                for (unsigned i = 0; i < n; i++)
                        put_single_result(g, turn, order[i]);
                return;
        }
        for (unsigned i = 0; i < n;) {
                unsigned take = one_in(g, 2) ? n - i : 1;
                begin(g);
                bool tool = is(g, "toolmessage2") || is(g, "modelmessage");
                PUT(g, "\"role\":\"%s\",\"%s\":[", tool ? "tool" : "user", list_key(g));
                g->inner_comma = false;
                for (unsigned k = 0; k < take; k++)
                        put_result_part(g, turn, order[i + k], ids);
                PUT(g, "]}");
                i += take;
        }
}

static bool embeds(const struct gen *g)
{
        return is(g, "chat") || is(g, "legacy") || is(g, "uimessage");
}

static void put_tools(struct gen *g, unsigned turn)
{
        unsigned calls = 1 + gen_below(g, 4), order[8], n = 0;
        bool ids = !one_in(g, 3);
        unsigned embedded = 0;
        if (embeds(g))
                embedded = g->damage && one_in(g, 3) ? gen_below(g, calls) : calls;
        else if (is(g, "openai") && one_in(g, 8))
                embedded = gen_below(g, calls + 1);
        put_assistant(g, turn, calls, embedded, ids);
        if (embeds(g))
                return;
        for (unsigned i = embedded; i < calls; i++)
                if (!g->damage || !one_in(g, 3))
                        order[n++] = i;
        for (unsigned i = n; ids && i > 1 && one_in(g, 2); i--) {
                unsigned k = gen_below(g, i), was = order[k];
                order[k] = order[i - 1];
                order[i - 1] = was;
        }
        if (g->damage && one_in(g, 4))
                put_user(g, "user"); /* the results come late */
        if (g->damage && n && one_in(g, 4))
                order[n++] = order[0]; /* twice */
        if (g->damage && one_in(g, 6))
                order[n++] = 7; /* nobody called it */
        put_results(g, turn, order, n, ids);
}

/* A call of a kind other than function, with its result. */
static void put_kind(struct gen *g, unsigned turn)
{
        static const struct {
                const char *call;
                const char *answer;
        } kinds[] = {
            {"\"type\":\"web_search_call\",\"id\":\"ws_%u\",\"status\":\"completed\",\"action\":{"
             "\"type\":\"search\",\"query\":\"q\"}",
                NULL},
            {"\"type\":\"custom_tool_call\",\"call_id\":\"cu_%u\",\"name\":\"patch\",\"input\":\"a "
             "\\\"b\\\"\"",
                "\"type\":\"custom_tool_call_output\",\"call_id\":\"cu_%u\",\"output\":\"done \""},
            {"\"type\":\"mcp_call\",\"id\":\"mcp_%u\",\"server_label\":\"s\",\"name\":\"look\","
             "\"arguments\":\"{}\",\"output\":\"seen\"",
                NULL},
            {"\"type\":\"mcp_call\",\"id\":\"mcf_%u\",\"server_label\":\"s\",\"name\":\"look\","
             "\"arguments\":\"{\\\"a\\\":1}\",\"error\":\"no such page\"",
                NULL},
            {"\"type\":\"shell_call\",\"call_id\":\"sh_%u\",\"action\":{\"commands\":[\"ls\"],"
             "\"timeout_ms\":1.0e3}",
                "\"type\":\"shell_call_output\",\"call_id\":\"sh_%u\",\"output\":[{\"stdout\":"
                "\"x\\n\","
                "\"stderr\":\"\",\"outcome\":{\"type\":\"exit\",\"exit_code\":2}}]"},
            {"\"type\":\"local_shell_call\",\"id\":\"ls_%u\",\"call_id\":\"lc\",\"action\":{"
             "\"type\":"
             "\"exec\",\"command\":[\"ls\"]},\"status\":\"completed\"",
                "\"type\":\"local_shell_call_output\",\"id\":\"lc\",\"output\":\"{%u}\""},
            {"\"type\":\"computer_call\",\"id\":\"cc_%u\",\"call_id\":\"comp\",\"action\":{"
             "\"type\":"
             "\"screenshot\"},\"pending_safety_checks\":[],\"status\":\"completed\"",
                "\"type\":\"computer_call_output\",\"call_id\":\"comp\",\"id\":\"co_%u\","
                "\"output\":{"
                "\"type\":\"computer_screenshot\",\"image_url\":\"data:image/"
                "png;base64,iVBORw0KGgo=\"}"},
            {"\"type\":\"apply_patch_call\",\"call_id\":\"ap_%u\",\"status\":\"completed\","
             "\"operation\":{\"type\":\"delete_file\",\"path\":\"a\"}",
                "\"type\":\"apply_patch_call_output\",\"call_id\":\"ap_%u\",\"status\":\"failed\","
                "\"output\":\"no file\""},
            {"\"type\":\"code_interpreter_call\",\"id\":\"ci_%u\",\"container_id\":\"c\",\"code\":"
             "\"1+"
             "1\",\"outputs\":[{\"type\":\"logs\",\"logs\":\"2\"}]",
                NULL},
            {"\"type\":\"file_search_call\",\"id\":\"fs_%u\",\"queries\":[\"q\"],\"results\":[{"
             "\"file_id\":\"f\",\"score\":0.50}]",
                NULL},
            {"\"type\":\"image_generation_call\",\"id\":\"ig_%u\",\"result\":\"iVBORw0KGgo=\"",
                NULL},
        };
        unsigned k = gen_below(g, sizeof kinds / sizeof *kinds);
        char text[400];
        begin(g);
        snprintf(text, sizeof text, kinds[k].call, turn);
        PUT(g, "%s", text);
        put_extras(g);
        PUT(g, "}");
        if (!kinds[k].answer || (g->damage && one_in(g, 3)))
                return;
        begin(g);
        snprintf(text, sizeof text, kinds[k].answer, turn);
        PUT(g, "%s", text);
        put_extras(g);
        PUT(g, "}");
}

/* OpenAI's older form of calls, without ids. */
static void put_older_call(struct gen *g, unsigned turn)
{
        begin(g);
        PUT(g,
            "\"role\":\"assistant\",\"content\":%s,\"function_call\":{\"name\":\"%s\","
            "\"arguments\":",
            one_in(g, 2) ? "null" : "\"so\"", tool_name(turn));
        put_arguments(g);
        PUT(g, "}");
        put_extras(g);
        PUT(g, "}");
        if (g->damage && one_in(g, 3))
                return;
        begin(g);
        PUT(g, "\"role\":\"function\",\"name\":\"%s\",\"content\":", tool_name(turn));
        put_text(g, true);
        put_extras(g);
        PUT(g, "}");
}

void gen_history(struct gen *g)
{
        unsigned turns = 1 + gen_below(g, 6);
        g->comma = false;
        PUT(g, "[");
        if (one_in(g, 3))
                put_user(g, "system");
        if (one_in(g, 6))
                put_user(g, "developer");
        for (unsigned i = 0; i < turns; i++, g->turn++) {
                if (is(g, "responses") && !g->tame)
                        for (unsigned k = gen_below(g, 4); k > 2; k--)
                                put_kind(g, i);
                if (is(g, "openai") && !g->tame && one_in(g, 6))
                        put_older_call(g, i);
                if (!g->damage || !one_in(g, 4))
                        put_user(g, "user");
                for (unsigned k = gen_below(g, 3); k > 0; k--)
                        put_tools(g, g->turn);
                if (!g->damage || !one_in(g, 3))
                        put_assistant(g, g->turn, 0, 0, true);
        }
        PUT(g, "]");
}

bool gen_knows(const char *format)
{
        static const char *const made[] = {"openai", "responses", "anthropic", "gemini", "acontext",
            "toolmessage2", "toolmessage", "chat", "legacy", "uimessage", "modelmessage",
            "langchain"};
        for (size_t i = 0; i < sizeof made / sizeof *made; i++)
                if (strcmp(format, made[i]) == 0)
                        return true;
        return false;
}
