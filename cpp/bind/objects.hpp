// The Python objects the core's functions take: rows that keep their arrays alive, and losses.
#pragma once
#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "pegasos/core/joint_losses.hpp"
#include "pegasos/core/losses.hpp"
#include "pegasos/core/mapped.hpp"
#include "pegasos/linear/passes.hpp"

namespace pegasos::bind {

struct RowsObject {
    AnyRows view;
    std::vector<nb::object> owners;
    std::vector<std::shared_ptr<MappedGuard>> guards{};  // of those arrays that are mapped from files
    std::optional<Digest> digest{};                      // of what was checked
    OutVector norms{};                                   // … and its squared norms
    std::int64_t rows() const {
        return std::visit([](const auto& r) { return r.rows; }, view);
    }
    std::int64_t cols() const {
        return std::visit([](const auto& r) { return r.cols; }, view);
    }
    std::int64_t nnz() const {
        return std::visit([](const auto& r) { return r.nnz(); }, view);
    }
};

// Numbers of rows; none: all rows.
using Chosen = std::optional<Index>;

inline Subset subset_of(const RowsObject& rows, const Chosen& index) {
    if (!index) return {nullptr, rows.rows()};
    for (std::size_t r = 0; r < index->shape(0); ++r)
        if (index->data()[r] < 0 || index->data()[r] >= rows.rows()) throw std::out_of_range("row index");
    return {index->data(), std::int64_t(index->shape(0))};
}

struct LossObject {
    AnyLoss loss;
};
struct JointLossObject {
    AnyJointLoss loss;
    int classes() const {
        return std::visit([](const auto& l) { return l.classes; }, loss);
    }
};

// The joint losses use labels as places.
inline void check_labels(const Vector<std::int32_t>& labels, int classes) {
    for (std::size_t i = 0; i < labels.shape(0); ++i)
        if (labels.data()[i] < 0 || labels.data()[i] >= classes)
            throw std::out_of_range("label " + std::to_string(labels.data()[i]) + " is none of 0 … " +
                                    std::to_string(classes - 1));
}

}  // namespace pegasos::bind
