/* kinds.c - see kinds.h. The members are those of the API reference (Responses, input items). */
#include "format/kinds.h"

#include <string.h>

#include "format/writing.h"
#include "model/token.h"

static const struct kinds_row KINDS[] = {
    {CALL_FUNCTION, "function_call", "function_call_output", NULL, "call_id", "arguments", "output",
        JSON_NOTHING},
    {CALL_CUSTOM, "custom_tool_call", "custom_tool_call_output", NULL, "call_id", "input", "output",
        JSON_NOTHING},
    {CALL_SHELL, "shell_call", "shell_call_output", "shell", "call_id", "action", "output",
        JSON_ARRAY},
    {CALL_LOCAL_SHELL, "local_shell_call", "local_shell_call_output", "local_shell", "call_id",
        "action", "output", JSON_STRING},
    {CALL_COMPUTER, "computer_call", "computer_call_output", "computer", "call_id", "action",
        "output", JSON_OBJECT},
    {CALL_APPLY_PATCH, "apply_patch_call", "apply_patch_call_output", "apply_patch", "call_id",
        "operation", "output", JSON_STRING},
    {CALL_MCP, "mcp_call", NULL, NULL, "id", "arguments", "output", JSON_STRING},
    {CALL_WEB_SEARCH, "web_search_call", NULL, "web_search", "id", "action", NULL, JSON_NOTHING},
    {CALL_CODE_INTERPRETER, "code_interpreter_call", NULL, "code_interpreter", "id", "code",
        "outputs", JSON_ARRAY},
    {CALL_FILE_SEARCH, "file_search_call", NULL, "file_search", "id", "queries", "results",
        JSON_ARRAY},
    {CALL_IMAGE_GENERATION, "image_generation_call", NULL, "image_generation", "id",
        "revised_prompt", "result", JSON_STRING},
};

static const size_t COUNT = sizeof KINDS / sizeof *KINDS;

const struct kinds_row *kinds_find(const struct json *j, json_ref msg, bool *answer)
{
        json_ref type = json_get(j, msg, "type");
        if (json_type(j, type) != JSON_STRING)
                return NULL;
        for (size_t i = 0; i < COUNT; i++) {
                *answer = KINDS[i].answer && json_is(j, type, KINDS[i].answer);
                if (*answer || json_is(j, type, KINDS[i].call))
                        return &KINDS[i];
        }
        return NULL;
}

const struct kinds_row *kinds_of(enum call_kind kind)
{
        for (size_t i = 0; i < COUNT; i++)
                if (KINDS[i].kind == kind)
                        return &KINDS[i];
        return NULL;
}

const char *kinds_name(enum call_kind kind)
{
        const struct kinds_row *k = kinds_of(kind);
        return k ? k->call : "function_call";
}

json_ref kinds_id(const struct json *j, json_ref msg, const struct kinds_row *k)
{
        json_ref id = json_get(j, msg, k->id);
        if (id == JSON_NONE && k->kind == CALL_LOCAL_SHELL)
                id = json_get(j, msg, "id");
        return id;
}

static bool is_there(const struct json *j, json_ref v)
{
        enum json_type t = json_type(j, v);
        return t != JSON_NOTHING && t != JSON_NULL;
}

json_ref kinds_output(const struct json *j, json_ref msg, const struct kinds_row *k, bool *failed)
{
        json_ref error = k->answer ? JSON_NONE : json_get(j, msg, "error");
        *failed = is_there(j, error);
        if (*failed)
                return error;
        return k->output ? json_get(j, msg, k->output) : JSON_NONE;
}

/* ---- reading ---- */

/* Arguments must be an object. Any other value is wrapped in an object, under the name of its
 * member. */
static struct str wrapped(struct reading *r, const char *key, json_ref v)
{
        struct str raw = reading_raw(r, v);
        size_t n = strlen(key);
        if (!raw.p || json_type(r->j, v) == JSON_OBJECT || json_type(r->j, v) == JSON_NULL)
                return json_type(r->j, v) == JSON_OBJECT ? raw : STR("{}");
        char *to = arena_alloc(r->arena, n + raw.n + 5);
        if (!to)
                return (struct str){0};
        char *p = to;
        *p++ = '{';
        *p++ = '"';
        memcpy(p, key, n);
        p += n;
        *p++ = '"';
        *p++ = ':';
        memcpy(p, raw.p, raw.n);
        p += raw.n;
        *p++ = '}';
        return str_span(to, (size_t)(p - to));
}

