// The svmlight reader and writer. What is wrong with a text comes back as a dict: sentences are made in
// Python, where the names of the parameters are known.
#include "pegasos/svmlight.hpp"

#include <nanobind/stl/optional.h>

#include <optional>

#include "arrays.hpp"

namespace pegasos::bind {
namespace {

const char* name_of(svmlight::Offence offence) {
    using enum svmlight::Offence;
    switch (offence) {
        case bad_label:
            return "bad_label";
        case label_overflow:
            return "label_overflow";
        case several_labels:
            return "several_labels";
        case no_label:
            return "no_label";
        case bad_query:
            return "bad_query";
        case query_overflow:
            return "query_overflow";
        case misplaced_query:
            return "misplaced_query";
        case no_query:
            return "no_query";
        case bad_index:
            return "bad_index";
        case index_zero:
            return "index_zero";
        case index_repeated:
            return "index_repeated";
        case index_decreasing:
            return "index_decreasing";
        case index_beyond:
            return "index_beyond";
        case index_too_wide:
            return "index_too_wide";
        case no_colon:
            return "no_colon";
        case no_value:
            return "no_value";
        case bad_value:
            return "bad_value";
        case value_overflow:
            return "value_overflow";
        case nul_byte:
            return "nul_byte";
        case lone_return:
            return "lone_return";
        case too_many_entries:
            return "too_many_entries";
    }
    return "";
}

template <class T>
nb::object give_away(svmlight::Array<T>& array) {
    const std::size_t size = std::size_t(array.size());
    T* p = array.release();
    nb::capsule owner(p, [](void* q) noexcept { std::free(q); });
    return nb::cast(nb::ndarray<T, nb::numpy, nb::ndim<1>>(p, {size}, owner));
}

template <class T, class I>
nb::dict read(Vector<std::uint8_t> text, const svmlight::ReadOptions& options) {
    const std::string_view bytes(reinterpret_cast<const char*>(text.data()), text.shape(0));
    auto result = [&] {
        nb::gil_scoped_release release;
        return svmlight::read<T, I>(bytes, options);
    }();
    nb::dict d;
    if (const auto* refusal = std::get_if<svmlight::Refusal>(&result)) {
        d["offence"] = name_of(refusal->offence);
        d["line"] = refusal->line;
        d["column"] = refusal->column;
        d["text"] = nb::bytes(refusal->text.data(), refusal->text.size());
        d["previous"] = refusal->previous;
        return d;
    }
    auto& rows = std::get<svmlight::Rows<T, I>>(result);
    d["data"] = give_away(rows.data);
    d["indices"] = give_away(rows.indices);
    d["indptr"] = give_away(rows.indptr);
    d["label"] = give_away(rows.label);
    d["query"] = give_away(rows.query);
    d["columns"] = rows.columns;
    d["lines"] = rows.lines;
    return d;
}

// The arrays are those of a matrix that _data has checked.
template <class T, class I>
nb::bytes write(Vector<T> data, Vector<I> indices, Vector<I> indptr, Vector<double> label,
                std::optional<Vector<std::int64_t>> query, bool zero_based, std::int64_t first,
                std::int64_t last, int threads) {
    const std::int64_t rows = std::int64_t(indptr.shape(0)) - 1;
    check_length(indices, std::int64_t(data.shape(0)), "indices");
    check_length(label, rows, "label");
    if (query) check_length(*query, rows, "query");
    if (first < 0 || last < first || last > rows) throw std::out_of_range("rows");
    const std::string text = [&] {
        nb::gil_scoped_release release;
        return svmlight::write(svmlight::Lines<T, I>{data.data(), indices.data(), indptr.data(), label.data(),
                                                     query ? query->data() : nullptr, zero_based ? 0 : 1},
                               first, last, threads);
    }();
    return nb::bytes(text.data(), text.size());
}

template <class T, class I>
void register_write(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("svmlight_write", &write<T, I>, strict("data"), strict("indices"), strict("indptr"),
          strict("label"), strict("query").none(), "zero_based"_a, "first"_a, "last"_a, "threads"_a);
}

}  // namespace

void register_svmlight(nb::module_& m) {
    using namespace nb::literals;
    m.def(
        "svmlight_read",
        [](Vector<std::uint8_t> text, bool single, bool wide, bool zero_based, std::int64_t n_features,
           bool query, std::int64_t first_line, int threads, std::int64_t piece) {
            const svmlight::ReadOptions options{zero_based, n_features, first_line, query, threads, piece};
            if (single)
                return wide ? read<float, std::int64_t>(text, options)
                            : read<float, std::int32_t>(text, options);
            return wide ? read<double, std::int64_t>(text, options)
                        : read<double, std::int32_t>(text, options);
        },
        nb::arg("text").noconvert(), nb::kw_only(), "single"_a, "wide"_a, "zero_based"_a, "n_features"_a,
        "query"_a, "first_line"_a, "threads"_a, "piece"_a = svmlight::ReadOptions{}.piece);
    register_write<float, std::int32_t>(m);
    register_write<float, std::int64_t>(m);
    register_write<double, std::int32_t>(m);
    register_write<double, std::int64_t>(m);
}

}  // namespace pegasos::bind
