"""Draws what scripts/bench measured: one self-contained HTML page (`--report`), and a picture for the README (`--picture`).

    results = {"machine": "...", "date": "...", "servers": {name: version}, "rounds": 3, "command": "scripts/bench ...",
               "rows": [{"name": "get-16", "group": "server CPU per operation", "unit": "microseconds",
                         "values": {server: number}, "ranges": {server: [lowest, highest]}}, ...]}
    page(results)       HTML: charts in SVG, a table of the figures beside each; no script, nothing to fetch, light and dark
    picture(results)    one SVG of the same family, a few rows of each kind

The first server is ours. A value is the middle one of the rounds; rounds, command and ranges may be missing. Nothing is drawn but what is in
`results`: a workload or a server that was not measured has no bar. Each row of a chart has a scale of its own, from zero to its largest bar,
because the rows differ by a factor of a hundred; the figure stands at each bar's end.
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
    "memory-stream": "an entry of a stream", "start": "an empty server",
    "lock-setnx": "a lock by SETNX and DEL", "lock-eval": "a lock by SET NX PX and a script",
    "mget-4": "MGET of 10 keys, pipeline of 4", "lrange-1": "LRANGE of 100 elements, one at a time",
    "lrange-16": "LRANGE of 100 elements, pipeline of 16", "zrange-1": "ZRANGE of 100 members, one at a time",
    "zrange-16": "ZRANGE of 100 members, pipeline of 16", "eval-16": "EVAL of a short script, pipeline of 16",
}
# What a figure of scripts/bench is called in its tables: figure, group, unit, decimals.
FIGURES = (
    ("cpu_us", "server CPU per operation", "microseconds", 3),
    ("ops", "throughput", "operations per second", 0),
    ("bytes", "resident bytes per key", "bytes", 1),
    ("start_ms", "start to first PING", "milliseconds", 1),
    ("idle_mb", "resident when idle", "MB", 2),
    ("p99_ms", "p99 latency", "milliseconds", 3),
    ("save_ms", "SAVE", "milliseconds", 0),
    ("load_ms", "start with the saved file", "milliseconds", 0),
    ("fork_ms", "stop of the loop by BGSAVE's fork", "milliseconds", 2),
    ("stop_ms", "stop of the loop by one value of 1,000,000 elements", "milliseconds", 3),
    ("left", "throughput with an append-only file (everysec), over that without", "ratio", 3),
    ("aof_cpu_us", "server CPU per operation with an append-only file", "microseconds", 3),
    ("create_us", "server CPU of CHECKPOINT CREATE", "microseconds", 1),
    ("rollback_us", "server CPU of CHECKPOINT ROLLBACK", "microseconds", 1),
    ("test_us", "server CPU of commands for tests (of a space; of a key that falls due)", "microseconds", 2),
)
UNITS = {"microseconds": "µs", "us": "µs", "milliseconds": "ms", "operations per second": "operations/s"}
MORE_IS_BETTER = {"operations/s", "ratio"}
# Groups that are titled and explained; the others have their own words.
TITLES = {
    "server CPU per operation": ("CPU per operation", 2, "Time the server's threads were on a core, over operations answered."),
    "throughput": ("Throughput", 0, "As the load saw it, from one core, on a server on one core; the load is the limit where servers are close together."),
    "resident bytes per key": ("Memory", 1, "Growth of resident memory per key or element, over 1,000,000 of them."),
    "start to first PING": ("Start to the first PONG", 1, "From the start of the process."),
    "resident when idle": ("Resident when idle", 1, "Its program included."),
    "p99 latency": ("99th percentile of latency", 3, "As the load saw it, with 50 connections."),
}
# What the picture shows of a group, where it was measured.
PICTURED = (("server CPU per operation", ("get-1", "get-16", "set-16", "lrange-16", "zadd-16")),
            ("resident bytes per key", ("memory", "memory-hash", "memory-zset")), ("start to first PING", ("start",)))


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
        results["date"], results["machine"], results["servers"], results["rows"]
    except OSError as error:
        sys.exit(f"scripts/bench: {options.results} cannot be read: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        sys.exit(f"scripts/bench: {options.results} is not what --json writes")
    write(options, results)
    return True


def write(options, results):
    """Writes what the options ask for."""
    for path, draw in ((options.json, lambda drawn: json.dumps(drawn, indent=1) + "\n"), (options.report, page), (options.picture, picture)):
        if not path:
            continue
        if draw is picture and not pictured(results):
            sys.exit("scripts/bench: --picture shows " + ", ".join(f"{name} ({group})" for group, names in PICTURED for name in names)
                     + "; none of them was measured")
        try:
            Path(path).write_text(draw(results))
        except OSError as error:
            sys.exit(f"scripts/bench: {path} cannot be written: {error.strerror}")


def results_of(servers, rows, rounds):
    """What --json writes: the rows, and where and how they were measured: machine, versions, date, and the command that does it again."""
    return {"machine": machine(), "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "servers": {server.name: version_of(server) for server in servers}, "rounds": rounds,
            "command": shlex.join(["scripts/bench", *_repeatable(sys.argv[1:])]), "rows": rows}


def rows_of(figures):
    """Rows from {workload: {server: {figure: [one value per round]}}}."""
    rows = []
    for figure, group, unit, _ in FIGURES:
        for name, by_server in figures.items():
            if taken := {server: values[figure] for server, values in by_server.items() if values.get(figure)}:
                rows.append({"name": name, "group": group, "unit": unit,
                             "values": {server: statistics.median(values) for server, values in taken.items()},
                             "ranges": {server: [min(values), max(values)] for server, values in taken.items()}})
    return rows


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


class Section:
    """The rows of one group that have one unit."""

    def __init__(self, group, unit, rows):
        known = TITLES.get(group)
        self.unit = UNITS.get(unit, unit)
        self.group, self.rows = group, rows
        self.title, self.digits, self.remark = known or (group[:1].upper() + group[1:], 2, "")
        self.better = "more" if self.unit in MORE_IS_BETTER else "less"
        self.identity = re.sub("[^a-z0-9]+", "-", f"{self.title} {self.unit}".lower().replace("µ", "u")).strip("-")


def sections(results):
    """In the order in which their first rows come."""
    found = {}
    for row in results["rows"]:
        if row["values"]:
            found.setdefault((row["group"], row["unit"]), []).append(row)
    return [Section(group, unit, rows) for (group, unit), rows in found.items()]


def number(value, digits):
    """With as many digits as tell something: small figures keep two that count."""
    while digits and digits < 4 and 0 < value < 10 ** (1 - digits):
        digits += 1
    return f"{value:,.{digits}f}"


# Charts

ROW_TITLE, BAR, ROW_GAP, WIDTH, NAME_WIDTH, FIGURE_WIDTH = 18, 17, 12, 380, 88, 66
COLUMN_WIDTH, COLUMN_GAP, PICTURE_TOP = 330, 36, 46  # of the picture


def chart(results, section):
    """An SVG of bars: for each row its name, and beneath it a bar for each server."""
    names = list(results["servers"])
    height = len(section.rows) * (ROW_TITLE + BAR * len(names) + ROW_GAP)
    parts, y = [], 0
    for row in section.rows:
        parts.append(f'<text class="row" x="0" y="{y + 12}">{html.escape(label(row["name"]))}</text>')
        y += ROW_TITLE
        for place, name in enumerate(names):
            parts.append(bar(name, place, row, section.digits, y))
            y += BAR
        y += ROW_GAP
    identity = f"c-{section.identity}"
    return (f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{identity}-t {identity}-d">'
            f'<title id="{identity}-t">{html.escape(section.title)}, {html.escape(section.unit)}</title>'
            f'<desc id="{identity}-d">{html.escape(section.remark)} {html.escape(spoken([section]))}</desc>{"".join(parts)}</svg>')


def spoken(shown):
    """All figures of some sections in one sentence, for who cannot see the bars."""
    return "; ".join(f"{label(row['name'])}: " + ", ".join(f"{name} {number(value, section.digits)} {section.unit}"
                                                           for name, value in row["values"].items())
                     for section in shown for row in section.rows)


def bar(name, place, row, digits, y, x=0, width=WIDTH):
    """One server's bar and its figure, or the words that it has none."""
    text = f'<text class="server" x="{x}" y="{y + 12}">{html.escape(name)}</text>'
    start = x + NAME_WIDTH
    value, longest = row["values"].get(name), max(row["values"].values())
    if value is None:
        return text + f'<text class="none" x="{start}" y="{y + 12}">not measured</text>'
    length = max((width - NAME_WIDTH - FIGURE_WIDTH) * value / longest if longest > 0 else 0, 1)
    return (text + f'<rect class="s{min(place, 3)}" x="{start}" y="{y + 2}" width="{length:.1f}" height="{BAR - 5}" rx="2"/>'
            f'<text class="figure" x="{start + length + 5:.1f}" y="{y + 12}">{number(value, digits)}</text>')


