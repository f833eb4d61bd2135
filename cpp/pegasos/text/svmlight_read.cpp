#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "pegasos/core/parallel.hpp"
#include "pegasos/text/decimal.hpp"
#include "pegasos/text/svmlight.hpp"

namespace pegasos::svmlight {
namespace {

using decimal::is_digit;
using decimal::Outcome;
using std::int64_t;
using std::uint64_t;

constexpr bool is_blank(char c) { return c == ' ' || c == '\t'; }
// What may stand right behind a label, a value or a qid; a lone return is refused later.
constexpr bool ends_word(char c) { return is_blank(c) || c == '\n' || c == '#' || c == '\r'; }

const char* find(const char* p, const char* end, char c) {
    const void* found = p == end ? nullptr : std::memchr(p, c, std::size_t(end - p));
    return found ? static_cast<const char*>(found) : end;
}

// The sum over [p, end) of f(byte), f giving 0 or 1: bytes added up in bytes, which the compiler makes
// vectors of.
template <class F>
int64_t count(const char* p, const char* end, F&& f) {
    int64_t total = 0;
    while (p != end) {
        const char* stop = p + std::min<int64_t>(end - p, 255);
        std::uint8_t some = 0;
        for (; p != stop; ++p) some = std::uint8_t(some + f(*p));
        total += some;
    }
    return total;
}
int64_t count(const char* p, const char* end, char c) {
    return count(p, end, [c](char b) { return b == c; });
}

// Whole lines, and how many rows and entries they hold at most: what an entry needs at least is " 1:1", what
// a row needs is "1\n", and there are no more than colons before comments and line ends.
struct Piece {
    const char *begin, *end;
    int64_t rows = 0, entries = 0, line_ends = 0;

    void look() {
        int64_t colons = 0;
        for (const char* p = begin; p != end;) {  // stretches that stay in the cache
            const char* stop = p + std::min<int64_t>(end - p, 4096);
            line_ends += count(p, stop, '\n');
            colons += count(p, stop, ':');
            p = stop;
        }
        if (find(begin, end, '#') != end) colons = colons_before_comments();
        rows = std::min<int64_t>(line_ends + 1, (end - begin + 1) / 2);
        if (begin != end && end[-1] == '\n') rows = std::min(rows, line_ends);
        entries = std::min<int64_t>(colons, (end - begin) / 4);
    }
    int64_t colons_before_comments() const {
        int64_t colons = 0;
        for (const char* line = begin; line != end;) {
            const char* line_end = find(line, end, '\n');
            colons += count(line, find(line, line_end, '#'), ':');
            line = line_end == end ? end : line_end + 1;
        }
        return colons;
    }
};

// The cuts depend on the text only, and every byte is looked at once, however long the lines are.
std::vector<Piece> cut(const char* begin, const char* end, int64_t size) {
    std::vector<Piece> pieces;
    while (begin != end) {
        const char* stop = end;
        if (end - begin > size) {
            stop = find(begin + size - 1, end, '\n');
            if (stop != end) ++stop;
        }
        pieces.push_back({begin, stop});
        begin = stop;
    }
    return pieces;
}

struct Found {
    Offence offence;
    const char *line, *word;
    int64_t previous;
};

// Parses the lines of one piece into arrays that have room for them.
template <class T, class I>
class Parser {
 public:
    Parser(const Piece& piece, const char* text_end, const ReadOptions& options, T* data, I* indices, I* ends,
           double* labels, int64_t* queries)
        : p_(piece.begin),
          end_(piece.end),
          text_end_(text_end),
          first_index_(options.zero_based ? 0 : 1),
          n_features_(options.n_features),
          query_wanted_(options.query),
          data_(data),
          indices_(indices),
          ends_(ends),
          labels_(labels),
          queries_(queries) {
        constexpr int64_t widest = int64_t(std::numeric_limits<I>::max()) - 1;  // columns must fit as well
        last_index_ = std::min<int64_t>(widest, n_features_ < 0 ? widest : n_features_ - 1);
        // Counted as the file counts; both summands are far enough from the edge for no overflow.
        last_index_ += first_index_;
    }

    void run() {
        while (p_ != end_ && line()) {
        }
    }

    std::optional<Found> found;
    int64_t rows = 0, entries = 0;
    int64_t largest = -1;  // index, counted from 0

 private:
    char at(const char* p) const { return p != end_ ? *p : '\n'; }
    const char* skip_blanks(const char* p) const {
        while (is_blank(at(p))) ++p;
        return p;
    }
    bool refuse(Offence offence, const char* word, int64_t previous = 0) {
        found = Found{word != end_ && *word == '\0' ? Offence::nul_byte : offence, line_, word, previous};
        return false;
    }

