// child.h: the runner process as the tests see it: start, ask, wait with a limit, bury, start
// again.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "../runner/protocol.h"
#include "buffers.h"

namespace moe::judge {

struct Answer {
  enum class Kind { kReplied, kDied, kTimedOut, kProtocol } kind = Kind::kReplied;
  protocol::Reply reply = {};
  Bytes after;           // images after the call, when replied
  std::string death;     // "signal 11 (Segmentation fault)" or "status 0", when died
  int exit_status = -1;  // when it exited by itself
  std::string report;    // the emulator's last words, when died or timed out
};

// A text field of a reply, which may fill its array.
template <size_t SIZE>
std::string text_in(const char (&field)[SIZE]) {
  return {field, strnlen(field, SIZE)};
}

class Child {
 public:
  // `stop_patience_ms`: how long an idle child may take to end before it is killed.
  explicit Child(std::string runner_path, int stop_patience_ms = 200)
      : path_(std::move(runner_path)), stop_patience_ms_(stop_patience_ms) {}
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends one request and waits for its reply for at most `limit_ms`. Starts the child where there
  // is none. After anything but a clean reply the child is gone. Replies of kTime come with
  // request.result_file_bytes of samples instead of images.
  Answer ask(protocol::Request request, const Images* images, const Images* replay, int limit_ms);
  // Ends the child; the next request starts a new one.
  void stop();
  // What the child printed since the last call of this; at most 64 KiB in all are kept.
  std::string take_output();
  bool output_truncated() const { return truncated_; }

 private:
  bool start();
  void bury(Answer& answer);
  void drain();
  bool await_reply(Answer& answer, int limit_ms);

  std::string path_;
  int stop_patience_ms_;
  pid_t pid_ = -1;
  int socket_ = -1;
  int output_ = -1;
  int report_ = -1;
  uint32_t sequence_ = 0;
  std::string text_;
  size_t kept_ = 0;
  bool truncated_ = false;
};

}  // namespace moe::judge
