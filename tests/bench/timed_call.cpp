#include "timed_call.h"

#include <algorithm>

namespace moe::bench {
namespace {

constexpr int kLimitMs = 60'000;

protocol::Request request_of(const TimedCall& call, judge::Images& images) {
  protocol::Request request = {};
  request.kind = protocol::Kind::kTime;
  request.operation = call.operation;
  std::copy(call.integers.begin(), call.integers.end(), request.integers);
  request.num_buffers = static_cast<uint32_t>(call.buffers.size());
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const TimedBuffer& buffer = call.buffers[i];
    protocol::Buffer& place = request.buffers[i];
    place.allocation_bytes = buffer.bytes;
    place.fill = buffer.fill;
    place.scale = buffer.scale;
    place.seed = buffer.seed;
    place.image_bytes = buffer.image.size();
    place.image_offset = images.bytes.size();
    images.bytes.insert(images.bytes.end(), buffer.image.begin(), buffer.image.end());
  }
  for (const TimedSample& sample : call.samples) {
    request.samples[request.num_samples++] = {sample.buffer, sample.offset, sample.bytes,
                                              request.result_file_bytes};
    request.result_file_bytes += sample.bytes;
  }
  return request;
}

std::string status_name(const protocol::Reply& reply, int which) {
  return {reply.status_names[which], strnlen(reply.status_names[which], 48)};
}

}  // namespace

TimedBuffer generated(protocol::Fill fill, uint64_t elements, uint64_t seed, float scale) {
  const uint64_t size = fill == protocol::Fill::kGeneratedBf16   ? 2
                        : fill == protocol::Fill::kGeneratedE4m3 ? 1
                                                                 : 4;
  return {fill, elements * size, seed, scale, {}};
}

TimedBuffer uninitialised(uint64_t bytes) {
  return {protocol::Fill::kPoison, bytes, 0, 0.0f, {}};
}

float median(std::vector<float> values) {
  if (values.empty()) return 0.0f;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Times time_once(judge::Child& child, const TimedCall& call, int count) {
  Times times;
  judge::Images images;
  protocol::Request request = request_of(call, images);
  request.num_times = static_cast<uint32_t>(std::min(count, protocol::kMaxTimes));
  const judge::Answer answer = child.ask(request, &images, nullptr, kLimitMs);
  if (answer.kind != judge::Answer::Kind::kReplied) {
    times.verdict = judge::wrong("the runner died or did not answer: " + answer.death);
    return times;
  }
  const protocol::Reply& reply = answer.reply;
  const int32_t statuses[3] = {reply.call_status, reply.device_status, reply.capture_status};
  for (int i = 0; i < 3; ++i) {
    if (statuses[i] != 0) times.verdict = judge::wrong("the call failed: " + status_name(reply, i));
  }
  if (reply.num_todos > 0) times.verdict = judge::wrong("a blank was reached: nothing to time");
  if (!times.verdict.pass()) return times;
  times.kernels.assign(
      reply.kernels, reply.kernels + std::min<uint32_t>(reply.num_kernels, protocol::kMaxKernels));
  times.us.assign(reply.times_us, reply.times_us + request.num_times);
  std::vector<judge::Bytes> samples;
  auto next = answer.after.begin();
  for (const TimedSample& sample : call.samples) {
    const auto end = next + static_cast<std::ptrdiff_t>(sample.bytes);
    samples.emplace_back(next, end);
    next = end;
  }
  times.verdict = call.judge(samples);
  return times;
}

}  // namespace moe::bench
