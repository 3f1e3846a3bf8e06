"""The pages and pictures that scripts/bench draws of what it measured, drawn here from figures made up for the test; and its options for
drawing from a file, which measure nothing. No server is needed."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "scripts" / "lib"))
import bench_report  # noqa: E402

SERVERS = ["latchkey", "redis 8.0", "valkey 9.1.2"]


def results():
    figures = {
        "get-1": {"latchkey": {"cpu_us": [5.0, 7.0, 6.0], "ops": [90000.0, 91000.0, 92000.0], "p99_ms": [0.5, 0.6, 0.7]},
                  "redis 8.0": {"cpu_us": [12.0, 12.0, 12.0], "ops": [80000.0, 80000.0, 80000.0], "p99_ms": [0.8, 0.8, 0.8]},
                  "valkey 9.1.2": {"cpu_us": [], "ops": [], "p99_ms": []}},
        "tls-set-16": {name: {"cpu_us": [0.5], "ops": [1.0], "p99_ms": [1.0]} for name in SERVERS},
        "memory": {name: {"bytes": [80.0 + place * 10]} for place, name in enumerate(SERVERS)},
        "checkpoint-1": {name: {"create_us": [], "rollback_us": []} for name in SERVERS},
        "start": {name: {"start_ms": [3.0, 4.0, 5.0], "idle_mb": [8.0]} for name in SERVERS},
    }
    return {"date": "2026-01-02 03:04 UTC", "machine": "A <fast> machine & more, 2 cores, 8 GB, Linux 6.1", "rounds": 3,
            "command": "scripts/bench --report report.html", "servers": {name: f"{name}, as it says" for name in SERVERS},
            "rows": bench_report.rows_of(figures)}


class Tags(HTMLParser):
    """Checks that tags are closed in order, and keeps what there is."""

    VOID = {"meta", "br", "link", "img", "hr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()


class Page(unittest.TestCase):
    def setUp(self):
        self.page = bench_report.page(results())
        self.tags = Tags(self.page)

    def charts(self):
        return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", self.page, re.S)]

    def test_is_well_formed_and_refers_to_nothing_outside(self):
        self.assertEqual(self.tags.open, [])
        names = {tag for tag, _ in self.tags.seen}
        self.assertEqual(names & {"script", "link", "img", "iframe", "object"}, set())
        self.assertNotRegex(self.page, r"https?:|url\(|@import")
        for tag, attributes in self.tags.seen:
            self.assertFalse([name for name in attributes if name.startswith("on")], tag)
            if "href" in attributes:
                self.assertTrue(attributes["href"].startswith("#"), attributes)

    def test_ids_are_unique_and_what_refers_to_them_finds_them(self):
        ids = [attributes["id"] for _, attributes in self.tags.seen if "id" in attributes]
        self.assertEqual(len(ids), len(set(ids)))
        for _, attributes in self.tags.seen:
            for word in attributes.get("aria-labelledby", "").split() + attributes.get("href", "").lstrip("#").split():
                self.assertIn(word, ids)

    def test_each_chart_has_a_title_a_description_and_a_table(self):
        charts = self.charts()
        self.assertEqual(len(charts), 6)  # CPU, throughput, memory, start, idle, latency: what was measured and no more
        self.assertEqual(sum(tag == "table" for tag, _ in self.tags.seen), len(charts))
        for chart in charts:
            self.assertEqual(chart.get("role"), "img")
            self.assertTrue(chart.find("title").text)
            self.assertTrue(chart.find("desc").text)

    def test_bars_are_as_long_as_the_middle_values(self):
        cpu = self.charts()[0]
        lengths = [float(bar.get("width")) for bar in cpu.findall("rect")]
        self.assertEqual(len(lengths), 2 + 3)  # one server has no figure for GET
        self.assertAlmostEqual(lengths[0] / lengths[1], 6 / 12, places=2)
        self.assertEqual(lengths[2], lengths[3])
        texts = [text.text for text in cpu.findall("text")]
        self.assertEqual(texts[:7], ["GET, one at a time", "latchkey", "6.00", "redis 8.0", "12.00", "valkey 9.1.2", "not measured"])
        self.assertIn("SET, pipeline of 16, over TLS", texts)

    def test_a_group_it_does_not_know_is_drawn_in_its_own_words(self):
        more = results()
        more["rows"] = [{"name": "XPENDING of 1000", "group": "streams", "unit": "us", "values": {"latchkey": 0.0, "redis 8.0": 10.0}},
                        {"name": "misses", "group": "streams", "unit": "%", "values": {"latchkey": 0.0, "redis 8.0": 0.0}}]
        del more["rounds"], more["command"]
        page = bench_report.page(more)
        self.assertIn("<h2 id=\"streams-us\">Streams</h2><p>µs; less is better.", page)
        self.assertIn("<td>0.00</td><td>10.00</td><td>not measured</td>", page)
        self.assertNotIn("Again", page)
        self.assertEqual(Tags(page).open, [])
        self.assertNotIn("<rect class", bench_report.picture(more))

    def test_no_bar_leaves_its_chart(self):
        for chart in self.charts():
            width, height = map(float, chart.get("viewBox").split()[2:])
            for bar in chart.findall("rect"):
                self.assertLessEqual(float(bar.get("x")) + float(bar.get("width")) + bench_report.FIGURE_WIDTH, width + 0.1)
                self.assertLessEqual(float(bar.get("y")) + float(bar.get("height")), height)

    def test_tables_have_the_middle_value_and_the_range(self):
        self.assertIn("<td>6.00 <small>5.00 to 7.00</small></td>", self.page)
        self.assertIn("<td>91,000 <small>90,000 to 92,000</small></td>", self.page)
        self.assertIn("<td>not measured</td>", self.page)

    def test_says_where_and_when_and_how_with_what_is_special_quoted(self):
        for words in ("2026-01-02 03:04 UTC", "A &lt;fast&gt; machine &amp; more", "valkey 9.1.2, as it says",
                      "scripts/bench --report report.html", "in 3 interleaved rounds"):
            self.assertIn(words, self.page)
        self.assertNotIn("<fast>", self.page)

    def test_light_and_dark(self):
        self.assertIn("prefers-color-scheme:dark", self.page)
        self.assertIn('name="viewport"', self.page)
        for colours in (bench_report.LIGHT, bench_report.DARK):
            value = dict(re.findall(r"--(\w+):#([0-9a-f]{3,6})", colours))
            for name in ("ink", "soft", "s0", "s1", "s2", "s3"):
                self.assertGreaterEqual(contrast(value[name], value["paper"]), 3 if name.startswith("s") and name != "soft" else 4.5, name)


def contrast(one, other):
    """The contrast ratio of WCAG 2.1."""

    def luminance(colour):
        colour = colour if len(colour) == 6 else "".join(2 * digit for digit in colour)
        parts = [int(colour[i:i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted(map(luminance, (one, other)))
    return (lighter + 0.05) / (darker + 0.05)


class Picture(unittest.TestCase):
    def test_is_one_small_svg_of_what_was_measured(self):
        text = bench_report.picture(results())
        self.assertLess(len(text), 30_000)
        root = ElementTree.fromstring(text)
        words = [node.text for node in root.iter() if node.tag.endswith("text")]
        self.assertIn("GET, one at a time", words)
        self.assertNotIn("SET, pipeline of 16", words)  # pictured where it is measured
        self.assertTrue(any("2026-01-02" in (word or "") for word in words))
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?:|<script")

    def test_bars_stay_inside_and_below_each_other(self):
        root = ElementTree.fromstring(bench_report.picture(results()))
        left, top, width, height = map(float, root.get("viewBox").split())
        bars = [node for node in root.iter() if node.tag.endswith("rect") and node.get("class")]
        places = {(bar.get("x"), bar.get("y")) for bar in bars}
        self.assertEqual(len(places), len(bars))
        for bar in bars:
            self.assertLess(float(bar.get("x")) + float(bar.get("width")), left + width)
            self.assertLess(float(bar.get("y")) + float(bar.get("height")), top + height - 16)


class Labels(unittest.TestCase):
    def test_workloads_in_words(self):
        for name, words in (("get-16", "GET, pipeline of 16"), ("cluster-set-16", "SET, pipeline of 16, in a cluster"),
                            ("memory", "a string, key of 16 bytes, value of 32"), ("hash copy", "hash copy")):
            self.assertEqual(bench_report.label(name), words)

    def test_small_numbers_keep_digits_that_tell_something(self):
        self.assertEqual([bench_report.number(value, 2) for value in (12.345, 0.44, 0.0126, 0)], ["12.35", "0.44", "0.013", "0.00"])


class Command(unittest.TestCase):
    """scripts/bench --from"""

    def bench(self, *arguments):
        return subprocess.run([sys.executable, CHECKOUT / "scripts" / "bench", *arguments], capture_output=True, text=True)

    def test_draws_from_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            measured, page, picture = (Path(folder, name) for name in ("results.json", "page.html", "picture.svg"))
            measured.write_text(json.dumps(results()))
            done = self.bench("--from", measured, "--report", page, "--picture", picture)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual(page.read_text(), bench_report.page(results()))
            self.assertEqual(picture.read_text(), bench_report.picture(results()))

    def test_says_what_is_wrong(self):
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder, "other.json")
            other.write_text("[1]")
            for arguments, words in ((("--from", "/nonexistent", "--report", "x"), "cannot be read: No such file"),
                                     (("--from", other, "--report", "x"), "is not what --json writes"),
                                     (("--from", other), "needs --report or --picture")):
                done = self.bench(*arguments)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stderr)
            other.write_text(json.dumps(results()))
            other_rows = results() | {"rows": [row for row in results()["rows"] if row["group"] == "p99 latency"]}
            Path(folder, "latency.json").write_text(json.dumps(other_rows))
            done = self.bench("--from", Path(folder, "latency.json"), "--picture", Path(folder, "x.svg"))
            self.assertIn("--picture shows get-1 (server CPU per operation)", done.stderr)
            self.assertIn("none of them was measured", done.stderr)
            done = self.bench("--from", other, "--report", folder)
            self.assertIn("cannot be written: Is a directory", done.stderr)

    def test_the_command_to_measure_again_names_no_files(self):
        self.assertEqual(bench_report._repeatable(["--quick", "--json", "a", "--server=b", "get", "--also", "old=c"]),
                         ["--quick", "get", "--report", "report.html"])


if __name__ == "__main__":
    unittest.main()
