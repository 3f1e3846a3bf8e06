require "latchkey"

module Latchkey
  # For minitest: `include Latchkey::Minitest`. `redis_url` is the URL of a space of each test's own, also in tests that run in parallel
  # threads or forked processes.
  module Minitest
    def redis_url
      @latchkey_url ||= Latchkey.space(Shared.url)
    end
  end
end
