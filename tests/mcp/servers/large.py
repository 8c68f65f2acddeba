"""One answer of tools/call of any size, written in pieces. The pattern of its text is a block of
64 KiB with escapes, pairs of surrogates and characters of every length."""
import json, os, time

LINE = "line with \"quotes\", a back\\slash, \ttabs, caf\u00e9, \u20ac, \U0001f642 and more\n"
BLOCK = (LINE * (65536 // len(LINE.encode()) + 1)).encode()[:65536].decode(errors="ignore")


def shapes(args, ident):
    """What comes before and after the text, with the members of the answer in the order that is asked
    for."""
    shape = args.get("shape", "id first")
    part = '{"type":"text","text":"' if shape != "type last" else '{"text":"'
    tail = '"}' if shape != "type last" else '","type":"text"}'
    more = ',{"type":"text","text":"behind it"}]'
    if shape == "structured":
        return '{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":{"a":["' % ident, \
            '"]},"content":[{"type":"text","text":"behind it"}],"isError":false}}'
    if shape == "image":
        part, tail = '{"type":"image","mimeType":"image/png","data":"', '"}'
    if shape == "id last":
        return '{"result":{"content":[' + part, tail + more + '},"jsonrpc":"2.0","id":%d}' % ident
    if shape == "error":
        return '{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"' % ident, '"}}'
    if shape == "no content":
        return '{"jsonrpc":"2.0","id":%d,"result":{"content":"' % ident, '"}}'
    if shape == "another id":
        return '{"result":{"content":[' + part, tail + ']},"jsonrpc":"2.0","id":%d}' % (ident + 1000)
    if shape == "long key":
        return '{"jsonrpc":"2.0","id":%d,"result":{"' % ident, '":1,"content":[{"type":"text","text":"behind it"}]}}'
    if shape == "breaks off":
        return '{"jsonrpc":"2.0","id":%d,"result":{"content":[' % ident + part, '"}]'
    if shape == "nonsense":
        return '{"jsonrpc":"2.0","id":%d,"result":{"content":[' % ident + part, '" oops}'
    if shape == "deep":
        return '{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":{"a":' % ident + "[" * 600 + '"', '"' + "]" * 600 + "},\"content\":[]}}"
    if shape == "deep, id last":
        return '{"result":{"structuredContent":{"a":' + "[" * 600 + '"', '"' + "]" * 600 + '},"content":[]},"jsonrpc":"2.0","id":%d}' % ident
    return '{"jsonrpc":"2.0","id":%d,"result":{"isError":true,"content":[' % ident + part, tail + more + "}}"


def pieces(args, ident):
    ascii_only = bool(args.get("ascii"))
    block = json.dumps(BLOCK, ensure_ascii=ascii_only)[1:-1].encode()
    before, behind = shapes(args, ident)
    yield before.encode()
    for i in range(args["blocks"]):
        yield block
        if args.get("wait") and i == args["blocks"] // 2:
            # The first half is read while the second has not been written yet.
            while not os.path.exists(args["wait"]):
                time.sleep(0.01)
    yield behind.encode()
