# The suite of shared_server_suite.py for minitest in threads, each test in a space of its own: ruby shared_server_suite.rb
# SHARED_WORKERS is the number of threads; the first tests of all of them begin together.

ENV["N"] = ENV.fetch("SHARED_WORKERS")
require "minitest/autorun"
require "redis"

class SharedServerTest < Minitest::Test
  parallelize_me!

  ROUNDS = 100
  ARRIVED = Queue.new

  def self.url(name)
    user = ENV.fetch("SHARED_SPACES") == "yes" ? "space-#{name}:x@" : ""
    "redis://#{user}localhost:#{ENV.fetch("SHARED_PORT")}"
  end

  def setup
    ARRIVED << name
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    while ARRIVED.size < Integer(ENV.fetch("SHARED_WORKERS"))
      raise "the other threads did not come" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.001
    end
    @redis = Redis.new(url: self.class.url(name))
    @redis.flushall
  end

  def teardown
    @redis.close
  end

  8.times do |part|
    define_method("test_all_keys_are_mine_#{part}") do
      ROUNDS.times do |round|
        @redis.flushall
        @redis.mset("a", round, "b", round, "part:#{part}", round)
        assert_equal 3, @redis.dbsize
      end
    end

    define_method("test_the_configuration_is_mine_#{part}") do
      ROUNDS.times do |round|
        threshold = (part * ROUNDS + round).to_s
        @redis.config(:set, "latency-monitor-threshold", threshold)
        assert_equal({ "latency-monitor-threshold" => threshold }, @redis.config(:get, "latency-monitor-threshold"))
      end
    end

    define_method("test_all_messages_are_for_me_#{part}") do
      heard = []
      said = Array.new(ROUNDS) { |round| "#{part}:#{round}" }
      listener = Redis.new(url: self.class.url(name))
      listener.subscribe("news") do |on|
        on.subscribe { said.each { |message| assert_equal 1, @redis.publish("news", message) } }
        on.message do |_, message|
          heard << message
          listener.unsubscribe if heard.size == ROUNDS
        end
      end
      listener.close
      assert_equal said, heard
    end
  end
end
