<?php

namespace Latchkey;

/**
 * For PHPUnit: `use UsesLatchkey;` in a test case. Each test has a space of its own in one server, which starts when the first test asks for it
 * and ends with the process; LATCHKEY_URL names one that runs already.
 */
trait UsesLatchkey
{
    private ?string $latchkeyUrl = null;

    /** The URL of this test's space; PHPUnit makes an object for each test. */
    protected function redisUrl(): string
    {
        return $this->latchkeyUrl ??= Server::spaceOf(Server::sharedUrl());
    }

    /** A new connection to this test's space, by phpredis. */
    protected function redis(): \Redis
    {
        $place = parse_url($this->redisUrl());
        $redis = new \Redis();
        $redis->connect($place['host'], $place['port']);
        $redis->auth([rawurldecode($place['user']), rawurldecode($place['pass'])]);
        return $redis;
    }
}
