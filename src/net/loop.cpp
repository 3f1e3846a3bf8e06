#include "net/loop.h"

#include <uv.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/assert.h"
#include "net/connection.h"
#include "net/delete_when_closed.h"
#include "net/threaded_io.h"

namespace latchkey::net {

struct Loop::Hooks {
  uv_prepare_t prepare;
};

Loop::Loop()
    : read_buffer_(new char[kReadSize]),
      loop_(std::make_unique<uv_loop_t>()),
      hooks_(std::make_unique<Hooks>()) {
  // libuv writes to a connection that its peer has closed without MSG_NOSIGNAL.
  std::signal(SIGPIPE, SIG_IGN);
  LK_ASSERT(uv_loop_init(loop_.get()) == 0);
  loop_->data = this;
  uv_prepare_init(loop_.get(), &hooks_->prepare);
  hooks_->prepare.data = this;
  uv_prepare_start(&hooks_->prepare, [](uv_prepare_t* handle) {
    auto* loop = static_cast<Loop*>(handle->data);
    loop->call_before_wait();
    loop->end_turn();
  });
}

Loop::~Loop() {
  threaded_io_.reset();
  uv_close(reinterpret_cast<uv_handle_t*>(&hooks_->prepare), nullptr);
  // Lets the close callbacks run.
  while (turn(/*until_stopped=*/false)) {
  }
  uv_loop_close(loop_.get());
}

bool Loop::turn(bool until_stopped) {
  // libuv forbids entering its loop from its own callbacks.
  LK_ASSERT(!turning_);
  turning_ = true;
  const int left = uv_run(loop_.get(), until_stopped ? UV_RUN_DEFAULT : UV_RUN_NOWAIT);
  turning_ = false;
  return left != 0;
}

char* Loop::wire_buffer() {
  if (wire_buffer_ == nullptr) wire_buffer_.reset(new char[kWireReadSize]);
  return wire_buffer_.get();
}

void Loop::run() {
  turn(/*until_stopped=*/true);
  // What was to be sent in the turn that stop() ended.
  if (threaded_io_ != nullptr) threaded_io_->send_all();
}

void Loop::use_io_threads(int threads) {
  if (threaded_io_ != nullptr) return threaded_io_->set_threads(threads);
  if (threads > 1) threaded_io_ = std::make_unique<ThreadedIo>(*this, threads);
}

void Loop::run_once() {
  turn(/*until_stopped=*/false);
}

void Loop::stop() {
  uv_stop(loop_.get());
}

void Loop::call_before_wait() {
  // One that is made, or asked for, by a callback is called in this turn, too.
  for (size_t i = 0; i < before_wait_.size(); ++i) {
    BeforeWait* const each = before_wait_[i];
    if (each == nullptr) continue;
    if (each->when_ == BeforeWait::When::kAsked) {
      each->listed_ = false;
      before_wait_[i] = nullptr;
    }
    each->callback_();
  }
  std::erase(before_wait_, nullptr);
}

void Loop::end_turn() {
  ++counters_.cycles;
  if (turn_started_ == 0) return;
  const uint64_t ticks = base::CycleClock::ticks() - turn_started_;
  turn_started_ = 0;
  counters_.busy_ticks += ticks;
  counters_.longest_turn_ticks = std::max(counters_.longest_turn_ticks, ticks);
}

void Loop::release_output() {
  LK_ASSERT(output_holds_ > 0);
  if (--output_holds_ != 0) return;
  // By index, because flushing may close connections; it adds none.
  for (size_t i = 0; i < held_.size(); ++i) {
    if (held_[i] != nullptr) held_[i]->flush_held();
  }
  held_.clear();
}

BeforeWait::BeforeWait(Loop& loop, std::function<void()> callback, When when)
    : loop_(loop), callback_(std::move(callback)), when_(when) {
  if (when == When::kEachTurn) list();
}

void BeforeWait::list() {
  loop_.before_wait_.push_back(this);
  listed_ = true;
}

BeforeWait::~BeforeWait() {
  if (!listed_) return;
  // The loop may be going through them.
  std::replace(loop_.before_wait_.begin(), loop_.before_wait_.end(), this,
               static_cast<BeforeWait*>(nullptr));
}

struct Timer::Handle : HandleOwner {
  Handle(Loop& in, std::function<void()> call_back) : loop(in), callback(std::move(call_back)) {}

