require "redis"
require "securerandom"

RSpec.describe "A session" do
  let(:redis) { Redis.new(url: "redis://space-#{SecureRandom.uuid}:x@localhost:#{ENV.fetch("REDIS_PORT", "6379")}") }
  after { redis.close }

  it "ends after half an hour" do
    redis.set("session:1", "anna", ex: 1800)
    redis.call("CLOCK", "ADVANCE", "30m")
    expect(redis.get("session:1")).to be_nil
  end

  it "is counted once" do
    redis.call("CALLS", "START")
    redis.incr("sessions")
    expect(redis.call("CALLS", "COUNT", "COMMAND", "incr")).to eq 1
  end
end
