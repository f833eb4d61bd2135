// Sequences of tokens as Python has them (dicts, lists of strings) to numbered attributes. Objects may be anything and
// may run any code while they are read: whatever is used across such a call is owned, and the bytes of names are
// copied at once. What is wrong with the input is said by sequence and position, both counted from 0.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <tuple>

#include "arrays.hpp"
#include "pegasos/text/vocabulary.hpp"

namespace pegasos::bind {
namespace {

constexpr int deepest = 100;                     // dicts in dicts
constexpr std::int64_t tokens_a_look = 1 << 16;  // tokens between two looks for Ctrl-C

std::string type_of(nb::handle object) { return nb::cast<std::string>(object.type().attr("__name__")); }
// A name as Python writes it; bytes that are no UTF-8 as it escapes them.
std::string quoted(std::string_view bytes) {
    constexpr std::size_t longest = 60;
    const bool cut = bytes.size() > longest;
    const nb::object text = nb::steal(PyUnicode_DecodeUTF8(
        bytes.data(), Py_ssize_t(cut ? longest : bytes.size()), cut ? "ignore" : "backslashreplace"));
    if (!text.is_valid()) throw nb::python_error();
    return nb::cast<std::string>(nb::repr(text)) + (cut ? "…" : "");
}

bool has(nb::handle object, const char* attribute) { return PyObject_HasAttrString(object.ptr(), attribute); }
bool is_text(nb::handle object) { return PyUnicode_Check(object.ptr()) || PyBytes_Check(object.ptr()); }
bool is_set(nb::handle object) { return PyAnySet_Check(object.ptr()); }
bool is_list(nb::handle object) {
    return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()) || is_set(object);
}
bool is_mapping(nb::handle object) {
    return PyDict_Check(object.ptr()) || (!is_list(object) && has(object, "keys"));
}
bool is_iterable(nb::handle object) {
    return is_list(object) || has(object, "__iter__") || PySequence_Check(object.ptr());
}

// Calls visit with each item, which is owned meanwhile.
template <class Visit>
void for_each(nb::handle items, const Visit& visit) {
    if (PyList_CheckExact(items.ptr())) {
        for (Py_ssize_t k = 0; k < PyList_Size(items.ptr()); ++k)
            visit(nb::borrow(PyList_GetItem(items.ptr(), k)));
    } else if (PyTuple_CheckExact(items.ptr())) {
        for (Py_ssize_t k = 0; k < PyTuple_Size(items.ptr()); ++k)
            visit(nb::borrow(PyTuple_GetItem(items.ptr(), k)));
    } else {
        const nb::object iterator = nb::steal(PyObject_GetIter(items.ptr()));
        if (!iterator.is_valid()) throw nb::python_error();
        while (PyObject* item = PyIter_Next(iterator.ptr())) visit(nb::steal(item));
        if (PyErr_Occurred()) throw nb::python_error();
    }
}

// The attributes of a token: names, one after the other, and values.
struct Attributes {
    struct Entry {
        std::size_t begin, size;
        double value;
        Vocabulary::Hash hash;
        std::int32_t likely = Vocabulary::absent;
    };
    std::string bytes;
    std::vector<Entry> entries;

    std::string_view name(const Entry& e) const { return {bytes.data() + e.begin, e.size}; }
    void clear() {
        bytes.clear();
        entries.clear();
    }
    // The name is what has been appended to bytes from begin on.
    void add(std::size_t begin, double value) {
        const std::string_view name(bytes.data() + begin, bytes.size() - begin);
        entries.push_back({begin, name.size(), value, Vocabulary::hash(name)});
    }
    // Sets have no order that is the same in every run.
    void sort_from(std::size_t first) {
        std::sort(entries.begin() + std::ptrdiff_t(first), entries.end(),
                  [&](const Entry& a, const Entry& b) { return name(a) < name(b); });
    }
};

class Reader {
 public:
    // Names that are new are added to the vocabulary, or passed over.
    explicit Reader(Vocabulary& learnt) : known_(learnt), learnt_(&learnt) {}
    explicit Reader(const Vocabulary& known) : known_(known), learnt_(nullptr) {}

    Uses uses;
    std::vector<std::int64_t> offsets{0};