  Loop& loop;
  std::function<void()> callback;
  uv_timer_t timer{};
  // For delays of 0: libuv would call a timer that restarts itself again within the same turn, and
  // serve nothing else meanwhile.
  uv_idle_t soon{};
  int open_handles = 2;

  void call() {
    loop.begin_work();
    callback();
  }
  template <typename UvHandle>
  void close(UvHandle* handle) {
    billed_at_close = base::HeapAccount::billed();
    uv_close(reinterpret_cast<uv_handle_t*>(handle), [](uv_handle_t* closed) {
      auto* self = static_cast<Handle*>(closed->data);
      if (--self->open_handles == 0) delete_closed(self);
    });
  }
};

Timer::Timer(Loop& loop, std::function<void()> callback)
    : handle_(new Handle(loop, std::move(callback))) {
  uv_timer_init(loop.handle(), &handle_->timer);
  uv_idle_init(loop.handle(), &handle_->soon);
  handle_->timer.data = handle_->soon.data = handle_;
}

Timer::~Timer() {
  stop();
  Handle* handle = handle_;
  handle->close(&handle->timer);
  handle->close(&handle->soon);
}

void Timer::start(uint64_t delay_ms, uint64_t repeat_ms) {
  stop();
  if (delay_ms == 0 && repeat_ms == 0) {
    uv_idle_start(&handle_->soon, [](uv_idle_t* soon) {
      uv_idle_stop(soon);
      static_cast<Handle*>(soon->data)->call();
    });
    return;
  }
  // Delays count from the loop's cached time, which is that of the turn's start.
  uv_update_time(handle_->timer.loop);
  uv_timer_start(
      &handle_->timer, [](uv_timer_t* timer) { static_cast<Handle*>(timer->data)->call(); },
      delay_ms, repeat_ms);
}

void Timer::stop() {
  uv_timer_stop(&handle_->timer);
  uv_idle_stop(&handle_->soon);
}

struct Waker::Handle : HandleOwner {
  Handle(Loop& in, std::function<void()> call_back) : loop(in), callback(std::move(call_back)) {}

  Loop& loop;
  std::function<void()> callback;
  uv_async_t async{};
};

Waker::Waker(Loop& loop, std::function<void()> callback)
    : handle_(new Handle(loop, std::move(callback))) {
  uv_async_init(loop.handle(), &handle_->async, [](uv_async_t* async) {
    auto* handle = static_cast<Handle*>(async->data);
    handle->loop.begin_work();
    handle->callback();
  });
  handle_->async.data = handle_;
}

Waker::~Waker() {
  delete_when_closed(handle_, &handle_->async);
}

void Waker::wake() {
  uv_async_send(&handle_->async);
}

struct SignalWatcher::Handle : HandleOwner {
  Handle(Loop& its_loop, std::function<void()> call_back)
      : loop(its_loop), callback(std::move(call_back)) {}

  Loop& loop;
  uv_signal_t signal{};
  std::function<void()> callback;
};

SignalWatcher::SignalWatcher(Loop& loop, int signal_number, std::function<void()> callback)
    : handle_(new Handle(loop, std::move(callback))) {
  uv_signal_init(loop.handle(), &handle_->signal);
  handle_->signal.data = handle_;
  uv_signal_start(
      &handle_->signal,
      [](uv_signal_t* signal, int) {
        auto* handle = static_cast<Handle*>(signal->data);
        handle->loop.begin_work();
        handle->callback();
      },
      signal_number);
}

SignalWatcher::~SignalWatcher() {
  delete_when_closed(handle_, &handle_->signal);
}

}  // namespace latchkey::net
