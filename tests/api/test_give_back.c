/*
 * Random histories of every format: whatever was acknowledged comes back token for token, large
 * results are files that read back exactly, and no model view holds one.
 *
 * A result's text has a marker in its middle that no stub can show, so that a view tells whether it
 * has the whole. What a file must hold is worked out here, by the words of docs/format.md.
 */
#include "api/rig.h"

#include "base/text.h"

#define MESSAGES_MAX 24
#define RESULTS_MAX 24

/* ---- what is generated ---- */

struct result {
        struct buf text; /* what its file holds, when it is large */
        char marker[32]; /* in the middle of its text; "": it is too short for one */
        bool data;       /* a JSON value: other formats may spell it differently */
        bool lossy;      /* has a lone surrogate, which no other format gets */
};

struct game {
        struct seed *seed;
        const char *format;
        bool runtime; /* profile runtime-store */
        struct buf messages[MESSAGES_MAX];
        size_t message_count;
        struct result results[RESULTS_MAX];
        size_t result_count;
        int marks;
};

static uint64_t pick(struct game *g, uint64_t n)
{
        return seed_below(g->seed, n);
}

/* Sizes around every limit, and mostly small ones. */
static size_t pick_size(struct game *g)
{
        static const size_t AROUND[] = {2048, 4000, 16384, 32768, 51200};
        switch (pick(g, 6)) {
        case 0:
                return pick(g, 60);
        case 1:
                return 12000 + pick(g, 9000);
        case 2:
                return pick(g, 40) ? 4200 : 70000 + pick(g, 150000);
        default:
                return AROUND[pick(g, 5)] - 3 + pick(g, 7);
        }
}

/* A text of n bytes; one of more than `hides` has the marker in its middle. */
static void put_text(struct game *g, struct buf *out, size_t n, size_t hides, char marker[32])
{
        static const char *const WORDS[] = {"alpha ", "beta\n", "\xc3\xbcgung ",
            "\xf0\x9f\x8e\x89 ", "a/b ", "\"q\" ", "\\ ", "\t", "\xe6\x97\xa5\n", "<b> "};
        size_t start = out->n;
        bool plain = pick(g, 3) == 0;
        marker[0] = '\0';
        while (out->n - start < n) {
                if (!marker[0] && n > hides && out->n - start > n / 2) {
                        snprintf(marker, 32, "MIDDLE%dMIDDLE", g->marks++);
                        buf_puts(out, marker);
                }
                const char *w = plain ? "x" : WORDS[pick(g, 10)];
                if (out->n - start + strlen(w) > n)
                        w = "x";
                buf_puts(out, w);
        }
}

/* The text as a string token, sometimes in a spelling that Steno would not use. */
static void put_token(struct game *g, struct buf *out, struct str text, bool *lossy)
{
        size_t from = out->n;
        json_put_string(out, text);
        if (pick(g, 3))
                return;
        struct buf odd;
        buf_init(&odd, 0);
        buf_putc(&odd, '"');
        for (size_t i = from + 1; i + 1 < out->n; i++) {
                if (out->p[i] == '\\') {
                        buf_put(&odd, out->p + i, 2);
                        i++;
                } else if (out->p[i] == '/') {
                        buf_puts(&odd, "\\/");
                } else if (out->p[i] == 'e' && pick(g, 4) == 0) {
                        buf_puts(&odd, "\\u0065");
                } else {
                        buf_putc(&odd, out->p[i]);
                }
        }
        if (pick(g, 6) == 0) {
                buf_puts(&odd, "\\ud800");
                *lossy = true;
        }
        buf_putc(&odd, '"');
        out->n = from;
        buf_put_str(out, buf_str(&odd));
        buf_release(&odd);
}

static struct result *new_result(struct game *g)
{
        struct result *r = &g->results[g->result_count++];
        *r = (struct result){0};
        buf_init(&r->text, 0);
        return r;
}

static void put_string_result(struct game *g, struct buf *out)
{
        struct result *r = new_result(g);
        put_text(g, &r->text, pick_size(g), 4000, r->marker);
        put_token(g, out, buf_str(&r->text), &r->lossy);
        if (r->lossy)
                buf_puts(&r->text, "\xef\xbf\xbd");
}