    void read_sequences(nb::handle X) {
        placed([&] {
            for_each(X, [&](nb::object sequence) {
                if (is_text(sequence) || is_set(sequence) || PyDict_Check(sequence.ptr()) ||
                    !is_iterable(sequence))
                    throw nb::type_error(
                        ("sequence " + std::to_string(offsets.size() - 1) + " is of type " +
                         type_of(sequence) +
                         ", but should be a sequence of tokens: X is a list of sequences, and a "
                         "single sequence is passed as [X]")
                            .c_str());
                for_each(sequence, [&](nb::object token) { read_token(token); });
                offsets.push_back(uses.tokens());
            });
        });
    }
    // The tokens of all sequences; where these begin is known.
    void read_tokens(nb::handle X, std::vector<std::int64_t> begins) {
        offsets = std::move(begins);
        flat_ = true;
        const auto total = [&] {
            return "lengths add up to " + std::to_string(offsets.back()) + " tokens, but X has ";
        };
        placed([&] {
            for_each(X, [&](nb::object token) {
                if (uses.tokens() == offsets.back()) throw nb::value_error((total() + "more").c_str());
                read_token(token);
            });
        });
        if (uses.tokens() < offsets.back())
            throw nb::value_error((total() + std::to_string(uses.tokens())).c_str());
    }

 private:
    const Vocabulary& known_;
    Vocabulary* learnt_;
    Attributes token_;
    std::string prefix_;
    int depth_ = 0;
    bool flat_ = false;

    std::string place() const {
        const std::int64_t t = uses.tokens();
        auto next = offsets.end();  // one behind where the sequence begins
        if (flat_ && offsets.size() > 1) next = std::upper_bound(offsets.begin() + 1, next - 1, t);
        return "sequence " + std::to_string(next - offsets.begin() - 1) + ", position " +
               std::to_string(t - next[-1]);
    }
    [[noreturn]] void wrong_type(const std::string& what) const {
        throw nb::type_error((place() + ": " + what).c_str());
    }
    [[noreturn]] void wrong_value(const std::string& what) const {
        throw nb::value_error((place() + ": " + what).c_str());
    }
    // What the code of iterators and the like raises goes to whoever called, with a note of the place.
    template <class Work>
    void placed(const Work& work) {
        try {
            work();
        } catch (nb::python_error& error) {
            if (error.matches(PyExc_Exception))
                error.value().attr("add_note")("while X was read at " + place());
            throw;
        }
    }

    void read_token(nb::handle token) {
        token_.clear();
        if (is_text(token))
            read_name(token);
        else if (is_mapping(token))
            read_mapping(token);
        else if (is_iterable(token))
            read_names(token);
        else
            wrong_type("a token is of type " + type_of(token) +
                       ", but should be a dict, a string or a list of strings" + numbers(token));
        for (const auto& e : token_.entries) known_.prefetch(e.hash);
        for (auto& e : token_.entries) e.likely = known_.likely(e.hash);
        for (const auto& e : token_.entries) known_.prefetch_name(e.likely);
        for (const auto& e : token_.entries) {
            const auto name = token_.name(e);
            const std::int32_t id = learnt_ ? learnt_->add(name, e.hash) : known_.find(name, e.hash);
            if (id != Vocabulary::absent) uses.add(id, e.value);
        }
        uses.end_token();
        if (uses.tokens() % tokens_a_look == 0 && PyErr_CheckSignals() != 0) throw nb::python_error();
    }

    // Strings, behind the prefix.
    void read_names(nb::handle names) {
        const std::size_t first = token_.entries.size();
        for_each(names, [&](const nb::object& name) { read_name(name); });
        if (is_set(names)) token_.sort_from(first);
    }
    void read_name(nb::handle name) {
        const std::size_t begin = token_.bytes.size();
        token_.bytes += prefix_;
        if (!append(name))
            wrong_type("an attribute" + (prefix_.empty() ? "" : " of " + outer_name()) + " is of type " +
                       type_of(name) + ", not a string" + numbers(name));
        token_.add(begin, 1.0);
    }

