// The Python objects the core's functions take: rows that keep their arrays alive, and losses.
#pragma once
#include <variant>
#include <vector>

#include "arrays.hpp"
#include "pegasos/joint_losses.hpp"
#include "pegasos/losses.hpp"
#include "pegasos/rows.hpp"

namespace pegasos::bind {

struct RowsObject {
    AnyRows view;
    std::vector<nb::object> owners;
    std::int64_t stored;  // length of the sparse arrays
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

struct LossObject {
    AnyLoss loss;
};
struct JointLossObject {
    AnyJointLoss loss;
    int classes() const {
        return std::visit([](const auto& l) { return l.classes; }, loss);
    }
};

}  // namespace pegasos::bind
