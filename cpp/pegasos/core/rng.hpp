// A pinned random generator (SplitMix64): the same seed gives the same numbers on every platform, for ever.
#pragma once
#include <cstdint>

namespace pegasos {

class Rng {
 public:
    // Streams of one seed (one an epoch, say) are independent of each other.
    explicit Rng(std::uint64_t seed, std::uint64_t stream = 0)
        : state_(mix(seed + 0x9e3779b97f4a7c15u) ^ mix(~stream)) {}

    std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }

    // Uniform on {0, …, n − 1}; the bias of the multiply-shift is below n/2⁶⁴.
    std::int64_t below(std::int64_t n) {
        return std::int64_t((static_cast<unsigned __int128>(next()) * static_cast<std::uint64_t>(n)) >> 64);
    }

    // Uniform on (0, 1].
    double uniform() { return double((next() >> 11) + 1) * 0x1.0p-53; }

 private:
    static std::uint64_t mix(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    std::uint64_t state_;
};

}  // namespace pegasos
