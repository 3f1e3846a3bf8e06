<?php
// The clients of locks.py with phpredis, set(['nx', 'px' => ...]) and compare and delete: php locks.php CONTROL_SOCKET PORT COUNT

final class Locks
{
    private const PROLONG = <<<'LUA'
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then
            return 0
        end
        return redis.call('PEXPIRE', KEYS[1], ARGV[2])
        LUA;
    private const RELEASE = <<<'LUA'
        if redis.call('GET', KEYS[1]) ~= ARGV[1] then
            return 0
        end
        return redis.call('DEL', KEYS[1])
        LUA;
    private Redis $redis;
    private array $tokens = [];

    public function __construct(int $port)
    {
        $this->redis = new Redis();
        $this->redis->connect('127.0.0.1', $port);
    }

    public function connections(): array
    {
        return [$this->redis->rawCommand('CLIENT', 'ID')];
    }

    public function acquire(string $name, int $ttl_ms): int
    {
        $token = bin2hex(random_bytes(16));
        if (!$this->redis->set($name, $token, ['nx', 'px' => $ttl_ms])) {
            return 0;
        }
        $this->tokens[$name] = $token;
        return 1;
    }

    public function prolong(string $name, int $ttl_ms): int
    {
        return $this->redis->eval(self::PROLONG, [$name, $this->tokens[$name], $ttl_ms], 1);
    }

    public function release(string $name): int
    {
        return $this->redis->eval(self::RELEASE, [$name, $this->tokens[$name]], 1);
    }

    public function work(string $name, int $ttl_ms, int $rounds): int
    {
        for ($round = 0; $round < $rounds; ++$round) {
            while (!$this->acquire($name, $ttl_ms)) {
                $this->rest();
            }
            $this->redis->set("$name:count", (int) $this->redis->get("$name:count") + 1);
            $this->release($name);
            $this->rest();
        }
        return $rounds;
    }

    private function rest(): void
    {
        usleep(random_int(2000, 10000));
    }
}

function serve(string $control, int $port): void
{
    $locks = new Locks($port);
    $stream = stream_socket_client("unix://$control");
    while (($line = fgets($stream)) !== false) {
        $arguments = json_decode($line, true);
        $verb = array_shift($arguments);
        try {
            $answer = ['ok' => $locks->$verb(...$arguments)];
        } catch (RedisException $exception) {
            $answer = ['error' => $exception->getMessage()];
        }
        fwrite($stream, json_encode($answer) . "\n");
    }
}

[, $control, $port, $count] = $argv;
for ($i = 0; $i < (int) $count; ++$i) {
    if (pcntl_fork() === 0) {
        serve($control, (int) $port);
        exit(0);
    }
}
while (pcntl_wait($status) > 0) {
}
