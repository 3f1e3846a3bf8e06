"""Draws what scripts/bench measured: one self-contained HTML page (`--report`), and a picture for the README (`--picture`).

    results = {"about": describe(...), "figures": {workload: {server: {figure: [one value per round]}}}}
    page(results)       HTML: charts in SVG, a table of the figures beside each; no script, nothing to fetch, light and dark
    picture(results)    one SVG of the same family, a few rows of each kind

Nothing is drawn but what is in `results`: a workload or a server that was not measured has no bar. Each row of a chart has a scale of its
own, from zero to its largest bar, because the rows differ by a factor of a hundred; the figure stands at each bar's end.
"""

import html
import json
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
CONDITIONS = {"tls": "over TLS", "cluster": "in a cluster", "limited": "with a memory limit", "replica": "on a replica",
              "fsync": "each write synced to disk", "unwatched": "with lock-watch no"}
NAMES = {
    "memory": "a string, key of 16 bytes, value of 32", "memory-ttl": "the same with a deadline", "memory-zset": "a member of a sorted set",
    "memory-hash": "a field of a hash, value of 32", "memory-set": "a member of a set", "memory-list": "an element of a list",
    "memory-stream": "an entry of a stream", "start": "from the start of the process to the first PONG",
    "lock-setnx": "a lock by SETNX and DEL", "lock-eval": "a lock by SET NX PX and a script",
    "mget-4": "MGET of 10 keys, pipeline of 4", "lrange-1": "LRANGE of 100 elements, one at a time",
    "lrange-16": "LRANGE of 100 elements, pipeline of 16", "zrange-1": "ZRANGE of 100 members, one at a time",
    "zrange-16": "ZRANGE of 100 members, pipeline of 16", "eval-16": "EVAL of a short script, pipeline of 16",
}
# (id, title, figure, unit, digits, which is better, remark)
SECTIONS = (
    ("cpu", "CPU per operation", "cpu_us", "µs", 2, "less", "Time the server's threads were on a core, over operations answered."),
    ("throughput", "Throughput", "ops", "operations/s", 0, "more", "As the load saw it, from one core, on a server on one core; the load is the limit "
     "where servers are close together."),
    ("memory", "Memory", "bytes", "bytes", 1, "less", "Growth of resident memory per key or element, over 1,000,000 of them."),
    ("start", "Start", "start_ms", "ms", 1, "less", "An empty server."),
    ("idle", "Resident when idle", "idle_mb", "MB", 1, "less", "An empty server, its program included."),
    ("latency", "99th percentile of latency", "p99_ms", "ms", 3, "less", "As the load saw it, with 50 connections."),
    ("save", "SAVE", "save_ms", "ms", 0, "less", "1,000,000 keys or elements."),
    ("load", "Start with that file", "load_ms", "ms", 0, "less", "Until the first PONG."),
    ("stop", "Stop of the loop by one command", "stop_ms", "ms", 2, "less", "On a value of 1,000,000 elements."),
)
# What the picture shows of each section, where it was measured.
PICTURED = (("cpu", ("get-1", "get-16", "set-16", "lrange-16", "zadd-16")),
            ("memory", ("memory", "memory-hash", "memory-zset")), ("start", ("start",)))


def add_arguments(parser):
    parser.add_argument("--json", metavar="FILE", help="write every round's figures there, with the machine and the versions")
    parser.add_argument("--report", metavar="FILE.html", help="write a page with charts there")
    parser.add_argument("--picture", metavar="FILE.svg", help="write a picture of a few rows there, as README shows it")
    parser.add_argument("--from", dest="results", metavar="FILE", help="draw what --json wrote there, and measure nothing")


