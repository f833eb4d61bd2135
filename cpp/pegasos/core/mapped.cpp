#include "pegasos/core/mapped.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace pegasos {
namespace {

// All that the signal handler looks at: numbers that are there from the start and read without locks.
struct Watched {
    std::atomic<bool> taken{false};
    std::atomic<std::uintptr_t> begin{0}, end{0};
    std::atomic<bool> torn{false};
};
constexpr int slots = 1024;
Watched watched[slots];
std::uintptr_t page_size = 4096;
struct sigaction before;
std::mutex installing;
std::atomic<bool> passing_on{false};

// Zeros for a page that is missing, and for all that follow it in the array: its file has none of them.
bool replace_pages(std::uintptr_t at) {
    const std::uintptr_t first = at / page_size * page_size;
    std::uintptr_t end = 0;
    for (const Watched& w : watched)
        if (w.begin.load() <= at && at < w.end.load()) end = w.end.load() > end ? w.end.load() : end;
    if (end == 0) return false;
    end = (end + page_size - 1) / page_size * page_size;
    for (Watched& w : watched)
        if (w.begin.load() < end && w.end.load() > first) w.torn.store(true);
    void* pages = reinterpret_cast<void*>(first);
    return mmap(pages, end - first, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == pages;
}

void handle(int number, siginfo_t* info, void* context) {
    if (replace_pages(reinterpret_cast<std::uintptr_t>(info->si_addr))) return;
    // Not ours. A second call while passing it on comes from the earlier handler, which has passed it back.
    const bool again = passing_on.exchange(true);
    if (!again && (before.sa_flags & SA_SIGINFO) && before.sa_sigaction)
        before.sa_sigaction(number, info, context);
    else if (!again && !(before.sa_flags & SA_SIGINFO) && before.sa_handler != SIG_DFL &&
             before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        std::signal(number, SIG_DFL);  // the same access then ends the process, as it always did
    passing_on.store(false);
}

void install() {
    const std::lock_guard lock(installing);
    struct sigaction now;
    if (sigaction(SIGBUS, nullptr, &now) != 0 || ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handle))
        return;
    page_size = std::uintptr_t(sysconf(_SC_PAGESIZE));
    before = now;
    struct sigaction ours = {};
    ours.sa_sigaction = handle;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

MappedGuard::MappedGuard(const void* begin, std::size_t bytes) : slot_(-1) {
    if (bytes == 0) return;
    install();
    for (int k = 0; k < slots && slot_ < 0; ++k)
        if (bool expected = false; watched[k].taken.compare_exchange_strong(expected, true)) slot_ = k;
    if (slot_ < 0) return;
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    watched[slot_].torn.store(false);
    watched[slot_].end.store(first + bytes);
    watched[slot_].begin.store(first);
}

MappedGuard::~MappedGuard() {
    if (slot_ < 0) return;
    watched[slot_].end.store(0);
    watched[slot_].begin.store(0);
    watched[slot_].taken.store(false);
}

bool MappedGuard::torn() const { return slot_ >= 0 && watched[slot_].torn.load(); }

}  // namespace pegasos

#else  // elsewhere mapped files cannot be cut short

namespace pegasos {
MappedGuard::MappedGuard(const void*, std::size_t) : slot_(-1) {}
MappedGuard::~MappedGuard() = default;
bool MappedGuard::torn() const { return slot_ >= 0; }
}  // namespace pegasos

#endif
