/*
 * rules_responses.c - what OpenAI's Responses accept as input.
 *
 * Types: ResponseInputItem of the openai package. Limits, each as the endpoint says it:
 *   name      "string does not match pattern '^[a-zA-Z0-9_-]+$'", at most 64 as in chat completions
 *   id        "Invalid 'input[95].call_id': string too long", maximum length 64
 *   images    "Expected a base64-encoded data URL with an image MIME type" (png, jpeg, gif, webp)
 */
#include "format/rules.h"

#define STATUS "=in_progress|=completed|=incomplete"

static const struct rules_type types[] = {
    {"message", "@easy|input|output|function_call|function_call_output|custom_tool_call|"
                "custom_tool_call_output|reasoning|computer_call|computer_call_output|shell_call|"
                "shell_call_output|local_shell_call|local_shell_call_output|apply_patch_call|"
                "apply_patch_call_output|mcp_call|mcp_list_tools|mcp_approval_request|"
                "mcp_approval_response|web_search_call|file_search_call|code_interpreter_call|"
                "image_generation_call|compaction|tool_search_call|tool_search_output|program|"
                "program_output|reference"},
    {"easy", "content:s|[said role:=user|=assistant|=system|=developer phase?:0|=commentary|"
             "=final_answer type?:=message"},
    {"input", "content:[said role:=user|=system|=developer status?:" STATUS " type?:=message"},
    {"output", "id:s content:[spoken role:=assistant status:" STATUS
               " type:=message phase?:0|=commentary|=final_answer"},
    {"said", "@text|image|file"},
    {"given", "@text|given_image|file"},
    {"given_image", "type:=input_image detail?:0|=low|=high|=auto|=original file_id?:0|s "
                    "image_url?:0|s prompt_cache_breakpoint?:o"},
    {"spoken", "@output_text|refusal"},
    {"text", "text:s type:=input_text prompt_cache_breakpoint?:o"},
    {"image", "detail:=low|=high|=auto|=original type:=input_image file_id?:0|s image_url?:0|s "
              "prompt_cache_breakpoint?:o"},
    {"file", "type:=input_file detail?:=auto|=low|=high file_data?:s file_id?:0|s file_url?:s "
             "filename?:s prompt_cache_breakpoint?:o"},
    {"output_text", "annotations:[annotation text:s type:=output_text logprobs?:[o"},
    {"annotation", "@file_citation|url_citation|container_citation|file_path"},
    {"file_citation", "file_id:s filename:s index:n type:=file_citation"},
    {"url_citation", "end_index:n start_index:n title:s type:=url_citation url:s"},
    {"container_citation", "container_id:s end_index:n file_id:s filename:s start_index:n "
                           "type:=container_file_citation"},
    {"file_path", "file_id:s index:n type:=file_path"},
    {"refusal", "refusal:s type:=refusal"},
    {"function_call", "arguments:s call_id:s name:s type:=function_call id?:s async?:b caller?:0|o "
                      "namespace?:s status?:" STATUS},
    {"function_call_output", "output:s|[given type:=function_call_output id?:0|s call_id?:0|s "
                             "caller?:0|o name?:0|s namespace?:0|s status?:0|" STATUS},
    {"custom_tool_call", "call_id:s input:s name:s type:=custom_tool_call id?:s async?:b "
                         "caller?:0|o namespace?:s"},
    {"custom_tool_call_output",
        "call_id:s output:s|[given type:=custom_tool_call_output id?:s caller?:0|o"},
    {"reasoning", "id:s summary:[summary type:=reasoning content?:[reasoned encrypted_content?:0|s "
                  "status?:" STATUS},
    {"summary", "text:s type:=summary_text"},
    {"reasoned", "text:s type:=reasoning_text"},
    {"computer_call", "id:s call_id:s pending_safety_checks:[o status:" STATUS
                      " type:=computer_call action?:o actions?:[o"},
    {"computer_call_output", "call_id:s output:screenshot type:=computer_call_output id?:0|s "
                             "acknowledged_safety_checks?:0|[o status?:0|" STATUS},
    {"screenshot", "type:=computer_screenshot file_id?:s image_url?:s detail?:s"},
    {"shell_call", "action:commands call_id:s type:=shell_call id?:0|s caller?:0|o "
                   "environment?:0|o status?:0|" STATUS},
    {"commands", "commands:[s max_output_length?:0|n timeout_ms?:0|n"},
    {"shell_call_output", "call_id:s output:[shell_out type:=shell_call_output id?:0|s "
                          "caller?:0|o max_output_length?:0|n status?:0|" STATUS},
    {"shell_out", "outcome:o stderr:s stdout:s"},
    {"local_shell_call", "id:s action:exec call_id:s status:" STATUS " type:=local_shell_call"},
    {"exec", "command:[s env:o type:=exec timeout_ms?:0|n user?:0|s working_directory?:0|s"},
    {"local_shell_call_output", "id:s output:s type:=local_shell_call_output status?:0|" STATUS},
    {"apply_patch_call", "call_id:s operation:o status:=in_progress|=completed "
                         "type:=apply_patch_call id?:0|s caller?:0|o"},
    {"apply_patch_call_output", "call_id:s status:=completed|=failed "
                                "type:=apply_patch_call_output id?:0|s caller?:0|o output?:0|s"},
    {"mcp_call", "id:s arguments:s name:s server_label:s type:=mcp_call approval_request_id?:0|s "
                 "error?:0|o output?:0|s status?:" STATUS "|=calling|=failed"},
    {"mcp_list_tools", "id:s server_label:s tools:[o type:=mcp_list_tools error?:0|s"},
    {"mcp_approval_request", "id:s arguments:s name:s server_label:s type:=mcp_approval_request"},
    {"mcp_approval_response", "approval_request_id:s approve:b type:=mcp_approval_response "
                              "id?:0|s reason?:0|s"},
    {"web_search_call", "id:s action:o status:" STATUS "|=searching|=failed type:=web_search_call"},
    {"file_search_call", "id:s queries:[s status:" STATUS
                         "|=searching|=failed type:=file_search_call results?:0|[o"},
    {"code_interpreter_call", "id:s code:0|s container_id:s outputs:0|[o status:" STATUS
                              "|=interpreting|=failed type:=code_interpreter_call"},
    {"image_generation_call", "id:s result:0|s status:=in_progress|=completed|=generating|=failed "
                              "type:=image_generation_call action?:* background?:* error?:* "
                              "output_format?:* quality?:* revised_prompt?:0|s size?:0|s "
                              "svg_usage?:*"},
    {"compaction", "encrypted_content:s type:=compaction id?:0|s"},
    {"tool_search_call", "arguments:* type:=tool_search_call id?:0|s call_id?:0|s "
                         "execution?:=server|=client status?:0|" STATUS},
    {"tool_search_output", "tools:[o type:=tool_search_output id?:0|s call_id?:0|s "
                           "execution?:=server|=client status?:0|" STATUS},
    {"program", "id:s call_id:s code:s fingerprint:s type:=program"},
    {"program_output",
        "id:s call_id:s result:s status:=completed|=incomplete type:=program_output"},
    {"reference", "id:s type?:0|=item_reference"},
    {NULL, NULL},
};

static const char *const images[] = {"image/png", "image/jpeg", "image/gif", "image/webp", NULL};

const struct rules rules_responses = {
    .provider = "responses",
    .types = types,
    .message = "message",
    .reply = " createdAt exitCode signal timedOut duration toolName entry ",
    .name_max = 64,
    .id_max = 64,
    .images = images,
};
