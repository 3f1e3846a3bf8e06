<?php

namespace Latchkey;

/** Says what is wrong and what to do. */
final class LatchkeyException extends \RuntimeException
{
}
