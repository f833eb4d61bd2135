// Threads for work cut into a fixed number of tasks. Results never depend on how many threads there are: a
// task writes only what is its own, and the caller combines the tasks in order.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace pegasos {

// How many of the threads pay: none but this one for work, in multiplications or so, that is done before
// others have started.
inline int useful_threads(int threads, std::int64_t work) {
    return work < (std::int64_t(1) << 19) ? 1 : threads;
}

template <class F>
void parallel_for(int threads, std::int64_t tasks, F&& task) {
    threads = int(std::min<std::int64_t>(threads, tasks));
    if (threads <= 1) {
        for (std::int64_t t = 0; t < tasks; ++t) task(t);
        return;
    }
    std::atomic<std::int64_t> next{0};
    const auto work = [&] {
        for (std::int64_t t; (t = next.fetch_add(1)) < tasks;) task(t);
    };
    std::vector<std::thread> pool;
    for (int k = 1; k < threads; ++k) pool.emplace_back(work);
    work();
    for (auto& th : pool) th.join();
}

}  // namespace pegasos