    void read_mapping(nb::handle mapping) {
        if (!PyDict_Check(mapping.ptr())) {
            const nb::object items = nb::steal(PyMapping_Items(mapping.ptr()));
            if (!items.is_valid()) throw nb::python_error();
            return for_each(items, [&](const nb::object& item) {
                if (!PyTuple_Check(item.ptr()) || PyTuple_Size(item.ptr()) != 2)
                    wrong_type("the items of a " + type_of(mapping) + " are no pairs");
                read_item(nb::borrow(PyTuple_GetItem(item.ptr(), 0)),
                          nb::borrow(PyTuple_GetItem(item.ptr(), 1)));
            });
        }
        const Py_ssize_t size = PyDict_Size(mapping.ptr());
        PyObject *key, *value;
        for (Py_ssize_t at = 0; PyDict_Next(mapping.ptr(), &at, &key, &value);) {
            read_item(nb::borrow(key), nb::borrow(value));
            if (PyDict_Size(mapping.ptr()) != size) {
                PyErr_SetString(PyExc_RuntimeError, "dictionary changed size during iteration");
                throw nb::python_error();
            }
        }
    }
    void read_item(const nb::object& key, const nb::object& value) {
        const std::size_t begin = token_.bytes.size();
        token_.bytes += prefix_;
        if (!append(key)) wrong_type("a key is of type " + type_of(key) + ", not a string");
        if (is_text(value)) {
            token_.bytes += ':';
            append(value);
            token_.add(begin, 1.0);
        } else if (is_number(value)) {
            if (const double x = number(value, begin); x != 0)
                token_.add(begin, x);
            else
                token_.bytes.resize(begin);
        } else {
            read_nested(begin, value);
        }
    }
    // What is inside {"name": [...]} or {"name": {...}}; the name has been appended from begin on.
    void read_nested(std::size_t begin, const nb::object& value) {
        const std::size_t outer = prefix_.size();
        prefix_.append(token_.bytes, begin + outer).push_back(':');
        token_.bytes.resize(begin);
        if (++depth_ > deepest)
            wrong_value("dicts are nested more than " + std::to_string(deepest) + " deep");
        if (is_mapping(value))
            read_mapping(value);
        else if (is_iterable(value))
            read_names(value);
        else
            wrong_type("the value of attribute " + outer_name() + " is of type " + type_of(value) +
                       ", but should be a string, a number, a dict or a list of strings");
        --depth_;
        prefix_.resize(outer);
    }

    std::string outer_name() const { return quoted({prefix_.data(), prefix_.size() - 1}); }

    // Whether a value is one number. Arrays look like numbers, but have a length if they are more than one.
    static bool is_number(nb::handle value) {
        PyObject* p = value.ptr();
        if (PyFloat_Check(p) || PyLong_Check(p)) return true;
        if (!PyNumber_Check(p) || PyIter_Check(p)) return false;
        if (!has(value, "__len__")) return true;
        if (PyObject_Size(p) >= 0) return false;
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw nb::python_error();
        PyErr_Clear();
        return true;
    }
    double number(nb::handle value, std::size_t begin) const {
        const auto refuse_as = [&](const std::string& what) {
            wrong_value("attribute " + quoted(std::string_view(token_.bytes).substr(begin)) + " is " + what);
        };
        const double x = PyFloat_AsDouble(value.ptr());
        if (x == -1 && PyErr_Occurred()) {
            if (!PyLong_Check(value.ptr()) || !PyErr_ExceptionMatches(PyExc_OverflowError))
                throw nb::python_error();
            PyErr_Clear();
            refuse_as("an integer too large for floating-point numbers");
        }
        if (!std::isfinite(x)) refuse_as(std::isnan(x) ? "NaN" : "infinity");
        return x;
    }

