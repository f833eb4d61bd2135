// The svmlight reader and writer. What is wrong with a text comes back as an object: sentences are made in
// Python, where the names of the parameters are known.
#include "pegasos/text/svmlight.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <utility>
#include <variant>

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
using Owned = nb::ndarray<T, nb::numpy, nb::ndim<1>>;

// svmlight::Rows whose arrays Python owns.
struct RowsFound {
    std::variant<Owned<float>, Owned<double>> data;
    std::variant<Owned<std::int32_t>, Owned<std::int64_t>> indices, indptr;
    Owned<double> label;
    Owned<std::int64_t> query;
    std::int64_t columns, lines;
};

template <class T>
Owned<T> give_away(svmlight::Array<T>& array) {
    const std::size_t size = std::size_t(array.size());
    T* p = array.release();
    nb::capsule owner(p, [](void* q) noexcept { std::free(q); });
    return Owned<T>(p, {size}, owner);
}

template <class T, class I>
RowsFound give_away(svmlight::Rows<T, I>& rows) {
    return {give_away(rows.data),
            give_away(rows.indices),
            give_away(rows.indptr),
            give_away(rows.label),
            give_away(rows.query),
            rows.columns,
            rows.lines};
}

std::string_view characters(const Vector<std::uint8_t>& text) {
    return {reinterpret_cast<const char*>(text.data()), text.shape(0)};
}

using RowsOrRefusal = std::variant<RowsFound, svmlight::Refusal>;

template <class T, class I>
RowsOrRefusal read(Vector<std::uint8_t> text, const svmlight::ReadOptions& options) {
    auto result = [&] {
        nb::gil_scoped_release release;
        return svmlight::read<T, I>(characters(text), options);
    }();
    if (auto* refusal = std::get_if<svmlight::Refusal>(&result)) return std::move(*refusal);
    return give_away(std::get<svmlight::Rows<T, I>>(result));
}

// A text that is handed over part by part, so that Python can look for signals in between.
class PartsReader {
    template <class T, class I>
    using Reader = svmlight::Reader<T, I>;
    std::variant<Reader<float, std::int32_t>, Reader<float, std::int64_t>, Reader<double, std::int32_t>,
                 Reader<double, std::int64_t>>
        reader_;

 public:
    PartsReader(bool single, bool wide, const svmlight::ReadOptions& options)
        : reader_(std::in_place_type<Reader<double, std::int64_t>>, options) {
        if (single && wide)
            reader_.emplace<Reader<float, std::int64_t>>(options);
        else if (single)
            reader_.emplace<Reader<float, std::int32_t>>(options);
        else if (!wide)
            reader_.emplace<Reader<double, std::int32_t>>(options);
    }

    // The number of bytes read, or what is wrong.
    std::variant<std::int64_t, svmlight::Refusal> add(Vector<std::uint8_t> text, bool last) {
        return std::visit(
            [&](auto& reader) {
                nb::gil_scoped_release release;
                return reader.add(characters(text), last);
            },
            reader_);
    }

    // From now on with 64-bit integers.
    void widen() {
        if (auto* narrow = std::get_if<Reader<float, std::int32_t>>(&reader_))
            reader_ = Reader<float, std::int64_t>(std::move(*narrow));
        else if (auto* same = std::get_if<Reader<double, std::int32_t>>(&reader_))
            reader_ = Reader<double, std::int64_t>(std::move(*same));
    }

    RowsFound finish() {
        return std::visit(
            [](auto& reader) {
                auto rows = reader.finish();
                return give_away(rows);
            },
            reader_);
    }
};

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
    const auto shared = nb::rv_policy::automatic;
    nb::class_<RowsFound>(m, "SvmlightRows")
        .def_ro("data", &RowsFound::data, shared)
        .def_ro("indices", &RowsFound::indices, shared)
        .def_ro("indptr", &RowsFound::indptr, shared)
        .def_ro("label", &RowsFound::label, shared)
        .def_ro("query", &RowsFound::query, shared)
        .def_ro("columns", &RowsFound::columns)
        .def_ro("lines", &RowsFound::lines);
    using svmlight::Refusal;
    nb::class_<Refusal>(m, "SvmlightRefusal")
        .def_prop_ro("offence", [](const Refusal& r) { return name_of(r.offence); })
        .def_ro("line", &Refusal::line)
        .def_ro("column", &Refusal::column)
        .def_prop_ro("text", [](const Refusal& r) { return nb::bytes(r.text.data(), r.text.size()); })
        .def_ro("previous", &Refusal::previous);
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
    nb::class_<PartsReader>(m, "SvmlightReader")
        .def(
            "__init__",
            [](PartsReader* self, bool single, bool wide, bool zero_based, std::int64_t n_features,
               bool query, int threads, std::int64_t piece, std::int64_t total) {
                new (self) PartsReader(
                    single, wide,
                    svmlight::ReadOptions{zero_based, n_features, 1, query, threads, piece, total});
            },
            nb::kw_only(), "single"_a, "wide"_a, "zero_based"_a, "n_features"_a, "query"_a, "threads"_a,
            "piece"_a = svmlight::ReadOptions{}.piece, "total"_a = 0)
        .def("add", &PartsReader::add, nb::arg("text").noconvert(), nb::kw_only(), "last"_a)
        .def("widen", &PartsReader::widen)
        .def("finish", &PartsReader::finish);
    register_write<float, std::int32_t>(m);
    register_write<float, std::int64_t>(m);
    register_write<double, std::int32_t>(m);
    register_write<double, std::int64_t>(m);
}

}  // namespace pegasos::bind
