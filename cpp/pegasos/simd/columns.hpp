// Column indices of sparse rows, as numbers that stay inside the weights they lead to.
//
// Rows are borrowed, and the owner of the arrays can write to them while they are read: a callback, another
// thread, another process where a file is mapped. No check at the border prevents that. So every index is
// read once, and what was read is held inside: by a mask where weights have room for it (WeightBuffer), which
// costs nothing that can be measured, and else by a comparison.
//
// Everything is inlined always: sources that are compiled once for each instruction set share this, and their
// copies must not be mixed.
#pragma once
#include <cstdint>
#include <type_traits>

#ifdef __BMI2__
#include <immintrin.h>
#endif

namespace pegasos {

// What lies at p now; never read again behind the caller's back.
template <class I>
[[gnu::always_inline]] inline std::uint64_t read_once(const I* p) {
    std::uint64_t j = std::make_unsigned_t<I>(*p);
    asm("" : "+r"(j));
    return j;
}

// For weights with room for 2^bits numbers (times lanes).
template <class I>
struct Masked {
    const I* index;
    int bits;

    [[gnu::always_inline]] std::int64_t operator[](std::int64_t k) const {
#ifdef __BMI2__  // in one instruction with reading it
        std::uint64_t j;
        if constexpr (sizeof(I) == 4)
            j = _bzhi_u32(std::uint32_t(index[k]), unsigned(bits));
        else
            j = _bzhi_u64(std::uint64_t(index[k]), unsigned(bits));
        asm("" : "+r"(j));
        return std::int64_t(j);
#else
        return std::int64_t(read_once(index + k) & ((std::uint64_t(1) << bits) - 1));
#endif
    }
};

// For weights with room for last + 1 numbers.
template <class I>
struct Bounded {
    const I* index;
    std::uint64_t last;

    [[gnu::always_inline]] std::int64_t operator[](std::int64_t k) const {
        const std::uint64_t j = read_once(index + k);
        return std::int64_t(j < last ? j : last);
    }
    [[gnu::always_inline]] Bounded operator+(std::int64_t k) const { return {index + k, last}; }
};

// Row pointers into arrays of so many stored entries.
template <class I>
[[gnu::always_inline]] inline std::int64_t row_pointer(const I* p, std::int64_t stored) {
    const std::uint64_t at = read_once(p);
    return at < std::uint64_t(stored) ? std::int64_t(at) : stored;
}

}  // namespace pegasos