/* Reads a screenshot or a generated image. */
static bool read_picture(struct reading *r, struct part *p, json_ref v)
{
        const struct json *j = r->j;
        struct media media = {0};
        if (p->call == CALL_IMAGE_GENERATION && json_type(j, v) == JSON_STRING) {
                media.data = reading_string(r, v);
                media.mime = STR("image/png");
        } else if (p->call == CALL_COMPUTER && json_type(j, v) == JSON_OBJECT) {
                struct str url = reading_string(r, json_get(j, v, "image_url"));
                media.file_id = reading_string(r, json_get(j, v, "file_id"));
                if (url.p)
                        reading_url(&media, url);
        }
        if (!media.data.p && !media.url.p && !media.file_id.p)
                return false;
        p->children = arena_zalloc(r->arena, sizeof *p->children);
        if (!p->children)
                return false;
        p->children[0] = (struct part){.kind = PART_IMAGE, .media = media};
        p->child_count = 1;
        p->output_kind = OUTPUT_PARTS;
        return true;
}

/* Reads the exit code of the last command of a shell. */
static void read_exit(struct reading *r, struct part *p, json_ref list)
{
        for (json_ref e = json_child(r->j, list); e != JSON_NONE; e = json_next(r->j, list, e)) {
                json_ref code = json_get(r->j, json_get(r->j, e, "outcome"), "exit_code");
                if (json_type(r->j, code) == JSON_NUMBER)
                        p->exit_code = reading_raw(r, code);
        }
}

static void read_output(
    struct reading *r, struct part *p, json_ref v, void (*block)(struct reading *r, json_ref v))
{
        const struct json *j = r->j;
        p->output_raw = reading_raw(r, v);
        if (p->call == CALL_SHELL && json_type(j, v) == JSON_ARRAY)
                read_exit(r, p, v);
        bool blocks = p->call == CALL_FUNCTION || p->call == CALL_CUSTOM;
        if (blocks && json_type(j, v) == JSON_ARRAY) {
                reading_children(r, p, v, block);
        } else if (!read_picture(r, p, v) && json_type(j, v) == JSON_STRING) {
                p->output_kind = OUTPUT_TEXT;
                p->output = reading_string(r, v);
        } else if (p->output_kind == OUTPUT_NONE && v != JSON_NONE) {
                p->output_kind = OUTPUT_DATA;
                p->output = reading_raw(r, v);
        }
}

static void read_answer(struct reading *r, json_ref msg, const struct kinds_row *k,
    void (*block)(struct reading *r, json_ref v))
{
        const char *const keys[] = {"type", "id", "call_id", k->output, NULL};
        json_ref f[4];
        reading_members(r, msg, keys, f, &r->m->extras, false);
        r->m->role = ROLE_TOOL;
        r->m->id = reading_string(r, f[1]);
        struct part *p = reading_part(r, PART_RESULT, msg);
        p->call = k->kind;
        p->id = reading_string(r, kinds_id(r->j, msg, k));
        p->error =
            k->kind == CALL_APPLY_PATCH && json_is(r->j, json_get(r->j, msg, "status"), "failed");
        read_output(r, p, f[3], block);
}

/* Reads the output of a tool that the provider ran itself, or notes that it is not recorded. */
static void read_own_output(struct reading *r, json_ref msg, const struct kinds_row *k,
    void (*block)(struct reading *r, json_ref v))
{
        struct part call = r->m->parts[r->m->count - 1];
        struct part *p = reading_part(r, PART_RESULT, msg);
        bool failed;
        json_ref v = kinds_output(r->j, msg, k, &failed);
        p->with_call = true;
        p->call = k->kind;
        p->provider_run = true;
        p->id = call.id;
        p->name = call.name;
        p->server = call.server;
        p->error = failed;
        if (is_there(r->j, v)) {
                read_output(r, p, v, block);
                return;
        }
        p->output_kind = OUTPUT_TEXT;
        p->output = STR("[The provider ran this tool. What came of it is not recorded.]");
}

