// Views of arrays that somebody else owns, and scratch that a kernel owns.
//
// The checked build tests every index and throws std::out_of_range, which Python sees as
// IndexError.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace didyma {

using std::int32_t;
using std::int64_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

constexpr double INF = std::numeric_limits<double>::infinity();

#ifdef DIDYMA_CHECKED
constexpr bool CHECKED = true;
#else
constexpr bool CHECKED = false;
#endif

[[noreturn]] inline void out_of_range(int64_t index, int64_t size) {
    throw std::out_of_range("index " + std::to_string(index) + " of " + std::to_string(size));
}

// Throws if not 0 <= index < size, in the checked build.
inline void check_index(int64_t index, int64_t size) {
    if constexpr (CHECKED) {
        if (index < 0 || index >= size) out_of_range(index, size);
    }
}

// Throws if not 0 <= first <= last <= size, in the checked build.
inline void check_range(int64_t first, int64_t last, int64_t size) {
    if constexpr (CHECKED) {
        if (first < 0 || first > last || last > size) out_of_range(first < 0 ? first : last, size);
    }
}

// A contiguous run of numbers. Copied freely; constness is that of T.
template <class T>
class Span {
  public:
    Span() = default;
    Span(T* data, int64_t size) : data_(data), size_(size) {}
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    Span(const Span<U>& other) : data_(other.data()), size_(other.size()) {}

    T& operator[](int64_t i) const {
        check_index(i, size_);
        return data_[i];
    }
    Span slice(int64_t first, int64_t last) const {
        check_range(first, last, size_);
        return {data_ + first, last - first};
    }
    Span first(int64_t count) const { return slice(0, count); }
    void fill(T value) const { std::fill(begin(), end(), value); }

    T* data() const { return data_; }
    int64_t size() const { return size_; }
    T* begin() const { return data_; }
    T* end() const { return data_ + size_; }

  private:
    T* data_ = nullptr;
    int64_t size_ = 0;
};

// A matrix stored row after row.
template <class T>
class Matrix {
  public:
    Matrix() = default;
    Matrix(T* data, int64_t rows, int64_t columns) : data_(data), rows_(rows), columns_(columns) {}
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    Matrix(const Matrix<U>& other)
        : data_(other.data()), rows_(other.rows()), columns_(other.columns()) {}

    T& operator()(int64_t i, int64_t j) const {
        check_index(i, rows_);
        check_index(j, columns_);
        return data_[i * columns_ + j];
    }
    Span<T> operator[](int64_t i) const {
        check_index(i, rows_);
        return {data_ + i * columns_, columns_};
    }
    Matrix slice(int64_t first, int64_t last) const {
        check_range(first, last, rows_);
        return {data_ + first * columns_, last - first, columns_};
    }
    Span<T> flat() const { return {data_, rows_ * columns_}; }
    void fill(T value) const { flat().fill(value); }

    T* data() const { return data_; }
    int64_t rows() const { return rows_; }
    int64_t columns() const { return columns_; }

  private:
    T* data_ = nullptr;
    int64_t rows_ = 0, columns_ = 0;
};

// A stack of matrices.
template <class T>
class Cube {
  public:
    Cube() = default;
    Cube(T* data, int64_t depth, int64_t rows, int64_t columns)
        : data_(data), depth_(depth), rows_(rows), columns_(columns) {}
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    Cube(const Cube<U>& other)
        : data_(other.data()),
          depth_(other.depth()),
          rows_(other.rows()),
          columns_(other.columns()) {}

    T& operator()(int64_t i, int64_t j, int64_t k) const { return (*this)[i](j, k); }
    Matrix<T> operator[](int64_t i) const {
        check_index(i, depth_);
        return {data_ + i * rows_ * columns_, rows_, columns_};
    }
    T* data() const { return data_; }
    int64_t depth() const { return depth_; }
    int64_t rows() const { return rows_; }
    int64_t columns() const { return columns_; }

  private:
    T* data_ = nullptr;
    int64_t depth_ = 0, rows_ = 0, columns_ = 0;
};

// An array that owns its numbers; as a result of a kernel it becomes a NumPy array.
template <class T>
class Array : public Span<T> {
  public:
    Array() = default;
    explicit Array(int64_t size) : Array(std::unique_ptr<T[]>(new T[size]), size) {}
    Array(int64_t size, T value) : Array(size) { this->fill(value); }
    Array(Array&&) = default;
    Array& operator=(Array&&) = default;
    std::unique_ptr<T[]> release() { return std::move(owner_); }

  private:
    Array(std::unique_ptr<T[]> owner, int64_t size)
        : Span<T>(owner.get(), size), owner_(std::move(owner)) {}
    std::unique_ptr<T[]> owner_;
};

// A matrix that owns its numbers.
template <class T>
class Table : public Matrix<T> {
  public:
    Table() = default;
    Table(int64_t rows, int64_t columns)
        : Table(std::unique_ptr<T[]>(new T[rows * columns]), rows, columns) {}
    Table(int64_t rows, int64_t columns, T value) : Table(rows, columns) { this->fill(value); }
    Table(Table&&) = default;
    Table& operator=(Table&&) = default;
    std::unique_ptr<T[]> release() { return std::move(owner_); }

  private:
    Table(std::unique_ptr<T[]> owner, int64_t rows, int64_t columns)
        : Matrix<T>(owner.get(), rows, columns), owner_(std::move(owner)) {}
    std::unique_ptr<T[]> owner_;
};

}  // namespace didyma
