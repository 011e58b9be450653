// Hashes that find a slot and decide nothing: whoever looks a text up compares its characters.
//
// They are keyed by numbers that each process draws, so that nobody can write texts that meet in
// one slot. No result depends on them.
#pragma once

#include <atomic>
#include <cstring>
#include <random>

#include "array.hpp"

namespace didyma::text {

struct HashKey {
    uint64_t first, second;

    static HashKey draw() {
        std::random_device device;
        auto number = [&] { return (static_cast<uint64_t>(device()) << 32) | device(); };
        return {number(), number()};
    }
};

inline const HashKey HASH_KEY = HashKey::draw();

// Bits of a hash that new tables look at; tests leave few.
inline std::atomic<uint32_t> hash_mask{~0u};

// SipHash-1-3 (Aumasson and Bernstein 2012), the low 32 bits.
inline uint32_t hash_bytes(const void* data, int64_t size) {
    uint64_t v0 = HASH_KEY.first ^ 0x736f6d6570736575, v1 = HASH_KEY.second ^ 0x646f72616e646f6d;
    uint64_t v2 = HASH_KEY.first ^ 0x6c7967656e657261, v3 = HASH_KEY.second ^ 0x7465646279746573;
    auto rotate = [](uint64_t x, int n) { return (x << n) | (x >> (64 - n)); };
    auto round = [&] {
        v0 += v1, v1 = rotate(v1, 13) ^ v0, v0 = rotate(v0, 32);
        v2 += v3, v3 = rotate(v3, 16) ^ v2;
        v0 += v3, v3 = rotate(v3, 21) ^ v0;
        v2 += v1, v1 = rotate(v1, 17) ^ v2, v2 = rotate(v2, 32);
    };
    auto take = [&](uint64_t word) {
        v3 ^= word;
        round();
        v0 ^= word;
    };
    auto bytes = static_cast<const char*>(data);
    int64_t at = 0;
    for (; at + 8 <= size; at += 8) {
        uint64_t word;
        std::memcpy(&word, bytes + at, 8);
        take(word);
    }
    uint64_t rest = static_cast<uint64_t>(size) << 56;
    std::memcpy(&rest, bytes + at, static_cast<size_t>(size - at));
    take(rest);
    v2 ^= 0xff;
    for (int n = 0; n < 3; ++n) round();
    return static_cast<uint32_t>(v0 ^ v1 ^ v2 ^ v3);
}

// Of a number: multiply-shift with a drawn odd factor.
inline uint32_t hash_number(uint64_t number) {
    return static_cast<uint32_t>(((number ^ HASH_KEY.first) * (HASH_KEY.second | 1)) >> 32);
}

}  // namespace didyma::text