static void put_data_result(struct game *g, struct buf *out)
{
        struct result *r = new_result(g);
        struct buf text;
        buf_init(&text, 0);
        size_t from = out->n;
        put_text(g, &text, pick_size(g), 4000, r->marker);
        buf_puts(out, "{\"rows\" : [1, 2.50,{}],\"text\":");
        put_token(g, out, buf_str(&text), &r->lossy);
        buf_puts(out, ",\"text\":null}");
        buf_put(&r->text, out->p + from, out->n - from);
        r->data = true;
        buf_release(&text);
}

static void put_border(struct buf *text, size_t n, const char *what)
{
        if (text->n && text->p[text->n - 1] != '\n')
                buf_putc(text, '\n');
        buf_printf(text, "--- part %zu%s ---\n", n + 1, what);
}

/* Blocks of text with unknown members, and pictures between them. `text` and `image` are the
 * format's names for the two. */
static void put_array_result(
    struct game *g, struct buf *out, const char *text_type, const char *image)
{
        struct result *r = new_result(g);
        size_t n = 1 + pick(g, 3), pixels = pick(g, 8) ? 40 : 40000;
        bool odd = false;
        buf_putc(out, '[');
        for (size_t i = 0; i < n; i++) {
                char marker[32];
                size_t from = r->text.n;
                if (i)
                        buf_putc(out, ',');
                if (image && i && pick(g, 3) == 0) {
                        char what[64];
                        snprintf(what, sizeof what, ": image, image/png, %zu characters of base64",
                            pixels);
                        put_border(&r->text, i, what);
                        buf_puts(out, image);
                        for (size_t k = 0; k < pixels; k++)
                                buf_putc(out, "ABCD"[k & 3]);
                        buf_puts(out, "\"}}");
                        continue;
                }
                if (i)
                        put_border(&r->text, i, "");
                from = r->text.n;
                put_text(g, &r->text, pick_size(g), 12000, i || r->marker[0] ? marker : r->marker);
                buf_printf(out, "{\"type\":\"%s\",\"text\":", text_type);
                put_token(g, out, str_span(r->text.p + from, r->text.n - from), &odd);
                if (odd)
                        buf_puts(&r->text, "\xef\xbf\xbd");
                r->lossy |= odd;
                odd = false;
                buf_puts(out, pick(g, 2) ? ",\"cache_control\":{\"type\":\"ephemeral\"}}" : "}");
        }
        buf_putc(out, ']');
}

static void put_content(struct game *g, struct buf *out, const char *text_type, const char *image)
{
        if (text_type && pick(g, 3) == 0)
                put_array_result(g, out, text_type, image);
        else
                put_string_result(g, out);
}

static struct buf *new_message(struct game *g)
{
        struct buf *b = &g->messages[g->message_count++];
        buf_init(b, 0);
        return b;
}

#define OPENAI_IMAGE "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,"
#define ANTHROPIC_IMAGE                                                                            \
        "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/"              \
        "png\",\"data\":\""

/* ---- turns: calls and their results ---- */

static void openai_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    "%s{\"id\":\"c%d_%zu\",\"type\":\"function\",\"function\":{\"name\":\"f\","
                    "\"arguments\":\"{}\"}}",
                    i ? "," : "", t, i);
        buf_puts(m, "]}");
        for (size_t i = 0; i < n; i++) {
                m = new_message(g);
                buf_printf(
                    m, "{\"role\":\"tool\", \"tool_call_id\":\"c%d_%zu\",\"content\":", t, i);
                put_content(g, m, "text", OPENAI_IMAGE);
                buf_puts(m, pick(g, 2) ? ",\"zzz\":1.50}" : " }");
        }
}

