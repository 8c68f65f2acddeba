/*
 * mcpd_fixtures.c - tools and resources that the MCP conformance suite calls by name. They replace
 * the real ones with `steno mcp --conformance`, which has no store.
 */
#include "mcpd/mcpd_call.h"

#include <string.h>

#include "base/limits.h"
#include "base/wait.h"

#define PNG                                                                                        \
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5E" \
        "rkJg"                                                                                     \
        "gg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define TEXT(words) "{\"type\":\"text\",\"text\":\"" words "\"}"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define NO_ARGUMENTS "{\"type\":\"object\",\"properties\":{}}"
#define PROGRESS_PAUSE_MS 50

/* A schema with the keywords of JSON Schema 2020-12 that a server must not change. */
#define SCHEMA_2020                                                                                \
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\","       \
        "\"$defs\":{\"address\":{\"$anchor\":\"addressDef\",\"type\":\"object\",\"properties\":{"  \
        "\"street\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}}}},\"properties\":{"      \
        "\"name\":{\"type\":\"string\"},\"address\":{\"$ref\":\"#/$defs/address\"},"               \
        "\"contactMethod\":{\"type\":\"string\",\"enum\":[\"phone\",\"email\"]},"                  \
        "\"phone\":{\"type\":\"string\"},\"email\":{\"type\":\"string\"}},"                        \
        "\"allOf\":[{\"anyOf\":[{\"required\":[\"phone\"]},{\"required\":[\"email\"]}]}],"         \
        "\"if\":{\"properties\":{\"contactMethod\":{\"const\":\"phone\"}},"                        \
        "\"required\":[\"contactMethod\"]},\"then\":{\"required\":[\"phone\"]},"                   \
        "\"else\":{\"required\":[\"email\"]},\"additionalProperties\":false}"

/* Reports three steps. */
static void report_progress(struct mcpd_call *c)
{
        for (unsigned done = 1; done <= 3; done++) {
                if (mcpd_progress(c, "fixture", done, 3))
                        return;
                c->told_at = 0; /* report each step, without a minimum time between them */
                wait_sleep(PROGRESS_PAUSE_MS);
        }
}

/* A tool that needs a client with sampling. */
static void need_sampling(struct mcpd_call *c)
{
        const struct json *j = &c->m->j;
        json_ref can = json_get(
            j, json_get(j, c->m->params, "_meta"), "io.modelcontextprotocol/clientCapabilities");
        if (!c->m->modern || json_get(j, can, "sampling") != JSON_NONE)
                return;
        mcpd_fail(c, MCPD_CAPABILITY, "this tool needs a client with the capability sampling");
        buf_puts(&c->data, "{\"requiredCapabilities\":{\"sampling\":{}}}");
        c->status = 400;
}

static const struct fixture {
        const char *name;
        const char *schema;
        const char *content;
        bool is_error;
        void (*before)(struct mcpd_call *c);
} TOOLS[] = {
    {"test_simple_text", NO_ARGUMENTS, TEXT("This is a simple text response for testing."), false,
        NULL},
    {"test_image_content", NO_ARGUMENTS, IMAGE, false, NULL},
    {"test_audio_content", NO_ARGUMENTS,
        "{\"type\":\"audio\",\"data\":\"" WAV "\",\"mimeType\":\"audio/wav\"}", false, NULL},
    {"test_embedded_resource", NO_ARGUMENTS,
        "{\"type\":\"resource\",\"resource\":{\"uri\":\"test://embedded-resource\","
        "\"mimeType\":\"text/plain\",\"text\":\"This is an embedded resource content.\"}}",
        false, NULL},
    {"test_multiple_content_types", NO_ARGUMENTS,
        TEXT("Multiple content types test:") "," IMAGE ",{\"type\":\"resource\",\"resource\":{"
                                             "\"uri\":\"test://mixed-content-resource\","
                                             "\"mimeType\":\"application/"
                                             "json\",\"text\":\"{\\\"test\\\":\\\"data\\\"}\"}}",
        false, NULL},
    {"test_error_handling", NO_ARGUMENTS,
        TEXT("This tool intentionally returns an error for testing"), true, NULL},
    {"test_tool_with_progress", NO_ARGUMENTS, TEXT("Three steps were reported."), false,
        report_progress},
    {"test_missing_capability", NO_ARGUMENTS, TEXT("The client can sample."), false, need_sampling},
    {"test_streaming_elicitation", NO_ARGUMENTS, TEXT("Nothing is asked of the client."), false,
        NULL},
    {"test_logging_tool", NO_ARGUMENTS, TEXT("Nothing is logged."), false, NULL},
    {"json_schema_2020_12_tool", SCHEMA_2020, TEXT("The schema came as it is."), false, NULL},
};

