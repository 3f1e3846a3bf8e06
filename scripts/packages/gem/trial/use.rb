# The gem as a program uses it, with redis-rb and minitest.
require "minitest/autorun"
require "open3"
require "redis"
require "latchkey"
require "latchkey/minitest"

class PackageTest < Minitest::Test
  SERVER = Latchkey.start
  Minitest.after_run { SERVER.stop }

  def alive?(pid)
    Process.kill(0, pid)
  rescue Errno::ESRCH
    false
  end

  def until_true
    600.times { return if yield || !sleep(0.05) }
    flunk "it did not come in 30 s"
  end

  def says(pattern, &block)
    assert_match pattern, assert_raises(Latchkey::Error, &block).message
  end

  def program(content, mode)
    Dir.mktmpdir("latchkey-try-") do |folder|
      File.binwrite("#{folder}/program", content)
      File.chmod(mode, "#{folder}/program")
      yield "#{folder}/program"
    end
  end

  def test_set_and_get
    redis = Redis.new(url: SERVER.url)
    assert_equal "OK", redis.set("key", "value")
    assert_equal "value", redis.get("key")
    assert_equal "latchkey", redis.info("server")["server_name"]
  end

  def test_the_program_is_the_gems
    assert Latchkey.binary_path.start_with?(ENV.fetch("GEM_HOME")), Latchkey.binary_path
  end

  def test_spaces
    one, other, again = %w[one other one].map { |name| Redis.new(url: SERVER.space(name)) }
    one.set("key", "of one")
    assert_nil other.get("key")
    other.flushall
    assert_equal "of one", again.get("key")
    refute_equal SERVER.space, SERVER.space
    odd = Redis.new(url: SERVER.space("a/b:c@d%e"))
    assert_includes odd.call("SPACE", "LIST").inspect, "a/b:c@d%e"
  end

  def test_names_of_spaces
    ["", "main", "MAIN", "two words", "grün", "x" * 129, 7].each { |name| says(/1 to 128 printable ASCII characters/) { SERVER.space(name) } }
    says(/needs a host and a port/) { Latchkey.space("unix:///tmp/x.sock", "one") }
  end

  def test_directives_and_password
    server = Latchkey.start(directives: { maxmemory: "50mb", emulate: %w[redis 7.0], requirepass: "se cret", lazyfree_lazy_expire: true })
    assert_equal({ "maxmemory" => "52428800" }, Redis.new(url: server.url).config(:get, "maxmemory"))
    assert_equal({ "lazyfree-lazy-expire" => "yes" }, Redis.new(url: server.space("a")).config(:get, "lazyfree-lazy-expire"))
    server.stop
  end

  def test_a_password_that_is_a_number_or_a_list
    [1234, ["secret"]].each do |password|
      server = Latchkey.start(directives: { requirepass: password })
      assert_equal "PONG", Redis.new(url: server.url).ping
      server.stop
    end
  end

  def test_stop
    server = Latchkey.start
    2.times { server.stop }
    refute alive?(server.pid)
  end

  def test_a_forked_process_leaves_the_server_alone
    server = Latchkey.start
    Process.wait(fork { server.stop; exit!(0) })
    assert_equal "PONG", Redis.new(url: server.url).ping
    server.stop
    refute alive?(server.pid)
  end

  def test_the_folder_may_be_gone
    program = 'require "latchkey"; server = Latchkey.start; FileUtils.rm_r(Dir.glob("#{Dir.tmpdir}/latchkey-*")); server.stop if ARGV[0] == "stop"'
    %w[stop leave].each do |ending|
      Dir.mktmpdir("latchkey-try-") do |folder|
        said, status = Open3.capture2e({ "TMPDIR" => folder }, "ruby", "-e", program, ending)
        assert_equal ["", 0], [said, status.exitstatus]
      end
    end
  end

  def test_an_empty_environment_variable_is_as_one_that_is_not_set
    said, = Open3.capture2e({ "LATCHKEY_SERVER_BINARY" => "", "LATCHKEY_URL" => "" }, "ruby", "-e",
                            'require "latchkey"; puts Latchkey.binary_path, Latchkey::Shared.url')
    assert_match(%r{\A#{Latchkey.binary_path}\nredis://127\.0\.0\.1:\d+\n\z}, said)
  end

  def test_what_goes_wrong_is_said
    says(/^Port #{SERVER.port} is in use. Leave port out to get a free one/) { Latchkey.start(port: SERVER.port) }
    says(/1 to 65535/) { Latchkey.start(port: 70_000) }
    says(/ended with status 1.*nonsense/m) { Latchkey.start(directives: { nonsense: 1 }) }
    says(%r{ended with status 1.*open config file '/nonexistent}m) { Latchkey.start(config: "/nonexistent/server.conf") }
    says(/is not there/) { Latchkey.start(binary: "/nonexistent/latchkey-server") }
    program("#!/bin/sh\n", 0o644) { |path| says(/may not be executed. Run chmod \+x/) { Latchkey.start(binary: path) } }
    program("\x7fELF\2\1\1#{"\xff" * 200}", 0o755) { |path| says(/not for this kind of machine/) { Latchkey.start(binary: path) } }
    program("#!/bin/sh\necho still loading >&2\nexec sleep 60\n", 0o755) do |path|
      says(/not ready after 0.2 s.*still loading/m) { Latchkey.start(binary: path, timeout: 0.2) }
    end
  end

  def test_no_room_for_temporary_files
    program = 'require "latchkey"; begin; Latchkey.start; rescue Latchkey::Error => error; puts error.message; end'
    said, = Open3.capture2({ "TMPDIR" => "/proc/self" }, "ruby", "-e", program)
    assert_match(%r{No folder can be made for temporary files \(.*/proc/self.*Free some space}, said)
  end

  def test_another_platform
    said, = Open3.capture2("ruby", "-e", 'RUBY_PLATFORM.replace("arm64-darwin") rescue Object.send(:remove_const, :RUBY_PLATFORM)
      RUBY_PLATFORM = "arm64-darwin" unless defined?(RUBY_PLATFORM) && RUBY_PLATFORM == "arm64-darwin"
      require "latchkey"
      begin; Latchkey.start; rescue Latchkey::Error => error; puts error.message; end', err: File::NULL)
    assert_match(/no program for arm64-darwin; its gems are for Linux on x86_64 and aarch64.*LATCHKEY_SERVER_BINARY/, said)
  end

  def test_it_ends_with_its_parent
    ["Process.kill(9, Process.pid)", "nil"].each do |ending|
      output, = Open3.capture2("ruby", "-e", "require 'latchkey'; puts Latchkey.start.pid; $stdout.flush; #{ending}")
      until_true { !alive?(output.to_i) }
    end
  end

  def test_the_command_is_the_server
    port = Integer(ENV.fetch("TRIAL_PORT"))
    pid = Process.spawn("latchkey-server", "--port", port.to_s, "--save", "", out: File::NULL)
    redis = Redis.new(port: port)
    until_true { redis.ping rescue false }
    assert_equal pid.to_s, redis.info("server")["process_id"]
    Process.kill("TERM", pid)
    assert_predicate Process.wait2(pid).last, :success?
  end
end

# Tests that collide without spaces, in threads: with TRIAL_SPACES=no they share the first server, and must fail.
class CollidingTest < Minitest::Test
  include Latchkey::Minitest
  parallelize_me!

  8.times do |part|
    define_method("test_all_keys_are_mine_#{part}") do
      redis = Redis.new(url: ENV["TRIAL_SPACES"] == "no" ? Latchkey::Shared.url : redis_url)
      100.times do |round|
        redis.flushall
        redis.mset(*5.times.flat_map { |i| ["user:#{part}:#{i}", round] })
        assert_equal 5, redis.dbsize
      end
      redis.close
    end
  end
end
