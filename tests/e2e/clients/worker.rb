# The clients of worker.py with ruby-redis: ruby worker.rb CONTROL_SOCKET PORT COUNT

require 'json'
require 'redis'
require 'socket'

class Verbs
  def initialize(port)
    @redis = Redis.new(host: '127.0.0.1', port: port, reconnect_attempts: 0)
  end

  def get(key)
    @redis.get(key)
  end

  def setnx(key, value)
    flag(@redis.setnx(key, value))
  end

  def getset(key, value)
    @redis.getset(key, value)
  end

  def multi_setnx_expire(key, value, ttl)
    @redis.multi { |transaction| transaction.setnx(key, value); transaction.expire(key, ttl) }.map { |reply| flag(reply) }
  end

  def eval(script, keys, arguments)
    @redis.eval(script, keys: keys, argv: arguments)
  end

  def set_nx_px(key, value, ttl_ms)
    flag(@redis.set(key, value, nx: true, px: ttl_ms))
  end

  def set_nx_ex(key, value, ttl)
    flag(@redis.set(key, value, nx: true, ex: ttl))
  end

  def set(key, value)
    flag(@redis.set(key, value) == 'OK')
  end

  def raw(*words)
    @redis.call(*words)
  end

  private

  def flag(reply)
    reply ? 1 : 0
  end
end

def serve(control, verbs)
  stream = UNIXSocket.new(control)
  while (line = stream.gets)
    verb, *arguments = JSON.parse(line)
    begin
      answer = { ok: verbs.public_send(verb, *arguments) }
    rescue Redis::BaseError => error
      answer = { error: error.message }
    end
    stream.puts(JSON.generate(answer))
  end
end

# As many processes as the command line says, each with verbs of its own.
def serve_all(kind)
  control, port, count = ARGV
  Integer(count).times { fork { serve(control, kind.new(Integer(port))) } }
  Process.waitall
end

serve_all(Verbs) if $PROGRAM_NAME == __FILE__
