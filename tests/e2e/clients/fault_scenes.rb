# Code under test, with ruby-redis: fault_scenes.rb PORT SCENE prints what became of it.

require "redis"

port, scene = Integer(ARGV[0]), ARGV[1]
client = Redis.new(port: port, reconnect_attempts: 1)

case scene
when "counts_once_loaded"
  tries = 0
  begin
    puts client.incr("visits")
  rescue Redis::CommandError => error
    raise unless error.message.start_with?("LOADING") && (tries += 1) <= 5
    retry
  end
when "counts_again_after_a_lost_reply"
  puts client.incr("visits")
end
