/*
 * rules_openai.c - what OpenAI's chat completions accept.
 *
 * Types: ChatCompletionMessageParam of the openai package. Limits, each as the endpoint says it:
 *   name      "string does not match pattern '^[a-zA-Z0-9_-]+$'", at most 64 (API reference, tools)
 *   id        "Invalid 'messages[2].tool_calls[0].id': string too long", maximum length 40
 *   calls     "Invalid 'messages[2].tool_calls': array too long", maximum length 128
 *   images    "Expected a base64-encoded data URL with an image MIME type" (png, jpeg, gif, webp)
 *   sounds    input_audio.format of the type: wav, mp3
 */
#include "format/rules.h"

static const struct rules_type types[] = {
    {"message", "@developer|system|user|assistant|tool|function"},
    {"developer", "content:s|[text role:=developer name?:s"},
    {"system", "content:s|[text role:=system name?:s"},
    {"user", "content:s|[part role:=user name?:s"},
    {"assistant",
        "role:=assistant audio?:0|audio content?:0|s|[spoken function_call?:0|inner name?:s "
        "refusal?:0|s tool_calls?:[call"},
    {"tool", "content:s|[text role:=tool tool_call_id:s"},
    {"function", "content:0|s name:s role:=function"},
    {"audio", "id:s"},
    {"part", "@text|image|sound|file"},
    {"spoken", "@text|refusal"},
    {"text", "text:s type:=text prompt_cache_breakpoint?:mark"},
    {"refusal", "refusal:s type:=refusal"},
    {"image", "image_url:address type:=image_url prompt_cache_breakpoint?:mark"},
    {"address", "url:s detail?:=auto|=low|=high|=original"},
    {"sound", "input_audio:bytes type:=input_audio prompt_cache_breakpoint?:mark"},
    {"bytes", "data:s format:=wav|=mp3"},
    {"file", "file:contents type:=file prompt_cache_breakpoint?:mark"},
    {"contents", "file_data?:s file_id?:s filename?:s"},
    {"mark", "mode:=explicit ttl?:=30m|=12h"},
    {"call", "@function_call|custom_call"},
    {"function_call", "id:s function:inner type:=function"},
    {"custom_call", "id:s custom:custom type:=custom"},
    {"inner", "arguments:s name:s"},
    {"custom", "input:s name:s"},
    {NULL, NULL},
};

static const char *const images[] = {"image/png", "image/jpeg", "image/gif", "image/webp", NULL};
static const char *const sounds[] = {"audio/wav", "audio/mp3", NULL};

const struct rules rules_openai = {
    .provider = "openai",
    .types = types,
    .message = "message",
    .name_max = 64,
    .id_max = 40,
    .calls_max = 128,
    .images = images,
    .sounds = sounds,
};
