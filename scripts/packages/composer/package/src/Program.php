<?php

namespace Latchkey;

/** The program that is run, and why it could not be. */
final class Program
{
    private const CPUS = ['x86_64' => 'x64', 'amd64' => 'x64', 'aarch64' => 'arm64', 'arm64' => 'arm64'];
    private const MACHINES = ['x64' => 62, 'arm64' => 183]; // e_machine of ELF

    /** The path of the program: what LATCHKEY_SERVER_BINARY names, or the one that came with this package for this platform. */
    public static function path(string $system = PHP_OS_FAMILY): string
    {
        $named = getenv('LATCHKEY_SERVER_BINARY');
        if ($named !== false && $named !== '') {
            return realpath($named) ?: throw new LatchkeyException("LATCHKEY_SERVER_BINARY names $named, which is not there.");
        }
        $path = dirname(__DIR__) . '/programs/latchkey-server-linux-' . self::cpu();
        if ($system !== 'Linux' || !is_file($path)) {
            $there = array_map(fn (string $file) => substr(basename($file), strlen('latchkey-server-')), glob(dirname(__DIR__) . '/programs/*'));
            throw new LatchkeyException(
                'latchkey/latchkey has no program for ' . $system . ' on ' . php_uname('m') . '; there are ' . implode(' and ', $there)
                . '. Run it in a Linux container, or build it on this machine and name the program in the environment variable LATCHKEY_SERVER_BINARY.'
            );
        }
        if (!is_executable($path)) {
            @chmod($path, 0755); // some ways of unpacking an archive leave modes out
        }
        return $path;
    }

    /** Throws for what the system would not run; PHP's own error does not tell why. */
    public static function check(string $path): void
    {
        if (!is_file($path)) {
            throw new LatchkeyException("$path is not there. Install latchkey/latchkey again.");
        }
        if (!is_executable($path)) {
            throw new LatchkeyException(
                "$path may not be executed. Run chmod +x on it; if that does not help, the file system it lies on is mounted noexec."
            );
        }
        $header = (string) @file_get_contents($path, false, null, 0, 20);
        if (str_starts_with($header, "\x7fELF") && unpack('v', $header, 18)[1] !== (self::MACHINES[self::cpu()] ?? null)) {
            throw new LatchkeyException("$path is not for this kind of machine, " . php_uname('m') . '. Install latchkey/latchkey again, here.');
        }
    }

    private static function cpu(): string
    {
        return self::CPUS[php_uname('m')] ?? php_uname('m');
    }
}
