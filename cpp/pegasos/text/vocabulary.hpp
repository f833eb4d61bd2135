// Names and their numbers 0, 1, 2, … in order of first use: a hash table with open addressing over the bytes of
// all names, which lie one after the other.
//
// Names are looked up a token's worth at a time: hash all of them, prefetch() their places in the table, then
// look. Most of a look-up is waiting for memory, and so they wait together.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pegasos/core/memory.hpp"

namespace pegasos {

class Vocabulary {
 public:
    using Hash = std::uint32_t;
    static constexpr std::int32_t absent = -1;
    static constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max() - 1;

    explicit Vocabulary(std::int64_t limit = most) : limit_(limit), slots_(64, Slot{0, absent}) {}

    // Names that lie one after the other: name k is bytes offsets[k] … offsets[k+1] − 1.
    static Vocabulary of(std::string_view bytes, const std::int64_t* offsets, std::int64_t count) {
        if (offsets[0] != 0 || offsets[count] != std::int64_t(bytes.size()))
            throw std::invalid_argument("the offsets of the names do not run from 0 to their end");
        Vocabulary made;
        for (std::int64_t k = 0; k < count; ++k) {
            if (offsets[k + 1] < offsets[k] || offsets[k + 1] > offsets[count])
                throw std::invalid_argument("the offsets of the names decrease at name " + std::to_string(k));
            const auto name = bytes.substr(std::size_t(offsets[k]), std::size_t(offsets[k + 1] - offsets[k]));
            if (made.add(name, hash(name)) != k)
                throw std::invalid_argument("name " + std::to_string(k) + " is there twice");
        }
        return made;
    }

    std::int64_t size() const { return std::int64_t(offsets_.size()) - 1; }
    const std::vector<char>& bytes() const { return bytes_; }
    const std::vector<std::int64_t>& offsets() const { return offsets_; }
    std::string_view name(std::int64_t id) const {
        return {bytes_.data() + offsets_[std::size_t(id)],
                std::size_t(offsets_[std::size_t(id) + 1] - offsets_[std::size_t(id)])};
    }

    // Words of eight bytes, the last one overlapping, each multiplied in to 128 bits that are folded to 64.
    static Hash hash(std::string_view name) {
        const char* p = name.data();
        const std::size_t n = name.size();
        std::uint64_t h = fold(n + 0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u);
        if (n >= 8) {
            for (std::size_t k = 0; k + 8 < n; k += 8)
                h = fold(h ^ word<std::uint64_t>(p + k), 0x94d049bb133111ebu);
            h = fold(h ^ word<std::uint64_t>(p + n - 8), 0xd6e8feb86659fd93u);
        } else if (n >= 4) {
            const std::uint64_t ends =
                std::uint64_t(word<std::uint32_t>(p)) << 32 | word<std::uint32_t>(p + n - 4);
            h = fold(h ^ ends, 0xd6e8feb86659fd93u);
        } else if (n > 0) {
            const auto byte = [&](std::size_t k) { return std::uint64_t(static_cast<unsigned char>(p[k])); };
            h = fold(h ^ (byte(0) << 16 | byte(n / 2) << 8 | byte(n - 1)), 0xd6e8feb86659fd93u);
        }
        return Hash(h ^ h >> 32);
    }

    // Ahead of a look-up, in three rounds: the slot; whose name is there, absent if it is another's for sure; the name.
    void prefetch(Hash hash) const { __builtin_prefetch(&slots_[hash & mask()]); }
    std::int32_t likely(Hash hash) const {
        const Slot& slot = slots_[hash & mask()];
        if (slot.id == absent || slot.hash != hash) return absent;
        __builtin_prefetch(&offsets_[std::size_t(slot.id)]);
        return slot.id;
    }
    void prefetch_name(std::int32_t id) const {
        if (id != absent) __builtin_prefetch(bytes_.data() + offsets_[std::size_t(id)]);
    }

