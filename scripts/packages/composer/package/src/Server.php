<?php

namespace Latchkey;

/**
 * A server for tests: a process of its own on a free port, that saves nothing and ends with this process.
 *
 *     $server = Server::start();
 *     $redis->connect('127.0.0.1', $server->port);
 *     $redis->auth($server->credentials('checkout'));    // a server of one's own within it
 *     $server->stop();
 */
final class Server
{
    private const STOP_TIMEOUT_S = 10; // the server finishes what it writes before it ends; after this it is killed

    /** @var self[] those to be stopped when this process ends */
    private static array $running = [];
    private readonly int $owner;

    /** @param resource $process */
    private function __construct(
        public readonly string $url,
        public readonly int $port,
        public readonly int $pid,
        private $process,
        private ?string $directory,
    ) {
        $this->owner = getmypid();
        if (self::$running === []) {
            register_shutdown_function(static function (): void {
                foreach (self::$running as $server) {
                    $server->stop();
                }
            });
        }
        self::$running[] = $this;
    }

    /**
     * Starts a server and returns it when it takes requests.
     *
     * @param int|null $port to listen on; a free one unless given
     * @param string|null $config a configuration file. Without one the server listens on this machine only, and saves nothing
     * @param array<string, string|int|bool|list<string|int>> $directives by name, such as ['maxmemory' => '100mb', 'emulate' => ['redis', '7.0']]
     * @param string|null $binary the program to run instead of the one that came with this package
     * @param float $timeout how long it may take until it is ready, in seconds
     * @throws LatchkeyException
     */
    public static function start(?int $port = null, ?string $config = null, array $directives = [], ?string $binary = null, float $timeout = 30): self
    {
        $program = $binary ?? Program::path();
        Program::check($program);
        if ($port !== null && ($port < 1 || $port > 65535)) {
            throw new LatchkeyException("port is a number from 1 to 65535; this one is $port.");
        }
        $directory = self::directory();
        $process = null;
        try {
            $command = self::command($program, $port, $config, $directives, $directory);
            $process = @proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['file', "$directory/log", 'a']], $pipes);
            if ($process === false) {
                $process = null;
                throw new LatchkeyException("$program cannot be run: " . (error_get_last()['message'] ?? 'the system does not say why') . '.');
            }
            $url = self::ready($process, $pipes[1], "$directory/log", $port, $timeout);
            $password = self::words($directives['requirepass'] ?? '')[0] ?? '';
            if ($password !== '') {
                $url = str_replace('redis://', 'redis://:' . rawurlencode($password) . '@', $url);
            }
            return new self($url, (int) parse_url($url, PHP_URL_PORT), proc_get_status($process)['pid'], $process, $directory);
        } catch (\Throwable $error) {
            if ($process !== null) {
                proc_terminate($process, 9);
                proc_close($process);
            }
            self::remove($directory);
            throw $error;
        }
    }

    /** The server of LATCHKEY_URL, or one for all tests of this process, started when it is first asked for. */
    public static function sharedUrl(): string
    {
        static $server = null;
        $running = getenv('LATCHKEY_URL');
        if ($running !== false && $running !== '') {
            return $running;
        }
        if ($server === null || $server->owner !== getmypid()) {
            $server = self::start();
        }
        return $server->url;
    }

    /**
     * The URL of a server of its own within this one, made when its first client comes: databases, channels, configuration, clock. The same name
     * gives the same space; without one each call gives a new space.
     */
    public function space(?string $name = null): string
    {
        return self::spaceOf($this->url, $name);
    }

    /** The same where only the server's URL is known. */
    public static function spaceOf(string $url, ?string $name = null): string
    {
        $name ??= bin2hex(random_bytes(16));
        if (!preg_match('/\A[!-~]{1,128}\z/', $name) || strtolower($name) === 'main') {
            throw new LatchkeyException(
                'The name of a space has 1 to 128 printable ASCII characters, no blanks, and is not "main"; this one is '
                . var_export($name, true) . '.'
            );
        }
        $place = parse_url($url);
        if (!in_array($place['scheme'] ?? '', ['redis', 'rediss'], true)) {
            throw new LatchkeyException("The URL of a space needs a host and a port; $url has none.");
        }
        $password = ($place['pass'] ?? '') ?: 'x'; // any will do where the server has none
        return "{$place['scheme']}://space-" . rawurlencode($name) . ":$password@{$place['host']}:" . ($place['port'] ?? 6379) . ($place['path'] ?? '');
    }

    /** User and password of a space, for what takes no URL: `$redis->auth($server->credentials('checkout'))`. @return array{string, string} */
    public function credentials(?string $name = null): array
    {
        $place = parse_url($this->space($name));
        return [rawurldecode($place['user']), rawurldecode($place['pass'])];
    }

    /**
     * Ends the server, and returns when it has ended. May be called again. In a process forked from the one that started the server it does
     * nothing.
     */
    public function stop(): void
    {
        if ($this->directory === null || $this->owner !== getmypid()) {
            return;
        }
        proc_terminate($this->process);
        $giveUp = microtime(true) + self::STOP_TIMEOUT_S;
        while (proc_get_status($this->process)['running']) {
            if (microtime(true) > $giveUp) {
                proc_terminate($this->process, 9);
            }
            usleep(5000);
        }
        proc_close($this->process);
        self::remove($this->directory);
        $this->directory = null;
        self::$running = array_filter(self::$running, fn (self $other) => $other !== $this);
    }

    private static function directory(): string
    {
        $directory = sys_get_temp_dir() . '/latchkey-' . bin2hex(random_bytes(6));
        if (!@mkdir($directory, 0700)) {
            throw new LatchkeyException(
                'No folder can be made in ' . sys_get_temp_dir() . ' (' . (error_get_last()['message'] ?? 'the system does not say why')
                . '). Free some space there, or name another place in the environment variable TMPDIR.'
            );
        }
        return $directory;
    }

    /** Removes a folder with all that is in it, links but not what they lead to. What somebody else has removed is no error. */
    private static function remove(string $directory): void
    {
        foreach (array_diff(@scandir($directory) ?: [], ['.', '..']) as $name) {
            $path = "$directory/$name";
            is_dir($path) && !is_link($path) ? self::remove($path) : @unlink($path);
        }
        @rmdir($directory);
    }

    /** The command line; what the caller says comes last and so counts. */
    private static function command(string $program, ?int $port, ?string $config, array $directives, string $directory): array
    {
        $defaults = ['port' => $port ?? 'auto'];
        if ($config === null) {
            $defaults += ['bind' => ['127.0.0.1', '-::1'], 'save' => '', 'dir' => $directory];
        }
        $line = $config === null ? [$program] : [$program, realpath($config) ?: $config];
        foreach (array_merge($defaults, $directives, ['print-url' => true, 'exit-with-parent' => true]) as $name => $value) {
            array_push($line, "--$name", ...self::words($value));
        }
        return $line;
    }

    /** The value of a directive as the command line has it. @return list<string> */
    private static function words(mixed $value): array
    {
        return array_map(fn ($word) => is_bool($word) ? ($word ? 'yes' : 'no') : (string) $word, is_array($value) ? $value : [$value]);
    }

    /**
     * The URL, a line of standard output. The server logs there too until it has read its directives.
     *
     * @param resource $process
     * @param resource $output
     */
    private static function ready($process, $output, string $log, ?int $port, float $timeout): string
    {
        $deadline = microtime(true) + $timeout;
        $logged = '';
        do {
            $reading = [$output];
            $none = null;
            $left = max(0, $deadline - microtime(true));
            if (!stream_select($reading, $none, $none, (int) $left, (int) (fmod($left, 1) * 1e6))) {
                throw new LatchkeyException("The server was not ready after $timeout s, and was ended. Its log:\n$logged" . file_get_contents($log));
            }
            $line = fgets($output);
            if ($line !== false && preg_match('~^(rediss?|unix)://~', $line)) {
                fclose($output);
                return rtrim($line);
            }
            $logged .= $line;
        } while ($line !== false);
        fclose($output);
        while (($status = proc_get_status($process))['running']) {
            usleep(1000);
        }
        throw self::couldNotStart($status, trim($logged . file_get_contents($log)), $port);
    }

    /** @param array{signaled: bool, termsig: int, exitcode: int} $status */
    private static function couldNotStart(array $status, string $log, ?int $port): LatchkeyException
    {
        $said = implode("\n", array_slice(explode("\n", $log), -8));
        if (str_contains($log, 'Address already in use')) {
            return new LatchkeyException(
                "Port $port is in use. Leave port out to get a free one, or end the program that has it. The server's log:\n$said"
            );
        }
        if (str_contains($log, 'bind: Permission denied')) {
            return new LatchkeyException(
                "Port $port is not for this user: ports below 1024 need root. Leave port out to get a free one. The server's log:\n$said"
            );
        }
        if ($status['signaled'] && $status['termsig'] === 4) {
            return new LatchkeyException('This processor lacks instructions the server is built with (x86-64-v2, of 2009).');
        }
        $end = $status['signaled'] ? "was ended by signal {$status['termsig']}" : "ended with status {$status['exitcode']}";
        return new LatchkeyException("The server $end before it was ready. Its log:\n" . ($said ?: '(empty)'));
    }
}
