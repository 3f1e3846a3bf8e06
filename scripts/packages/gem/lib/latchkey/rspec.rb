require "latchkey"
require "rspec/core"

# For RSpec: `require "latchkey/rspec"`. `redis_url` is the URL of a space of each example's own; it costs nothing where it is not used.
RSpec.shared_context "with Latchkey" do
  let(:redis_url) { Latchkey.space(Latchkey::Shared.url) }
end

RSpec.configure { |config| config.include_context "with Latchkey" }
