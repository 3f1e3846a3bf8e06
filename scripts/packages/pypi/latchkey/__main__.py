"""`python -m latchkey ARGUMENT...`, and the command `latchkey-server`: becomes the server, with its arguments."""

import os
import sys

from ._server import LatchkeyError, binary_path, cannot_run


def main():
    try:
        program = binary_path()
        try:
            os.execv(program, [program, *sys.argv[1:]])
        except OSError as error:
            raise cannot_run(program, error) from None
    except LatchkeyError as error:
        sys.exit(f"latchkey: {error}")


if __name__ == "__main__":
    main()