def drawn_from_file(options):
    """Whether nothing is to be measured; what was asked for has then been drawn."""
    if not options.results:
        return False
    if not (options.report or options.picture):
        sys.exit("scripts/bench: --from draws what was measured; it needs --report or --picture")
    try:
        results = json.loads(Path(options.results).read_text())
        results["about"], results["figures"]
    except OSError as error:
        sys.exit(f"scripts/bench: {options.results} cannot be read: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        sys.exit(f"scripts/bench: {options.results} is not what --json writes")
    write(options, results)
    return True


def write(options, results):
    for path, text in ((options.json, json.dumps(results, indent=1) + "\n"), (options.report, page(results)),
                       (options.picture, picture(results))):
        if path:
            try:
                Path(path).write_text(text)
            except OSError as error:
                sys.exit(f"scripts/bench: {path} cannot be written: {error.strerror}")


def describe(servers, rounds):
    """Where and how it is measured: machine, versions, date, and the command that does it again."""
    return {"date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "machine": machine(), "rounds": rounds,
            "command": shlex.join(["scripts/bench", *_repeatable(sys.argv[1:])]),
            "servers": [{"name": server.name, "version": version_of(server)} for server in servers]}


def _repeatable(words):
    """The arguments without the names of files that differ from machine to machine."""
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("--json", "--report", "--picture", "--server", "--also"):
            skip = True
        elif not re.match("--(json|report|picture|server|also)=", word):
            kept.append(word)
    return [*kept, "--report", "report.html"]


def machine():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.M)
    kernel = re.match(r"\d+\.\d+", platform.release())
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {memory:.0f} GB, Linux {kernel[0] if kernel else platform.release()}"


def version_of(server):
    """A server's own words; for ours the version as well, and the commit where the program was built in this checkout."""
    words = subprocess.run([server.program, "--version"], capture_output=True, text=True).stdout.strip()
    words = re.sub(r"\s*(sha|malloc|bits|build)=\S+", "", words)
    if server.name != "latchkey":
        return words
    version = "Latchkey " + re.search(r"^\s*version: '([^']+)'", (CHECKOUT / "meson.build").read_text(), re.M)[1]
    if CHECKOUT in Path(server.program).resolve().parents:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True).stdout.strip()
        version += f", commit {commit}" if commit else ""
    return f"{version} (as {words})"


# Figures


def label(workload):
    """A workload's name in words."""
    if workload in NAMES:
        return NAMES[workload]
    condition, _, rest = workload.partition("-")
    if condition in CONDITIONS and rest:
        return f"{label(rest)}, {CONDITIONS[condition]}"
    found = re.fullmatch(r"([a-z]+)-(\d+)", workload)
    if not found:
        return workload
    return f"{found[1].upper()}, " + ("one at a time" if found[2] == "1" else f"pipeline of {found[2]}")


def rows_of(results, figure):
    """[(workload, {server: values})] of those that have this figure."""
    rows = [(name, {server: taken[figure] for server, taken in by_server.items() if taken.get(figure)})
            for name, by_server in results["figures"].items()]
    return [(name, values) for name, values in rows if values]


def servers_of(results):
    return [server["name"] for server in results["about"]["servers"]]


def number(value, digits):
    """With as many digits as tell something: small figures keep two that count."""
    while digits and digits < 4 and 0 < value < 10 ** (1 - digits):
        digits += 1
    return f"{value:,.{digits}f}"


# Charts

ROW_TITLE, BAR, ROW_GAP, WIDTH, NAME_WIDTH, FIGURE_WIDTH = 18, 17, 12, 380, 88, 66
COLUMN_WIDTH = 330  # of the picture


def chart(results, rows, digits, unit, title, remark, identity):
    """An SVG of bars: for each row its name, and beneath it a bar for each server."""
    names = servers_of(results)
    height = sum(ROW_TITLE + BAR * len(names) + ROW_GAP for _ in rows)
    parts, y = [], 0
    for workload, values in rows:
        parts.append(f'<text class="row" x="0" y="{y + 12}">{html.escape(label(workload))}</text>')
        y += ROW_TITLE
        longest = max(statistics.median(taken) for taken in values.values())
        for place, name in enumerate(names):
            parts.append(bar(name, place, values.get(name), longest, digits, y))
            y += BAR
        y += ROW_GAP
    description = "; ".join(
        f"{label(workload)}: " + ", ".join(f"{name} {number(statistics.median(taken), digits)}" for name, taken in values.items())
        for workload, values in rows)
    return (f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{identity}-t {identity}-d">'
            f'<title id="{identity}-t">{html.escape(title)}, {html.escape(unit)}</title>'
            f'<desc id="{identity}-d">{html.escape(remark)} {html.escape(description)}</desc>{"".join(parts)}</svg>')