static void invocations_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"content\":\"done\",\"tool_calls\":[");
        for (size_t i = 0; i < n; i++) {
                buf_printf(m, "%s{\"id\":\"c%d_%zu\",\"name\":\"f\",\"arguments\":\"{}\",\"%s\":",
                    i ? "," : "", t, i, pick(g, 4) ? "result" : "error");
                if (pick(g, 4) == 0)
                        put_data_result(g, m);
                else
                        put_string_result(g, m);
                buf_puts(m, ",\"steps\":[{\"text\":\"s\"}],\"invokedAt\":17}");
        }
        buf_puts(m, "]}");
}

static void anthropic_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"go\"}");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    ",{\"type\":\"tool_use\",\"id\":\"c%d_%zu\",\"name\":\"f\",\"input\":{}}", t,
                    i);
        buf_puts(m, "]}");
        m = new_message(g);
        buf_puts(m, "{\"role\":\"user\",\"content\":[");
        for (size_t i = 0; i < n; i++) {
                buf_printf(m,
                    "%s{\"type\":\"tool_result\",\"tool_use_id\":\"c%d_%zu\",\"content\":",
                    i ? "," : "", t, i);
                put_content(g, m, "text", ANTHROPIC_IMAGE);
                buf_putc(m, '}');
        }
        buf_puts(m, "]}");
}

static void responses_turn(struct game *g, int t, size_t n)
{
        for (size_t i = 0; i < n; i++)
                buf_printf(new_message(g),
                    "{\"type\":\"function_call\",\"call_id\":\"c%d_%zu\",\"name\":\"f\","
                    "\"arguments\":\"{}\"}",
                    t, i);
        for (size_t i = 0; i < n; i++) {
                struct buf *m = new_message(g);
                buf_printf(m,
                    "{\"type\":\"function_call_output\",\"call_id\":\"c%d_%zu\",\"output\":", t, i);
                put_content(g, m, "input_text", NULL);
                buf_putc(m, '}');
        }
}

static void gemini_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"model\",\"parts\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    "%s{\"functionCall\":{\"id\":\"c%d_%zu\",\"name\":\"f\",\"args\":{}}}",
                    i ? "," : "", t, i);
        buf_puts(m, "]}");
        m = new_message(g);
        buf_puts(m, "{\"role\":\"user\",\"parts\":[");
        for (size_t i = 0; i < n; i++) {
                buf_printf(m,
                    "%s{\"functionResponse\":{\"id\":\"c%d_%zu\",\"name\":\"f\",\"response\":",
                    i ? "," : "", t, i);
                if (pick(g, 2)) {
                        put_data_result(g, m);
                } else {
                        buf_puts(m, "{\"output\":");
                        put_string_result(g, m);
                        buf_putc(m, '}');
                }
                buf_puts(m, "}}");
        }
        buf_puts(m, "]}");
}

static void acontext_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"parts\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    "%s{\"type\":\"tool-call\",\"meta\":{\"id\":\"c%d_%zu\",\"name\":\"f\","
                    "\"arguments\":\"{}\"}}",
                    i ? "," : "", t, i);
        buf_puts(m, "]}");
        m = new_message(g);
        buf_puts(m, "{\"role\":\"user\",\"parts\":[");
        for (size_t i = 0; i < n; i++) {
                buf_puts(m, i ? "," : "");
                buf_puts(m, "{\"type\":\"tool-result\",\"text\":");
                put_string_result(g, m);
                buf_printf(m, ",\"meta\":{\"tool_call_id\":\"c%d_%zu\"}}", t, i);
        }
        buf_puts(m, "]}");
}

static void toolmessage2_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"content\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    "%s{\"type\":\"tool_use\",\"id\":\"c%d_%zu\",\"name\":\"f\",\"input\":{}}",
                    i ? "," : "", t, i);
        buf_puts(m, "]}");
        m = new_message(g);
        buf_puts(m, "{\"role\":\"tool\",\"content\":[");
        for (size_t i = 0; i < n; i++) {
                buf_printf(m,
                    "%s{\"type\":\"tool-result\",\"toolCallId\":\"c%d_%zu\",\"toolName\":\"f\","
                    "\"input\":{},\"result\":{\"llmContent\":",
                    i ? "," : "", t, i);
                put_string_result(g, m);
                buf_puts(m, ",\"returnDisplay\":\"shown\"}}");
        }
        buf_puts(m, "]}");
}

