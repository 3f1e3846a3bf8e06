#!/usr/bin/env python3
"""Writes a C++ source that defines a function whose result is the text of a file.

    embed_text.py INPUT OUTPUT NAMESPACE::FUNCTION
"""

import sys

source, output, name = sys.argv[1:]
namespace, function = name.rsplit("::", 1)
with open(source, encoding="utf-8") as file:
    text = file.read()
assert ')text"' not in text
with open(output, "w", encoding="utf-8") as file:
    file.write(f"// Made by scripts/lib/embed_text.py.\n#include <string_view>\n\nnamespace {namespace} {{\n\n"
               f"std::string_view {function}();\nstd::string_view {function}() {{\n  return R\"text({text})text\";\n}}\n\n}}  // namespace {namespace}\n")
