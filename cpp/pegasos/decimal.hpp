// Decimal text to floating point, correctly rounded: the float or double nearest to what is written, ties to
// even.
//
// The usual short number goes the fast way (Clinger, "How to read floating point numbers accurately", 1990):
// if w ≤ 2⁵³ and |k| ≤ 22, then w and 10^|k| are doubles and w · 10^k is one rounding away. All others are
// left to std::from_chars. For floats a double is rounded once more, which is exact unless it lies just
// between two floats.
#pragma once
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace pegasos::decimal {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// Digits are read eight at a time, from words that have the first of them in the lowest byte. Where the text
// ends before the words do, the rest are no digits.
template <int N>
struct Words {
    std::uint64_t at[N];
    Words(const char* p, const char* end) {
        if (end - p >= 8 * N) [[likely]] {
            std::memcpy(at, p, sizeof at);
        } else {
            std::memset(at, 0, sizeof at);
            std::memcpy(at, p, std::size_t(end - p));
        }
        for (auto& word : at) {
            if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
            word ^= 0x3030303030303030;  // '0' … '9' are 0 … 9
        }
    }
};
// How many digits a loaded word begins with. A byte above 9 gets its top bit from the sum or has it already;
// carries reach only the bytes behind it.
inline int leading_digits(std::uint64_t word) {
    return std::countr_zero(((word + 0x7676767676767676) | word) & 0x8080808080808080) / 8;
}
// The value of eight digits.
inline std::uint64_t eight_digits(std::uint64_t word) {
    word = word * 10 + (word >> 8);  // pairs
    constexpr std::uint64_t every_other = 0x000000FF000000FF;
    return ((word & every_other) * 0x000F424000000064 + ((word >> 16) & every_other) * 0x0000271000000001) >>
           32;
}

inline constexpr std::uint64_t whole_powers[] = {1,
                                                 10,
                                                 100,
                                                 1'000,
                                                 10'000,
                                                 100'000,
                                                 1'000'000,
                                                 10'000'000,
                                                 100'000'000,
                                                 1'000'000'000,
                                                 10'000'000'000,
                                                 100'000'000'000,
                                                 1'000'000'000'000,
                                                 10'000'000'000'000,
                                                 100'000'000'000'000,
                                                 1'000'000'000'000'000,
                                                 10'000'000'000'000'000};
inline constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// How many digits sixteen loaded bytes begin with.
inline int leading_digits(const Words<2>& words) {
#ifdef __SSE2__
    // Without a branch: a byte is above 9 if what is left of it after taking away 9, at least 0, is not 0.
    const __m128i bytes = _mm_set_epi64x(std::int64_t(words.at[1]), std::int64_t(words.at[0]));
    const __m128i digit = _mm_cmpeq_epi8(_mm_subs_epu8(bytes, _mm_set1_epi8(9)), _mm_setzero_si128());
    return std::countr_zero(~unsigned(_mm_movemask_epi8(digit)) | 0x10000u);
#else
    const int head = leading_digits(words.at[0]);
    return head < 8 ? head : 8 + leading_digits(words.at[1]);
#endif
}

// Appends the digits at p to `value` (which wraps around after nineteen) and returns where they end. Numbers
// of one file differ in length at random: up to sixteen digits take the same way, without a branch to
// mispredict.
[[gnu::always_inline]] inline const char* take_digits(const char* p, const char* end, std::uint64_t& value) {
    for (;;) {
        const Words<2> words(p, end);
        const int count = leading_digits(words);
        if (count == 0) return p;
        // Move the digits to the end of sixteen, with zeros before them.
        __extension__ using Sixteen = unsigned __int128;
        const Sixteen digits = (Sixteen(words.at[1]) << 64 | words.at[0]) << (128 - 8 * count);
        value = value * whole_powers[count] + eight_digits(std::uint64_t(digits)) * 100'000'000 +
                eight_digits(std::uint64_t(digits >> 64));
        p += count;
        if (count < 16) return p;
    }
}

enum class Outcome { good, malformed, overflow };

// What does not fit the fast way. [first, last) has been checked to be a number without leading '+'.
template <class T>
Outcome round_slowly(const char* first, const char* last, std::int64_t exponent, T& value) {
    if (std::from_chars(first, last, value).ec == std::errc{}) return Outcome::good;
    // Out of range: too large if the first digit that counts stands for 10⁰ or more, else so small that it is
    // 0.
    const bool negative = *first == '-';
    const char* p = first + negative;
    const char* point = p;
    while (point != last && is_digit(*point)) ++point;
    while (p != last && (*p == '0' || *p == '.')) ++p;
    if ((p < point ? point - p - 1 : point - p) + exponent >= 0) return Outcome::overflow;
    value = negative ? -T(0) : T(0);
    return Outcome::good;
}

// Reads  [+-] digits [. digits] [e [+-] digits]  at p, with a digit before or after the point, and moves p
// behind it. Too small a number is 0; too large a one is an overflow. Neither "nan" nor "inf" is a number.
template <class T>
[[gnu::always_inline]] inline Outcome read_number(const char*& p, const char* end, T& value) {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, float>);
    const char* q = p;
    const bool negative = q != end && *q == '-';
    q += negative || (q != end && *q == '+');
    const char* first = q;
    std::uint64_t w = 0;
    if (end - q >= 2 && is_digit(q[0]) && q[1] == '.')  // "0.", mostly
        w = std::uint64_t(*q++ - '0');
    else
        q = take_digits(q, end, w);
    std::int64_t digits = q - first, k = 0;
    if (q != end && *q == '.') {
        const char* fraction = ++q;
        q = take_digits(q, end, w);
        k = fraction - q;
        digits -= k;
    }
    if (digits == 0) return Outcome::malformed;
    std::int64_t exponent = 0;
    if (q != end && (*q == 'e' || *q == 'E')) {
        ++q;
        const bool down = q != end && *q == '-';
        q += down || (q != end && *q == '+');
        if (q == end || !is_digit(*q)) return Outcome::malformed;
        constexpr std::int64_t enough = std::int64_t(1) << 50;  // beyond the length of any text
        for (; q != end && is_digit(*q); ++q)
            if (exponent < enough) exponent = exponent * 10 + (*q - '0');
        if (down) exponent = -exponent;
        k += exponent;
    }
    p = q;
    if (digits <= 19 && w <= (std::uint64_t(1) << 53) && -22 <= k && k <= 22) [[likely]] {
        const double d = k < 0 ? double(w) / powers[-k] : double(w) * powers[k];
        if constexpr (std::is_same_v<T, double>) {
            value = negative ? -d : d;
            return Outcome::good;
        } else if ((std::bit_cast<std::uint64_t>(d) & 0x1FFFFFFF) != 0x10000000) [[likely]] {
            value = float(negative ? -d : d);  // within 10⁻²² … 10³⁸: a normal float, or 0
            return Outcome::good;
        }
    }
    return round_slowly(first - negative, q, exponent, value);
}

}  // namespace pegasos::decimal