static void toolmessage_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"content\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    "%s{\"type\":\"tool_use\",\"id\":\"c%d_%zu\",\"name\":\"f\",\"input\":{}}",
                    i ? "," : "", t, i);
        buf_puts(m, "]}");
        m = new_message(g);
        buf_puts(m, "{\"role\":\"user\",\"content\":[");
        for (size_t i = 0; i < n; i++) {
                buf_printf(m,
                    "%s{\"type\":\"tool_result\",\"id\":\"c%d_%zu\",\"name\":\"f\",\"input\":{},"
                    "\"result\":",
                    i ? "," : "", t, i);
                put_string_result(g, m);
                buf_putc(m, '}');
        }
        buf_puts(m, "]}");
}

static void chat_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"content\":\"\",\"toolCalls\":[");
        for (size_t i = 0; i < n; i++) {
                buf_printf(m,
                    "%s{\"id\":\"c%d_%zu\",\"name\":\"f\",\"arguments\":\"{}\",\"state\":"
                    "\"complete\","
                    "\"result\":",
                    i ? "," : "", t, i);
                put_string_result(g, m);
                buf_putc(m, '}');
        }
        buf_puts(m, "]}");
}

/* The response is in a call, and the call is in a text. */
static void legacy_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g), text;
        buf_init(&text, 0);
        for (size_t i = 0; i < n; i++) {
                buf_printf(&text,
                    "I look.\n<function_call>{\"id\":\"c%d_%zu\",\"name\":\"f\","
                    "\"arguments\":{},\"response\":",
                    t, i);
                struct buf token;
                buf_init(&token, 0);
                put_string_result(g, &token);
                for (size_t k = 0; k < token.n; k++) {
                        if (token.p[k] == '<')
                                buf_puts(&text, "\\u003c");
                        else
                                buf_putc(&text, token.p[k]);
                }
                buf_puts(&text, "}</function_call>\n");
                buf_release(&token);
        }
        buf_puts(m, "{\"role\":\"assistant\",\"content\":");
        json_put_string(m, buf_str(&text));
        buf_putc(m, '}');
        buf_release(&text);
}

static void uimessage_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"parts\":[{\"type\":\"step-start\"}");
        for (size_t i = 0; i < n; i++) {
                bool failed = pick(g, 4) == 0;
                buf_printf(m,
                    ",{\"type\":\"tool-f\",\"toolCallId\":\"c%d_%zu\",\"state\":\"output-%s\","
                    "\"input\":{},\"%s\":",
                    t, i, failed ? "error" : "available", failed ? "errorText" : "output");
                if (!failed && pick(g, 3) == 0)
                        put_data_result(g, m);
                else
                        put_string_result(g, m);
                buf_putc(m, '}');
        }
        buf_puts(m, "]}");
}

static void modelmessage_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"role\":\"assistant\",\"content\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    "%s{\"type\":\"tool-call\",\"toolCallId\":\"c%d_%zu\",\"toolName\":\"f\","
                    "\"input\":{}}",
                    i ? "," : "", t, i);
        buf_puts(m, "]}");
        m = new_message(g);
        buf_puts(m, "{\"role\":\"tool\",\"content\":[");
        for (size_t i = 0; i < n; i++) {
                bool data = pick(g, 3) == 0;
                buf_printf(m,
                    "%s{\"type\":\"tool-result\",\"toolCallId\":\"c%d_%zu\",\"toolName\":\"f\","
                    "\"output\":{\"type\":\"%s\",\"value\":",
                    i ? "," : "", t, i, data ? "json" : "text");
                if (data)
                        put_data_result(g, m);
                else
                        put_string_result(g, m);
                buf_puts(m, "}}");
        }
        buf_puts(m, "]}");
}

