#include "commands/server/client_tracking.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/client/client.h"
#include "server/client/tracking.h"
#include "server/command/command_context.h"
#include "server/server.h"

namespace latchkey::commands {

using namespace server;

namespace {

struct TrackingRequest {
  TrackingOptions options;
  std::vector<std::string_view> prefixes;
};

// False when an error has been sent.
bool read_redirect(CommandContext& ctx, std::string_view text, TrackingOptions* options) {
  int64_t id = 0;
  if (options->redirect != 0)
    return ctx.refuse("ERR A client can only redirect to a single other client");
  if (!ctx.read_int64(text, &id)) return false;
  if (id <= 0 || ctx.server.clients().find(static_cast<uint64_t>(id)) == nullptr)
    return ctx.refuse("ERR The client ID you want redirect to does not exist");
  options->redirect = static_cast<uint64_t>(id);
  return true;
}

// False when an error has been sent.
bool read_request(CommandContext& ctx, TrackingRequest* request) {
  constexpr size_t kFirstOption = 3;
  TrackingOptions& options = request->options;
  for (ArgReader words(ctx.args, kFirstOption); words.more();) {
    std::string_view value;
    if (words.word("REDIRECT", &value)) {
      if (!read_redirect(ctx, value, &options)) return false;
    } else if (words.word("BCAST")) {
      options.broadcast = true;
    } else if (words.word("OPTIN")) {
      options.opt_in = true;
    } else if (words.word("OPTOUT")) {
      options.opt_out = true;
    } else if (words.word("NOLOOP")) {
      options.no_loop = true;
    } else if (words.word("PREFIX", &value)) {
      request->prefixes.push_back(value);
    } else {
      ctx.syntax_error();
      return false;
    }
  }
  return true;
}

bool overlap(std::string_view one, std::string_view other) {
  return one.starts_with(other) || other.starts_with(one);
}

void reply_overlap(CommandContext& ctx, std::string_view prefix, const char* which,
                   std::string_view other) {
  std::string text = "ERR Prefix '";
  text.append(prefix).append("' overlaps with ").append(which).append(" prefix '").append(other);
  ctx.reply.error(text + "'. Prefixes for a single client must not overlap.");
}

// False, with an error sent, when two prefixes overlap, so that the client would be notified twice
// of one key.
bool check_prefixes(CommandContext& ctx, std::span<const std::string_view> prefixes) {
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (ctx.client.tracking != nullptr) {
      for (const std::string& existing : ctx.client.tracking->prefixes) {
        if (!overlap(prefixes[i], existing)) continue;
        reply_overlap(ctx, prefixes[i], "an existing", existing);
        return false;
      }
    }
    for (const std::string_view other : prefixes.subspan(i + 1)) {
      if (!overlap(prefixes[i], other)) continue;
      reply_overlap(ctx, prefixes[i], "another provided", other);
      return false;
    }
  }
  return true;
}

// The error that forbids the request in the client's present state (null: it is not tracking), or
// an empty text.
std::string_view refusal(const TrackingState* now, const TrackingRequest& request) {
  const TrackingOptions& wanted = request.options;
  if (!wanted.broadcast && !request.prefixes.empty())
    return "ERR PREFIX option requires BCAST mode to be enabled";
  if (now != nullptr && now->options.broadcast != wanted.broadcast) {
    return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  if (wanted.broadcast && (wanted.opt_in || wanted.opt_out))
    return "ERR OPTIN and OPTOUT are not compatible with BCAST";
  if (wanted.opt_in && wanted.opt_out)
    return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  if (now != nullptr &&
      ((wanted.opt_in && now->options.opt_out) || (wanted.opt_out && now->options.opt_in))) {
    return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  return {};
}

}  // namespace

void client_tracking(CommandContext& ctx) {
  TrackingRequest request;
  if (!read_request(ctx, &request)) return;
  Tracking& tracking = ctx.server.tracking();
  if (is_word(ctx.args[2], "OFF")) {
    tracking.stop(ctx.client);
    return ctx.reply.ok();
  }
  if (!is_word(ctx.args[2], "ON")) return ctx.syntax_error();
  const std::string_view error = refusal(ctx.client.tracking.get(), request);
  if (!error.empty()) return ctx.reply.error(error);
  if (!check_prefixes(ctx, request.prefixes)) return;
  tracking.start(ctx.client, request.options, request.prefixes);
  ctx.reply.ok();
}

void client_caching(CommandContext& ctx) {
  if (ctx.client.tracking == nullptr) {
    return ctx.reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  const TrackingOptions& options = ctx.client.tracking->options;
  if (is_word(ctx.args[2], "YES")) {
    if (!options.opt_in) {
      return ctx.reply.error(
          "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    }
  } else if (is_word(ctx.args[2], "NO")) {
    if (!options.opt_out) {
      return ctx.reply.error(
          "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    }
  } else {
    return ctx.syntax_error();
  }
  ctx.client.set(kClientCaching);
  ctx.reply.ok();
}

void client_getredir(CommandContext& ctx) {
  const TrackingState* state = ctx.client.tracking.get();
  ctx.reply.integer(state != nullptr ? static_cast<int64_t>(state->options.redirect) : -1);
}

void client_trackinginfo(CommandContext& ctx) {
  static const TrackingState kOff;
  const bool on = ctx.client.tracking != nullptr;
  const TrackingState& state = on ? *ctx.client.tracking : kOff;
  const TrackingOptions& options = state.options;
  const bool caching = ctx.client.has(kClientCaching);
  std::vector<std::string_view> flags = {on ? "on" : "off"};
  if (options.broadcast) flags.push_back("bcast");
  if (options.opt_in) flags.push_back("optin");
  if (options.opt_in && caching) flags.push_back("caching-yes");
  if (options.opt_out) flags.push_back("optout");
  if (options.opt_out && caching) flags.push_back("caching-no");
  if (options.no_loop) flags.push_back("noloop");
  if (state.redirect_broken) flags.push_back("broken_redirect");

  ctx.reply.map(3);
  ctx.reply.bulk("flags");
  ctx.reply.set(flags.size());
  for (const std::string_view flag : flags) ctx.reply.bulk(flag);
  ctx.reply.bulk("redirect");
  ctx.reply.integer(on ? static_cast<int64_t>(options.redirect) : -1);
  ctx.reply.bulk("prefixes");
  ctx.reply.array(state.prefixes.size());
  for (const std::string& prefix : state.prefixes) ctx.reply.bulk(prefix);
}

}  // namespace latchkey::commands
