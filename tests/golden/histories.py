"""Histories for golden stores, as text: every token is spelled here as a client spells it.

RICH has one history for each format, with what that format can hold. STRANGE has the same for a
recording append: calls without ids, ids that are used again, results without a call, second
results. `large` gives a message pair for each format whose result is over every limit.
"""
import base64
import json

PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
         "RU5ErkJggg==")


def text_of(n, mark="line"):
    """At least n bytes in lines, one of which is an error."""
    lines, size, i = [], 0, 0
    while size < n:
        i += 1
        line = "%s %d: all is well, ⌘ %d" % (mark, i, i * i % 97)
        if i % 150 == 40:
            line = "src/%s.c:%d: error: \"quoted\" \\ and \t a tab" % (mark, i)
        lines.append(line)
        size += len(line.encode()) + 1
    return "\n".join(lines) + "\n"


def json_of(n):
    rows, size, i = [], 0, 0
    while size < n:
        row = {"n": i, "name": "row %d" % i, "ok": i % 7 != 3, "ratio": i / 8}
        size += len(json.dumps(row))
        rows.append(row)
        i += 1
    return json.dumps({"rows": rows, "count": i})


def j(value):
    return json.dumps(value, ensure_ascii=False)


RICH = {
    "openai": [
        r'{"role":"system","content":"Be brief.","name":"rules"}',
        r'{"role":"developer","content":[{"type":"text","text":"No jokes."}]}',
        r'{ "role" : "user", "content":"Look \u00e9\/\ud83d\ude00 at\tthis", "n": 1.0e5, "n": -0, "deep": {"a": [1, {"b": null}]} }',
        r'{"role":"user","name":"ann","content":[{"type":"text","text":"and this"},{"type":"image_url","image_url":{"url":"data:image/png;base64,' + PIXEL + r'","detail":"low"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}',
        r'{"role":"assistant","id":"client-1","content":"I look.","reasoning_content":"Hm.","extra_content":{"google":{"thought_signature":"c2ln"}},"tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"n\": 1.50, \"path\":\"a\\/b\"}"},"extra_content":{"google":{"thought_signature":"YWJj"}}},{"id":"call_2","type":"function","function":{"name":"files.read","arguments":"not json {"}}]}',
        r'{"role":"tool","tool_call_id":"call_2","content":[{"type":"text","text":"one"},{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}],"toolName":"read","serverName":"files","duration":12,"isError":true,"steps":[{"text":"half","progress":1,"total":2}],"invokedAt":"2026-11-15T04:20:00.000Z"}',
        r'{"role":"tool","tool_call_id":"call\u005f1","content":"fine \ud800 alone","exitCode":0,"createdAt":"2026-11-15T04:20:00.000Z"}',
        r'{"role":"assistant","content":"","refusal":null,"annotations":[],"audio":null}',
        r'{"role":"assistant","content":null,"refusal":"I will not."}',
        r'{"role":"assistant","content":"Partial","partType":"error","error":{"code":"LLM_NETWORK","message":"reset","retryable":true},"mode":"chat"}',
        r'{"role":"user","content":"kept out","includeInContext":false,"agentId":"a1","workflowId":"w1"}',
        r'{"role":"assistant","content":"thinking aloud","partType":"thinking"}',
        r'{"role":"assistant","content":null,"tool_calls":[{"id":"inv_1","name":"look","arguments":{"n":1},"result":"seen","steps":[{"text":"s"}],"invokedAt":"2026-11-15T04:20:01.000Z"},{"id":"inv_2","name":"look","arguments":"{}","error":"no"}]}',
        r'{"role":"assistant","content":null,"tool_calls":[{"id":"cus_1","type":"custom","custom":{"name":"patch","input":"*** Begin"}}]}',
        r'{"role":"tool","tool_call_id":"cus_1","content":"ok"}',
        r'{"role":"assistant","content":"open end","tool_calls":[{"id":"open_1","type":"function","function":{"name":"slow","arguments":"{}"}}]}',
    ],
    "responses": [
        r'{"role":"user","content":"Look twice"}',
        r'{"type":"message","role":"user","content":[{"type":"input_text","text":"here"},{"type":"input_image","image_url":"data:image/png;base64,' + PIXEL + r'","detail":"auto"},{"type":"input_file","filename":"a.txt","file_data":"data:text/plain;base64,YQ=="}]}',
        r'{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm."}],"encrypted_content":"ZW5j"}',
        r'{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{\"n\":1}","status":"completed"}',
        r'{"type":"function_call","id":"fc_2","call_id":"call_2","name":"look","arguments":"{\"n\":2.0}","status":"completed"}',
        r'{"type":"function_call_output","call_id":"call_1","output":"one"}',
        r'{"type":"function_call_output","call_id":"call_2","output":[{"type":"input_text","text":"two"},{"type":"input_image","image_url":"data:image/png;base64,' + PIXEL + r'"}]}',
        r'{"type":"message","id":"msg_r1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"done","annotations":[{"type":"url_citation","url":"http://a/","start_index":0,"end_index":4,"title":"t"}]},{"type":"refusal","refusal":"no"}]}',
        r'{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q"}}',
        r'{"type":"custom_tool_call","id":"ctc_1","call_id":"cus_1","name":"patch","input":"*** Begin"}',
        r'{"type":"custom_tool_call_output","call_id":"cus_1","output":"patched"}',
        r'{"type":"mcp_call","id":"mcp_1","server_label":"files","name":"read","arguments":"{}","output":"text","error":null}',
        r'{"type":"mcp_list_tools","id":"mcpl_1","server_label":"files","tools":[]}',
        r'{"type":"mcp_approval_request","id":"mcpr_1","server_label":"files","name":"rm","arguments":"{}"}',
        r'{"type":"mcp_approval_response","approval_request_id":"mcpr_1","approve":false}',
        r'{"type":"shell_call","id":"sh_1","call_id":"shell_1","action":{"commands":["ls"]},"status":"completed"}',
        r'{"type":"shell_call_output","call_id":"shell_1","output":[{"stdout":"a\nb","stderr":"","outcome":{"type":"exit","exit_code":0}}]}',
        r'{"type":"local_shell_call","id":"lsh_1","call_id":"lshell_1","action":{"type":"exec","command":["ls"],"env":{}},"status":"completed"}',
        r'{"type":"local_shell_call_output","id":"lsho_1","call_id":"lshell_1","output":"{}"}',
        r'{"type":"computer_call","id":"cu_1","call_id":"comp_1","action":{"type":"screenshot"},"pending_safety_checks":[],"status":"completed"}',
        r'{"type":"computer_call_output","call_id":"comp_1","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,' + PIXEL + r'"}}',
        r'{"type":"code_interpreter_call","id":"ci_1","code":"1+1","container_id":"c","outputs":[{"type":"logs","logs":"2"}],"status":"completed"}',
        r'{"type":"file_search_call","id":"fs_1","queries":["q"],"results":null,"status":"completed"}',
        r'{"type":"image_generation_call","id":"ig_1","result":"' + PIXEL + r'","status":"completed"}',
        r'{"type":"apply_patch_call","id":"ap_1","call_id":"patch_1","operation":{"type":"delete_file","path":"a"},"status":"completed"}',
        r'{"type":"apply_patch_call_output","call_id":"patch_1","status":"completed","output":"gone"}',
        r'{"type":"item_reference","id":"msg_elsewhere"}',
        r'{"type":"something_new","id":"new_1","payload":{"n":1.10}}',
        r'{"role":"developer","content":[{"type":"input_text","text":"stay brief"}]}',
        r'{"type":"function_call","call_id":"open_1","name":"slow","arguments":"{}"}',
    ],
    "anthropic": [
        r'{"role":"user","content":"Look twice"}',
        r'{"role":"user","content":[{"type":"text","text":"here","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"' + PIXEL + r'"}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"doc"},"title":"d"}]}',
        r'{"id":"msg_a1","type":"message","model":"m","stop_reason":"tool_use","usage":{"input_tokens":3},"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"redacted_thinking","data":"eHh4"},{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"look","input":{"n":1.50}},{"type":"tool_use","id":"toolu_2","name":"look","input":{},"caller":{"type":"direct"}}]}',
        r'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"one"},{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"two"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"' + PIXEL + r'"}}]},{"type":"text","text":"and?"}]}',
        r'{"role":"assistant","content":[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"done","citations":[]}]}',
        r'{"role":"assistant","content":[{"type":"thinking","thinking":"alone","signature":"eA=="}]}',
        r'{"role":"assistant","content":[{"type":"tool_use","id":"toolu_3","name":"empty","input":{}}]}',
        r'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_3"}]}',
        r'{"role":"assistant","content":[{"type":"tool_use","id":"open_1","name":"slow","input":{}}]}',
    ],
    "gemini": [
        r'{"role":"user","parts":[{"text":"Look twice"},{"inlineData":{"mimeType":"image/png","data":"' + PIXEL + r'"}},{"fileData":{"mimeType":"application/pdf","fileUri":"gs://a/b"}}]}',
        r'{"role":"model","parts":[{"text":"Hm.","thought":true},{"text":"I look."},{"functionCall":{"id":"call_1","name":"look","args":{"n":1.50}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"peek","args":{}}}]}',
        r'{"role":"user","parts":[{"functionResponse":{"id":"call_1","name":"look","response":{"output":"one"}}},{"functionResponse":{"name":"peek","response":{"error":"two"}}}]}',
        r'{"role":"model","parts":[{"executableCode":{"language":"PYTHON","code":"1"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}},{"text":"done"}]}',
        r'{"role":"model","parts":[{"functionCall":{"name":"slow","args":{}}}]}',
    ],
    "acontext": [
        r'{"role":"user","parts":[{"type":"text","text":"Look twice"},{"type":"image","meta":{"media_type":"image/png","data":"' + PIXEL + r'"}}],"meta":{"k":"v"}}',
        r'{"role":"assistant","parts":[{"type":"thinking","text":"Hm.","meta":{"signature":"c2ln"}},{"type":"text","text":"I look."},{"type":"tool-call","meta":{"id":"call_1","name":"look","arguments":"{\"n\":1.50}","type":"function"}},{"type":"tool-call","meta":{"id":"call_2","name":"look","arguments":"{}"}}]}',
        r'{"role":"user","parts":[{"type":"tool-result","text":"one","meta":{"tool_call_id":"call_1"}},{"type":"tool-result","text":"two","meta":{"tool_call_id":"call_2","is_error":true}}]}',
        r'{"role":"user","parts":[{"type":"text","text":"rules"}],"meta":{"original_role":"system"}}',
        r'{"role":"assistant","parts":[{"type":"data","meta":{"data_type":"x","v":1.10}},{"type":"redacted_thinking","meta":{"data":"eA=="}},{"type":"text","text":"done"}]}',
        r'{"role":"assistant","parts":[{"type":"tool-call","meta":{"id":"open_1","name":"slow","arguments":"{}"}}]}',
    ],
    "toolmessage2": [
        r'{"role":"user","content":"Look twice"}',
        r'{"role":"assistant","content":[{"type":"reasoning","text":"Hm."},{"type":"text","text":"I look."},{"type":"tool_use","id":"call_1","name":"look","input":{"n":1.50},"displayName":"Look","description":"looks at it"},{"type":"tool_use","id":"call_2","name":"look","input":{}}]}',
        r'{"role":"tool","content":[{"type":"tool-result","toolCallId":"call_2","toolName":"look","input":{},"result":{"llmContent":"two","isError":true}},{"type":"tool-result","toolCallId":"call_1","toolName":"look","input":{"n":1.50},"result":{"llmContent":"one","returnDisplay":"**one**"}}]}',
        r'{"role":"assistant","content":[{"type":"text","text":"done"}]}',
        r'{"role":"assistant","content":[{"type":"tool_use","id":"call_3","name":"look","input":{}}]}',
        r'{"role":"tool","content":[{"type":"tool-result","toolCallId":"call_3","toolName":"look","input":{},"result":{"llmContent":[{"text":"parts"},{"inlineData":{"mimeType":"image/png","data":"' + PIXEL + r'"}}],"returnDisplay":{"fileDiff":"-a\n+b"}}}]}',
        r'{"role":"assistant","content":[{"type":"tool_use","id":"open_1","name":"slow","input":{}}]}',
    ],
    "toolmessage": [
        r'{"role":"user","content":"Look twice"}',
        r'{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"call_1","name":"look","input":{"n":1.50}},{"type":"tool_use","id":"call_2","name":"look","input":{}}]}',
        r'{"role":"user","content":[{"type":"tool_result","id":"call_1","name":"look","input":{"n":1.50},"result":{"llmContent":"one","returnDisplay":"1"}},{"type":"tool_result","id":"call_2","name":"look","input":{},"result":"plain"}]}',
        r'{"role":"assistant","content":[{"type":"text","text":"done"}]}',
    ],
    "chat": [
        r'{"id":"c-1","role":"user","content":"Look twice","attachments":[{"type":"image","mediaType":"image/png","data":"' + PIXEL + r'"}]}',
        r'{"id":"c-2","role":"assistant","content":"I look.","thinking":"Hm.","toolCalls":[{"id":"call_1","name":"look","arguments":"{\"n\": 1.50}","state":"complete","result":"one","invokedAt":"2026-11-15T04:20:00.000Z","duration":3,"steps":[{"text":"s"}]},{"id":"call_2","name":"look","arguments":"{}","state":"error","error":"two"},{"id":"call_3","name":"slow","arguments":"{}","state":"pending"},{"id":"call_4","name":"slow","arguments":"{}","state":"interrupted","error":"stopped"}]}',
        r'{"id":"c-3","role":"assistant","content":"done","createdAt":"2026-11-15T04:20:02.000Z"}',
        r'{"id":"c-4","role":"assistant","content":"half","partType":"error","error":{"code":"LLM_TIMEOUT","message":"silence","retryable":true}}',
    ],
    "legacy": [
        r'{"role":"user","content":"Look twice"}',
        r'{"role":"assistant","content":"I look. <function_call>{\"id\":\"call_1\",\"name\":\"look\",\"arguments\":\"{\\\"n\\\":1.50}\",\"response\":\"one \\u003c/function_call> still\"}</function_call> and <function_call>{\"name\":\"look\",\"arguments\":{},\"response\":\"two\",\"isError\":true}</function_call> so."}',
        r'{"role":"assistant","content":"<function_call>{\"id\":\"call_2\",\"name\":\"look\",\"arguments\":\"{}\",\"response\":{\"rows\":[1,2.0]}}</function_call>"}',
        r'{"role":"assistant","content":"broken <function_call>{oops</function_call> text"}',
        r'{"role":"assistant","content":"\u003cfunction_call\u003e{\"name\":\"slow\",\"arguments\":\"{}\"}\u003c/function_call\u003e"}',
    ],
}

