"""How the page and its pictures look: colours for light and dark, and sizes that hold from 320 px on. Values only.

Each status has a word beside its colour, so nothing rests on colour alone; text has a contrast of 4.5 or more.
"""

from __future__ import annotations

_LIGHT = (
    "--ground:#ffffff;--panel:#f5f6f8;--text:#1c2126;--quiet:#57606a;--rule:#d5d9de;--pass:#1a7f37;--fail:#b42318;"
    "--warn:#8a5a00;--bar:#b9d5ee;--mean:#0b62a8;--bar2:#dccdf2;--mean2:#6b3fa0;--told:#b26a00"
)
_DARK = (
    "--ground:#15181c;--panel:#1d2126;--text:#e6e8ea;--quiet:#9aa4ae;--rule:#3a414a;--pass:#57c46f;--fail:#ff8078;"
    "--warn:#e0b050;--bar:#274a6e;--mean:#6cb6ff;--bar2:#44336b;--mean2:#c3a4f5;--told:#f0a840"
)

COLOURS = f":root{{color-scheme:light dark;{_LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{_DARK}}}}}"

PICTURE = """
.timeline{font:11px system-ui,sans-serif;fill:var(--text);display:block}
.timeline .axis{fill:var(--quiet)}
.timeline .ground{fill:var(--ground)}
.timeline .window{fill:var(--panel)}
.timeline line{stroke-width:1}
.timeline .grid{stroke:var(--rule)}
.timeline .moment{stroke:var(--quiet);stroke-dasharray:1 2}
.timeline .asked{stroke:var(--text);stroke-width:1.25}
.timeline .limit{stroke:var(--fail);stroke-width:1.5}
.timeline .burst{stroke:var(--fail);stroke-width:1;stroke-dasharray:5 3}
.timeline .bar{fill:var(--bar)}
.timeline .bar.second{fill:var(--bar2)}
.timeline .mean{stroke:var(--mean);stroke-width:2.5;stroke-linecap:round}
.timeline .mean.second{stroke:var(--mean2)}
.timeline .told{stroke:var(--told);stroke-width:5}
.timeline .told.unjudged{stroke-width:1.5;stroke-dasharray:3 3}
"""

PAGE = """
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:52rem;background:var(--ground);color:var(--text);
 font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.35rem;line-height:1.25;margin:0 0 .25rem}
h2{font-size:1.15rem;margin:2rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--rule)}
h3{font-size:1rem;font-weight:600;margin:0}
p{margin:.25rem 0}
a{color:var(--mean)}
code{font:.875em ui-monospace,monospace}
.quiet{color:var(--quiet);font-size:.875rem}
.verdict{border-left:.375rem solid var(--quiet);background:var(--panel);padding:.75rem 1rem;margin:0 0 1rem}
.verdict.pass{border-color:var(--pass)}
.verdict.fail{border-color:var(--fail)}
.verdict.unknown{border-color:var(--warn)}
.mark{font:700 .8125rem ui-monospace,monospace;margin-right:.375rem}
.mark.pass{color:var(--pass)}
.mark.fail{color:var(--fail)}
.mark.unknown,.mark.warn{color:var(--warn)}
.mark.skip{color:var(--quiet)}
ul{list-style:none;margin:0;padding:0}
.check{padding:.5rem 0 .5rem .75rem;border-left:.25rem solid var(--rule);margin:0 0 .5rem}
.check.fail{border-color:var(--fail)}
.check.unknown,.check.warn{border-color:var(--warn)}
.said{white-space:pre-wrap;margin:.125rem 0}
details{margin:.25rem 0}
summary{cursor:pointer;color:var(--quiet);font-size:.875rem}
dl{display:grid;grid-template-columns:fit-content(40%) 1fr;gap:.125rem .75rem;margin:.5rem 0;font-size:.875rem}
dt{color:var(--quiet)}
dd{margin:0;min-width:0;font-variant-numeric:tabular-nums}
.timeline{width:100%}
figure{margin:.5rem 0}
"""
