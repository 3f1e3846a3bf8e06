// The event loop: libuv's loop and the state that its connections share. Single-threaded; nothing
// here is thread-safe, except Waker::wake().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer_pool.h"
#include "base/cycle_clock.h"

struct uv_loop_s;

namespace latchkey::net {

class BeforeWait;
class Connection;
class ThreadedIo;

class Loop {
 public:
  // Maximum bytes of one read of a connection, unless the connection waits for a large argument.
  static constexpr size_t kReadSize = 64 * 1024;

  struct Counters {
    uint64_t bytes_read = 0;
    uint64_t bytes_written = 0;
    uint64_t reads = 0;
    uint64_t writes = 0;
    uint64_t cycles = 0;  // turns of the loop
    // Ticks of base::CycleClock from the first begin_work() of a turn to the turn's end.
    uint64_t busy_ticks = 0;
    uint64_t longest_turn_ticks = 0;
  };

  // Has the process ignore SIGPIPE.
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop(). Neither run() nor run_once() may be called by a callback of the loop: code
  // that must wait there is a task (server/tasks.h).
  void run();
  void stop();

  // Runs one turn without waiting for events.
  void run_once();

  // Whether run() or run_once() is at work, so that neither may be called.
  bool is_turning() const { return turning_; }

  // Until release_output(), flush() of any connection is only recorded: replies wait until what
  // they acknowledge is on its way to the disk. Output that the system is already sending
  // continues. Several servers on one loop may each hold: every call needs its own release.
  void hold_output() { ++output_holds_; }
  bool holds_output() const { return output_holds_ != 0; }
  // Ends one hold. The last release flushes the recorded connections, in their order.
  // REQUIRES: holds_output().
  void release_output();

  // Has so many threads do socket calls (net/threaded_io.h), until the loop ends or it is called
  // again. `threads` counts the caller's thread, and 1 is that one alone. Connections that are
  // there before the first other one do their calls at once. A process that goes to the background
  // must have done so, as fork() does not copy threads.
  void use_io_threads(int threads);
  // Null without I/O threads.
  ThreadedIo* threaded_io() { return threaded_io_.get(); }

  // Whether a Listener of this loop accepts connections to this IP address of the machine and TCP
  // port. A listener says where it listens: "0.0.0.0" and "::" are all addresses.
  bool listens_at(const std::string& ip, int port) const {
    const char* const all = ip.find(':') == ip.npos ? "0.0.0.0" : "::";
    return listening_.contains({port, ip}) || listening_.contains({port, all});
  }
  void listening_began(const std::string& ip, int port) { listening_.emplace(port, ip); }
  void listening_ended(const std::string& ip, int port) { listening_.extract({port, ip}); }

  uv_loop_s* handle() { return loop_.get(); }
  base::BufferPool& buffer_pool() { return buffer_pool_; }
  Counters& counters() { return counters_; }

  // Called by every callback that begins work in a turn: busy time counts from the first call.
  void begin_work() {
    if (turn_started_ == 0) turn_started_ = base::CycleClock::ticks();
  }

  // The shared read buffer of connections without kept input, in use from a read to the end of the
  // batch.
  char* read_buffer() { return read_buffer_.get(); }
  // The same for what connections with a layer receive from their sockets: kWireReadSize bytes,
  // which come out of a layer with kReadSize bytes at most. Allocated by the first call.
  static constexpr size_t kWireReadSize = kReadSize - 20 * 1024;
  char* wire_buffer();

 private:
  friend class BeforeWait;
  friend class Connection;
  struct Hooks;
  // Returns whether there is anything left to wait for.
  bool turn(bool until_stopped);
  void call_before_wait();
  void end_turn();

  uint64_t turn_started_ = 0;  // ticks; 0: begin_work() was not called in this turn
  base::BufferPool buffer_pool_;
  Counters counters_;
  std::unique_ptr<char[]> read_buffer_;
  std::unique_ptr<char[]> wire_buffer_;
  std::vector<BeforeWait*> before_wait_;  // null: gone, or called, since the last turn
  bool turning_ = false;
  int output_holds_ = 0;
  std::vector<Connection*> held_;                         // null: closed meanwhile
  std::multiset<std::pair<int, std::string>> listening_;  // ports and addresses
  std::unique_ptr<uv_loop_s> loop_;
  std::unique_ptr<Hooks> hooks_;
  std::unique_ptr<ThreadedIo> threaded_io_;
};

// Calls back before a wait for events, for as long as it lives: the place to send what was queued
// for other connections. Several are called in the order in which they were made, and behind them
// those that were asked for, in the order of asking. A callback may make others and destroy others,
// but not the one that it belongs to.
class BeforeWait {
 public:
  enum class When : uint8_t {
    kEachTurn,
    kAsked,  // once for any number of calls of ask(); costs nothing in other turns
  };

  BeforeWait(Loop& loop, std::function<void()> callback, When when = When::kEachTurn);
  ~BeforeWait();
  BeforeWait(const BeforeWait&) = delete;
  BeforeWait& operator=(const BeforeWait&) = delete;

  // Has the callback called before the next wait.
  void ask() {
    if (!listed_) list();
  }

 private:
  friend class Loop;
  void list();

  Loop& loop_;
  std::function<void()> callback_;
  When when_;
  bool listed_ = false;  // it is in Loop::before_wait_, for the next wait
};

// Calls back after a delay, once or repeatedly.
class Timer {
 public:
  Timer(Loop& loop, std::function<void()> callback);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  // Milliseconds; a repeat of 0 means once. Restarts a running timer. A delay of 0 ends in the next
  // turn, after all ready connections of this turn have been served.
  void start(uint64_t delay_ms, uint64_t repeat_ms = 0);
  void stop();

 private:
  struct Handle;
  Handle* handle_;
};

// Calls back on the loop, soon after wake(), which another thread or a signal handler may call.
// Several calls of wake() may cause a single callback.
class Waker {
 public:
  Waker(Loop& loop, std::function<void()> callback);
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  // May be called from any thread and from signal handlers.
  void wake();

 private:
  struct Handle;
  Handle* handle_;
};

// Calls back, on the loop, when the process receives a signal.
class SignalWatcher {
 public:
  SignalWatcher(Loop& loop, int signal_number, std::function<void()> callback);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  struct Handle;
  Handle* handle_;
};

}  // namespace latchkey::net
