# Semaphores made of a list of tokens, as Ruby programs build them: ruby semaphore.rb CONTROL_SOCKET PORT COUNT
#
#   NAME:exists     set by the one client that makes the tokens
#   NAME:available  a list of the tokens that nobody holds: BLPOP takes one, LPUSH gives it back
#   NAME:grabbed    a hash: the tokens that are held, and since when
#
# The time is whatever the caller says it is.

require_relative 'worker'

class Semaphores
  def initialize(port)
    @redis = Redis.new(host: '127.0.0.1', port: port, reconnect_attempts: 0)
  end

  # 1 for the one that has made the tokens.
  def create(name, size)
    return 0 if @redis.exists?("#{name}:exists")
    return 0 if @redis.getset("#{name}:exists", '1')

    @redis.multi do |transaction|
      transaction.del("#{name}:grabbed", "#{name}:available")
      size.times { |token| transaction.rpush("#{name}:available", token) }
    end
    1
  end

  # A token, or null when none was given back in time.
  def lock(name, size, now, timeout)
    create(name, size)
    _, token = @redis.blpop("#{name}:available", timeout: timeout)
    @redis.hset("#{name}:grabbed", token, now) if token
    token
  end

  def unlock(name, token)
    @redis.multi do |transaction|
      transaction.hdel("#{name}:grabbed", token)
      transaction.lpush("#{name}:available", token)
    end
    nil
  end

  # Gives back what has been held since before `limit`; one client at a time. How many there were.
  def release_stale(name, limit)
    return 0 unless @redis.setnx("#{name}:releasing", '1')

    stale = @redis.hgetall("#{name}:grabbed").select { |_, since| since.to_f < limit }
    stale.each_key { |token| unlock(name, token) }
    @redis.del("#{name}:releasing")
    stale.size
  end

  # Takes a token and gives it back, so many times; the most clients that it has met inside, itself included.
  def work(name, size, rounds)
    met = rounds.times.map do
      token = lock(name, size, 0, 0)
      inside = @redis.incr("#{name}:inside")
      @redis.decr("#{name}:inside")
      unlock(name, token)
      inside
    end
    met.max
  end
end

serve_all(Semaphores)
