// Tables that number texts.
#pragma once

#include <string_view>
#include <vector>

#include "text/hash.hpp"

namespace didyma::text {

// Numbers of things by their hashes: open addressing, at most half full.
class Slots {
  public:
    // The number of a thing, −1 if the table lacks it; `equal(n)` says whether it is thing n.
    template <class Equal>
    int32_t find(uint32_t hash, Equal equal) const {
        hash &= mask_;
        const size_t last = slots_.size() - 1;
        for (size_t at = hash & last;; at = (at + 1) & last) {
            const Slot& slot = slots_[at];
            if (slot.number < 0) return -1;
            if (slot.hash == hash && equal(slot.number)) return slot.number;
        }
    }

    // Takes in a thing that the table lacks; numbers are given in order.
    int32_t add(uint32_t hash) {
        if (2 * (size_ + 1) > slots_.size()) resize((size_ < 4096 ? 4 : 2) * slots_.size());
        put({hash & mask_, static_cast<int32_t>(size_)});
        return static_cast<int32_t>(size_++);
    }

    void reserve(size_t size) {
        size_t wanted = slots_.size();
        while (wanted < 2 * size) wanted *= 2;
        if (wanted > slots_.size()) resize(wanted);
    }

    int64_t size() const { return static_cast<int64_t>(size_); }

  private:
    struct Slot {
        uint32_t hash;
        int32_t number;
    };

    void put(Slot slot) {
        const size_t last = slots_.size() - 1;
        size_t at = slot.hash & last;
        while (slots_[at].number >= 0) at = (at + 1) & last;
        slots_[at] = slot;
    }

    void resize(size_t wanted) {
        std::vector<Slot> before(wanted, Slot{0, -1});
        before.swap(slots_);
        for (const Slot& slot : before) {
            if (slot.number >= 0) put(slot);
        }
    }

    uint32_t mask_ = hash_mask;
    size_t size_ = 0;
    std::vector<Slot> slots_ = std::vector<Slot>(64, Slot{0, -1});
};

// A newline ends each text of a list; no word has one.
constexpr char END = '\n';

// Texts that are numbered in the order in which they are met.
template <class Unit>
class Numbering {
  public:
    using Text = std::basic_string_view<Unit>;

    static bool is_equal(Text a, Text b) {
        if (a.size() != b.size()) return false;
        for (size_t i = 0; i < a.size(); ++i) {  // few, for which a call would take longer
            if (a[i] != b[i]) return false;
        }
        return true;
    }
    static uint32_t hash(Text text) {
        return hash_bytes(text.data(), static_cast<int64_t>(text.size() * sizeof(Unit)));
    }

    int32_t find(Text text, uint32_t hash) const {
        return slots_.find(hash, [&](int32_t n) { return is_equal((*this)[n], text); });
    }

    // The number of a text, and whether it is new.
    std::pair<int32_t, bool> number(Text text, uint32_t hash) {
        const int32_t found = find(text, hash);
        if (found >= 0) return {found, false};
        units_.insert(units_.end(), text.begin(), text.end());
        units_.push_back(static_cast<Unit>(END));
        starts_.push_back(static_cast<int64_t>(units_.size()));
        return {slots_.add(hash), true};
    }
    int32_t number(Text text) { return number(text, hash(text)).first; }

    Text operator[](int64_t n) const {
        check_index(n, size());
        const int64_t start = starts_[n], stop = starts_[n + 1] - 1;
        return {units_.data() + start, static_cast<size_t>(stop - start)};
    }
    // Texts from one on, each with its end.
    Text from(int64_t first) const {
        check_range(0, first, size());
        return Text(units_.data(), units_.size()).substr(static_cast<size_t>(starts_[first]));
    }
    int64_t size() const { return slots_.size(); }

  private:
    std::vector<Unit> units_;
    std::vector<int64_t> starts_{0};
    Slots slots_;
};

// Distinct texts that somebody else keeps, numbered as they stand: each ends in a newline or, if
// they have a width, they are that many bytes each.
class Texts {
  public:
    Texts(Span<const uint8_t> bytes, int64_t width) : bytes_(bytes), gap_(width == 0) {
        for (int64_t at = 0; at < bytes.size(); ++at) {
            if (width == 0 ? bytes[at] == END : (at + 1) % width == 0) starts_.push_back(at + 1);
        }
        slots_.reserve(static_cast<size_t>(size()));
        for (int64_t n = 0; n < size(); ++n) slots_.add(Numbering<char>::hash((*this)[n]));
    }

    int32_t find(std::string_view text, uint32_t hash) const {
        return slots_.find(hash, [&](int32_t n) { return (*this)[n] == text; });
    }

    std::string_view operator[](int64_t n) const {
        check_index(n, size());
        const Span<const uint8_t> text = bytes_.slice(starts_[n], starts_[n + 1] - gap_);
        return {reinterpret_cast<const char*>(text.data()), static_cast<size_t>(text.size())};
    }
    int64_t size() const { return static_cast<int64_t>(starts_.size()) - 1; }

  private:
    Span<const uint8_t> bytes_;
    int64_t gap_;
    std::vector<int64_t> starts_{0};
    Slots slots_;
};

// The texts of a list that is given, one after the other.
class Lines {
  public:
    explicit Lines(std::string_view bytes) : rest_(bytes) {}
    std::string_view next() {
        const size_t end = rest_.find(END);
        if (end == rest_.npos) throw std::length_error("expected as many texts as were given out");
        const std::string_view line = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        return line;
    }

  private:
    std::string_view rest_;
};

}  // namespace didyma::text
