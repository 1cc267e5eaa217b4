#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace moe::judge {
namespace {

constexpr size_t kKeptOutput = 64 * 1024;
constexpr rlim_t kFileLimit = 16u << 20;

// The child gets a small environment: nothing that steers the test program, no preloaded libraries.
std::vector<std::string> child_environment() {
  constexpr std::string_view kAllowed[] = {
      "PATH=",   "HOME=",     "TMPDIR=",       "LANG=",          "CUDA_",
      "NVIDIA_", "EMULATOR_", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LD_LIBRARY_PATH="};
  std::vector<std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    for (const std::string_view prefix : kAllowed) {
      if (text.substr(0, prefix.size()) == prefix) kept.emplace_back(text);
    }
  }
  return kept;
}

// Runs in the new process, between fork and exec. What keeps it from running goes to `failure`.
[[noreturn]] void become_runner(
    const char* path, char** environment, int socket, int report, int out, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit no_core = {0, 0};
  const rlimit files = {kFileLimit, kFileLimit};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_FSIZE, &files);
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  // They may stand in each other's place: lift all first.
  const int lifted_socket = fcntl(socket, F_DUPFD, 10);
  const int lifted_report = fcntl(report, F_DUPFD, 10);
  const int lifted_failure = fcntl(failure, F_DUPFD, 10);
  constexpr int kFailureFd = protocol::kReportFd + 1;  // closed when the runner begins
  dup2(lifted_socket, protocol::kSocketFd);
  dup2(lifted_report, protocol::kReportFd);
  dup3(lifted_failure, kFailureFd, O_CLOEXEC);
  close_range(kFailureFd + 1, ~0U, 0);
  char* const arguments[] = {const_cast<char*>(path), nullptr};
  execve(path, arguments, environment);
  const int reason = errno;
  (void)!write(kFailureFd, &reason, sizeof reason);
  _exit(127);
}