def bar(name, place, taken, longest, digits, y, x=0, width=WIDTH):
    """One server's bar and its figure, or the words that it has none."""
    text = f'<text class="server" x="{x}" y="{y + 12}">{html.escape(name)}</text>'
    start = x + NAME_WIDTH
    if not taken:
        return text + f'<text class="none" x="{start}" y="{y + 12}">not measured</text>'
    value = statistics.median(taken)
    length = (width - NAME_WIDTH - FIGURE_WIDTH) * value / longest if longest else 0
    return (text + f'<rect class="s{min(place, 3)}" x="{start}" y="{y + 2}" width="{max(length, 1):.1f}" height="{BAR - 5}" rx="2"/>'
            f'<text class="figure" x="{start + max(length, 1) + 5:.1f}" y="{y + 12}">{number(value, digits)}</text>')


def table(results, rows, digits, unit, title):
    names = servers_of(results)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in names)
    lines = []
    for workload, values in rows:
        cells = []
        for name in names:
            if taken := values.get(name):
                spread = f"<small>{number(min(taken), digits)} to {number(max(taken), digits)}</small>" if len(taken) > 1 else ""
                cells.append(f"<td>{number(statistics.median(taken), digits)} {spread}</td>")
            else:
                cells.append("<td>not measured</td>")
        lines.append(f'<tr><th scope="row">{html.escape(label(workload))}</th>{"".join(cells)}</tr>')
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="Figures: {html.escape(title)}"><table><caption>{html.escape(title)}, '
            f'{html.escape(unit)}: middle value, lowest to highest</caption><thead><tr><th scope="col">What</th>{head}</tr></thead>'
            f'<tbody>{"".join(lines)}</tbody></table></div>')


def section(results, identity, title, figure, unit, digits, better, remark):
    rows = rows_of(results, figure)
    if not rows:
        return ""
    return (f'<section aria-labelledby="{identity}"><h2 id="{identity}">{html.escape(title)}</h2>'
            f"<p>{html.escape(unit)}; {better} is better. {html.escape(remark)}</p>"
            f'<div class="pair">{chart(results, rows, digits, unit, title, remark, "c-" + identity)}{table(results, rows, digits, unit, title)}'
            "</div></section>")


LIGHT = "--ink:#1c2024;--soft:#5a6169;--line:#d9dde1;--paper:#fff;--s0:#0f766e;--s1:#b4532a;--s2:#5b6ea8;--s3:#8a8f98"
DARK = "--ink:#e8eaed;--soft:#a4abb3;--line:#363c43;--paper:#15181c;--s0:#2dbfae;--s1:#e08a5c;--s2:#93a5dd;--s3:#7b828b"
MARKS = ("text{fill:var(--ink);font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}.row{font-weight:600}"
         ".server,.none{fill:var(--soft)}.figure{font-variant-numeric:tabular-nums}"
         ".s0{fill:var(--s0)}.s1{fill:var(--s1)}.s2{fill:var(--s2)}.s3{fill:var(--s3)}")
STYLE = (f":root{{color-scheme:light dark;{LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK}}}}}"
         "body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:62rem;color:var(--ink);background:var(--paper);"
         "font:16px/1.5 system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}h1{margin:0 0 .25rem;font-size:1.6rem}"
         "h2{margin:2.5rem 0 0;padding-top:1rem;border-top:1px solid var(--line);font-size:1.25rem}p{margin:.25rem 0 1rem;color:var(--soft)}"
         "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem;margin:1rem 0}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}"
         "code{font-size:.9em}nav a{display:inline-block;color:inherit;margin-right:1rem}.pair{display:grid;gap:1.5rem 2rem;align-items:start}"
         "svg{width:100%;max-width:30rem;height:auto}.scroll{overflow-x:auto}"
         "table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}caption{text-align:left;color:var(--soft);padding-bottom:.5rem}"
         "th,td{padding:.3rem 0 .3rem .8rem;text-align:right;border-bottom:1px solid var(--line);vertical-align:top}"
         "th:first-child{padding-left:0;text-align:left;font-weight:normal}thead th{font-weight:600;white-space:nowrap}td small{display:block;color:var(--soft);white-space:nowrap}"
         "@media(min-width:56rem){.pair{grid-template-columns:minmax(0,26rem) minmax(0,1fr)}}"
         f"{MARKS}")


