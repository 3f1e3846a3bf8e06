<?php
// The clients of worker.py with phpredis: php worker.php CONTROL_SOCKET PORT COUNT

function serve(string $control, int $port): void
{
    $redis = null;
    $stream = stream_socket_client("unix://$control");
    while (($line = fgets($stream)) !== false) {
        $arguments = json_decode($line, true);
        $verb = array_shift($arguments);
        try {
            if ($redis === null) {
                $redis = new Redis();
                $redis->connect('127.0.0.1', $port);
            }
            $redis->clearLastError();
            $reply = answer($redis, $verb, $arguments);
            $error = $redis->getLastError();
            $answer = $error === null ? ['ok' => $reply] : ['error' => $error];
        } catch (RedisException $exception) {
            $redis = null;
            $answer = ['error' => $exception->getMessage()];
        }
        fwrite($stream, json_encode($answer) . "\n");
    }
}

function answer(Redis $redis, string $verb, array $arguments)
{
    switch ($verb) {
        case 'get':
            return absent_is_null($redis->get(...$arguments));
        case 'setnx':
            return (int) $redis->setNx(...$arguments);
        case 'getset':
            return absent_is_null($redis->getSet(...$arguments));
        case 'multi_setnx_expire':
            [$key, $value, $ttl] = $arguments;
            return array_map('intval', $redis->multi()->setNx($key, $value)->expire($key, $ttl)->exec());
        case 'eval':
            [$script, $keys, $others] = $arguments;
            return absent_is_null($redis->eval($script, array_merge($keys, $others), count($keys)));
        case 'set_nx_px':
            [$key, $value, $ttl_ms] = $arguments;
            return (int) $redis->set($key, $value, ['nx', 'px' => $ttl_ms]);
        case 'set_nx_ex':
            [$key, $value, $ttl] = $arguments;
            return (int) $redis->set($key, $value, ['nx', 'ex' => $ttl]);
        case 'set':
            return (int) $redis->set(...$arguments);
        case 'raw':
            $reply = $redis->rawCommand(...$arguments);
            return $reply === true ? 'OK' : absent_is_null($reply);
    }
    throw new RedisException("no verb $verb");
}

// phpredis answers a null with false.
function absent_is_null($reply)
{
    return $reply === false ? null : $reply;
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
