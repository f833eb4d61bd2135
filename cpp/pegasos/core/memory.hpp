// Memory for large arrays: on cache-line borders, and in huge pages from a megabyte on, where the system has
// them. Weights that are visited in random order otherwise pay for address translation, and new arrays for
// thousands of page faults.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _WIN32
#include <malloc.h>
#endif

namespace pegasos {

// To be given back to release(): Windows has no aligned_alloc, and frees aligned memory in its own way.
inline void* allocate(std::size_t bytes) {
    constexpr std::size_t line = 64, page = std::size_t(2) << 20, large = std::size_t(1) << 20;
    if (bytes > std::size_t(PTRDIFF_MAX) - page) throw std::bad_alloc();
    const std::size_t border = bytes >= large ? page : line;
    const std::size_t size = (bytes + border - 1) / border * border;
#ifdef _WIN32
    void* p = _aligned_malloc(size ? size : line, border);
#else
    void* p = std::aligned_alloc(border, size ? size : line);
#endif
    if (!p) throw std::bad_alloc();
#ifdef __linux__
    if (border == page) madvise(p, size, MADV_HUGEPAGE);  // advice: that it may fail does not matter
#endif
    return p;
}
inline void release(void* p) {
#ifdef _WIN32
    _aligned_free(p);
#else
    std::free(p);
#endif
}

// Numbers on cache-line borders, so that eight lanes of doubles, or sixteen of floats, are one line.
template <class T>
struct CacheAligned {
    using value_type = T;
    CacheAligned() = default;
    template <class U>
    CacheAligned(const CacheAligned<U>&) {}
    T* allocate(std::size_t n) {
        if (n > std::size_t(-1) / sizeof(T)) throw std::bad_array_new_length();
        return static_cast<T*>(pegasos::allocate(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t) { release(p); }
    template <class U>
    bool operator==(const CacheAligned<U>&) const {
        return true;
    }
};
template <class Real>
using LaneBuffer = std::vector<Real, CacheAligned<Real>>;
using Buffer = LaneBuffer<double>;

}  // namespace pegasos
