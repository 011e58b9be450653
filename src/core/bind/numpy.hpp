// NumPy arrays as arguments and results of kernels.
//
// A Span, Matrix or Cube argument takes a C-contiguous array of exactly its type, without copying:
// a result written into a converted copy would be lost. `Span<const T>` also takes read-only
// arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>

#define PY_ARRAY_UNIQUE_SYMBOL didyma_numpy
#ifndef DIDYMA_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "array.hpp"
#include "random.hpp"

namespace nb = nanobind;

namespace didyma {

// The guard of a kernel.
using Released = nb::call_guard<nb::gil_scoped_release>;

// What a Python function returns. If the interpreter ends meanwhile and unwinds this thread (see
// module.cpp), no destructor runs that needs the GIL.
inline nb::object call(nb::handle function, const nb::tuple& arguments) {
    const auto returned = [&]() noexcept {
        return PyObject_CallObject(function.ptr(), arguments.ptr());
    };
    nb::object result = nb::steal(returned());
    if (!result) throw nb::python_error();
    return result;
}

template <class T>
constexpr int number_type() {
    using U = std::remove_const_t<T>;
    if constexpr (std::is_same_v<U, double>)
        return NPY_FLOAT64;
    else if constexpr (std::is_same_v<U, float>)
        return NPY_FLOAT32;
    else if constexpr (std::is_same_v<U, bool>)
        return NPY_BOOL;
    else if constexpr (std::is_signed_v<U>)
        return sizeof(U) == 8   ? NPY_INT64
               : sizeof(U) == 4 ? NPY_INT32
               : sizeof(U) == 2 ? NPY_INT16
                                : NPY_INT8;
    else
        return sizeof(U) == 8   ? NPY_UINT64
               : sizeof(U) == 4 ? NPY_UINT32
               : sizeof(U) == 2 ? NPY_UINT16
                                : NPY_UINT8;
}

// The array behind an argument, or null if it is not one of that type and number of axes.
template <class T>
PyArrayObject* array_of(nb::handle source, int axes) noexcept {
    if (!PyArray_Check(source.ptr())) return nullptr;
    auto* array = reinterpret_cast<PyArrayObject*>(source.ptr());
    const int needed = std::is_const_v<T> ? NPY_ARRAY_CARRAY_RO : NPY_ARRAY_CARRAY;
    const bool fits = PyArray_NDIM(array) == axes && PyArray_CHKFLAGS(array, needed) &&
                      PyArray_EquivTypenums(PyArray_TYPE(array), number_type<T>()) &&
                      PyArray_ISNOTSWAPPED(array);
    return fits ? array : nullptr;
}

// A new NumPy array that owns the numbers of a result.
template <class T>
PyObject* numpy_array(std::unique_ptr<T[]> numbers, int axes, npy_intp* shape) {
    T* data = numbers.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    PyObject* array = PyArray_SimpleNewFromData(axes, shape, number_type<T>(), data);
    if (array == nullptr) return nullptr;
    PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), owner.release().ptr());
    return array;
}

// A NumPy array with the same numbers, which Python may keep.
template <class T>
nb::object copy_of(Span<const T> values) {
    npy_intp shape[] = {values.size()};
    nb::object array = nb::steal(PyArray_SimpleNew(1, shape, number_type<T>()));
    if (!array) throw nb::python_error();
    auto* data = static_cast<T*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
    std::copy(values.begin(), values.end(), data);
    return array;
}

}  // namespace didyma

namespace nanobind::detail {

template <class T>
struct type_caster<didyma::Span<T>> {
    NB_TYPE_CASTER(didyma::Span<T>, const_name("numpy.ndarray"))
    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
        auto* array = didyma::array_of<T>(source, 1);
        if (array == nullptr) return false;
        value = {static_cast<T*>(PyArray_DATA(array)), PyArray_DIM(array, 0)};
        return true;
    }
};

template <class T>
struct type_caster<didyma::Matrix<T>> {
    NB_TYPE_CASTER(didyma::Matrix<T>, const_name("numpy.ndarray"))
    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
        auto* array = didyma::array_of<T>(source, 2);
        if (array == nullptr) return false;
        value = {static_cast<T*>(PyArray_DATA(array)), PyArray_DIM(array, 0),
                 PyArray_DIM(array, 1)};
        return true;
    }
};

template <class T>
struct type_caster<didyma::Cube<T>> {
    NB_TYPE_CASTER(didyma::Cube<T>, const_name("numpy.ndarray"))
    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
        auto* array = didyma::array_of<T>(source, 3);
        if (array == nullptr) return false;
        value = {static_cast<T*>(PyArray_DATA(array)), PyArray_DIM(array, 0), PyArray_DIM(array, 1),
                 PyArray_DIM(array, 2)};
        return true;
    }
};

// A numpy.random.Generator, whose bit generator is used without its lock.
template <>
struct type_caster<didyma::Random> {
    NB_TYPE_CASTER(didyma::Random, const_name("numpy.random.Generator"))
    bool from_python(handle source, uint8_t, cleanup_list*) noexcept {
        try {
            object capsule = source.attr("bit_generator").attr("capsule");
            void* bits = PyCapsule_GetPointer(capsule.ptr(), "BitGenerator");
            value = didyma::Random(static_cast<bitgen_t*>(bits));
            if (bits == nullptr) PyErr_Clear();
            return bits != nullptr;
        } catch (python_error& error) {
            return false;
        }
    }
};

template <class T>
struct type_caster<didyma::Array<T>> {
    NB_TYPE_CASTER(didyma::Array<T>, const_name("numpy.ndarray"))
    bool from_python(handle, uint8_t, cleanup_list*) noexcept { return false; }
    static handle from_cpp(didyma::Array<T>&& result, rv_policy, cleanup_list*) noexcept {
        npy_intp shape[] = {result.size()};
        return didyma::numpy_array(result.release(), 1, shape);
    }
};

template <class T>
struct type_caster<didyma::Table<T>> {
    NB_TYPE_CASTER(didyma::Table<T>, const_name("numpy.ndarray"))
    bool from_python(handle, uint8_t, cleanup_list*) noexcept { return false; }
    static handle from_cpp(didyma::Table<T>&& result, rv_policy, cleanup_list*) noexcept {
        npy_intp shape[] = {result.rows(), result.columns()};
        return didyma::numpy_array(result.release(), 2, shape);
    }
};

}  // namespace nanobind::detail