    // Appends a string to the bytes of the token; false if it is none.
    bool append(nb::handle text) {
        if (PyUnicode_Check(text.ptr())) {
            Py_ssize_t size = 0;
            const char* p = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
            if (!p) refuse_surrogates(text);
            token_.bytes.append(p, std::size_t(size));
            return true;
        }
        if (!PyBytes_Check(text.ptr())) return false;
        const std::string_view bytes(PyBytes_AsString(text.ptr()), std::size_t(PyBytes_Size(text.ptr())));
        if (!nb::steal(PyUnicode_DecodeUTF8(bytes.data(), Py_ssize_t(bytes.size()), nullptr)).is_valid()) {
            PyErr_Clear();
            wrong_value("the bytes " + quoted(bytes) + " are not UTF-8; decode them first");
        }
        token_.bytes.append(bytes);
        return true;
    }
    [[noreturn]] void refuse_surrogates(nb::handle text) const {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
        PyErr_Clear();
        const nb::object shown = nb::steal(PyObject_ASCII(text.ptr()));
        if (!shown.is_valid()) throw nb::python_error();
        wrong_value("the string " + nb::cast<std::string>(shown) +
                    " has a lone surrogate, half a character, which UTF-8 cannot hold");
    }
    static std::string numbers(nb::handle object) {
        return PyNumber_Check(object.ptr())
                   ? "; numbers have names, as in {'length': 3.0}, or are in one 2-d array for each sequence"
                   : "";
    }
};

template <class T>
using Owned = nb::ndarray<T, nb::numpy, nb::ndim<1>>;
template <class T>
Owned<T> give_away(std::vector<T>&& v) {
    auto* held = new std::vector<T>(std::move(v));
    held->reserve(1);  // arrays of nothing have an address, too
    nb::capsule owner(held, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return Owned<T>(held->data(), {held->size()}, owner);
}

// Where sequences begin, where tokens begin, ids, and values unless all are 1.
using Arrays =
    std::tuple<Owned<std::int64_t>, Owned<std::int64_t>, Owned<std::int32_t>, std::optional<Owned<double>>>;
Arrays arrays_of(Reader&& reader) {
    Uses& uses = reader.uses;
    std::optional<Owned<double>> values;
    if (uses.weighted) values = give_away(std::move(uses.values));
    return {give_away(std::move(reader.offsets)), give_away(std::move(uses.indptr)),
            give_away(std::move(uses.ids)), values};
}

// Sequences of tokens, or tokens and where their sequences begin: anything that iterates. A dict iterates its keys, a
// string is strings, and bytes are taken for strings.
using Iterable = nb::typed<nb::iterable, nb::typed<nb::iterable, nb::str>>;
using Input = nb::typed<nb::iterator, Iterable>;
using Begins = std::optional<Index>;

template <class Known>
Reader read(Known& vocabulary, const Input& X, const Begins& begins) {
    Reader reader(vocabulary);
    if (!begins) {
        reader.read_sequences(X);
        return reader;
    }
    const std::int64_t* p = begins->data();
    const std::size_t n = begins->shape(0);
    if (n == 0 || p[0] != 0 || !std::is_sorted(p, p + n))
        throw std::invalid_argument("begins should run up from 0");
    reader.read_tokens(X, {p, p + n});
    return reader;
}

std::tuple<Vocabulary, Arrays> learn(const Input& X, const Begins& begins, double min_freq,
                                     std::int64_t limit) {
    Vocabulary vocabulary(limit);
    Reader reader = read(vocabulary, X, begins);
    if (min_freq > 1) vocabulary = frequent(vocabulary, reader.uses, min_freq);
    return {std::move(vocabulary), arrays_of(std::move(reader))};
}

void check_utf8(const Vocabulary& vocabulary) {
    for (std::int64_t id = 0; id < vocabulary.size(); ++id) {
        const auto name = vocabulary.name(id);
        if (nb::steal(PyUnicode_DecodeUTF8(name.data(), Py_ssize_t(name.size()), nullptr)).is_valid())
            continue;
        PyErr_Clear();
        throw std::invalid_argument("name " + std::to_string(id) + " is not UTF-8");
    }
}

}  // namespace

void register_sequences(nb::module_& m) {
    using namespace nb::literals;
    const auto strict = [](const char* name) { return nb::arg(name).noconvert(); };
    nb::class_<Vocabulary>(m, "Vocabulary")
        .def(
            "__init__",
            [](Vocabulary* self, Vector<std::uint8_t> bytes, Index offsets) {
                if (offsets.shape(0) == 0) throw std::invalid_argument("the names have no offsets");
                auto made = Vocabulary::of({reinterpret_cast<const char*>(bytes.data()), bytes.shape(0)},
                                           offsets.data(), std::int64_t(offsets.shape(0)) - 1);
                check_utf8(made);
                new (self) Vocabulary(std::move(made));
            },
            strict("bytes"), strict("offsets"))
        .def_static("learn", &learn, "X"_a, strict("begins").none(), "min_freq"_a,
                    "limit"_a = Vocabulary::most)
        .def(
            "encode",
            [](const Vocabulary& self, const Input& X, const Begins& begins) {
                return arrays_of(read(self, X, begins));
            },
            "X"_a, strict("begins").none())
        .def("__len__", &Vocabulary::size)
        .def("names",
             [](const Vocabulary& self) {
                 nb::typed<nb::list, nb::str> names;
                 for (std::int64_t id = 0; id < self.size(); ++id)
                     names.append(nb::str(self.name(id).data(), self.name(id).size()));
                 return names;
             })
        .def("arrays", [](const Vocabulary& self) {
            std::vector<std::uint8_t> bytes(self.bytes().begin(), self.bytes().end());
            return std::tuple(give_away(std::move(bytes)), give_away(std::vector(self.offsets())));
        });
}

}  // namespace pegasos::bind