    bool line() {
        line_ = p_;
        p_ = skip_blanks(p_);
        if (ends_word(at(p_))) return line_end();
        if (!label() || !query()) return false;
        int64_t previous = first_index_ - 1;
        if (!pairs(previous)) return false;
        if (!ends_word(at(p_)))
            return refuse_word(at_query() ? Offence::misplaced_query : Offence::bad_index, p_);
        if (previous >= first_index_) largest = std::max(largest, previous - first_index_);
        ends_[rows++] = I(entries);
        return line_end();
    }

    // At a comment or a line end; moves to the next line.
    bool line_end() {
        if (at(p_) == '#') {
            const char* stop = find(p_, end_, '\n');
            const char* nul = find(p_, stop, '\0');
            if (nul != stop) return refuse(Offence::nul_byte, nul);
            p_ = stop;
        } else if (at(p_) == '\r') {
            if (at(p_ + 1) != '\n') return refuse(Offence::lone_return, p_);
            ++p_;
        }
        if (p_ != end_) ++p_;
        return true;
    }

    bool label() {
        const char* word = p_;
        double value = 0;
        const Outcome outcome = decimal::read_number(p_, text_end_, value);
        const char* behind = word;
        while (!ends_word(at(behind)) && at(behind) != ':' && at(behind) != ',') ++behind;
        if (at(behind) == ',') return refuse(Offence::several_labels, word);
        if (at(behind) == ':') return refuse(Offence::no_label, word);
        if (outcome == Outcome::malformed || p_ != behind) return refuse_word(Offence::bad_label, word);
        if (outcome == Outcome::overflow) return refuse(Offence::label_overflow, word);
        labels_[rows] = value;
        return true;
    }

    bool query() {
        p_ = skip_blanks(p_);
        if (!at_query()) return !query_wanted_ || refuse(Offence::no_query, line_);
        const char* word = p_;
        p_ += 4;
        const bool negative = at(p_) == '-';
        p_ += negative || at(p_) == '+';
        if (!is_digit(at(p_))) return refuse_word(Offence::bad_query, word);
        uint64_t value = 0;
        const bool fits = whole_number(p_, value);
        if (!ends_word(at(p_))) return refuse_word(Offence::bad_query, word);
        if (!fits) return refuse(Offence::query_overflow, word);
        if (query_wanted_) queries_[rows] = negative ? -int64_t(value) : int64_t(value);
        return true;
    }
    bool at_query() const { return end_ - p_ >= 4 && std::memcmp(p_, "qid:", 4) == 0; }

    // index:value, as many as there are. Nearly all the time is spent here: what changes is kept in
    // registers.
    bool pairs(int64_t& last) {
        const char* p = p_;
        T* data = data_ + entries;
        I* indices = indices_ + entries;
        int64_t previous = last;
        for (;;) {
            if (quick_pair(p, previous, data, indices)) continue;
            p = skip_blanks(p);
            if (!is_digit(at(p))) break;
            const char* word = p;
            uint64_t index;
            const bool fits = whole_number(p, index);
            if (at(p) != ':') [[unlikely]]
                return refuse_word(ends_word(at(p)) ? Offence::no_colon : Offence::bad_index, word);
            if (!fits || int64_t(index) > last_index_ || int64_t(index) <= previous) [[unlikely]]
                return refuse(index_offence(fits, index, previous), word, previous);
            p = skip_blanks(p + 1);
            const char* start = p;
            T value;
            const Outcome outcome = decimal::read_number(p, text_end_, value);
            if (outcome == Outcome::malformed || !ends_word(at(p))) [[unlikely]]
                return ends_word(at(start)) ? refuse(Offence::no_value, word)
                                            : refuse_word(Offence::bad_value, start);
            if (outcome == Outcome::overflow) [[unlikely]]
                return refuse(Offence::value_overflow, start);
            *data++ = value;
            *indices++ = I(int64_t(index) - first_index_);
            previous = int64_t(index);
        }
        p_ = p;
        last = previous;
        entries = data - data_;
        return true;
    }

    // " index:value" as it mostly is: a space before it, a space or line end behind it, a short index, a
    // short decimal. False, and nothing done, if it is not quite so. Where the next pair begins is found by
    // looking for the end of the word, not by reading its numbers: the processor can begin with the next
    // while it still works on this one.
    [[gnu::always_inline]] bool quick_pair(const char*& p, int64_t& previous, T*& data, I*& indices) const {
#ifdef __SSE2__
        if (end_ - p < 64 || *p != ' ') return false;
        const char *word = p + 1, *behind = word + word_length(word);
        const uint64_t digits = decimal::load(word);
        const int count = decimal::leading_digits(digits);
        if (count == 0 || count == 8 || word[count] != ':') return false;
        const auto index = int64_t(decimal::eight_digits(digits << (64 - 8 * count)));
        const char* q = word + count + 1;
        T value;
        if (!decimal::read_short(q, value) || q != behind || !(*q == ' ' || *q == '\n')) return false;
        if (index > last_index_ || index <= previous) return false;
        *data++ = value;
        *indices++ = I(index - first_index_);
        previous = index;
        p = behind;
        return true;
#else
        (void)p, (void)previous, (void)data, (void)indices;
        return false;
#endif
    }
#ifdef __SSE2__
    // Up to the first byte that is a space or less; 32 if there is none so near.
    static int word_length(const char* p) {
        const auto mask = [](const char* q) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
            return uint64_t(
                _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(' ')), bytes)));
        };
        return std::countr_zero(mask(p) | mask(p + 16) << 16 | uint64_t(1) << 32);
    }
