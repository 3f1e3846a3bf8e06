#!/usr/bin/env python3
"""Makes what is said of the directives elsewhere from conf/latchkey.conf, which says it first.

    directive_docs.py man  latchkey.conf OUTPUT     the manual page latchkey.conf(5)
    directive_docs.py bash latchkey.conf OUTPUT     completion of the command line for bash
    directive_docs.py zsh  latchkey.conf OUTPUT     the same for zsh

The file is in blocks (src/server/config/directive_help.h): comments, and the directives they are about. A
line `#directive value` is an example of one that is not set by default.
"""

import re
import sys

ACTIONS = ["--check-config", "--check-system", "--explain", "--help", "--ping", "--sentinel", "--version"]
PATHS = re.compile(r"file$|^dir$|^unixsocket$|^logfile$|^include$|-dir$")


class Block:
    def __init__(self, section):
        self.section, self.text, self.lines = section, [], []

    def names(self):
        return list(dict.fromkeys(line.split(" ", 1)[0] for line, _ in self.lines))


def read_blocks(path):
    blocks, introduction = [], []
    block, section = Block(None), None
    with open(path, encoding="utf-8") as file:
        for line in [*file.read().split("\n"), ""]:
            if line.startswith("####") or not line:
                if block.lines:
                    blocks.append(block)
                elif section is None and block.text:
                    introduction += [*block.text, ""]
                if line:
                    section = line.strip("# ") or section
                block = Block(section)
            elif not line.startswith("#"):
                block.lines.append((line, True))
            elif len(line) > 1 and line[1] != " ":
                block.lines.append((line[1:], False))
            else:
                block.text.append(line[2:])
    return introduction, blocks


def values_of(block, name):
    """The words that a directive can be given, where its default or its text says so."""
    defaults = [line.split(" ", 1)[1] for line, _ in block.lines if line.startswith(name + " ")]
    return ["yes", "no"] if defaults and defaults[0] in ("yes", "no") else []


# ---- The manual page


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def paragraphs(lines, after_list):
    """Plain lines run together. Indented ones are a list: `term  what it means`, which may go on in deeper lines, or an example.
    after_list: the macro with which text goes on behind one."""
    out, in_list = [], False
    for line in lines:
        is_item = line.startswith("  ")
        if is_item != in_list and line.strip():
            out += [".RS", ".PD 0"] if is_item else [".PD", ".RE", after_list]
            in_list = is_item
        if not line.strip():
            if not in_list:
                out.append(".PP")
        elif not is_item:
            out.append(roff(line))
        elif line.startswith("    "):
            out.append(roff(line.strip()))
        else:
            term, *meaning = re.split(r" {2,}", line.strip(), maxsplit=1)
            out += [".TP", f"\\fB{roff(term)}\\fR", roff(meaning[0])] if meaning else [".PP", roff(term)]
    return out + [".PD", ".RE"] if in_list else out


def man_page(introduction, blocks):
    out = [".\\\" Made from latchkey.conf by scripts/lib/directive_docs.py.",
           '.TH LATCHKEY.CONF 5 "" "Latchkey" "File Formats"', ".SH NAME",
           "latchkey.conf \\- configuration of latchkey\\-server", ".SH DESCRIPTION"]
    out += paragraphs(introduction[1:], ".PP")
    section = None
    for block in blocks:
        if block.section != section:
            section = block.section
            out.append(f'.SH "{roff(section or "Directives").upper()}"')
        for index, (line, is_default) in enumerate(block.lines):
            name, _, value = line.partition(" ")
            out.append(".TP" if index == 0 else ".TQ")
            shown = f'\\fB{roff(name)}\\fR {roff(value)}'.rstrip()
            out.append(shown if is_default else shown + " (example)")
        out += paragraphs(block.text, ".IP") or ["\\&"]
    out += [".SH SEE ALSO", ".BR latchkey\\-server (1);", ".B latchkey\\-server \\-\\-explain", ".I directive"]
    return "\n".join(out) + "\n"


# ---- Completion


def directives(blocks):
    found = {}
    for block in blocks:
        for name in block.names():
            found.setdefault(name, (values_of(block, name), " ".join(block.text).split(". ")[0]))
    return found


def bash_completion(blocks):
    table = directives(blocks)
    options = " ".join([*ACTIONS, *(f"--{name}" for name in table)])
    switches = "|".join(f"--{name}" for name, (values, _) in table.items() if values)
    paths = "|".join(f"--{name}" for name in table if PATHS.search(name))
    return f"""# Completion of latchkey-server for bash. Made from latchkey.conf by scripts/lib/directive_docs.py.
_latchkey_server() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  case $previous in
    --explain) mapfile -t COMPREPLY < <(compgen -W "{' '.join(table)}" -- "$word"); return ;;
    {switches}) mapfile -t COMPREPLY < <(compgen -W "yes no" -- "$word"); return ;;
    --check-config|{paths}) mapfile -t COMPREPLY < <(compgen -f -- "$word"); return ;;
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "{options}" -- "$word")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  fi
}}
complete -o filenames -F _latchkey_server latchkey-server
"""


def zsh_completion(blocks):
    def quoted(text):
        return re.sub(r"([\[\]:'\\])", lambda found: {"'": "'\\''"}.get(found[0], "\\" + found[0]), text)

    table = directives(blocks)
    lines = []
    for name, (values, text) in table.items():
        action = ":value:(yes no)" if values else ":path:_files" if PATHS.search(name) else ":value: "
        lines.append(f"    '*--{name}[{quoted(text)}]{action}'")
    return f"""#compdef latchkey-server
# Completion of latchkey-server for zsh. Made from latchkey.conf by scripts/lib/directive_docs.py.
_arguments \\
    '--check-config[say what is wrong with a configuration]:path:_files' \\
    '--check-system[say what the system could do better]' \\
    '--explain[what a directive is for]:directive:({' '.join(table)})' \\
    '--help[how it is called]' \\
    '--ping[whether the server serves]' \\
    '--sentinel[run as a Sentinel]' \\
    '--version[which server this is]' \\
{(' ' + chr(92) + chr(10)).join(lines)} \\
    '*:configuration:_files'
"""


def main():
    kind, source, output = sys.argv[1:]
    introduction, blocks = read_blocks(source)
    made = {"man": lambda: man_page(introduction, blocks), "bash": lambda: bash_completion(blocks),
            "zsh": lambda: zsh_completion(blocks)}[kind]()
    with open(output, "w", encoding="utf-8") as file:
        file.write(made)


if __name__ == "__main__":
    main()
