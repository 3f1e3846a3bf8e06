require "fileutils"
require "io/wait"
require "securerandom"
require "tmpdir"
require "uri"

# Latchkey: an in-memory server that speaks the Redis protocol, for tests.
#
#   server = Latchkey.start            # on a free port, saves nothing, ends with this process
#   Redis.new(url: server.space)       # a server of one's own within it
#   server.stop
module Latchkey
  START_TIMEOUT_S = 30
  STOP_TIMEOUT_S = 10 # the server finishes what it writes before it ends; after this it is killed

  # Says what is wrong and what to do.
  class Error < StandardError; end

  class << self
    # The path of the program: what LATCHKEY_SERVER_BINARY names, or the one that came with this gem.
    def binary_path
      if (named = environment("LATCHKEY_SERVER_BINARY"))
        return File.expand_path(named) if File.exist?(named)

        raise Error, "LATCHKEY_SERVER_BINARY names #{named}, which is not there."
      end
      path = File.expand_path("../libexec/latchkey-server", __dir__)
      return path if RUBY_PLATFORM.include?("linux") && File.exist?(path)

      raise Error, "latchkey has no program for #{RUBY_PLATFORM}; its gems are for Linux on x86_64 and aarch64. Run it in a Linux container, " \
                   "or build it on this machine and name the program in the environment variable LATCHKEY_SERVER_BINARY."
    end

    # Starts a server and returns it when it takes requests; raises Latchkey::Error. The server ends with this process, however that ends.
    #
    #   port        to listen on; a free one unless given
    #   config      a configuration file. Without one the server listens on this machine only, and saves nothing
    #   directives  by name, such as { maxmemory: "100mb", emulate: ["redis", "7.0"], appendonly: true }
    #   binary      the program to run instead of the one that came with this gem
    #   timeout     how long it may take until it is ready, in seconds
    def start(port: "auto", config: nil, directives: {}, binary: nil, timeout: START_TIMEOUT_S)
      program = (binary || binary_path).to_s
      directory = temporary_directory
      log = File.join(directory, "log")
      directives = directives.to_h { |name, value| [name.to_s.tr("_", "-"), value] }
      reading, writing = IO.pipe
      begin
        pid = Process.spawn([program, program], *arguments(port, config, directives, directory), in: File::NULL, out: writing, err: [log, "a"])
      rescue SystemCallError => error
        raise cannot_run(program, error)
      ensure
        writing.close
      end
      url = ready(program, reading, pid, log, port, timeout)
      password = words(directives["requirepass"]).first.to_s
      url = url.sub("redis://", "redis://:#{URI.encode_www_form_component(password).gsub("+", "%20")}@") unless password.empty?
      server = Server.new(pid, directory, url)
    ensure
      reading&.close
      abandon(pid, directory) unless server
    end

    # Server#space where only the server's URL is known.
    def space(url, name = SecureRandom.hex(16))
      unless name.is_a?(String) && name.match?(/\A[!-~]{1,128}\z/) && name.downcase != "main"
        raise Error, "The name of a space has 1 to 128 printable ASCII characters, no blanks, and is not \"main\"; this one is #{name.inspect}."
      end
      place = URI.parse(url)
      raise Error, "The URL of a space needs a host and a port; #{url} has none." unless %w[redis rediss].include?(place.scheme)

      password = place.password.to_s.empty? ? "x" : place.password # any will do where the server has none
      "#{place.scheme}://space-#{URI.encode_www_form_component(name)}:#{password}@#{place.host}:#{place.port || 6379}#{place.path}"
    end

    # An environment variable; nil where it is not set, or empty.
    def environment(name)
      value = ENV[name].to_s
      value unless value.empty?
    end

    # The error for a program that could not be run, from what the system said.
    def cannot_run(program, error)
      case error
      when Errno::EACCES
        Error.new("#{program} may not be executed. Run chmod +x on it; if that does not help, the file system it lies on is mounted noexec.")
      when Errno::ENOENT then Error.new("#{program} is not there, or the C library it needs is not. Install latchkey again.")
      when Errno::ENOEXEC then Error.new("#{program} is not for this kind of machine, #{RUBY_PLATFORM}. Install latchkey again, here.")
      else Error.new("#{program} cannot be run: #{error.message}.")
      end
    end

    private

    # A new folder for the log, and for what the server may be told to save.
    def temporary_directory
      Dir.mktmpdir("latchkey-")
    rescue SystemCallError => error
      raise Error, "No folder can be made for temporary files (#{error.message}). Free some space there, or name another place in the " \
                   "environment variable TMPDIR."
    end

    # The command line; what the caller says comes last and so counts.
    def arguments(port, config, directives, directory)
      unless port == "auto" || (port.is_a?(Integer) && port.between?(1, 65_535))
        raise Error, "port is a number from 1 to 65535 or \"auto\"; this one is #{port.inspect}."
      end
      defaults = { "port" => port }
      defaults.update("bind" => ["127.0.0.1", "-::1"], "save" => "", "dir" => directory) unless config
      own = { "print-url" => true, "exit-with-parent" => true }
      line = config ? [File.expand_path(config)] : []
      defaults.merge(directives, own).each { |name, value| line.push("--#{name}", *words(value)) }
      line
    end

    # The value of a directive as the command line has it.
    def words(value)
      Array(value).map { |word| { true => "yes", false => "no" }.fetch(word, word).to_s }
    end

    # Ends what was begun and did not come to a server.
    def abandon(pid, directory)
      FileUtils.remove_entry(directory, true) if directory
      return unless pid && $?&.pid != pid

      Process.kill("KILL", pid)
      Process.wait(pid)
    end

    # The URL, a line of standard output. The server logs there too until it has read its directives.
    def ready(program, reading, pid, log, port, timeout)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + timeout
      logged = +""
      loop do
        unless reading.wait_readable([deadline - Process.clock_gettime(Process::CLOCK_MONOTONIC), 0].max)
          raise Error, "The server was not ready after #{timeout} s, and was ended. Its log:\n#{logged}#{text(log)}"
        end
        line = reading.gets&.scrub
        break unless line
        return line.chomp if line.match?(%r{\A(rediss?|unix)://})

        logged << line
      end
      Process.wait(pid)
      raise could_not_start(program, $?, logged + text(log), port)
    end

    def text(log)
      File.read(log, encoding: "UTF-8").scrub
    end

    # Whether the program is for another processor. Ruby then has a shell try to read it, so no error of exec tells.
    def foreign?(program)
      header = File.binread(program, 20)
      machine = { "x86_64" => 62, "aarch64" => 183 }[RUBY_PLATFORM[/\A[^-]+/]] # e_machine of ELF
      header.start_with?("\x7FELF".b) && header.unpack1("@18v") != machine
    rescue SystemCallError
      false # it may be executed, but not read
    end

    def could_not_start(program, status, log, port)
      return cannot_run(program, Errno::ENOEXEC.new) if foreign?(program)

      said = log.strip.lines.last(8).join
      if log.include?("Address already in use")
        return Error.new("Port #{port} is in use. Leave port out to get a free one, or end the program that has it. The server's log:\n#{said}")
      end
      if log.include?("bind: Permission denied")
        return Error.new("Port #{port} is not for this user: ports below 1024 need root. Leave port out to get a free one. The server's log:\n#{said}")
      end
      if status.termsig == Signal.list["ILL"]
        return Error.new("This processor lacks instructions the server is built with (x86-64-v2, of 2009).")
      end
      ending = status.signaled? ? "was ended by SIG#{Signal.signame(status.termsig)}" : "ended with status #{status.exitstatus}"
      Error.new("The server #{ending} before it was ready. Its log:\n#{said.empty? ? "(empty)" : said}")
    end
  end

  # A running server; Latchkey.start makes it. `url` is redis://127.0.0.1:PORT, with the password if `requirepass` was given.
  class Server
    attr_reader :url, :port, :pid

    def initialize(pid, directory, url)
      @pid, @directory, @url = pid, directory, url
      @port = URI.parse(url).port
      @owner = Process.pid
      RUNNING << self
    end

    # Those to be stopped when the process ends. By a finalizer, since minitest runs its tests in at_exit, after what was registered later.
    RUNNING = Queue.new
    AT_THE_END = Object.new
    ObjectSpace.define_finalizer(AT_THE_END, proc { RUNNING.pop.stop until RUNNING.empty? })

    # The URL of a server of its own within this one, made when its first client comes: databases, channels, configuration, clock.
    # The same name gives the same space; without one each call gives a new space.
    def space(name = SecureRandom.hex(16))
      Latchkey.space(url, name)
    end

    # Ends the server, and returns when it has ended. May be called again. In a process forked from the one that started the server it does
    # nothing.
    def stop
      return unless @directory && @owner == Process.pid

      begin
        Process.kill("TERM", @pid)
        give_up = Process.clock_gettime(Process::CLOCK_MONOTONIC) + STOP_TIMEOUT_S
        until Process.wait(@pid, Process::WNOHANG)
          Process.kill("KILL", @pid) if Process.clock_gettime(Process::CLOCK_MONOTONIC) > give_up
          sleep 0.005
        end
      rescue Errno::ESRCH, Errno::ECHILD
        nil # it has ended before
      end
      FileUtils.remove_entry(@directory, true) # which may be gone
      @directory = nil
    end
  end

  # One server for all tests of this process, started when it is first asked for: LATCHKEY_URL, or one that ends with the process.
  module Shared
    LOCK = Mutex.new

    def self.url
      LOCK.synchronize do
        # A process forked by a parallel runner gets a server of its own, which ends with it.
        @server = nil unless @owner == Process.pid
        @owner = Process.pid
        Latchkey.environment("LATCHKEY_URL") || (@server ||= Latchkey.start).url
      end
    end
  end
end
