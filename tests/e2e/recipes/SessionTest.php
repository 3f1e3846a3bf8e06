<?php
use PHPUnit\Framework\TestCase;

final class SessionTest extends TestCase
{
    private Redis $redis;

    protected function setUp(): void
    {
        $this->redis = new Redis();
        $this->redis->connect('localhost', (int) (getenv('REDIS_PORT') ?: 6379));
        $this->redis->auth(['space-' . bin2hex(random_bytes(8)), 'x']); // each test has a server of its own
    }

    protected function tearDown(): void
    {
        $this->redis->close();
    }

    public function testASessionEndsAfterHalfAnHour(): void
    {
        $this->redis->setex('session:1', 1800, 'anna');
        $this->redis->rawCommand('CLOCK', 'ADVANCE', '30m');
        $this->assertFalse($this->redis->get('session:1'));
    }

    public function testFlushallHurtsNobody(): void
    {
        $this->redis->flushAll();
        $this->assertSame(0, $this->redis->dbSize());
    }
}
