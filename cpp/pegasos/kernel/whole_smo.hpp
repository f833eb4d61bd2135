// Kernel machines with the hinge loss that are small enough for their whole kernel matrix, solved one after
// the other and certified: two classes, each class against the rest, or the pairs of many classes.
//
// A part has rows with targets y = ±1 and weights c; in units of λ = 1/(CM) its dual is
//
//   max Σ y_i α_i − ½ αᵀKα,   α_i between 0 and y_i C c_i,   with a free bias Σα = 0.
#pragma once
#include <cstdint>
#include <vector>

namespace pegasos {

// What all parts have in common. `piece`: steps on a part before it is given back. `beyond`: steps for each
// row up to which a part is brought closer to its optimum than `tol`, while that halves the gap. `shift`: no
// kernel matrix has an eigenvalue below −shift, so that K + shift·I gives lower bounds. `free_bias`: whether
// there is a bias, which is not regularised.
struct HingeMachine {
    double C, lam, total, tol;
    std::int64_t max_steps, piece, beyond;
    double shift;
    bool free_bias;
};

struct WholePart {
    std::int64_t n, stride;  // rows, and a multiple of eight not below
    const double* K;         // n × stride, zero where it is padded
    const double *y, *weight;
    double* alpha;  // feasible on return
};

// Why a part rests.
enum class Over : std::int8_t { not_yet = 0, max_steps = 1, no_progress = 2, reached = 3 };

// Where part p is: the violation of the optimality conditions that is aimed at and that there is (infinite
// before the first visit), and P, D and the bias of its α. Pairs of classes are numbered from `begin` on:
// half a million of them would fill the memory, and few are looked at in a while.
struct PartStates {
    double *goal, *violation, *primal, *dual, *bias;
    std::int64_t* steps;
    std::int8_t* over;
    std::int64_t begin;
    bool rests(std::int64_t p) const { return over[p] != 0 && violation[p] < __builtin_inf(); }
};

enum class Visit { rests, piece_used, not_finite };

// Solves parts, one at a time, with room that is used again and again.
class WholeSMO {
 public:
    explicit WholeSMO(const HingeMachine& machine) : machine_(machine) {}

    // Moves pairs of variables until the violation is at most the goal and the gap at most tol · P, for which
    // the goal is lowered; or until max_steps or `piece` are used up: then the gap alone decides whether the
    // part rests. One that is over is only certified.
    Visit visit(const WholePart&, const PartStates&, std::int64_t p);

    std::int64_t values = 0, work = 0;  // numbers in the kernel matrices of all visits, and numbers looked at
    struct {
        std::vector<double> y, weight, alpha;
    } of_pair;  // room for those who visit a pair

 private:
    void scores(const WholePart&, double goal);
    void balance(const WholePart&);
    double violation(const WholePart&) const;
    void steps(const WholePart&, const PartStates&, std::int64_t p, std::int64_t most);
    void certify(const WholePart&, const PartStates&, std::int64_t p);
    double rounding(const WholePart&) const;
    double best_bias(const WholePart&);

    HingeMachine machine_;
    std::vector<double> lo_, hi_, g_, F_, diagonal_, up_, low_, a_;
    std::vector<const double*> rows_;
    std::vector<double> coef_;
    std::vector<std::int64_t> order_;
};

// The pairs of k classes. Their α stand in a table (k − 1) × m as LIBSVM has them: those of class i's rows
// against class j > i in line j − 1, those of class j's in line i. Rows are sorted by class.
struct PairProblem {
    std::int64_t classes;
    const std::int64_t* starts;  // where each class's rows begin, and m
    const double* weight;
    double* table;
    // The number of a pair i < j.
    std::int64_t number(std::int64_t i, std::int64_t j) const {
        return i * (2 * classes - i - 1) / 2 + j - i - 1;
    }
};

// K of the rows of class i and then those of class j.
Visit visit_pair(WholeSMO&, const PairProblem&, const PartStates&, std::int64_t i, std::int64_t j,
                 const double* K, std::int64_t stride);

// The kernel values of class i and of the classes j, first ≤ j < last: of i's rows, of i's rows with all of
// theirs, and of the rows of each j, from offsets[j − first] on, padded to a multiple of eight columns.
struct PairStrip {
    std::int64_t i, first, last;
    const double *own, *strip, *others;
    std::int64_t own_stride, strip_stride;
    const std::int64_t* offsets;
};

// Visits those pairs of a strip that do not rest, until `work` exceeds `budget`. Returns the first j that is
// left; how the visit before it has ended is in `last`.
std::int64_t visit_pairs(WholeSMO&, const PairProblem&, const PartStates&, const PairStrip&,
                         std::int64_t budget, Visit& last);

}  // namespace pegasos
