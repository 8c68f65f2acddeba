/*
 * rules_anthropic.c - what Anthropic accepts in messages.
 *
 * Types: MessageParam of the @anthropic-ai/sdk package. Limits, each as the endpoint says it:
 *   name      "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"
 *   id        "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
 *   images    media_type of the type: jpeg, png, gif, webp; files: base64 of a PDF, plain text
 *   addresses images by URL must be reachable by HTTPS
 *   marks     "A maximum of 4 blocks with cache_control may be provided."
 *   errors    "tool_result: content cannot be empty if `is_error` is true"
 *   reply     a message that the API gave has members that "Extra inputs are not permitted" for
 */
#include "format/rules.h"

static const struct rules_type types[] = {
    {"message", "@user|assistant"},
    {"user", "content:s|[block role:=user"},
    {"assistant", "content:s|[block role:=assistant"},
    {"system", "@s|[text"},
    {"block", "@text|image|document|search_result|thinking|redacted|use|result|server_use|"
              "web_search_result|web_fetch_result|code_result|bash_result|editor_result|"
              "search_tool_result|upload"},
    {"text", "text:s type:=text cache_control?:0|mark citations?:0|[o"},
    {"mark", "type:=ephemeral ttl?:=5m|=1h"},
    {"image", "source:image_source type:=image cache_control?:0|mark transformations?:0|o"},
    {"image_source", "@image_base64|url|file"},
    {"image_base64",
        "data:s media_type:=image/jpeg|=image/png|=image/gif|=image/webp type:=base64"},
    {"url", "type:=url url:s"},
    {"file", "file_id:s type:=file"},
    {"document", "source:document_source type:=document cache_control?:0|mark citations?:0|o "
                 "context?:0|s title?:0|s"},
    {"document_source", "@pdf|plain|url|file|nested"},
    {"pdf", "data:s media_type:=application/pdf type:=base64"},
    {"plain", "data:s media_type:=text/plain type:=text"},
    {"nested", "content:s|[nested_block type:=content"},
    {"nested_block", "@text|image"},
    {"search_result", "content:[text source:s title:s type:=search_result cache_control?:0|mark "
                      "citations?:o"},
    {"thinking", "signature:s thinking:s type:=thinking"},
    {"redacted", "data:s type:=redacted_thinking"},
    {"use", "id:s input:* name:s type:=tool_use cache_control?:0|mark caller?:o toolset_name?:0|s"},
    {"result", "tool_use_id:s type:=tool_result cache_control?:0|mark content?:s|[result_block "
               "is_error?:b toolset_name?:0|s"},
    {"result_block", "@text|image|document|search_result|tool_reference|browser_state"},
    {"tool_reference", "tool_name:s type:=tool_reference cache_control?:0|mark"},
    {"browser_state", "tabs:[o type:=browser_state cache_control?:0|mark state_changes?:0|[o"},
    {"server_use", "id:s input:* name:=web_search|=web_fetch|=code_execution|=bash_code_execution|"
                   "=text_editor_code_execution|=tool_search_tool_regex|=tool_search_tool_bm25 "
                   "type:=server_tool_use cache_control?:0|mark caller?:o"},
    {"web_search_result", "content:[o|o tool_use_id:s type:=web_search_tool_result "
                          "cache_control?:0|mark caller?:o"},
    {"web_fetch_result",
        "content:o tool_use_id:s type:=web_fetch_tool_result cache_control?:0|mark caller?:o"},
    {"code_result",
        "content:o tool_use_id:s type:=code_execution_tool_result cache_control?:0|mark"},
    {"bash_result",
        "content:o tool_use_id:s type:=bash_code_execution_tool_result cache_control?:0|mark"},
    {"editor_result", "content:o tool_use_id:s type:=text_editor_code_execution_tool_result "
                      "cache_control?:0|mark"},
    {"search_tool_result",
        "content:o tool_use_id:s type:=tool_search_tool_result cache_control?:0|mark"},
    {"upload", "file_id:s type:=container_upload cache_control?:0|mark"},
    {NULL, NULL},
};

static const char *const images[] = {"image/png", "image/jpeg", "image/gif", "image/webp", NULL};
static const char *const files[] = {"application/pdf", "text/plain", NULL};
static const char *const sounds[] = {NULL};

const struct rules rules_anthropic = {
    .provider = "anthropic",
    .types = types,
    .message = "message",
    .reply = " id type model stop_reason stop_sequence stop_details usage container "
             "context_management diagnostics createdAt exitCode signal timedOut duration toolName "
             "entry ",
    .name_max = 64,
    .id_plain = true,
    .images = images,
    .files = files,
    .sounds = sounds,
    .https_only = true,
    .cache_marks = 4,
    .error_says = true,
};
