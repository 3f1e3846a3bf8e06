#!/usr/bin/env python3
"""Checks the Markdown pages of the checkout, for scripts/lint: links lead to files and headings that exist, and lines end at column
100 where they can be wrapped (not in tables, code and headings).

    check_pages.py      prints `PAGE:LINE: what is wrong` for each mistake; exit status 1 when there is one
"""

import os
import re
import subprocess
import sys

LAST_COLUMN = 100
UNBROKEN = re.compile(r"[|#!]|`[^`]*`\W?$")  # a row, a heading, a picture, a piece of code
LINK = re.compile(r"\]\(([^()\s]+)\)")


def text_lines(page):
    """The number and text of each line, and whether it is code."""
    in_fence = False
    with open(page, encoding="utf-8") as file:
        for number, line in enumerate(file.read().split("\n"), 1):
            is_fence = line.startswith("```")
            in_fence ^= is_fence
            yield number, line, in_fence or is_fence or line.startswith("    ")


def anchor_of(heading):
    """As GitHub makes it: small letters, digits, hyphens and underscores; blanks become hyphens."""
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def anchors(page):
    found = set()
    for _, line, is_code in text_lines(page):
        if not is_code and line.startswith("#"):
            found.add(anchor_of(line.lstrip("#")))
    return found


def mistakes(page):
    for number, line, is_code in text_lines(page):
        if is_code:
            continue
        if len(line) > LAST_COLUMN and not UNBROKEN.match(line):
            yield number, f"longer than {LAST_COLUMN} columns"
        for link in LINK.findall(line):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(target):
                yield number, f"{link} is not there"
            elif anchor and target.endswith(".md") and anchor not in anchors(target):
                yield number, f"{link}: no such heading"


def main():
    pages = subprocess.run(["git", "ls-files", "*.md"], capture_output=True, text=True, check=True).stdout.split()
    wrong = [f"{page}:{number}: {what}" for page in pages for number, what in mistakes(page)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