STRANGE = {
    "openai": [
        r'{"role":"tool","tool_call_id":"nobody","content":"an orphan"}',
        r'{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"look","arguments":"{}"}}]}',
        r'{"role":"tool","tool_call_id":"call_0","content":"first"}',
        r'{"role":"tool","tool_call_id":"call_0","content":"second"}',
        r'{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"look","arguments":"{\"again\":true}"}},{"id":"call_0","type":"function","function":{"name":"look","arguments":"{\"twice\":true}"}}]}',
        r'{"role":"user","content":"in between"}',
        r'{"role":"tool","tool_call_id":"call_0","content":"of the second"}',
        r'{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"noid","arguments":"{}"}},{"id":"","type":"function","function":{"name":"emptyid","arguments":"{}"}},{"id":null,"type":"function","function":{"name":"nullid","arguments":"{}"}}]}',
        r'{"role":"tool","content":"without an id"}',
        r'{"role":"tool","toolName":"nullid","content":"by its name"}',
        r'{"role":"assistant","content":null,"tool_calls":[]}',
        r'{"role":"assistant","content":null,"tool_calls":[{"id":"call/1:ü","type":"function","function":{"name":"multi_tool_use.parallel","arguments":""}}]}',
        r'{"role":"tool","tool_call_id":"call\/1:\u00fc","content":""}',
        r'{"role":"assistant"}',
        r'{"role":"user","content":[]}',
    ],
    "responses": [
        r'{"type":"function_call_output","call_id":"nobody","output":"an orphan"}',
        r'{"type":"function_call","call_id":"call_0","name":"look","arguments":"{}"}',
        r'{"type":"function_call_output","call_id":"call_0","output":"first"}',
        r'{"type":"function_call_output","call_id":"call_0","output":"second"}',
        r'{"type":"function_call","name":"noid","arguments":"{}"}',
        r'{"type":"function_call","call_id":"call_0","name":"look","arguments":"{}"}',
        r'{"type":"function_call_output","call_id":"call_0","output":"again"}',
    ],
    "anthropic": [
        r'{"role":"user","content":[{"type":"tool_result","tool_use_id":"nobody","content":"an orphan"}]}',
        r'{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0","name":"look","input":{}},{"type":"tool_use","name":"noid","input":{}}]}',
        r'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":"first"},{"type":"tool_result","tool_use_id":"toolu_0","content":"second"},{"type":"tool_result","content":"no id"}]}',
        r'{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"toolu_0","name":"look","input":{}}]}',
        r'{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0","content":"again"}]}',
    ],
    "gemini": [
        r'{"role":"user","parts":[{"functionResponse":{"name":"nobody","response":{"output":"an orphan"}}}]}',
        r'{"role":"model","parts":[{"functionCall":{"name":"look","args":{"n":1}}},{"functionCall":{"name":"look","args":{"n":2}}}]}',
        r'{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"first"}}},{"functionResponse":{"name":"wrong","response":{"output":"wrong name"}}}]}',
        r'{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"second"}}}]}',
        r'{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"third"}}}]}',
    ],
    "acontext": [
        r'{"role":"user","parts":[{"type":"tool-result","text":"an orphan","meta":{"tool_call_id":"nobody"}}]}',
        r'{"role":"assistant","parts":[{"type":"tool-call","meta":{"name":"noid","arguments":"{}"}},{"type":"tool-call","meta":{"id":"call_0","name":"look","arguments":"{}"}}]}',
        r'{"role":"user","parts":[{"type":"tool-result","text":"first","meta":{"tool_call_id":"call_0"}},{"type":"tool-result","text":"second","meta":{"tool_call_id":"call_0"}},{"type":"tool-result","text":"no id","meta":{}}]}',
    ],
    "toolmessage2": [
        r'{"role":"tool","content":[{"type":"tool-result","toolCallId":"nobody","toolName":"look","result":{"llmContent":"an orphan"}}]}',
        r'{"role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"look","input":{}},{"type":"tool_use","name":"noid","input":{}}]}',
        r'{"role":"tool","content":[{"type":"tool-result","toolCallId":"call_0","toolName":"look","result":{"llmContent":"first"}},{"type":"tool-result","toolCallId":"call_0","toolName":"look","result":{"llmContent":"second"}}]}',
    ],
    "toolmessage": [
        r'{"role":"user","content":[{"type":"tool_result","id":"nobody","name":"look","result":{"llmContent":"an orphan"}}]}',
        r'{"role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"look","input":{}}]}',
        r'{"role":"user","content":[{"type":"tool_result","id":"call_0","name":"look","result":{"llmContent":"first"}}]}',
        r'{"role":"user","content":[{"type":"tool_result","id":"call_0","name":"look","result":{"llmContent":"second"}}]}',
    ],
    "chat": [
        r'{"role":"assistant","content":"","toolCalls":[{"name":"noid","arguments":"{}","state":"complete","result":"fine"}]}',
        r'{"role":"assistant","content":"","toolCalls":[{"id":"call_0","name":"look","arguments":"{}","state":"complete","result":"a"}]}',
        r'{"role":"assistant","content":"","toolCalls":[{"id":"call_0","name":"look","arguments":"{}","state":"complete","result":"b"}]}',
    ],
    "legacy": [
        r'{"role":"assistant","content":"<function_call>{\"name\":\"look\",\"arguments\":\"{}\"}</function_call><function_call>{\"name\":\"look\",\"arguments\":\"{}\",\"response\":\"b\"}</function_call>"}',
    ],
}


