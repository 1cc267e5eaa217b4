// in_threads.h: a loop over independent work, spread over the processors.
#pragma once

#include <algorithm>
#include <thread>
#include <vector>

namespace moe::bench {

// Calls work(begin, end) for parts that together are [0, count).
template <class Work>
void in_threads(int count, const Work& work) {
  const int workers = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([&work, begin = count * i / workers, end = count * (i + 1) / workers] {
      work(begin, end);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace moe::bench
