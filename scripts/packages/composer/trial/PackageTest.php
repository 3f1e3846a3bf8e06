<?php
// The package as a program uses it, with phpredis, and Predis where Debian has it.

use Latchkey\LatchkeyException;
use Latchkey\Program;
use Latchkey\Server;
use PHPUnit\Framework\TestCase;

final class PackageTest extends TestCase
{
    private static Server $server;

    public static function setUpBeforeClass(): void
    {
        self::$server = Server::start();
    }

    public static function tearDownAfterClass(): void
    {
        self::$server->stop();
    }

    private function in(string $space): Redis
    {
        $redis = new Redis();
        $redis->connect('127.0.0.1', self::$server->port);
        $redis->auth(self::$server->credentials($space));
        return $redis;
    }

    private function says(string $pattern, callable $action): void
    {
        try {
            $action();
        } catch (LatchkeyException $error) {
            $this->assertMatchesRegularExpression($pattern, $error->getMessage());
            return;
        }
        $this->fail("nothing was said; expected $pattern");
    }

    private function program(string $content, int $mode): string
    {
        $path = tempnam(sys_get_temp_dir(), 'latchkey-try-');
        file_put_contents($path, $content);
        chmod($path, $mode);
        return $path;
    }

    private function folder(): string
    {
        $folder = sys_get_temp_dir() . '/latchkey-try-' . bin2hex(random_bytes(6));
        mkdir($folder);
        return $folder;
    }

    /** What a process prints that starts $server, with this folder for temporary files, and runs the code. */
    private function runs(string $code, string $folder): string
    {
        $autoload = var_export(getenv('TRIAL_AUTOLOAD'), true);
        $program = "require $autoload; \$server = Latchkey\\Server::start(); $code";
        return (string) shell_exec('TMPDIR=' . escapeshellarg($folder) . ' php -d display_errors=1 -r ' . escapeshellarg($program) . ' 2>&1');
    }

    private function isAlive(int $pid): bool
    {
        return file_exists("/proc/$pid");
    }

    private function until(callable $condition): void
    {
        for ($i = 0; $i < 600; $i++) {
            if ($condition()) {
                $this->addToAssertionCount(1);
                return;
            }
            usleep(50000);
        }
        $this->fail('it did not come in 30 s');
    }

    public function testSetAndGet(): void
    {
        $redis = new Redis();
        $redis->connect('127.0.0.1', self::$server->port);
        $this->assertTrue($redis->set('key', 'value'));
        $this->assertSame('value', $redis->get('key'));
        $this->assertSame('latchkey', $redis->info('server')['server_name']);
    }

    public function testPredis(): void
    {
        if (!class_exists('Predis\Client')) {
            require_once 'Predis/Autoloader.php'; // Debian's php-nrk-predis, of the include path
            Predis\Autoloader::register();
        }
        // Predis 1.1 knows passwords, but no users: it is told that of the space by hand.
        $redis = new Predis\Client(['host' => '127.0.0.1', 'port' => self::$server->port]);
        $redis->executeRaw(['AUTH', ...self::$server->credentials('predis')]);
        $this->assertSame('OK', (string) $redis->set('key', 'value'));
        $this->assertSame('value', $redis->get('key'));
        $this->assertFalse($this->in('other')->get('key'));
    }

    public function testSpaces(): void
    {
        $one = $this->in('one');
        $one->set('key', 'of one');
        $other = $this->in('other-one');
        $this->assertFalse($other->get('key'));
        $other->flushAll();
        $this->assertSame('of one', $this->in('one')->get('key'));
        $this->assertNotSame(self::$server->space(), self::$server->space());
        $this->assertStringContainsString('a/b:c@d%e', json_encode($this->in('a/b:c@d%e')->rawCommand('SPACE', 'LIST'), JSON_UNESCAPED_SLASHES));
        foreach (['', 'main', 'MAIN', 'two words', 'grün', str_repeat('x', 129)] as $name) {
            $this->says('/1 to 128 printable ASCII characters/', fn () => self::$server->space($name));
        }
        $this->says('/needs a host and a port/', fn () => Server::spaceOf('unix:///tmp/x.sock', 'one'));
    }

    public function testDirectivesAndPassword(): void
    {
        $server = Server::start(directives: ['maxmemory' => '50mb', 'requirepass' => 'se cret', 'lazyfree-lazy-expire' => true, 'emulate' => ['redis', '7.0']]);
        $redis = new Redis();
        $redis->connect('127.0.0.1', $server->port);
        $redis->auth($server->credentials('a'));
        $this->assertSame(['lazyfree-lazy-expire' => 'yes'], $redis->config('GET', 'lazyfree-lazy-expire'));
        $this->assertStringContainsString(':se%20cret@', $server->url);
        $server->stop();
        $server->stop();
        $this->assertFalse($this->isAlive($server->pid));
    }