static void langchain_turn(struct game *g, int t, size_t n)
{
        struct buf *m = new_message(g);
        buf_puts(m, "{\"type\":\"ai\",\"data\":{\"content\":\"\",\"tool_calls\":[");
        for (size_t i = 0; i < n; i++)
                buf_printf(m,
                    "%s{\"name\":\"f\",\"args\":{},\"id\":\"c%d_%zu\",\"type\":\"tool_call\"}",
                    i ? "," : "", t, i);
        buf_puts(m, "],\"additional_kwargs\":{}}}");
        for (size_t i = 0; i < n; i++) {
                m = new_message(g);
                buf_printf(m,
                    "{\"type\":\"tool\",\"data\":{\"tool_call_id\":\"c%d_%zu\",\"name\":\"f\","
                    "\"content\":",
                    t, i);
                put_content(g, m, "text", OPENAI_IMAGE);
                buf_puts(m, ",\"status\":\"success\"}}");
        }
}

static const struct turn {
        const char *format;
        void (*make)(struct game *g, int t, size_t n);
        bool embedded; /* results stand in the message of their calls */
} TURNS[] = {{"openai", openai_turn, false}, {"openai", invocations_turn, true},
    {"anthropic", anthropic_turn, false}, {"responses", responses_turn, false},
    {"gemini", gemini_turn, false}, {"acontext", acontext_turn, false},
    {"toolmessage2", toolmessage2_turn, false}, {"toolmessage", toolmessage_turn, false},
    {"chat", chat_turn, true}, {"legacy", legacy_turn, true}, {"uimessage", uimessage_turn, true},
    {"modelmessage", modelmessage_turn, false}, {"langchain", langchain_turn, false}};

#define TURN_COUNT (sizeof TURNS / sizeof *TURNS)

/* ---- what must hold ---- */

static bool is_large(const struct game *g, const struct result *r)
{
        size_t n = r->text.n;
        if (g->runtime)
                return n > 51200;
        return n > 16384 || text_count(r->text.p, n) > 4000;
}

static void view(struct steno_conv *conv, const char *format, int outputs, struct buf *out)
{
        struct steno_view_options opt = {
            .size = sizeof opt, .format = format, .outputs = outputs, .all_messages = true};
        buf_clear(out);
        OK(steno_view(conv, &opt, rig_gather, out, NULL, &err));
        assert_non_null(buf_cstr(out));
}

static void stored_is_what_was_sent(const struct game *g, struct steno_conv *conv)
{
        struct buf out;
        struct json j;
        size_t i = 0;
        buf_init(&out, 0);
        view(conv, "stored", STENO_OUTPUTS_DEFAULT, &out);
        rig_parse(&j, out.p);
        assert_int_equal(json_count(&j, 0), g->message_count);
        for (json_ref e = json_child(&j, 0); e != JSON_NONE; e = json_next(&j, 0, e), i++) {
                assert_same(buf_str(&g->messages[i]), json_raw(&j, json_get(&j, e, "m")));
                assert_int_equal(json_get(&j, e, "note"), JSON_NONE);
                assert_true(json_is(&j, json_get(&j, e, "fmt"), g->format));
        }
        json_release(&j);
        buf_release(&out);
}

static bool shows(const struct buf *view, const char *marker)
{
        return memmem(view->p, view->n, marker, strlen(marker)) != NULL;
}

static void full_has_all_and_stub_none(
    const struct game *g, struct steno_conv *conv, const char *format)
{
        struct buf full, stub;
        bool own = strcmp(format, g->format) == 0;
        buf_init(&full, 0);
        buf_init(&stub, 0);
        view(conv, format, STENO_OUTPUTS_FULL, &full);
        view(conv, format, STENO_OUTPUTS_STUB, &stub);
        for (size_t i = 0; i < g->result_count; i++) {
                const struct result *r = &g->results[i];
                if (!r->marker[0])
                        continue;
                if ((own || (!r->data && !r->lossy)) && !shows(&full, r->marker))
                        fail_msg("%s as %s: the full view lacks %s of %zu bytes", g->format, format,
                            r->marker, r->text.n);
                if (is_large(g, r) && shows(&stub, r->marker))
                        fail_msg("%s as %s: the stub view holds %s of %zu bytes", g->format, format,
                            r->marker, r->text.n);
                if (!is_large(g, r))
                        assert_true(shows(&stub, r->marker));
        }
        buf_release(&full);
        buf_release(&stub);
}