def table(results, section):
    """The same figures, and the range of the rounds where it is known."""
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in results["servers"])
    lines = []
    for row in section.rows:
        cells = []
        for name in results["servers"]:
            if (value := row["values"].get(name)) is None:
                cells.append("<td>not measured</td>")
                continue
            low, high = row.get("ranges", {}).get(name, (value, value))
            spread = f" <small>{number(low, section.digits)} to {number(high, section.digits)}</small>" if low != high else ""
            cells.append(f"<td>{number(value, section.digits)}{spread}</td>")
        lines.append(f'<tr><th scope="row">{html.escape(label(row["name"]))}</th>{"".join(cells)}</tr>')
    caption = f"{section.title}, {section.unit}: middle value, lowest to highest"
    return (f'<div class="scroll" tabindex="0" role="region" aria-label="Figures: {html.escape(section.title)}, {html.escape(section.unit)}">'
            f'<table><caption>{html.escape(caption)}</caption><thead><tr><th scope="col">What</th>{head}</tr></thead>'
            f'<tbody>{"".join(lines)}</tbody></table></div>')


def section_of_page(results, section):
    return (f'<section aria-labelledby="{section.identity}"><h2 id="{section.identity}">{html.escape(section.title)}</h2>'
            f"<p>{html.escape(section.unit)}; {section.better} is better. {html.escape(section.remark)}</p>"
            f'<div class="pair">{chart(results, section)}{table(results, section)}</div></section>')


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
    shown = sections(results)
    links = "".join(f'<a href="#{one.identity}">{html.escape(one.title)}</a>' for one in shown)
    ours, *others = results["servers"]
    title = (ours + " beside " + " and ".join([", ".join(others[:-1]), others[-1]] if len(others) > 1 else others)) if others else ours
    facts = [("Date", results["date"]), ("Machine", results["machine"]), *results["servers"].items()]
    listed = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(words)}</dd>" for name, words in facts)
    if command := results.get("command"):
        listed += f"<dt>Again</dt><dd><code>{html.escape(command)}</code></dd>"
    return ('<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
            f"<title>{html.escape(title)}, measured {html.escape(results['date'])}</title><style>{STYLE}</style></head><body><header>"
            f"<h1>{html.escape(title[:1].upper() + title[1:])}</h1><p>Measured on one machine, in {rounds_of(results)}, of which the middle "
            "value counts. Each row of a chart has a scale of its own, from zero.</p>"
            f'<dl>{listed}</dl><nav aria-label="Charts">{links}</nav></header><main>'
            + "".join(section_of_page(results, one) for one in shown) + "</main></body></html>\n")


