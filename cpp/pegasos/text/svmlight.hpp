// The svmlight text format, read and written. A line is
//
//     label [qid:number] [index:value ...] [# comment]
//
// with blanks (spaces, tabs) between the parts and, if need be, behind a colon; indices increase. Lines end
// in \n or \r\n; those without a label are skipped. A byte order mark may stand at the very beginning.
//
// Reading is cut into pieces by the text alone: rows, and the first offence, are the same for any number of
// threads, and for any way to hand the text over part by part. Two passes over each part: the first counts
// colons and lines, so that the second can write every piece where it belongs.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace pegasos::svmlight {

// Memory that grows and shrinks where it is, if the system can do that.
template <class T>
class Array {
 public:
    // Room for so much at least. By half as much again as there was, so that often growing costs little;
    // pages that are never written take no memory.
    void reserve(std::int64_t size) {
        if (memory_ && size <= size_) return;
        resize(size <= size_ + size_ / 2 ? size_ + size_ / 2 : size);
    }
    void resize(std::int64_t size) {
        if (!try_resize(size)) throw std::bad_alloc();
    }
    bool try_resize(std::int64_t size) {
        T* p = static_cast<T*>(std::realloc(memory_.get(), bytes(size)));
        if (!p) return false;
        (void)memory_.release();
        memory_.reset(p);
        size_ = size;
        return true;
    }
    T* data() { return memory_.get(); }
    const T* data() const { return memory_.get(); }
    std::int64_t size() const { return size_; }
    T* release() { return memory_.release(); }

 private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    static std::size_t bytes(std::int64_t size) { return std::size_t(size > 0 ? size : 1) * sizeof(T); }
    std::unique_ptr<T, Free> memory_;
    std::int64_t size_ = 0;
};

struct ReadOptions {
    bool zero_based = false;
    std::int64_t n_features = -1;  // any if negative
    std::int64_t first_line = 1;   // number of the text's first line; a byte order mark only before line 1
    bool query = false;            // every row must have a qid
    int threads = 1;
    std::int64_t piece = std::int64_t(1) << 20;  // bytes, about
    std::int64_t total = 0;  // bytes of the whole text, as far as known, to make room for all of it at once
};

template <class T, class I>
struct Rows {
    Array<T> data;
    Array<I> indices, indptr;
    Array<double> label;
    Array<std::int64_t> query;  // empty unless asked for
    std::int64_t columns = 0;   // one more than the largest index, counted from 0
    std::int64_t lines = 0;     // line ends in the text
};

enum class Offence {
    bad_label,
    label_overflow,
    several_labels,
    no_label,
    bad_query,
    query_overflow,
    misplaced_query,
    no_query,
    bad_index,
    index_zero,
    index_repeated,
    index_decreasing,
    index_beyond,    // n_features
    index_too_wide,  // for the integers asked for
    no_colon,
    no_value,
    bad_value,
    value_overflow,
    nul_byte,
    lone_return,
    too_many_entries,  // for the integers asked for
};

struct Refusal {
    Offence offence;
    std::int64_t line, column;  // from 1; column in bytes
    std::string text;           // the offending word, at most 60 bytes of it
    std::int64_t previous;      // the index before, where order is the matter
};

// The rows of a text that comes in parts. T is float or double, I std::int32_t or std::int64_t. Everything
// may throw std::bad_alloc.
template <class T, class I>
class Reader {
 public:
    explicit Reader(const ReadOptions& options) : options_(options) {}
    // Goes on where a reader with narrower integers, say, has stopped.
    template <class J>
    explicit Reader(Reader<T, J>&& other);

    // Reads the lines that are complete and, if this part is the last one, what is behind them: how many
    // bytes that were. The rest is to be handed over again, with what follows it. A part that is refused
    // changes nothing.
    std::variant<std::int64_t, Refusal> add(std::string_view text, bool last);
    // All rows so far; the reader is not to be used any more.
    Rows<T, I> finish();

 private:
    template <class, class>
    friend class Reader;
    ReadOptions options_;
    bool begun_ = false;
    std::int64_t rows_ = 0, entries_ = 0;
    Rows<T, I> out_;  // arrays with room to spare
};

// The rows of a text at hand.
template <class T, class I>
std::variant<Rows<T, I>, Refusal> read(std::string_view text, const ReadOptions&);

// CSR rows to be written: row i holds the entries offsets[i] … offsets[i+1] of data and indices.
template <class T, class I>
struct Lines {
    const T* data;
    const I *indices, *offsets;
    const double* label;
    const std::int64_t* query;  // may be null
    std::int64_t first_index;   // 0 or 1
};

// The text of the rows [first, last): numbers as short as they can be and still be read back to the bit.
template <class T, class I>
std::string write(const Lines<T, I>&, std::int64_t first, std::int64_t last, int threads);

}  // namespace pegasos::svmlight
