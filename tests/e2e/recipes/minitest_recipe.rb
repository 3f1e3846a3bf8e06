require "minitest/autorun"
require "redis"
require "securerandom"

class SessionTest < Minitest::Test
  parallelize_me! # each test has a server of its own

  def setup
    port = ENV.fetch("REDIS_PORT", "6379")
    @redis = Redis.new(url: "redis://space-#{SecureRandom.uuid}:x@localhost:#{port}")
  end

  def teardown
    @redis.close
  end

  def test_a_session_ends_after_half_an_hour
    @redis.set("session:1", "anna", ex: 1800)
    @redis.call("CLOCK", "ADVANCE", "30m")
    assert_nil @redis.get("session:1")
  end

  def test_flushall_hurts_nobody
    @redis.flushall
    assert_equal 0, @redis.dbsize
  end
end
