<?php
// The trait, as the package's README has it.

use Latchkey\UsesLatchkey;
use PHPUnit\Framework\TestCase;

final class SessionTest extends TestCase
{
    use UsesLatchkey;

    public function testASessionEndsAfterHalfAnHour(): void
    {
        $redis = $this->redis();
        $redis->setex('session:1', 1800, 'anna');
        $redis->rawCommand('CLOCK', 'ADVANCE', '30m');
        $this->assertFalse($redis->get('session:1'));
    }

    /** @dataProvider twice */
    public function testAServerOfItsOwnForEachTest(int $number): void
    {
        $redis = $this->redis();
        // With TRIAL_SPACES=no the tests share the first server, and the second must fail, else this would show nothing.
        if (getenv('TRIAL_SPACES') === 'no') {
            $redis->rawCommand('SPACE', 'ENTER', 'main');
        }
        $this->assertSame(0, $redis->dbSize());
        $redis->set('left', 'behind');
        if (getenv('TRIAL_SPACES') !== 'no') {
            $this->assertSame('behind', $this->redis()->get('left'));
        }
    }

    public static function twice(): array
    {
        return [[1], [2]];
    }
}