#endif

    // Digits at p, one at least; false if they are more than an int64 holds.
    [[gnu::always_inline]] bool whole_number(const char*& p, uint64_t& value) const {
        const uint64_t word = decimal::load(decimal::Readable<8>(p, text_end_));
        const int digits = decimal::leading_digits(word);
        value = decimal::eight_digits(word << (64 - 8 * digits));
        p += digits;
        if (digits < 8) [[likely]]
            return true;
        bool fits = true;
        for (; is_digit(at(p)); ++p) {
            value = value * 10 + uint64_t(*p - '0');
            if (value > uint64_t(std::numeric_limits<int64_t>::max())) fits = false, value = 0;
        }
        return fits;
    }

    Offence index_offence(bool fits, uint64_t index, int64_t previous) const {
        if (fits && index == 0 && first_index_ == 1) return Offence::index_zero;
        if (fits && int64_t(index) == previous) return Offence::index_repeated;
        if (fits && int64_t(index) < previous) return Offence::index_decreasing;
        const bool beyond = n_features_ >= 0 && (!fits || int64_t(index) - first_index_ >= n_features_);
        return beyond ? Offence::index_beyond : Offence::index_too_wide;
    }

    // A NUL byte anywhere in a bad word is what is wrong with it.
    bool refuse_word(Offence offence, const char* word) {
        const char* stop = word;
        while (!ends_word(at(stop))) ++stop;
        const char* nul = find(word, stop, '\0');
        return nul != stop ? refuse(Offence::nul_byte, nul) : refuse(offence, word);
    }

    const char *p_, *end_, *text_end_;
    const char* line_ = nullptr;
    int64_t first_index_, n_features_, last_index_;
    bool query_wanted_;
    T* data_;
    I *indices_, *ends_;
    double* labels_;
    int64_t* queries_;
};

Refusal describe(const Found& found, const char* begin, const char* end, int64_t first_line) {
    const char* stop = found.word;
    while (stop != end && stop - found.word < 60 && !ends_word(*stop)) ++stop;
    if (stop == found.word && stop != end && *stop != '\n') ++stop;  // a lone return
    return {found.offence, first_line + count(begin, found.line, '\n'), found.word - found.line + 1,
            std::string(found.word, stop), found.previous};
}

template <class V>
void move_down(V* array, int64_t from, int64_t to, int64_t size) {
    if (from != to && size > 0) std::memmove(array + to, array + from, std::size_t(size) * sizeof(V));
}

}  // namespace