/* Each file is the text of a large result, and each large result has a file. */
static void files_hold_the_results(const struct game *g, struct steno_conv *conv)
{
        char *json = NULL;
        struct json j;
        struct buf bytes, ref;
        bool found[RESULTS_MAX] = {0};
        size_t large = 0;
        static const char ARGS[] = "{\"limit\":1000}";
        OK(steno_context(conv, "list", ARGS, sizeof ARGS - 1, &json, &err));
        rig_parse(&j, json);
        buf_init(&bytes, 0);
        buf_init(&ref, 0);
        json_ref items = json_get(&j, 0, "items");
        for (json_ref e = json_child(&j, items); e != JSON_NONE; e = json_next(&j, items, e)) {
                bool known = false;
                buf_clear(&bytes);
                buf_clear(&ref);
                json_string(&j, json_get(&j, e, "id"), &ref, NULL);
                OK(steno_context_raw(conv, buf_cstr(&ref), 0, 0, rig_gather, &bytes, &err));
                for (size_t i = 0; i < g->result_count && !known; i++) {
                        known = !found[i] && is_large(g, &g->results[i]) &&
                                str_eq(buf_str(&bytes), buf_str(&g->results[i].text));
                        found[i] |= known;
                }
                if (!known)
                        fail_msg("%s: a file of %zu bytes is of no result", g->format, bytes.n);
        }
        for (size_t i = 0; i < g->result_count; i++)
                large += is_large(g, &g->results[i]);
        size_t count = json_count(&j, items);
        if (count != large)
                fail_msg("%s: %zu large results, %zu files", g->format, large, count);
        buf_release(&bytes);
        buf_release(&ref);
        json_release(&j);
        steno_free(json);
}

static void check_all(const struct game *g, struct steno_conv *conv)
{
        static const char *const MODELS[] = {"openai", "anthropic", "gemini", "responses"};
        stored_is_what_was_sent(g, conv);
        files_hold_the_results(g, conv);
        for (size_t i = 0; i < 4; i++)
                full_has_all_and_stub_none(g, conv, MODELS[i]);
        full_has_all_and_stub_none(g, conv, g->format);
}

/* ---- a history ---- */

static void generate(struct game *g, struct seed *seed)
{
        const struct turn *turn = &TURNS[seed_below(seed, TURN_COUNT)];
        *g = (struct game){.seed = seed, .format = turn->format};
        g->runtime = pick(g, 5) == 0;
        int turns = 1 + (int)pick(g, 2);
        for (int t = 0; t < turns; t++)
                turn->make(g, t, 1 + pick(g, 3));
}

static void release(struct game *g)
{
        for (size_t i = 0; i < g->message_count; i++)
                buf_release(&g->messages[i]);
        for (size_t i = 0; i < g->result_count; i++)
                buf_release(&g->results[i].text);
}

/* One by one, or all at once; as an ordinary caller, or as a route that records for its client. */
static void append_all(struct game *g, struct steno_conv *conv)
{
        struct steno_append_options opt = {.size = sizeof opt,
            .format = g->format,
            .profile = g->runtime ? "runtime-store" : NULL,
            .flags = pick(g, 2) ? STENO_RECORD | STENO_KEEP_OUTPUTS : 0};
        if (pick(g, 2)) {
                for (size_t i = 0; i < g->message_count; i++)
                        OK(steno_append(
                            conv, g->messages[i].p, g->messages[i].n, &opt, NULL, &err));
                return;
        }
        struct buf all;
        buf_init(&all, 0);
        for (size_t i = 0; i < g->message_count; i++) {
                buf_putc(&all, i ? ',' : '[');
                buf_put_str(&all, buf_str(&g->messages[i]));
        }
        buf_putc(&all, ']');
        OK(steno_append(conv, all.p, all.n, &opt, NULL, &err));
        buf_release(&all);
}

static int no_finding(void *ctx, const char *json)
{
        (void)ctx;
        fail_msg("check: %s", json);
        return 0;
}

