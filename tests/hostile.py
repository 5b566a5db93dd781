"""A conversation in which everything that can be written tries to become part of the page that shows it."""

from __future__ import annotations

from transcripts import SESSION, Talk

MARKS = (
    "<script>document.documentElement.dataset.ran='1';fetch('http://127.0.0.1:PORT/script')</script>",
    "</title><script>document.title='ran'</script>",
    "</style><style>@import url(http://127.0.0.1:PORT/style);body{background:url(http://127.0.0.1:PORT/css)}</style>",
    "<img src=http://127.0.0.1:PORT/img onerror=\"document.documentElement.dataset.ran='1'\">",
    "\"><svg onload=document.documentElement.dataset.ran='1'><image href=http://127.0.0.1:PORT/svg /></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=document.documentElement.dataset.ran='1'>",
    "<iframe srcdoc='<script>parent.document.title=1</script>' src=http://127.0.0.1:PORT/frame></iframe>",
    "<link rel=stylesheet href=http://127.0.0.1:PORT/link><base href=http://127.0.0.1:PORT/>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:PORT/meta'>",
    "<form action=http://127.0.0.1:PORT/form><button autofocus>x</button></form>",
    "</summary></details></div></article></main></body></html>",
    "-->]]></textarea></noscript></template><!--<plaintext>",
    "{{7*7}} {% for x in y %} ${7*7} {# x #}",
    "&lt;script&gt;&#60;script&#62; &amp; &nbsp; &#0; &#xd800;",
    '\' onmouseover=\'document.title=1\' " onfocus="document.title=1" autofocus tabindex=1 x="',
    "\u202egnp.exe\u202c \u2066\u200f NUL\0 BELL\a \x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m \u2028 \u2029 SURROGATE",
)
ALL = "\n".join(MARKS)
ONE_LINE = " ".join(mark.replace("\n", " ") for mark in MARKS)

MARKDOWN = """\
# <script>document.title='ran'</script>

[a](javascript:document.title='ran') [b](JaVaScRiPt&colon;alert(1)) [c](data:text/html,<script>alert(1)</script>)
[d](vbscript:x) [e](file:///etc/passwd) [f](//127.0.0.1:PORT/link) [g](http://127.0.0.1:PORT/ "\\"onclick=x")
[h](src/a.py)
![x](http://127.0.0.1:PORT/image) ![x](javascript:alert(1)) [![x](http://127.0.0.1:PORT/inner)](http://127.0.0.1:PORT/)
<http://127.0.0.1:PORT/auto> <javascript:alert(1)> [ref]

[ref]: javascript:alert(1) "title"

```"><script>document.title='ran'</script>
</code></pre><script>document.title='ran'</script>
```

~~~html onload=x
<img src=http://127.0.0.1:PORT/fence onerror=alert(1)>
~~~

    <script>document.title='ran'</script>

| a | <img src=http://127.0.0.1:PORT/cell> |
| --- | :-: |
| `<b>` | [x](javascript:alert(1)) |

<div onclick=x>
<details><summary>

```never closed
<script>document.title='ran'</script>
"""


def talk(port: int, session: str = SESSION, cwd: str = "/tmp") -> Talk:
    """The conversation; what it would load is asked from a port of this machine."""
    found = Talk(session, cwd=f"{cwd}/{MARKS[0].replace('/', '')}")
    found.prompt(f"{MARKS[1]} {ONE_LINE}\n{ALL}\n```{MARKS[3]}\n{ALL}\n```\n{MARKDOWN}")
    found.answer(MARKDOWN, ALL)
    found.chain("assistant", message={
        "id": "m1", "role": "assistant", "model": f"m {MARKS[3]}",
        "content": [{"type": "thinking", "thinking": f"{ALL}\n{MARKDOWN}", "signature": "x"}],
    })  # fmt: skip
    found.tool("Bash", {"command": ALL, "description": ONE_LINE, MARKS[0]: MARKS[3]}, ALL, error=True)
    found.tool(f"mcp__{MARKS[0]}__{MARKS[3]}", {"query": ONE_LINE, "nested": {MARKS[1]: [ALL]}}, ALL)
    found.tool("Edit", {"file_path": f"/tmp/{MARKS[3]}", "old_string": ALL, "new_string": MARKDOWN})
    found.tool("Write", {"file_path": f"/tmp/x.{MARKS[2]}", "content": f"+{ALL}\n@@{MARKDOWN}"})
    found.tool("Read", {"file_path": "/tmp/a.svg"}, [{"type": "text", "text": ALL}, {"type": "image", "source": {}}])
    found.steer(ALL).user(ALL, isMeta=True).answer("done").stop_lines()
    found.compact(summary=f"{ALL}\n{MARKDOWN}")
    found.prompt(ONE_LINE).answer("- a list", "  ```\n<script>document.title='ran'</script>").stop_lines()
    found.title(ONE_LINE)
    found.lines[:] = [
        line.replace(b"PORT", str(port).encode()).replace(b"SURROGATE", b"\\ud800 \\udc00") for line in found.lines
    ]
    return found