template <class T, class I>
std::variant<int64_t, Refusal> Reader<T, I>::add(std::string_view text, bool last) {
    const auto lines_end = last ? std::string_view::npos : text.rfind('\n');
    if (text.empty() || (!last && lines_end == std::string_view::npos)) return int64_t(0);
    if (!last) text = text.substr(0, lines_end + 1);
    const auto consumed = int64_t(text.size());
    if (!begun_ && options_.first_line == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const char *begin = text.data(), *end = begin + text.size();
    const int64_t first_line = options_.first_line + out_.lines;
    std::vector<Piece> pieces = cut(begin, end, std::max<int64_t>(1, options_.piece));
    const int64_t n = int64_t(pieces.size());
    parallel_for(options_.threads, n, [&](int64_t k) { pieces[k].look(); });

    // Where each piece writes: room for as much as it can hold.
    std::vector<int64_t> row(n + 1, rows_), entry(n + 1, entries_);
    int64_t line_ends = 0;
    for (int64_t k = 0; k < n; ++k) {
        row[k + 1] = row[k] + pieces[k].rows;
        entry[k + 1] = entry[k] + pieces[k].entries;
        line_ends += pieces[k].line_ends;
    }
    if (entry[n] > int64_t(std::numeric_limits<I>::max()))
        return Refusal{Offence::too_many_entries, first_line, 1, "", 0};
    if (!begun_ && options_.total > consumed) {
        // As if all were like the beginning, and a little more. Arrays that grow can be copied each time.
        const double share = 1.05 * double(options_.total) / double(consumed);
        const auto expected = [share](int64_t size) { return int64_t(share * double(size)); };
        (void)out_.data.try_resize(expected(entry[n]));
        (void)out_.indices.try_resize(expected(entry[n]));
        (void)out_.indptr.try_resize(expected(row[n]) + 1);
        (void)out_.label.try_resize(expected(row[n]));
    }
    out_.data.reserve(entry[n]);
    out_.indices.reserve(entry[n]);
    out_.indptr.reserve(row[n] + 1);
    out_.label.reserve(row[n]);
    if (options_.query) out_.query.reserve(row[n]);

    std::vector<int64_t> rows(n), entries(n), largest(n, -1);
    std::vector<std::optional<Found>> found(n);
    std::atomic<int64_t> offender{n};  // the first piece known to hold an offence; later ones do not matter
    parallel_for(options_.threads, n, [&](int64_t k) {
        if (k > offender.load(std::memory_order_relaxed)) return;
        Parser<T, I> parser(pieces[k], end, options_, out_.data.data() + entry[k],
                            out_.indices.data() + entry[k], out_.indptr.data() + 1 + row[k],
                            out_.label.data() + row[k],
                            options_.query ? out_.query.data() + row[k] : nullptr);
        parser.run();
        rows[k] = parser.rows, entries[k] = parser.entries, largest[k] = parser.largest;
        found[k] = parser.found;
        if (parser.found)
            for (int64_t seen = offender; k < seen && !offender.compare_exchange_weak(seen, k);) {
            }
    });
    if (offender < n) return describe(*found[offender], begin, end, first_line);

    // Close the gaps that blank lines and the like have left, then count entries from the very beginning.
    for (int64_t k = 0; k < n; ++k) {
        move_down(out_.data.data(), entry[k], entries_, entries[k]);
        move_down(out_.indices.data(), entry[k], entries_, entries[k]);
        move_down(out_.indptr.data(), 1 + row[k], 1 + rows_, rows[k]);
        move_down(out_.label.data(), row[k], rows_, rows[k]);
        if (options_.query) move_down(out_.query.data(), row[k], rows_, rows[k]);
        row[k] = rows_, entry[k] = entries_;
        rows_ += rows[k], entries_ += entries[k];
        out_.columns = std::max(out_.columns, largest[k] + 1);
    }
    parallel_for(options_.threads, n, [&](int64_t k) {
        I* ends = out_.indptr.data() + 1 + row[k];
        for (int64_t r = 0; r < rows[k]; ++r) ends[r] = I(ends[r] + entry[k]);
    });
    begun_ = true;
    out_.lines += line_ends;
    return consumed;
}

template <class T, class I>
Rows<T, I> Reader<T, I>::finish() {
    out_.data.resize(entries_);
    out_.indices.resize(entries_);
    out_.indptr.resize(rows_ + 1);
    out_.label.resize(rows_);
    out_.query.resize(options_.query ? rows_ : 0);
    out_.indptr.data()[0] = 0;
    rows_ = entries_ = 0;
    return std::move(out_);
}

template <class T, class I>
template <class J>
Reader<T, I>::Reader(Reader<T, J>&& other)
    : options_(other.options_), begun_(other.begun_), rows_(other.rows_), entries_(other.entries_) {
    out_.data = std::move(other.out_.data);
    out_.label = std::move(other.out_.label);
    out_.query = std::move(other.out_.query);
    out_.columns = other.out_.columns, out_.lines = other.out_.lines;
    out_.indices.resize(entries_);
    std::copy_n(other.out_.indices.data(), entries_, out_.indices.data());
    out_.indptr.resize(rows_ + 1);
    if (rows_) std::copy_n(other.out_.indptr.data() + 1, rows_, out_.indptr.data() + 1);
}

template <class T, class I>
std::variant<Rows<T, I>, Refusal> read(std::string_view text, const ReadOptions& options) {
    Reader<T, I> reader(options);
    auto found = reader.add(text, true);
    if (auto* refusal = std::get_if<Refusal>(&found)) return std::move(*refusal);
    return reader.finish();
}

template class Reader<float, std::int32_t>;
template class Reader<float, std::int64_t>;
template class Reader<double, std::int32_t>;
template class Reader<double, std::int64_t>;
template Reader<float, std::int64_t>::Reader(Reader<float, std::int32_t>&&);
template Reader<double, std::int64_t>::Reader(Reader<double, std::int32_t>&&);
template std::variant<Rows<float, std::int32_t>, Refusal> read(std::string_view, const ReadOptions&);
template std::variant<Rows<float, std::int64_t>, Refusal> read(std::string_view, const ReadOptions&);
template std::variant<Rows<double, std::int32_t>, Refusal> read(std::string_view, const ReadOptions&);
template std::variant<Rows<double, std::int64_t>, Refusal> read(std::string_view, const ReadOptions&);

}  // namespace pegasos::svmlight