void write_all(int fd, const unsigned char* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t written = write(fd, data, bytes);
    if (written <= 0) std::abort();
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

// The images as a file that nobody can change any more.
int sealed_file(const Images& images, const Images* replay) {
  const int fd = memfd_create("images", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) std::abort();
  write_all(fd, images.bytes.data(), images.bytes.size());
  if (replay != nullptr) write_all(fd, replay->bytes.data(), replay->bytes.size());
  fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return fd;
}

// A file of exact size for what comes back, of no use before the child has written it.
int result_file(size_t bytes) {
  const int fd = memfd_create("results", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) std::abort();
  fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
  return fd;
}

bool send_request(int socket, const protocol::Request& request, const int (&fds)[2]) {
  iovec part = {const_cast<protocol::Request*>(&request), sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fds[0] >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    std::memcpy(CMSG_DATA(header), fds, sizeof fds);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof request);
}

std::string read_report(int fd) {
  std::string text(protocol::kReportBytes, '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

}  // namespace

Child::~Child() {
  stop();
}

bool Child::start() {
  int sockets[2];
  int pipes[2];
  int failures[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) return false;
  if (pipe2(pipes, O_CLOEXEC) != 0 || pipe2(failures, O_CLOEXEC) != 0) return false;
  report_ = memfd_create("report", MFD_CLOEXEC);
  fcntl(pipes[0], F_SETFL, O_NONBLOCK);
  std::vector<std::string> environment = child_environment();
  std::vector<char*> pointers;
  for (std::string& entry : environment) pointers.push_back(entry.data());
  pointers.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    become_runner(path_.c_str(), pointers.data(), sockets[1], report_, pipes[1], failures[1]);
  }
  close(sockets[1]);
  close(pipes[1]);
  close(failures[1]);
  socket_ = sockets[0];
  output_ = pipes[0];
  // A runner that cannot be run is no fault of the code in it.
  int reason = 0;
  ssize_t got = 0;
  do {
    got = read(failures[0], &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  close(failures[0]);
  const bool failed = got == sizeof reason;
  if (failed) std::fprintf(stderr, "cannot run %s: %s\n", path_.c_str(), std::strerror(reason));
  return pid_ > 0 && !failed;
}

// A child that only waits for requests ends by itself when its socket closes (a memory checker
// around it then writes its summary); anything else is killed, with all that it started.
void Child::stop() {
  if (pid_ < 0) return;
  shutdown(socket_, SHUT_RDWR);
  bool reaped = false;
  for (int i = 0; i < stop_patience_ms_ && !reaped; ++i) {
    reaped = waitpid(pid_, nullptr, WNOHANG) != 0;
    if (!reaped) usleep(1'000);
  }
  kill(-pid_, SIGKILL);
  if (!reaped) waitpid(pid_, nullptr, 0);
  drain();
  close(socket_);
  close(output_);
  close(report_);
  pid_ = socket_ = output_ = report_ = -1;
}

void Child::drain() {
  char buffer[4096];
  ssize_t got = 0;
  // A bounded number of times: a child may print faster than this reads, and for ever.
  for (int reads = 0; reads < 256 && (got = read(output_, buffer, sizeof buffer)) > 0; ++reads) {
    const size_t room = kKeptOutput - kept_;
    const size_t take = static_cast<size_t>(got) < room ? static_cast<size_t>(got) : room;
    text_.append(buffer, take);
    kept_ += take;
    if (take < static_cast<size_t>(got)) truncated_ = true;
  }
}

std::string Child::take_output() {
  if (pid_ > 0) drain();
  std::string text;
  text.swap(text_);
  return text;
}

// The child closed its socket: it is ending or has ended.
void Child::bury(Answer& answer) {
  answer.kind = Answer::Kind::kDied;
  int status = 0;
  bool reaped = false;
  for (int i = 0; i < 200 && !reaped; ++i) {  // crash reports take a moment
    reaped = waitpid(pid_, &status, WNOHANG) == pid_;
    if (!reaped) usleep(10'000);
  }
  if (!reaped) {
    kill(-pid_, SIGKILL);
    waitpid(pid_, &status, 0);
  }
  // A wall around the runner (bubblewrap) ends with 128 + signal, as shells do.
  const int of_wall = WIFEXITED(status) ? WEXITSTATUS(status) - 128 : 0;
  if (WIFSIGNALED(status) || (of_wall > 0 && of_wall < NSIG)) {
    answer.death = std::string(strsignal(WIFSIGNALED(status) ? WTERMSIG(status) : of_wall));
  } else {
    answer.exit_status = WEXITSTATUS(status);
    answer.death = "status " + std::to_string(answer.exit_status);
  }
  answer.report = read_report(report_);
  stop();
}

// False when the child closed the socket or the limit passed (then answer.kind says kTimedOut).
bool Child::await_reply(Answer& answer, int limit_ms) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(limit_ms);
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      answer.kind = Answer::Kind::kTimedOut;
      return false;
    }
    pollfd waits[2] = {{socket_, POLLIN, 0}, {output_, POLLIN, 0}};
    if (poll(waits, 2, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if ((waits[1].revents & POLLIN) != 0) drain();
    if ((waits[0].revents & POLLIN) != 0) {
      const ssize_t got = recv(socket_, &answer.reply, sizeof answer.reply, 0);
      // Reset, not closed, where the child died without having read the request.
      if (got == 0 || (got < 0 && errno == ECONNRESET)) return false;
      if (got != static_cast<ssize_t>(sizeof answer.reply) ||
          answer.reply.magic != protocol::kMagic || answer.reply.sequence != sequence_) {
        answer.kind = Answer::Kind::kProtocol;
      }
      return answer.kind == Answer::Kind::kReplied;
    }
    if ((waits[0].revents & (POLLHUP | POLLERR)) != 0) return false;
  }
}

Answer Child::ask(protocol::Request request,
                  const Images* images,
                  const Images* replay,
                  int limit_ms) {
  Answer answer;
  if (pid_ < 0 && !start()) std::abort();
  request.magic = protocol::kMagic;
  request.sequence = ++sequence_;
  int fds[2] = {-1, -1};
  if (images != nullptr) {
    request.image_file_bytes = images->bytes.size();
    fds[0] = sealed_file(*images, replay);
    if (request.kind != protocol::Kind::kTime) request.result_file_bytes = images->bytes.size();
    fds[1] = result_file(request.result_file_bytes);
  }
  const bool sent = send_request(socket_, request, fds);
  if (sent && await_reply(answer, limit_ms)) {
    if (images != nullptr) {
      answer.after.resize(request.result_file_bytes);
      if (pread(fds[1], answer.after.data(), answer.after.size(), 0) !=
          static_cast<ssize_t>(answer.after.size())) {
        std::abort();
      }
    }
  } else if (answer.kind == Answer::Kind::kReplied) {
    bury(answer);
  } else {
    answer.report = read_report(report_);
    kill(-pid_, SIGKILL);
    stop();
  }
  for (const int fd : fds) {
    if (fd >= 0) close(fd);
  }
  return answer;
}

}  // namespace moe::judge
