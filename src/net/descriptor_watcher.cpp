#include "net/descriptor_watcher.h"

#include <uv.h>

#include <utility>

#include "base/assert.h"
#include "net/delete_when_closed.h"

namespace latchkey::net {

struct DescriptorWatcher::Handle : HandleOwner {
  Handle(Loop& in, std::function<void()> call_back) : loop(in), on_readable(std::move(call_back)) {}

  Loop& loop;
  std::function<void()> on_readable;
  uv_poll_t poll{};
};

DescriptorWatcher::DescriptorWatcher(Loop& loop, int descriptor, std::function<void()> on_readable)
    : handle_(new Handle(loop, std::move(on_readable))) {
  LK_ASSERT(uv_poll_init(loop.handle(), &handle_->poll, descriptor) == 0);
  handle_->poll.data = handle_;
}

DescriptorWatcher::~DescriptorWatcher() {
  uv_poll_stop(&handle_->poll);
  delete_when_closed(handle_, &handle_->poll);
}

void DescriptorWatcher::start() {
  uv_poll_start(&handle_->poll, UV_READABLE, [](uv_poll_t* poll, int, int) {
    auto* handle = static_cast<Handle*>(poll->data);
    handle->loop.begin_work();
    handle->on_readable();
  });
}

void DescriptorWatcher::stop() {
  uv_poll_stop(&handle_->poll);
}

}  // namespace latchkey::net
