"""The page that shows an owner what a guard does: how it stands, what happened over time, and why.

One self-contained HTML document, its pictures SVG, no script; light or dark as the reader's system is, and readable
from 400 pixels on. Everything that comes from outside is escaped. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

from oarbank_agent_check import guard_chart
from oarbank_agent_check.guard_view import GuardView, LaneView, ProgramView, lane_state, program_state
from oarbank_agent_check.history import Decision, History, JobHistory, ProgramHistory
from oarbank_agent_check.job_view import clock

When = Callable[[float], str]

RELOAD_S = 3
SHOWN_S = 1800.0
"""The pictures show the last half hour, or less where less has happened."""

MOST_DECISIONS = 120

RULES = {
    "never": "no GPU work runs",
    "when_no_gpu_protected": "no GPU work runs while a protected program uses the GPU",
    "certified": "beside a protected program, GPU work runs only at a duty",
    "always": "GPU work runs whenever it likes",
}

STYLE = """
:root{color-scheme:light dark;--ink:#1d2430;--soft:#5d6878;--line:#d5dae2;--card:#f4f6f9;--back:#fff;
--asked:#8fb3ea;--held:#c2560c;--held-fill:#f3b27a;--press:#8a3fc0;--bad:#c0272d;--good:#1c7c3f;--span:#d3dcec}
@media(prefers-color-scheme:dark){:root{--ink:#e5e9f0;--soft:#9aa6b8;--line:#353d4a;--card:#1f252e;--back:#14181e;
--asked:#3f69a8;--held:#ff9d5c;--held-fill:#7a4a24;--press:#c792ea;--bad:#ff7b80;--good:#63cc8a;--span:#2f3a4b}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:16px/1.45 system-ui,sans-serif}
main{max-width:56rem;margin:0 auto;padding:1rem}h1{font-size:1.3rem;margin:.2rem 0}h2{font-size:1.05rem;margin:0}
p{margin:.3rem 0}.soft{color:var(--soft)}.card{background:var(--card);border-radius:.6rem;padding:.8rem;margin:.8rem 0}
.head{display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:baseline;justify-content:space-between}
.bad{color:var(--bad)}.good{color:var(--good)}dl{display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;margin:.4rem 0}
dt{color:var(--soft);font-size:.85rem}dd{margin:0;font-variant-numeric:tabular-nums;font-size:1.15rem}
svg{display:block;width:100%;height:7rem;background:var(--back);border:1px solid var(--line);border-radius:.3rem}
.plot{display:grid;grid-template-columns:2.6rem 1fr;gap:0 .3rem}.plot .y{display:flex;flex-direction:column;
justify-content:space-between;text-align:right;font-size:.75rem;color:var(--soft)}.plot .x{grid-column:2;display:flex;
justify-content:space-between;font-size:.75rem;color:var(--soft)}.key{font-size:.82rem;color:var(--soft)}
.key span{display:inline-block;margin-right:.8rem}.key i{display:inline-block;width:.9rem;height:.25rem;
margin:0 .35rem .2rem 0}.key .box{height:.8rem;vertical-align:middle;border:1px solid var(--soft)}
ol{list-style:none;margin:0;padding:0}li{display:grid;grid-template-columns:4.6rem 1fr;padding:.3rem 0;
border-top:1px solid var(--line)}li time{color:var(--soft);font-variant-numeric:tabular-nums;font-size:.85rem}
li p{margin:0;overflow-wrap:anywhere}li .soft{font-size:.88rem}
"""


def page(view: GuardView, history: History, when: When, *, now: str, over: bool, earlier: str | None = None) -> str:
    """Return the page; `when` says a moment of the history as the time of day. While not `over` it reloads itself.

    `earlier` is where runs before this one are told, if there were any.
    """
    last = history.last if history.last is not None else 0.0
    first = max(last - SHOWN_S, history.first if history.first is not None else last)
    span = guard_chart.Span(first, max(last, first + 1.0))
    times = (when(span.first), when(span.last))
    reload = "" if over else f'<meta http-equiv="refresh" content="{RELOAD_S}">'
    shown = f"ended at {now}" if over else f"at {now}, {clock(view.running_s)} after the start"
    parts = [
        "<!doctype html>",
        f'<html lang="en"><head><meta charset="utf-8">{reload}',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>GPU guard</title><style>{STYLE}</style></head><body><main>",
        "<h1>Who has the GPU</h1>",
        f'<p class="soft">{shown}. The rule is <b>{escape(view.rule)}</b>: {RULES.get(view.rule, "")}.</p>',
        *(_program(one, history.programs.get(one.name), span, times) for one in view.programs),
        *(_lane(one, history.jobs.get(one.name), span, times) for one in view.lanes),
        '<div class="card"><h2>What was decided, and why</h2><ol>',
        *_decisions(history.decisions, when),
        f"</ol>{_before(earlier)}</div></main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _program(view: ProgramView, told: ProgramHistory | None, span: guard_chart.Span, times: tuple[str, str]) -> str:
    told = told or ProgramHistory()
    hurt = view.pressure is not None and view.pressure >= 1
    numbers = [
        ("GPU now", _share(view.share)),
        ("speed now", _speed(view.rate)),
        ("speed alone", _speed(view.baseline)),
        ("pressure", "not known" if view.pressure is None else f"{view.pressure:.2f}"),
        ("jobs may have", _share(told.level)),
    ]
    fault = "" if view.fault is None else f'<p class="bad">Its progress says nothing: {escape(view.fault)}.</p>'
    state = f'<span class="{"bad" if hurt else "good"}">{escape(program_state(view))}</span>'
    picture = guard_chart.pressure(told, span)
    key = _key(
        ("box", "span", "it uses the GPU"),
        ("", "press", "pressure: how much it slowed, 1 is its owner's target"),
        ("", "bad", "1 halves the duty, 2 ends it; marks below: nobody can tell"),
    )
    return _card(f"{view.name}, protected", state, numbers, fault, picture, ("2", "1", "0"), times, key)


def _lane(view: LaneView, told: JobHistory | None, span: guard_chart.Span, times: tuple[str, str]) -> str:
    job = view.job
    numbers = [
        ("duty asked", "-" if job is None else "no limit" if job.asked is None else _share(job.asked)),
        ("held", "-" if job is None else "cannot be read" if job.unread else _share(job.measured)),
        ("strikes", "-" if job is None else str(job.strikes)),
        ("jobs left", str(view.left)),
    ]
    words = view.waits or view.outcome
    more = f'<p class="soft">{escape(words)}</p>' if words and job is None else ""
    state = f"<span>{escape(lane_state(view))}</span>"
    key = _key(("", "asked", "duty asked"), ("", "held", "share of the GPU held"), ("box", "span", "paused"))
    told = told or JobHistory()
    scale = ("1", "½", "0") if guard_chart.top_of(told, span) == 1 else ("½", "¼", "0")
    return _card(view.name, state, numbers, more, guard_chart.shares(told, span), scale, times, key)


def _key(*entries: tuple[str, str, str]) -> str:
    told = [
        f'<span><i class="{kind}" style="background:var(--{colour})"></i>{words}</span>'
        for kind, colour, words in entries
    ]
    return f'<p class="key">{" ".join(told)}</p>'


def _card(
    title: str,
    state: str,
    numbers: list[tuple[str, str]],
    more: str,
    picture: str,
    scale: tuple[str, ...],
    times: tuple[str, str],
    key: str,
) -> str:
    told = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in numbers)
    axis = "".join(f"<span>{one}</span>" for one in scale)
    return (
        f'<section class="card"><div class="head"><h2>{escape(title)}</h2>{state}</div><dl>{told}</dl>{more}'
        f'<div class="plot"><div class="y">{axis}</div>{picture}'
        f'<div class="x"><span>{times[0]}</span><span>{times[1]}</span></div></div>{key}</section>'
    )


def _decisions(decisions: list[Decision], when: When) -> Iterator[str]:
    if not decisions:
        yield '<li><time></time><p class="soft">Nothing yet.</p></li>'
    for one in reversed(decisions[-MOST_DECISIONS:]):
        why = f'<p class="soft">{escape(one.why)}</p>' if one.why else ""
        yield f"<li><time>{when(one.t)}</time><div><p><b>{escape(one.who)}</b> {escape(one.what)}</p>{why}</div></li>"


def _before(earlier: str | None) -> str:
    return "" if earlier is None else f'<p class="soft">Earlier runs are told in {escape(earlier)}.</p>'


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"


def _speed(rate: float | None) -> str:
    return "not known" if rate is None else f"{rate:.4g}/s"