    // The number of a name; absent if it has none.
    std::int32_t find(std::string_view name, Hash hash) const { return slots_[place(name, hash)].id; }
    // The number of a name, which is the next one if it has none.
    std::int32_t add(std::string_view name, Hash hash) {
        const std::size_t k = place(name, hash);
        if (slots_[k].id != absent) return slots_[k].id;
        const std::int64_t id = size();
        if (id >= limit_)
            throw std::length_error("there are more than " + std::to_string(limit_) +
                                    " different attributes");
        bytes_.insert(bytes_.end(), name.begin(), name.end());
        offsets_.push_back(std::int64_t(bytes_.size()));
        slots_[k] = {hash, std::int32_t(id)};
        if (2 * std::size_t(id + 1) > slots_.size()) grow();
        return std::int32_t(id);
    }

 private:
    // Hashes are as long as the longest table needs, so that tables grow without a look at the names.
    struct Slot {
        Hash hash;
        std::int32_t id;
    };

    static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
        __extension__ using Sixteen = unsigned __int128;
        const Sixteen product = static_cast<Sixteen>(a) * b;
        return std::uint64_t(product) ^ std::uint64_t(product >> 64);
    }
    template <class T>
    static T word(const char* p) {
        T x;
        std::memcpy(&x, p, sizeof x);
        return x;
    }

    std::size_t mask() const { return slots_.size() - 1; }
    // Where a name is, or the empty slot where it would be.
    std::size_t place(std::string_view wanted, Hash hash) const {
        std::size_t k = hash & mask();
        while (slots_[k].id != absent && (slots_[k].hash != hash || name(slots_[k].id) != wanted))
            k = (k + 1) & mask();
        return k;
    }
    void grow() {
        Slots old(2 * slots_.size(), Slot{0, absent});
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.id == absent) continue;
            std::size_t k = slot.hash & mask();
            while (slots_[k].id != absent) k = (k + 1) & mask();
            slots_[k] = slot;
        }
    }

    using Slots = std::vector<Slot, CacheAligned<Slot>>;
    std::int64_t limit_;
    std::vector<char> bytes_;
    std::vector<std::int64_t> offsets_{0};
    Slots slots_;  // a power of two, at most half of them used
};

// Which names the tokens of a text use, and how much of each.
struct Uses {
    std::vector<std::int64_t> indptr{0};  // the uses of token t are indptr[t] … indptr[t+1] − 1
    std::vector<std::int32_t> ids;
    std::vector<double> values;  // empty as long as all are 1
    bool weighted = false;

    void add(std::int32_t id, double value) {
        if (value != 1.0 && !weighted) {
            values.assign(ids.size(), 1.0);
            weighted = true;
        }
        ids.push_back(id);
        if (weighted) values.push_back(value);
    }
    void end_token() { indptr.push_back(std::int64_t(ids.size())); }
    std::int64_t tokens() const { return std::int64_t(indptr.size()) - 1; }
};

// In how many tokens each name is used.
inline std::vector<std::int64_t> token_counts(const Uses& uses, std::int64_t names) {
    std::vector<std::int64_t> counts(std::size_t(names), 0), last(std::size_t(names), -1);
    for (std::size_t t = 0; t + 1 < uses.indptr.size(); ++t)
        for (std::int64_t k = uses.indptr[t]; k < uses.indptr[t + 1]; ++k) {
            const auto id = std::size_t(uses.ids[std::size_t(k)]);
            counts[id] += last[id] != std::int64_t(t);
            last[id] = std::int64_t(t);
        }
    return counts;
}

// The names that at least so many tokens use, still in order of first use; the uses of the others are taken out.
inline Vocabulary frequent(const Vocabulary& all, Uses& uses, double min_tokens) {
    const auto counts = token_counts(uses, all.size());
    Vocabulary kept;
    std::vector<std::int32_t> number(counts.size(), Vocabulary::absent);
    for (std::size_t id = 0; id < counts.size(); ++id)
        if (double(counts[id]) >= min_tokens) {
            const auto name = all.name(std::int64_t(id));
            number[id] = kept.add(name, Vocabulary::hash(name));
        }
    Uses left;
    left.indptr.reserve(uses.indptr.size());
    for (std::size_t t = 0; t + 1 < uses.indptr.size(); ++t) {
        for (auto k = std::size_t(uses.indptr[t]); k < std::size_t(uses.indptr[t + 1]); ++k)
            if (const std::int32_t id = number[std::size_t(uses.ids[k])]; id != Vocabulary::absent)
                left.add(id, uses.weighted ? uses.values[k] : 1.0);
        left.end_token();
    }
    uses = std::move(left);
    return kept;
}

}  // namespace pegasos
