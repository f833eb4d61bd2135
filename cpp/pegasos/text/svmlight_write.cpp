#include <algorithm>
#include <atomic>
#include <charconv>
#include <vector>

#include "pegasos/core/parallel.hpp"
#include "pegasos/text/svmlight.hpp"

namespace pegasos::svmlight {
namespace {

constexpr std::int64_t longest = 32;    // characters of a number, generously
constexpr std::int64_t stretch = 4096;  // rows a task writes

template <class N>
char* put(char* p, N number) {
    return std::to_chars(p, p + longest, number).ptr;
}

template <class T, class I>
std::string write_some(const Lines<T, I>& lines, std::int64_t first, std::int64_t last) {
    std::string text;
    std::int64_t used = 0;
    const auto room = [&](std::int64_t more) {  // doubling, so that the copies stay few
        if (used + more > std::int64_t(text.size()))
            text.resize(std::size_t(std::max(2 * used, used + more)));
        return text.data() + used;
    };
    for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t begin = lines.offsets[i], end = lines.offsets[i + 1];
        char* p = room((end - begin) * (2 * longest) + 2 * longest + 8);
        p = put(p, lines.label[i]);
        if (lines.query) {
            p = std::copy_n(" qid:", 5, p);
            p = put(p, lines.query[i]);
        }
        for (std::int64_t e = begin; e < end; ++e) {
            *p++ = ' ';
            p = put(p, std::int64_t(lines.indices[e]) + lines.first_index);
            *p++ = ':';
            p = put(p, lines.data[e]);
        }
        *p++ = '\n';
        used = p - text.data();
    }
    text.resize(std::size_t(used));
    return text;
}

}  // namespace

template <class T, class I>
std::string write(const Lines<T, I>& lines, std::int64_t first, std::int64_t last, int threads) {
    std::vector<std::string> parts(std::size_t((last - first + stretch - 1) / stretch));
    std::atomic<bool> no_memory{false};
    parallel_for(threads, std::int64_t(parts.size()), [&](std::int64_t k) {
        try {
            parts[k] = write_some(lines, first + k * stretch, std::min(last, first + (k + 1) * stretch));
        } catch (const std::bad_alloc&) {  // must not leave a thread
            no_memory = true;
        }
    });
    if (no_memory) throw std::bad_alloc();
    if (parts.size() == 1) return std::move(parts[0]);
    std::size_t size = 0;
    for (const auto& part : parts) size += part.size();
    std::string all;
    all.reserve(size);
    for (const auto& part : parts) all += part;
    return all;
}

template std::string write(const Lines<float, std::int32_t>&, std::int64_t, std::int64_t, int);
template std::string write(const Lines<float, std::int64_t>&, std::int64_t, std::int64_t, int);
template std::string write(const Lines<double, std::int32_t>&, std::int64_t, std::int64_t, int);
template std::string write(const Lines<double, std::int64_t>&, std::int64_t, std::int64_t, int);

}  // namespace pegasos::svmlight
