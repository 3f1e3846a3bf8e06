# The clients of locks.py with ruby-redis: SET NX PX with a random token, compare and delete: ruby locks.rb CONTROL_SOCKET PORT COUNT

require 'securerandom'
require_relative 'worker'

class Locks
  PROLONG = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end"
  RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end"

  def initialize(port)
    @redis = Redis.new(host: '127.0.0.1', port: port, reconnect_attempts: 0)
    @tokens = {}
  end

  def connections
    [@redis.call('CLIENT', 'ID')]
  end

  def acquire(name, ttl_ms)
    token = SecureRandom.hex(16)
    return 0 unless @redis.set(name, token, nx: true, px: ttl_ms)

    @tokens[name] = token
    1
  end

  def prolong(name, ttl_ms)
    @redis.eval(PROLONG, keys: [name], argv: [@tokens[name], ttl_ms])
  end

  def release(name)
    @redis.eval(RELEASE, keys: [name], argv: [@tokens[name]])
  end

  def work(name, ttl_ms, rounds)
    rounds.times do
      rest until acquire(name, ttl_ms) == 1
      @redis.set("#{name}:count", @redis.get("#{name}:count").to_i + 1)
      release(name)
      rest
    end
    rounds
  end

  private

  def rest
    sleep(rand(0.002..0.01))
  end
end

serve_all(Locks)