static void read_call(struct reading *r, json_ref msg, const struct kinds_row *k)
{
        bool actions = k->kind == CALL_COMPUTER && json_get(r->j, msg, "action") == JSON_NONE;
        const char *input = actions ? "actions" : k->input;
        const char *const keys[] = {"type", "id", k->answer ? "call_id" : "type", input,
            k->name ? "type" : "name", k->answer || !k->output ? "type" : k->output, NULL};
        json_ref f[6];
        reading_members(r, msg, keys, f, &r->m->extras, false);
        r->m->role = ROLE_ASSISTANT;
        r->m->id = reading_string(r, f[1]);
        struct part *p = reading_part(r, PART_CALL, msg);
        p->call = k->kind;
        p->provider_run = !k->answer;
        p->id = reading_string(r, kinds_id(r->j, msg, k));
        p->name = k->name ? str_of(k->name) : reading_string(r, f[4]);
        p->server = reading_string(r, json_get(r->j, msg, "server_label"));
        p->arguments_text = !k->name && json_type(r->j, f[3]) == JSON_STRING;
        if (p->arguments_text)
                p->arguments = reading_string(r, f[3]);
        else if (k->kind == CALL_FUNCTION || k->kind == CALL_CUSTOM)
                p->arguments = reading_raw(r, f[3]);
        else
                p->arguments = wrapped(r, input, f[3]);
}

void kinds_read(struct reading *r, json_ref msg, const struct kinds_row *k, bool answer,
    void (*block)(struct reading *r, json_ref v))
{
        if (answer) {
                read_answer(r, msg, k, block);
                return;
        }
        read_call(r, msg, k);
        if (!k->answer)
                read_own_output(r, msg, k, block);
}

/* ---- writing ---- */

static bool is_wanted(const struct part *result, const struct kinds_row *k)
{
        static const char FIRST[] = {[JSON_STRING] = '"', [JSON_ARRAY] = '[', [JSON_OBJECT] = '{'};
        if (!k->output || k->wanted == JSON_NOTHING || !result->output_raw.p)
                return true;
        return result->error || result->output_raw.p[0] == FIRST[k->wanted];
}

bool kinds_is_native(const struct part *p)
{
        const struct kinds_row *k = kinds_of(p->call);
        const struct part *call = p->kind == PART_CALL ? p : p->peer;
        const struct part *result = p->kind == PART_RESULT ? p : p->peer;
        if (!k || p->call == CALL_FUNCTION)
                return false;
        if (call && call->call != p->call)
                return false;
        if (p->call == CALL_CUSTOM)
                return call != NULL;
        if (result && result->call != p->call)
                return false; /* no endpoint pairs different kinds */
        /* A stub, an edited or a made result does not have the shape that the API requires. */
        return call && call->raw.p && result && result->raw.p && is_wanted(result, k);
}

/* Writes `"key":value` of the arguments, without the object that wrapped() made. */
static void write_input(struct writer *w, const struct part *p, const struct kinds_row *k)
{
        struct json j;
        json_init(&j);
        json_ref inner = JSON_NONE;
        const char *key = k->input;
        bool read = json_parse(&j, p->arguments.p, p->arguments.n, NULL, NULL) == 0;
        if (read && json_count(&j, 0) == 1) {
                inner = json_get(&j, 0, k->input);
                if (inner == JSON_NONE && p->call == CALL_COMPUTER) {
                        inner = json_get(&j, 0, "actions");
                        key = inner == JSON_NONE ? key : "actions";
                }
        }
        bool nothing = p->call == CALL_IMAGE_GENERATION && inner == JSON_NONE;
        if (!nothing)
                writing_raw(w, key, inner == JSON_NONE ? p->arguments : json_raw(&j, inner));
        json_release(&j);
}

void kinds_write(struct writer *w, const struct message *m, const struct part *p)
{
        const struct kinds_row *k = kinds_of(p->call);
        bool call = p->kind == PART_CALL;
        writing_text(w, "type", call ? k->call : k->answer);
        bool own_id = !k->answer || (!call && p->call == CALL_LOCAL_SHELL);
        writing_string(w, own_id ? "id" : k->id, p->id.p ? p->id : STR(""));
        if (call) {
                if (!k->name)
                        writing_string(w, "name", p->name.p ? p->name : STR(""));
                /* The API requires strings here, even if an edit made the arguments an object. */
                if (!k->name && (p->arguments_text || w->valid || !writing_own(w, m)))
                        writing_arguments_text(w, m, k->input, p);
                else
                        write_input(w, p, k);
        }
        const struct part *result = call ? p->peer : p;
        if ((!call || !k->answer) && result && k->output && !(result->error && !k->answer))
                writing_raw(w, k->output, result->output_raw);
}