def rounds_of(results):
    return f"{results['rounds']} interleaved rounds" if "rounds" in results else "interleaved rounds"


def picture(results):
    """One SVG: the first group of PICTURED in the first column, the rest beneath each other in the second, and where and when it was
    measured."""
    shown = pictured(results)
    first, end_of_first = column(results, shown[:1], 0, PICTURE_TOP)
    second, end_of_second = column(results, shown[1:], COLUMN_WIDTH + COLUMN_GAP, PICTURE_TOP)
    height, width = max(end_of_first, end_of_second) + 38, 2 * COLUMN_WIDTH + COLUMN_GAP
    names = list(results["servers"])
    style = (f":root{{{LIGHT}}}@media(prefers-color-scheme:dark){{:root{{{DARK}}}}}{MARKS}.head{{font-size:14px;font-weight:700}}"
             ".title{font-size:16px;font-weight:700}")
    lines = (f"Measured {results['date']}: one core for the server, one for the load; middle of {rounds_of(results)}.", results["machine"])
    footer = "".join(f'<text class="server" x="0" y="{height - 18 + 16 * place}">{html.escape(line)}</text>' for place, line in enumerate(lines))
    title = f"{', '.join(names)}: {', '.join(one.title for one in shown)}, measured {results['date']}"
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-16 -8 {width + 32} {height + 16}" width="{width + 32}" height="{height + 16}" '
            f'role="img" aria-labelledby="t d"><title id="t">{html.escape(title)}</title><desc id="d">{html.escape(spoken(shown))}</desc>'
            f'<style>{style}</style><rect x="-16" y="-8" width="{width + 32}" height="{height + 16}" rx="8" style="fill:var(--paper)"/>'
            f'<text class="title" x="0" y="18">{html.escape(" · ".join(names))}</text>{first}{second}{footer}</svg>\n')


def pictured(results):
    """The sections of PICTURED, as far as they were measured."""
    found = []
    for group, names in PICTURED:
        for section in sections(results):
            rows = {row["name"]: row for row in section.rows}
            if section.group == group and (wanted := [rows[name] for name in names if name in rows]):
                section.rows = wanted
                found.append(section)
    return found


def column(results, shown, x, y):
    """Sections beneath each other from (x, y) on; also where they end."""
    drawn = []
    for section in shown:
        drawn.append(f'<text class="head" x="{x}" y="{y}">{html.escape(section.title)}, {html.escape(section.unit)}'
                     f'<tspan class="server" font-weight="400"> · {section.better} is better</tspan></text>')
        y += 24
        for row in section.rows:
            drawn.append(f'<text class="row" x="{x}" y="{y}">{html.escape(label(row["name"]))}</text>')
            y += 5
            for place, name in enumerate(results["servers"]):
                drawn.append(bar(name, place, row, section.digits, y, x, COLUMN_WIDTH))
                y += BAR
            y += ROW_GAP + 6
        y += 10
    return "".join(drawn), y
