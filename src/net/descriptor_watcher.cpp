#include "net/descriptor_watcher.h"

#include <uv.h>

#include <utility>

#include "base/assert.h"

namespace latchkey::net {

struct DescriptorWatcher::Handle {
  Loop& loop;
  std::function<void()> on_readable;
  uv_poll_t poll{};
};

DescriptorWatcher::DescriptorWatcher(Loop& loop, int descriptor, std::function<void()> on_readable)
    : handle_(new Handle{loop, std::move(on_readable)}) {
  LK_ASSERT(uv_poll_init(loop.handle(), &handle_->poll, descriptor) == 0);
  handle_->poll.data = handle_;
}

DescriptorWatcher::~DescriptorWatcher() {
  uv_poll_stop(&handle_->poll);
  uv_close(reinterpret_cast<uv_handle_t*>(&handle_->poll),
           [](uv_handle_t* handle) { delete static_cast<Handle*>(handle->data); });
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
