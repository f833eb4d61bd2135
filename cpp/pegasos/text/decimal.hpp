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

// Digits are read eight at a time, from words that have the first of them in the lowest byte.
inline std::uint64_t load(const char* p) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return word ^ 0x3030303030303030;  // '0' … '9' are 0 … 9
}
// N bytes at p, or a copy of them filled up with what is no digit if the text ends before.
template <int N>
class Readable {
 public:
    Readable(const char* p, const char* end) : from_(p) {
        if (end - p >= N) [[likely]]
            return;
        std::memset(copy_, 0, N);
        std::memcpy(copy_, p, std::size_t(end - p));
        from_ = copy_;
    }
    operator const char*() const { return from_; }

 private:
    const char* from_;
    char copy_[N];
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

// How many of the sixteen bytes at p are digits, up to the first that is none.
inline int leading_digits_of_sixteen(const char* p) {
#ifdef __SSE2__
    // Without a branch: b - '0' is a digit if nothing is left of it after taking away 9.
    const __m128i bytes =
        _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), _mm_set1_epi8('0'));
    const __m128i digit = _mm_cmpeq_epi8(_mm_subs_epu8(bytes, _mm_set1_epi8(9)), _mm_setzero_si128());
    return std::countr_zero(~unsigned(_mm_movemask_epi8(digit)) | 0x10000u);
#else
    const int head = leading_digits(load(p));
    return head < 8 ? head : 8 + leading_digits(load(p + 8));
#endif
}
// The value of the first `count` of sixteen bytes at p, digits all of them, one at least.
inline std::uint64_t value_of_sixteen(const char* p, int count) {
    __extension__ using Sixteen = unsigned __int128;
    // Moved to the end of sixteen, with zeros before them.
    const Sixteen digits = (Sixteen(load(p + 8)) << 64 | load(p)) << (128 - 8 * count);
    return eight_digits(std::uint64_t(digits)) * 100'000'000 + eight_digits(std::uint64_t(digits >> 64));
}

// Appends the digits at p to `value` (which wraps around after nineteen) and returns where they end.
inline const char* take_digits(const char* p, const char* end, std::uint64_t& value) {
    for (;;) {
        const Readable<16> from(p, end);
        const int count = leading_digits_of_sixteen(from);
        if (count == 0) return p;
        value = value * whole_powers[count] + value_of_sixteen(from, count);
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

// w · 10^k, if that takes one rounding only (two for a float, the second of which cannot be led astray).
template <class T>
[[gnu::always_inline]] inline bool round_at_once(bool negative, std::uint64_t w, std::int64_t k, T& value) {
    if (w > (std::uint64_t(1) << 53) || k < -22 || k > 22) return false;
    const double d = k < 0 ? double(w) / powers[-k] : double(w) * powers[k];
    if constexpr (std::is_same_v<T, float>)  // within 10⁻²² … 10³⁸: a normal float, or 0
        if ((std::bit_cast<std::uint64_t>(d) & 0x1FFFFFFF) == 0x10000000) return false;
    value = T(negative ? -d : d);
    return true;
}

// The number most files are full of: one digit, a point, up to fifteen digits. False, and nothing done, for
// any other. Numbers differ in length at random: all of these take the same way, without a branch to
// mispredict.
inline constexpr int short_room = 20;  // bytes that must be readable at p
template <class T>
[[gnu::always_inline]] inline bool read_short(const char*& p, T& value) {
    const bool negative = *p == '-';
    const char* q = p + negative;
    if (!is_digit(q[0]) || q[1] != '.') return false;
    const int count = leading_digits_of_sixteen(q + 2);
    if (count == 0 || count == 16 || (q[2 + count] | 0x20) == 'e') return false;
    const std::uint64_t w = std::uint64_t(q[0] - '0') * whole_powers[count] + value_of_sixteen(q + 2, count);
    if (!round_at_once(negative, w, -count, value)) return false;
    p = q + 2 + count;
    return true;
}

// Reads  [+-] digits [. digits] [e [+-] digits]  at p, with a digit before or after the point, and moves p
// behind it. Too small a number is 0; too large a one is an overflow. Neither "nan" nor "inf" is a number.
template <class T>
[[gnu::noinline]] Outcome read_any(const char*& p, const char* end, T& value) {
    static_assert(std::is_same_v<T, double> || std::is_same_v<T, float>);
    const char* q = p;
    const bool negative = q != end && *q == '-';
    q += negative || (q != end && *q == '+');
    const char* first = q;
    std::uint64_t w = 0;
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
    if (digits <= 19 && round_at_once(negative, w, k, value)) return Outcome::good;
    return round_slowly(first - negative, q, exponent, value);
}

// The same, sooner.
template <class T>
[[gnu::always_inline]] inline Outcome read_number(const char*& p, const char* end, T& value) {
    if (end - p >= short_room && read_short(p, value)) [[likely]]
        return Outcome::good;
    const char* q = p;  // p itself must not have its address taken, lest it leave its register
    T number = 0;
    const Outcome outcome = read_any(q, end, number);
    p = q, value = number;
    return outcome;
}

}  // namespace pegasos::decimal
