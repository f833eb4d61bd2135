// What every binding includes, compiled once for all of them (CMakeLists.txt): Python, nanobind and the rows and losses
// that the core's functions take.
#pragma once
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "objects.hpp"