def page(results):
    """The whole page. It refers to nothing outside of itself."""
    about = results["about"]
    shown = [(one[0], one[1]) for one in SECTIONS if rows_of(results, one[2])]
    links = "".join(f'<a href="#{identity}">{html.escape(title)}</a>' for identity, title in shown)
    versions = "".join(f"<dt>{html.escape(server['name'])}</dt><dd>{html.escape(server['version'])}</dd>" for server in about["servers"])
    title = " beside ".join(servers_of(results)[:1] + [" and ".join(servers_of(results)[1:])][:len(servers_of(results)) - 1])
    return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{html.escape(title)}, measured {html.escape(about['date'])}</title><style>{STYLE}</style></head><body><header>"
            f"<h1>{html.escape(title[:1].upper() + title[1:])}</h1><p>Measured on one machine, in {about['rounds']} interleaved rounds, of which the middle value counts. "
            "Each row of a chart has a scale of its own, from zero.</p>"
            f"<dl><dt>Date</dt><dd>{html.escape(about['date'])}</dd><dt>Machine</dt><dd>{html.escape(about['machine'])}</dd>{versions}"
            f"<dt>Again</dt><dd><code>{html.escape(about['command'])}</code></dd></dl><nav aria-label=\"Charts\">{links}</nav></header><main>"
            + "".join(section(results, *one) for one in SECTIONS) + "</main></body></html>\n")


def picture(results):
    """One SVG: CPU in the first column, the rest beneath each other in the second, and where and when it was measured."""
    about, names = results["about"], servers_of(results)
    gap, top = 36, 46
    first, end_of_first = column(results, PICTURED[:1], 0, top)
    second, end_of_second = column(results, PICTURED[1:], COLUMN_WIDTH + gap, top)
    height, width = max(end_of_first, end_of_second) + 38, 2 * COLUMN_WIDTH + gap
    style = f":root{{{LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK}}}}}{MARKS}.head{{font-size:14px;font-weight:700}}.title{{font-size:16px;font-weight:700}}"
    lines = (f"Measured {about['date']}: one core for the server, one for the load; middle of {about['rounds']} rounds.", about["machine"])
    footer = "".join(f'<text class="server" x="0" y="{height - 18 + 16 * place}">{html.escape(line)}</text>' for place, line in enumerate(lines))
    spoken = "; ".join(f"{label(workload)}: " + ", ".join(f"{name} {number(statistics.median(taken), digits)} {unit}" for name, taken in values.items())
                       for _, unit, digits, _, rows in pictured(results, PICTURED) for workload, values in rows)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -8 {width + 32} {height + 16}" width="{width + 32}" height="{height + 16}" '
            f'role="img" aria-labelledby="t d"><title id="t">{html.escape(", ".join(names))}: CPU, memory and start, measured '
            f'{html.escape(about["date"])}</title><desc id="d">{html.escape(spoken)}</desc><style>{style}</style>'
            f'<rect x="-16" y="-8" width="{width + 32}" height="{height + 16}" rx="8" style="fill:var(--paper)"/>'
            f'<text class="title" x="0" y="18">{html.escape(" · ".join(names))}</text>{first}{second}{footer}</svg>\n')


def pictured(results, wanted):
    """(title, unit, digits, which is better, rows) of these sections, as far as they were measured."""
    by_id = {one[0]: one for one in SECTIONS}
    for identity, workloads in wanted:
        _, title, figure, unit, digits, better, _ = by_id[identity]
        measured = dict(rows_of(results, figure))
        if rows := [(name, measured[name]) for name in workloads if name in measured]:
            yield title, unit, digits, better, rows


def column(results, wanted, x, y):
    """Sections beneath each other from (x, y) on; also where they end."""
    drawn = []
    for title, unit, digits, better, rows in pictured(results, wanted):
        drawn.append(f'<text class="head" x="{x}" y="{y}">{html.escape(title)}, {html.escape(unit)}'
                     f'<tspan class="server" font-weight="400"> · {better} is better</tspan></text>')
        y += 24
        for workload, values in rows:
            drawn.append(f'<text class="row" x="{x}" y="{y}">{html.escape(label(workload))}</text>')
            y += 5
            longest = max(statistics.median(taken) for taken in values.values())
            for place, name in enumerate(servers_of(results)):
                drawn.append(bar(name, place, values.get(name), longest, digits, y, x, COLUMN_WIDTH))
                y += BAR
            y += ROW_GAP + 6
        y += 10
    return "".join(drawn), y