static void everything_comes_back_and_no_model_sees_it_whole(void **state)
{
        struct rig *r = *state;
        struct seed seed = seed_start();
        int rounds = seed_rounds(20000);
        for (int i = 0; i < rounds; i++) {
                struct game g;
                struct steno_conv *conv;
                char id[32];
                snprintf(id, sizeof id, "h%d", i);
                generate(&g, &seed);
                OK(steno_conv_create(r->store, NULL, id, NULL, &conv, &err));
                append_all(&g, conv);
                check_all(&g, conv);
                steno_conv_close(conv);
                if (i % 10 == 0) { /* also from the disk, and after a repair that finds nothing */
                        rig_close(r);
                        rig_open(r);
                        struct steno_check_options opt = {
                            .size = sizeof opt, .id = id, .repair = true};
                        OK(steno_check(r->store, &opt, no_finding, NULL, &err));
                        OK(steno_conv_open(r->store, NULL, id, &conv, &err));
                        check_all(&g, conv);
                        steno_conv_close(conv);
                }
                release(&g);
                OK(steno_remove(r->store, NULL, id, NULL, &err));
                uint64_t gone;
                OK(steno_trash_empty(r->store, 0, &gone, &err));
        }
}

/* ---- pages of several formats ---- */

/* Each message of `format` is on the page as it came, in order; others may be between them. */
static void page_has_own_bytes(
    struct steno_conv *conv, const char *format, const struct game *games, size_t count)
{
        struct steno_view_options opt = {.size = sizeof opt, .format = format, .own_bytes = true};
        struct buf out;
        struct json j;
        buf_init(&out, 0);
        OK(steno_view(conv, &opt, rig_gather, &out, NULL, &err));
        rig_parse(&j, buf_cstr(&out));
        json_ref e = json_child(&j, 0);
        size_t shown = 0;
        for (size_t k = 0; k < count; k++) {
                const struct game *g = &games[k];
                bool own = strcmp(g->format, format) == 0;
                for (size_t i = 0; own && i < g->message_count; i++) {
                        while (e != JSON_NONE && !str_eq(json_raw(&j, e), buf_str(&g->messages[i])))
                                e = json_next(&j, 0, e);
                        if (e == JSON_NONE)
                                fail_msg("%s: message %zu of %zu does not stand on the page as it "
                                         "came",
                                    format, i, k);
                        e = json_next(&j, 0, e);
                        shown++;
                }
                for (size_t i = 0; i < g->result_count; i++)
                        if (g->results[i].marker[0] && (own || !g->results[i].data) &&
                            (own || !g->results[i].lossy))
                                assert_true(shows(&out, g->results[i].marker));
        }
        assert_true(json_count(&j, 0) >= shown);
        json_release(&j);
        buf_release(&out);
}

static void each_client_gets_its_own_messages_as_it_sent_them(void **state)
{
        struct rig *r = *state;
        struct seed seed = seed_start();
        int rounds = seed_rounds(1000);
        for (int i = 0; i < rounds; i++) {
                struct game games[3];
                struct steno_conv *conv;
                char id[32];
                snprintf(id, sizeof id, "p%d", i);
                OK(steno_conv_create(r->store, NULL, id, NULL, &conv, &err));
                for (size_t k = 0; k < 3; k++) {
                        generate(&games[k], &seed);
                        append_all(&games[k], conv);
                }
                for (size_t k = 0; k < 3; k++)
                        page_has_own_bytes(conv, games[k].format, games, 3);
                steno_conv_close(conv);
                for (size_t k = 0; k < 3; k++)
                        release(&games[k]);
                OK(steno_remove(r->store, NULL, id, NULL, &err));
                uint64_t gone;
                OK(steno_trash_empty(r->store, 0, &gone, &err));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(
                each_client_gets_its_own_messages_as_it_sent_them, rig_setup, rig_teardown),
            cmocka_unit_test_setup_teardown(
                everything_comes_back_and_no_model_sees_it_whole, rig_setup, rig_teardown),
        };
        cmocka_set_message_output(CM_OUTPUT_TAP);
        play_in_memory();
        return cmocka_run_group_tests_name("give_back", tests, NULL, NULL);
}
