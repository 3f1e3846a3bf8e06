require "latchkey/rspec"
require "redis"

RSpec.describe "A session" do
  let(:redis) { Redis.new(url: redis_url) }

  it "ends after half an hour" do
    redis.set("session:1", "anna", ex: 1800)
    redis.call("CLOCK", "ADVANCE", "30m")
    expect(redis.get("session:1")).to be_nil
  end

  2.times do |number|
    it "begins in an empty server (#{number})" do
      expect(redis.dbsize).to eq 0
      redis.set("left", "behind")
    end
  end
end
