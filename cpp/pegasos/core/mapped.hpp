// Arrays mapped from files that are cut short while they are read.
//
// Reading a page that its file no longer has is a bus error, which ends the process. While a MappedGuard
// watches over an array, such a page reads as zeros instead, and the guard says so: after reading the array
// the caller asks it, and throws away what was made of the zeros. (Wayland's shared memory is guarded in this
// way, too.) Bus errors anywhere else go to the handler that was there before.
#pragma once
#include <cstddef>

namespace pegasos {

class MappedGuard {
 public:
    MappedGuard(const void* begin, std::size_t bytes);
    ~MappedGuard();
    MappedGuard(const MappedGuard&) = delete;
    MappedGuard& operator=(const MappedGuard&) = delete;
    bool torn() const;  // whether a page was missing

 private:
    int slot_;  // −1: there was none left, and nothing is watched
};

}  // namespace pegasos
