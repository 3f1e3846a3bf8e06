#include "net/threaded_io.h"

#include <uv.h>

#include <algorithm>
#include <utility>

#include "net/connection.h"

namespace latchkey::net {

struct ThreadedIo::Hooks {
  uv_check_t check;
};

ThreadedIo::ThreadedIo(Loop& loop, int threads)
    : loop_(loop),
      connections_(IoThreads::kMaxThreads),
      slots_(new char[kMaxReads * (kSlotFront + kSlotSize)]),
      hooks_(std::make_unique<Hooks>()),
      sender_(
          loop, [this] { send_all(); }, BeforeWait::When::kAsked) {
  set_threads(threads);
  uv_check_init(loop.handle(), &hooks_->check);
  hooks_->check.data = this;
  uv_check_start(&hooks_->check,
                 [](uv_check_t* handle) { static_cast<ThreadedIo*>(handle->data)->receive_all(); });
}

void ThreadedIo::set_threads(int threads) {
  threads_.reset();
  if (threads > 1) threads_ = std::make_unique<IoThreads>(threads);
  figures_.resize(std::max(figures_.size(), static_cast<size_t>(threads)));
}

ThreadedIo::~ThreadedIo() {
  hooks_->check.data = hooks_.get();
  uv_close(reinterpret_cast<uv_handle_t*>(&hooks_.release()->check),
           [](uv_handle_t* handle) { delete static_cast<Hooks*>(handle->data); });
}

ThreadedIo::Figures ThreadedIo::total() const {
  Figures sum;
  for (size_t thread = 1; thread < figures_.size(); ++thread) {
    sum.reads += figures_[thread].reads;
    sum.writes += figures_[thread].writes;
  }
  return sum;
}

void ThreadedIo::reset_figures() {
  std::fill(figures_.begin(), figures_.end(), Figures{});
}

uint8_t ThreadedIo::assign() {
  const auto fewest =
      std::min_element(connections_.begin() + 1, connections_.begin() + std::max(threads(), 2));
  ++*fewest;
  return static_cast<uint8_t>(fewest - connections_.begin());
}

void ThreadedIo::readable(Connection& connection) {
  if (connection.readable_place_ != Connection::kNotListed) return;
  connection.readable_place_ = readable_.size();
  readable_.push_back(&connection);
}

void ThreadedIo::to_send(Connection& connection) {
  if (connection.send_place_ != Connection::kNotListed) return;
  connection.send_place_ = to_send_.size();
  to_send_.push_back(&connection);
  sender_.ask();
}

void ThreadedIo::forget(Connection& connection) {
  if (connection.readable_place_ != Connection::kNotListed)
    readable_[connection.readable_place_] = nullptr;
  if (connection.send_place_ != Connection::kNotListed) to_send_[connection.send_place_] = nullptr;
  connection.readable_place_ = connection.send_place_ = Connection::kNotListed;
}

void ThreadedIo::receive_all() {
  // Handlers may close connections of later batches; the list does not grow meanwhile.
  for (size_t next = 0; next < readable_.size();) {
    reads_.clear();
    for (; next < readable_.size() && reads_.size() < kMaxReads; ++next) {
      Connection* const connection = readable_[next];
      if (connection == nullptr) continue;
      connection->readable_place_ = Connection::kNotListed;
      if (!connection->reading_) continue;
      char* const slot = slots_.get() + reads_.size() * (kSlotFront + kSlotSize) + kSlotFront;
      reads_.push_back(connection->prepare_read(slot));
    }
    receive_batch();
  }
  readable_.clear();
}

void ThreadedIo::run(IoThreads::Job job) {
  if (threads_ != nullptr) return threads_->run(owners_, job, this);
  for (size_t item = 0; item < owners_.size(); ++item) job(this, item, 0);
}

void ThreadedIo::receive_batch() {
  owners_.clear();
  for (const Read& read : reads_)
    owners_.push_back(std::max<uint8_t>(thread_of(read.connection->io_thread_), 1));
  run([](void* context, size_t item, int thread) {
    Read& read = static_cast<ThreadedIo*>(context)->reads_[item];
    read.thread = thread;
    read.result = Connection::receive(read.descriptor, read.room, read.size);
  });
  // Input in the connections' own buffers counts before any handler may change these.
  for (const Read& read : reads_) {
    if (read.result > 0) ++figures_[static_cast<size_t>(read.thread)].reads;
    if (read.result > 0 && !read.in_slot) read.connection->extend_kept(read.result);
  }
  for (const Read& read : reads_) read.connection->finish_read(read);
}

void ThreadedIo::send_all() {
  // What callbacks have sent meanwhile comes with the next call, in the same turn.
  const std::vector<Connection*> list = std::exchange(to_send_, {});
  for (Connection* connection : list) {
    if (connection != nullptr) connection->send_place_ = Connection::kNotListed;
  }
  for (size_t next = 0; next < list.size();) {
    sends_.clear();
    for (; next < list.size() && sends_.size() < IoThreads::kMaxItems; ++next) {
      Connection* const connection = list[next];
      if (connection == nullptr || !connection->may_send()) continue;
      sends_.push_back({connection, connection->descriptor(), 0, 0, 0});
    }
    send_batch();
  }
}

void ThreadedIo::send_batch() {
  owners_.clear();
  for (const Send& send : sends_)
    owners_.push_back(std::max<uint8_t>(thread_of(send.connection->io_thread_), 1));
  run([](void* context, size_t item, int thread) {
    Send& send = static_cast<ThreadedIo*>(context)->sends_[item];
    send.thread = thread;
    send.result = send.connection->send_some(send.descriptor, &send.offered);
  });
  // All buffers are in order before any handler may change them.
  for (const Send& send : sends_) {
    if (send.result <= 0) continue;
    ++figures_[static_cast<size_t>(send.thread)].writes;
    send.connection->take_sent(static_cast<size_t>(send.result));
  }
  for (const Send& send : sends_) send.connection->finish_send(send);
}

}  // namespace latchkey::net
