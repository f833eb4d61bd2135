// Fuzzes the svmlight reader: whatever the bytes, every way of reading them must agree, and what was read
// must survive being written and read again. `make fuzz` builds and runs it.
#include "pegasos/text/svmlight.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace {

using namespace pegasos::svmlight;
using std::int64_t;

void demand(bool truth) {
    if (!truth) std::abort();
}

// The outcome of a reading as plain vectors, so that outcomes can be compared and joined.
template <class T>
struct Outcome {
    std::vector<T> data;
    std::vector<int64_t> indices, ends, query;
    std::vector<double> label;
    int64_t columns = 0, lines = 0;
    bool refused = false;
    int offence = 0;
    int64_t line = 0, column = 0;
    std::string text;

    template <class I>
    void append(const Rows<T, I>& rows) {
        const int64_t before = int64_t(data.size()), m = rows.label.size();
        demand(rows.indptr.size() == m + 1 && rows.indptr.data()[0] == 0);
        demand(rows.data.size() == rows.indices.size() && rows.indptr.data()[m] == rows.data.size());
        data.insert(data.end(), rows.data.data(), rows.data.data() + rows.data.size());
        indices.insert(indices.end(), rows.indices.data(), rows.indices.data() + rows.indices.size());
        for (int64_t i = 0; i < m; ++i) {
            demand(rows.indptr.data()[i] <= rows.indptr.data()[i + 1]);
            ends.push_back(before + rows.indptr.data()[i + 1]);
        }
        label.insert(label.end(), rows.label.data(), rows.label.data() + m);
        query.insert(query.end(), rows.query.data(), rows.query.data() + rows.query.size());
        columns = std::max(columns, rows.columns);
        lines += rows.lines;
    }
    void append(const Refusal& r) {
        refused = true, offence = int(r.offence), line = r.line, column = r.column, text = r.text;
    }
};

// To the bit: -0 is not 0.
template <class V>
bool same(const std::vector<V>& a, const std::vector<V>& b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0);
}
template <class T>
void demand_same(const Outcome<T>& a, const Outcome<T>& b) {
    demand(a.refused == b.refused);
    if (a.refused) {
        demand(a.offence == b.offence && a.line == b.line && a.column == b.column && a.text == b.text);
    } else {
        demand(same(a.data, b.data) && same(a.indices, b.indices) && same(a.ends, b.ends));
        demand(same(a.label, b.label) && same(a.query, b.query) && a.columns == b.columns &&
               a.lines == b.lines);
    }
}

template <class T, class I>
Outcome<T> whole(std::string_view text, const ReadOptions& options) {
    Outcome<T> out;
    std::visit([&](const auto& found) { out.append(found); }, read<T, I>(text, options));
    return out;
}

// In blocks of about `size` bytes, as the chunked reader does it.
template <class T, class I>
Outcome<T> chunked(std::string_view text, ReadOptions options, std::size_t size) {
    Outcome<T> out;
    while (!text.empty() && !out.refused) {
        std::size_t end = text.find('\n', std::min(size, text.size() - 1));
        end = end == std::string_view::npos ? text.size() : end + 1;
        // A copy of just this block: reading past its end is a crime that the sanitizer sees.
        const std::vector<char> block(text.begin(), text.begin() + std::ptrdiff_t(end));
        std::visit([&](const auto& found) { out.append(found); },
                   read<T, I>({block.data(), block.size()}, options));
        text.remove_prefix(end);
        options.first_line = 1 + out.lines;
    }
    return out;
}

// Handed over part by part, with integers that widen on the way.
template <class T, class I>
Outcome<T> in_parts(std::string_view text, const ReadOptions& options, std::size_t size) {
    Outcome<T> out;
    Reader<T, I> reader(options);
    std::size_t ahead = size;
    while (!text.empty()) {
        const std::vector<char> part(text.begin(),
                                     text.begin() + std::ptrdiff_t(std::min(ahead, text.size())));
        const auto found = reader.add({part.data(), part.size()}, part.size() == text.size());
        if (const auto* refusal = std::get_if<Refusal>(&found)) {
            out.append(*refusal);
            return out;
        }
        const auto used = std::size_t(std::get<int64_t>(found));
        text.remove_prefix(used);
        ahead = used ? size : 2 * ahead;
    }
    if constexpr (sizeof(I) == 4)
        out.append(Reader<T, int64_t>(std::move(reader)).finish());
    else
        out.append(reader.finish());
    return out;
}

// Written and read again, nothing has changed; and nothing was read that is not finite.
template <class T>
void demand_round_trip(const Outcome<T>& read_before, const ReadOptions& options) {
    std::vector<int64_t> offsets{0};
    offsets.insert(offsets.end(), read_before.ends.begin(), read_before.ends.end());
    const Lines<T, int64_t> lines{read_before.data.data(),
                                  read_before.indices.data(),
                                  offsets.data(),
                                  read_before.label.data(),
                                  options.query ? read_before.query.data() : nullptr,
                                  options.zero_based ? 0 : 1};
    const std::string text = write(lines, 0, int64_t(read_before.label.size()), 1);
    ReadOptions again = options;
    again.first_line = 2;
    Outcome<T> back = whole<T, int64_t>(text, again);
    demand(!back.refused && same(back.data, read_before.data) && same(back.indices, read_before.indices));
    demand(same(back.ends, read_before.ends) && same(back.label, read_before.label));
    demand(same(back.query, read_before.query));
    for (std::size_t i = 0; i < read_before.data.size(); ++i) demand(std::isfinite(read_before.data[i]));
}

template <class T, class I>
void check(std::string_view text, ReadOptions options, std::size_t size) {
    const Outcome<T> one = whole<T, I>(text, options);
    demand_same(one, chunked<T, I>(text, options, size));
    demand_same(one, in_parts<T, I>(text, options, size));
    ReadOptions pieces = options;
    pieces.piece = int64_t(size);
    demand_same(one, whole<T, I>(text, pieces));
    pieces.threads = 3;
    demand_same(one, whole<T, I>(text, pieces));
    if (!one.refused) demand_round_trip(one, options);
}

}  // namespace

// The first byte chooses the options, the rest is the text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
    if (size == 0) return 0;
    const unsigned choice = bytes[0];
    const std::vector<char> text(bytes + 1, bytes + size);  // of its own, with guarded ends
    const std::string_view view(text.data(), text.size());
    ReadOptions options;
    options.zero_based = choice & 1;
    options.query = choice & 2;
    options.n_features = choice & 4 ? 100 : -1;
    const std::size_t blocks[] = {1, 7, 16, 64};
    const std::size_t block = blocks[(choice >> 3) & 3];
    if (choice & 32)
        choice & 64 ? check<float, std::int32_t>(view, options, block)
                    : check<float, std::int64_t>(view, options, block);
    else
        choice & 64 ? check<double, std::int32_t>(view, options, block)
                    : check<double, std::int64_t>(view, options, block);
    return 0;
}