void mcpd_fixtures_tools(struct mcpd_call *c)
{
        jsonw_key(&c->w, "tools");
        jsonw_array(&c->w);
        for (size_t i = 0; i < sizeof TOOLS / sizeof *TOOLS; i++) {
                jsonw_object(&c->w);
                jsonw_field_cstr(&c->w, "name", TOOLS[i].name);
                jsonw_field_cstr(&c->w, "description", "A fixture of the conformance suite.");
                jsonw_field_raw(&c->w, "inputSchema", str_of(TOOLS[i].schema));
                jsonw_object_end(&c->w);
        }
        jsonw_array_end(&c->w);
}

void mcpd_fixtures_call(struct mcpd_call *c)
{
        struct buf name;
        buf_init(&name, 4 * KIB);
        const char *wanted = mcpd_param(c, "name", &name);
        const struct fixture *f = NULL;
        for (size_t i = 0; wanted && i < sizeof TOOLS / sizeof *TOOLS; i++)
                if (strcmp(TOOLS[i].name, wanted) == 0)
                        f = &TOOLS[i];
        if (!f)
                mcpd_fail(c, MCPD_PARAMS, "there is no tool \"%s\"", wanted ? wanted : "");
        else if (f->before)
                f->before(c);
        if (f) {
                jsonw_key(&c->w, "content");
                buf_printf(jsonw_value(&c->w), "[%s]", f->content);
                jsonw_field_bool(&c->w, "isError", f->is_error);
        }
        buf_release(&name);
}

void mcpd_fixtures_resources(struct mcpd_call *c)
{
        jsonw_field_raw(&c->w, "resources",
            STR("[{\"uri\":\"test://static-text\",\"name\":\"text\",\"mimeType\":\"text/plain\"},"
                "{\"uri\":\"test://static-binary\",\"name\":\"image\",\"mimeType\":\"image/"
                "png\"}]"));
}

void mcpd_fixtures_templates(struct mcpd_call *c)
{
        jsonw_field_raw(&c->w, "resourceTemplates",
            STR("[{\"uriTemplate\":\"test://template/{id}/data\",\"name\":\"data\","
                "\"mimeType\":\"application/json\"}]"));
}

/* Returns the ID in "test://template/ID/data", or nothing. */
static struct str template_id(struct str uri)
{
        static const char BEFORE[] = "test://template/", BEHIND[] = "/data";
        size_t fixed = sizeof BEFORE - 1 + sizeof BEHIND - 1;
        if (!str_starts(uri, BEFORE) || uri.n <= fixed ||
            memcmp(uri.p + uri.n - (sizeof BEHIND - 1), BEHIND, sizeof BEHIND - 1) != 0)
                return (struct str){0};
        return str_span(uri.p + sizeof BEFORE - 1, uri.n - fixed);
}

static void put_contents(
    struct mcpd_call *c, struct str uri, const char *mime, const char *key, struct str value)
{
        jsonw_key(&c->w, "contents");
        jsonw_array(&c->w);
        jsonw_object(&c->w);
        jsonw_field_str(&c->w, "uri", uri);
        jsonw_field_cstr(&c->w, "mimeType", mime);
        jsonw_field_str(&c->w, key, value);
        jsonw_object_end(&c->w);
        jsonw_array_end(&c->w);
}

bool mcpd_fixtures_read(struct mcpd_call *c, struct str uri)
{
        struct str id = template_id(uri);
        if (str_is(uri, "test://static-text")) {
                put_contents(c, uri, "text/plain", "text",
                    STR("This is the content of the static text resource."));
        } else if (str_is(uri, "test://static-binary")) {
                put_contents(c, uri, "image/png", "blob", STR(PNG));
        } else if (id.n) {
                struct buf b;
                buf_init(&b, 8 * KIB);
                struct jsonw w = jsonw_to(&b);
                jsonw_object(&w);
                jsonw_field_str(&w, "id", id);
                jsonw_field_bool(&w, "templateTest", true);
                jsonw_object_end(&w);
                put_contents(c, uri, "application/json", "text", buf_str(&b));
                buf_release(&b);
        } else {
                return false;
        }
        return true;
}
