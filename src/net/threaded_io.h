// The part of a loop that has I/O threads do socket calls of connections (io-threads).
//
//     poll:   connections that are readable are listed, and not read
//     check:  what they have received is read by all threads, then given to their handlers
//     before the next wait:  what was to be sent is sent by all threads
//
// Threads call recv() and sendmsg(), and do nothing else: parsing, execution and every callback
// happen on the loop's thread, in the order in which connections became readable. While threads
// work, the loop's thread does the same work or waits.
//
// A connection takes part if it has called Connection::use_io_thread(); all others, those with a
// TransportLayer among them, do their calls at once, on the loop's thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/io_threads.h"
#include "net/loop.h"

namespace latchkey::net {

class Connection;

class ThreadedIo {
 public:
  // Kept input up to this size is put in front of what is read into a slot.
  static constexpr size_t kSlotFront = 4 * 1024;
  // The most that is read into a slot.
  static constexpr size_t kSlotSize = Loop::kReadSize;

  // `threads` as in IoThreads.
  ThreadedIo(Loop& loop, int threads);
  // Uses so many threads from the next batch on; 1: only the loop's. Connections of a thread that
  // is gone get another one. Not to be called by a job.
  void set_threads(int threads);
  ~ThreadedIo();
  ThreadedIo(const ThreadedIo&) = delete;
  ThreadedIo& operator=(const ThreadedIo&) = delete;

  // Including the loop's.
  int threads() const { return threads_ != nullptr ? threads_->size() : 1; }
  int missing_threads() const { return threads_ != nullptr ? threads_->missing() : 0; }
  // The thread that a connection's place (Connection::io_thread) belongs to.
  uint8_t thread_of(uint8_t place) const {
    return static_cast<uint8_t>(
        place == 0 || threads_ == nullptr ? 0 : 1 + (place - 1) % (threads() - 1));
  }

  // What thread `thread` has done.
  struct Figures {
    uint64_t reads = 0;
    uint64_t writes = 0;
  };
  const Figures& figures(int thread) const { return figures_[static_cast<size_t>(thread)]; }
  // The same of all but the loop's thread.
  Figures total() const;
  // Sets all figures to 0.
  void reset_figures();

 private:
  friend class Connection;
  friend class Loop;
  static constexpr size_t kMaxReads = 64;  // of one batch, each with a slot

  // A call of recv(), and its result: bytes, 0 at the end of the stream, or a negated errno.
  struct Read {
    Connection* connection;
    int descriptor;
    char* room;
    size_t size;
    bool in_slot;  // otherwise `room` is the connection's own buffer
    ssize_t result;
    int thread;
  };
  // A call of sendmsg(), and its result.
  struct Send {
    Connection* connection;
    int descriptor;
    size_t offered;
    ssize_t result;
    int thread;
  };
  struct Hooks;

  // The place with the fewest connections; it has one more from here on.
  uint8_t assign();
  void unassign(uint8_t thread) { --connections_[thread]; }
  // To be read at the end of the poll phase.
  void readable(Connection& connection);
  // To be sent before the loop waits.
  void to_send(Connection& connection);
  // Drops a connection that closes from both lists.
  void forget(Connection& connection);
  void receive_all();
  void receive_batch();
  void send_all();
  void send_batch();
  // Runs the job for the items of owners_.
  void run(IoThreads::Job job);

  Loop& loop_;
  std::unique_ptr<IoThreads> threads_;  // null: the loop's thread does everything
  std::vector<Figures> figures_;        // also of threads that are gone
  std::vector<size_t> connections_;     // of each place, one for each thread there may be
  std::vector<Connection*> readable_;   // null: closed meanwhile
  std::vector<Connection*> to_send_;    // the same
  std::vector<Read> reads_;
  std::vector<Send> sends_;
  std::vector<uint8_t> owners_;
  std::unique_ptr<char[]> slots_;
  std::unique_ptr<Hooks> hooks_;
  BeforeWait sender_;
};

}  // namespace latchkey::net