    public function testAPasswordThatIsANumberOrAList(): void
    {
        foreach ([1234, ['secret']] as $password) {
            $server = Server::start(directives: ['requirepass' => $password]);
            $redis = new Redis();
            $redis->connect('127.0.0.1', $server->port);
            $this->assertTrue($redis->auth($server->credentials('a')));
            $server->stop();
        }
    }

    public function testAForkedProcessLeavesTheServerAlone(): void
    {
        $program = 'if (($child = pcntl_fork()) === 0) { $server->stop(); exit; }'
            . ' pcntl_waitpid($child, $status); echo fsockopen("127.0.0.1", $server->port) ? "it answers" : "";';
        $this->assertSame('it answers', $this->runs($program, $this->folder()));
    }

    public function testTheFolderMayBeGone(): void
    {
        foreach (['$server->stop();', ''] as $end) {
            $this->assertSame('', $this->runs("exec('rm -r ' . sys_get_temp_dir() . '/latchkey-*'); $end", $this->folder()));
        }
    }

    public function testStopRemovesLinksAndNotWhatTheyLeadTo(): void
    {
        $folder = $this->folder();
        mkdir("$folder/precious");
        touch("$folder/precious/file");
        $program = 'symlink(sys_get_temp_dir() . "/precious", glob(sys_get_temp_dir() . "/latchkey-*")[0] . "/link"); $server->stop();';
        $this->assertSame('', $this->runs($program, $folder));
        $this->assertSame(["$folder/precious"], glob("$folder/*"));
        $this->assertFileExists("$folder/precious/file");
    }

    public function testWhatGoesWrongIsSaid(): void
    {
        $port = self::$server->port;
        $this->says("/^Port $port is in use. Leave port out to get a free one/", fn () => Server::start(port: $port));
        $this->says('/1 to 65535/', fn () => Server::start(port: 70000));
        $this->says('/ended with status 1.*nonsense/s', fn () => Server::start(directives: ['nonsense' => 1]));
        $this->says('~ended with status 1.*open config file ./nonexistent~s', fn () => Server::start(config: '/nonexistent/server.conf'));
        $this->says('/is not there/', fn () => Server::start(binary: '/nonexistent/latchkey-server'));
        $this->says('/may not be executed. Run chmod \+x/', fn () => Server::start(binary: $this->program("#!/bin/sh\n", 0644)));
        $this->says('/not for this kind of machine/', fn () => Server::start(binary: $this->program("\x7fELF\2\1\1" . str_repeat("\xff", 200), 0755)));
        $slow = $this->program("#!/bin/sh\necho still loading >&2\nexec sleep 60\n", 0755);
        $this->says('/not ready after 0.2 s.*still loading/s', fn () => Server::start(binary: $slow, timeout: 0.2));
        $this->says('/no program for Darwin on .*there are linux-.*LATCHKEY_SERVER_BINARY/', fn () => Program::path('Darwin'));
    }

    public function testAProgramUnpackedWithoutItsModeIsMendedOnce(): void
    {
        $path = Program::path();
        chmod($path, 0644);
        clearstatcache();
        $this->assertSame($path, Program::path());
        clearstatcache();
        $this->assertTrue(is_executable($path));
    }

    public function testItEndsWithItsParent(): void
    {
        $autoload = var_export(getenv('TRIAL_AUTOLOAD'), true);
        foreach (['posix_kill(getmypid(), 9);', ''] as $end) {
            $pid = (int) shell_exec('php -r ' . escapeshellarg("require $autoload; echo Latchkey\\Server::start()->pid, \"\\n\"; $end"));
            $this->assertGreaterThan(1, $pid);
            $this->until(fn () => !$this->isAlive($pid));
        }
    }

    public function testNoRoomForTemporaryFiles(): void
    {
        $autoload = var_export(getenv('TRIAL_AUTOLOAD'), true);
        $program = "require $autoload; try { Latchkey\\Server::start(); } catch (Latchkey\\LatchkeyException \$error) { echo \$error->getMessage(); }";
        $said = shell_exec('TMPDIR=/proc/self php -r ' . escapeshellarg($program));
        $this->assertMatchesRegularExpression('~No folder can be made in /proc/self .*Free some space~', (string) $said);
    }

    public function testTheCommandIsTheServer(): void
    {
        $port = (int) getenv('TRIAL_PORT');
        $process = proc_open([getenv('TRIAL_COMMAND'), '--port', (string) $port, '--save', ''], [1 => ['file', '/dev/null', 'w']], $pipes);
        $redis = new Redis();
        $this->until(function () use ($redis, $port): bool {
            try {
                return @$redis->connect('127.0.0.1', $port) && (bool) $redis->ping();
            } catch (RedisException) {
                return false;
            }
        });
        $this->assertSame((string) proc_get_status($process)['pid'], (string) $redis->info('server')['process_id']);
        proc_terminate($process);
        $this->until(fn () => !($status = proc_get_status($process))['running']);
    }
}
