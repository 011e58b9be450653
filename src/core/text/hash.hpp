// Hashes that find a slot and decide nothing: whoever looks a text up compares its characters.
//
// They are keyed by numbers that each process draws, so that nobody can write texts that meet in
// one slot. No result depends on them.
#pragma once

#include <atomic>
#include <cstring>
#include <random>
#ifdef _MSC_VER
#include <intrin.h>
#endif

#include "array.hpp"

namespace didyma::text {

struct HashKey {
    uint64_t first, second, third;

    static HashKey draw() {
        std::random_device device;
        auto number = [&] { return (static_cast<uint64_t>(device()) << 32) | device(); };
        return {number(), number(), number() | 1};
    }
};

inline const HashKey HASH_KEY = HashKey::draw();

// Bits of a hash that new tables look at; tests leave few.
inline std::atomic<uint32_t> hash_mask{~0u};

// Both halves of a product, one on the other.
inline uint64_t folded_product(uint64_t a, uint64_t b) {
#ifdef _MSC_VER
    uint64_t high;
    const uint64_t low = _umul128(a, b, &high);
    return low ^ high;
#else
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#endif
}

template <class T>
uint64_t loaded(const char* bytes) {
    T word;
    std::memcpy(&word, bytes, sizeof(T));
    return word;
}

// Of bytes, sixteen at a time; the last ones are read twice rather than one by one.
inline uint32_t hash_bytes(const void* data, int64_t size) {
    auto bytes = static_cast<const char*>(data);
    uint64_t hash = HASH_KEY.first ^ static_cast<uint64_t>(size), a = 0, b = 0;
    const char* end = bytes + size;
    if (size > 16) {
        for (; end - bytes > 16; bytes += 16) {
            hash = folded_product(loaded<uint64_t>(bytes) ^ HASH_KEY.second,
                                  loaded<uint64_t>(bytes + 8) ^ hash);
        }
        a = loaded<uint64_t>(end - 16);
        b = loaded<uint64_t>(end - 8);
    } else if (size >= 8) {
        a = loaded<uint64_t>(bytes);
        b = loaded<uint64_t>(end - 8);
    } else if (size >= 4) {
        a = loaded<uint32_t>(bytes);
        b = loaded<uint32_t>(end - 4);
    } else if (size > 0) {
        a = loaded<uint8_t>(bytes) | loaded<uint8_t>(bytes + size / 2) << 8 |
            loaded<uint8_t>(end - 1) << 16;
    }
    hash = folded_product(a ^ HASH_KEY.second, b ^ hash);
    return static_cast<uint32_t>(folded_product(hash, HASH_KEY.third) >> 16);
}

// Of a number: multiply-shift.
inline uint32_t hash_number(uint64_t number) {
    return static_cast<uint32_t>(((number ^ HASH_KEY.first) * HASH_KEY.third) >> 32);
}

}  // namespace didyma::text