def large(result, tag="big"):
    """{format: {shape: [messages]}} with one result each that holds the text `result`."""
    half = result[:len(result) // 2], result[len(result) // 2:]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + PIXEL}}

    def oai(content, **more):
        return [j({"role": "assistant", "content": None, "tool_calls": [
            {"id": tag, "type": "function", "function": {"name": "look", "arguments": "{}"}}]}),
            j(dict({"role": "tool", "tool_call_id": tag, "content": content}, **more))]

    def res(output):
        return [j({"type": "function_call", "call_id": tag, "name": "look", "arguments": "{}"}),
                j({"type": "function_call_output", "call_id": tag, "output": output})]

    def ant(content, **more):
        return [j({"role": "assistant", "content": [
            {"type": "tool_use", "id": tag, "name": "look", "input": {}}]}),
            j({"role": "user", "content": [dict({"type": "tool_result", "tool_use_id": tag,
                                                 "content": content}, **more)]})]

    def gem(response):
        return [j({"role": "model", "parts": [
            {"functionCall": {"id": tag, "name": "look", "args": {}}}]}),
            j({"role": "user", "parts": [
                {"functionResponse": {"id": tag, "name": "look", "response": response}}]})]

    def aco(*parts):
        return [j({"role": "assistant", "parts": [
            {"type": "tool-call", "meta": {"id": tag, "name": "look", "arguments": "{}"}}]}),
            j({"role": "user", "parts": list(parts)})]

    def tm2(value):
        return [j({"role": "assistant", "content": [
            {"type": "tool_use", "id": tag, "name": "look", "input": {}}]}),
            j({"role": "tool", "content": [{"type": "tool-result", "toolCallId": tag,
                                            "toolName": "look", "input": {}, "result": value}]})]

    def tm1(value):
        return [j({"role": "assistant", "content": [
            {"type": "tool_use", "id": tag, "name": "look", "input": {}}]}),
            j({"role": "user", "content": [{"type": "tool_result", "id": tag, "name": "look",
                                            "input": {}, "result": value}]})]

    def embedded(**more):
        return [j({"role": "assistant", "content": None, "tool_calls": [
            dict({"id": tag, "name": "look", "arguments": "{}"}, **more)]})]

    return {
        "openai": {
            "string": oai(result), "error": oai(result, isError=True, toolName="look"),
            "texts": oai([{"type": "text", "text": half[0]}, {"type": "text", "text": half[1]}]),
            "text": oai([{"type": "text", "text": result, "cache_control": {"type": "ephemeral"}}]),
            "image": oai([{"type": "text", "text": result}, image]),
            "embedded": embedded(result=result, steps=[{"text": "s"}]),
            "embedded-error": embedded(error=result),
            "embedded-object": embedded(result={"text": result}),
        },
        "responses": {
            "string": res(result),
            "texts": res([{"type": "input_text", "text": half[0]},
                          {"type": "input_text", "text": half[1]}]),
            "image": res([{"type": "input_text", "text": result},
                          {"type": "input_image", "image_url": "data:image/png;base64," + PIXEL}]),
            "custom": [j({"type": "custom_tool_call", "call_id": tag, "name": "p", "input": "x"}),
                       j({"type": "custom_tool_call_output", "call_id": tag, "output": result})],
            "mcp": [j({"type": "mcp_call", "id": "mcp_" + tag, "server_label": "s", "name": "n",
                       "arguments": "{}", "output": result})],
            "shell": [j({"type": "shell_call", "call_id": tag, "action": {"commands": ["ls"]}}),
                      j({"type": "shell_call_output", "call_id": tag, "output": [
                          {"stdout": result, "stderr": "",
                           "outcome": {"type": "exit", "exit_code": 1}}]})],
        },
        "anthropic": {
            "string": ant(result), "error": ant(result, is_error=True),
            "texts": ant([{"type": "text", "text": half[0]},
                          {"type": "text", "text": half[1],
                           "cache_control": {"type": "ephemeral"}}]),
            "image": ant([{"type": "text", "text": result},
                          {"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                                       "data": PIXEL}}]),
        },
        "gemini": {"output": gem({"output": result}), "error": gem({"error": result}),
                   "object": gem({"rows": [half[0], half[1]]})},
        "acontext": {
            "result": aco({"type": "tool-result", "text": result, "meta": {"tool_call_id": tag}}),
            "error": aco({"type": "tool-result", "text": result,
                          "meta": {"tool_call_id": tag, "is_error": True}})},
        "toolmessage2": {
            "object": tm2({"llmContent": result, "returnDisplay": "short"}),
            "parts": tm2({"llmContent": [{"text": half[0]}, {"text": half[1]}]}),
            "display": tm2({"llmContent": "short", "returnDisplay": result})},
        "toolmessage": {"object": tm1({"llmContent": result}), "plain": tm1(result)},
        "chat": {"result": [j({"role": "assistant", "content": "x", "toolCalls": [
            {"id": tag, "name": "look", "arguments": "{}", "state": "complete",
             "result": result}]})],
            "error": [j({"role": "assistant", "content": "x", "toolCalls": [
                {"id": tag, "name": "look", "arguments": "{}", "state": "error",
                 "error": result}]})]},
        "legacy": {
            "text": [j({"role": "assistant", "content": "a <function_call>%s</function_call> b" % j(
                {"id": tag, "name": "look", "arguments": "{}", "response": result}).replace(
                    "<", "\\u003c")})],
            "two": [j({"role": "assistant", "content": "".join(
                "<function_call>%s</function_call>" % j(
                    {"id": tag + str(i), "name": "look", "arguments": "{}",
                     "response": half[i]}).replace("<", "\\u003c") for i in (0, 1))})]},
    }


def several(result):
    """{format: [messages]}: two large results and a small one, in one message where the format can."""
    ids = ["s1", "s2", "s3"]
    texts = [result, "small", result[::-1]]
    calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}}
             for i in ids]
    uses = {"role": "assistant", "content": [
        {"type": "tool_use", "id": i, "name": "look", "input": {}} for i in ids]}
    pairs = list(zip(ids, texts))
    return {
        "openai": [j({"role": "assistant", "content": None, "tool_calls": calls})] + [
            j({"role": "tool", "tool_call_id": i, "content": t}) for i, t in reversed(pairs)],
        "responses": [j({"type": "function_call", "call_id": i, "name": "look", "arguments": "{}"})
                      for i in ids] + [j({"type": "function_call_output", "call_id": i, "output": t})
                                       for i, t in pairs],
        "anthropic": [j(uses), j({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": i, "content": t} for i, t in pairs] +
            [{"type": "text", "text": "and?"}]})],
        "gemini": [j({"role": "model", "parts": [
            {"functionCall": {"id": i, "name": "look", "args": {}}} for i in ids]}),
            j({"role": "user", "parts": [{"functionResponse": {
                "id": i, "name": "look", "response": {"output": t}}} for i, t in pairs]})],
        "acontext": [j({"role": "assistant", "parts": [
            {"type": "tool-call", "meta": {"id": i, "name": "look", "arguments": "{}"}}
            for i in ids]}), j({"role": "user", "parts": [
                {"type": "tool-result", "text": t, "meta": {"tool_call_id": i}}
                for i, t in pairs]})],
        "toolmessage2": [j(uses), j({"role": "tool", "content": [
            {"type": "tool-result", "toolCallId": i, "toolName": "look", "input": {},
             "result": {"llmContent": t}} for i, t in pairs]})],
        "toolmessage": [j(uses), j({"role": "user", "content": [
            {"type": "tool_result", "id": i, "name": "look", "input": {},
             "result": {"llmContent": t}} for i, t in pairs]})],
    }


def binary(n):
    """Bytes that are not text: every value, in a fixed order that does not compress well."""
    out, x = bytearray(b"\x7fELF\x02\x01\x01\x00"), 1
    while len(out) < n:
        x = x * 1103515245 + 12345 & 0x7fffffff
        out.append(x >> 16 & 255)
    return bytes(out)


def base64_of(n):
    return base64.b64encode(binary(n)).decode()
