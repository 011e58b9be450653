// Yue et al. 2007, Algorithm 2: each negative tries every place among the positives.
//
// Moving the j-th negative above the i-th positive changes the objective by their equation 5.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

extern "C" double algorithm_2(const double* scores, int64_t P, int64_t N, double* coef) {
    std::vector<int64_t> index(P + N), above(P + 1);
    std::iota(index.begin(), index.end(), 0);
    const auto higher = [=](int64_t a, int64_t b) { return scores[a] > scores[b]; };
    std::sort(index.begin(), index.begin() + P, higher);
    std::sort(index.begin() + P, index.end(), higher);
    std::vector<double> positives(P);
    for (int64_t i = 0; i < P; ++i) positives[i] = scores[index[i]];
    const double pair = 2.0 / (double(P) * double(N));
    for (int64_t j = 1; j <= N; ++j) {
        const double score = scores[index[P + j - 1]];
        int64_t place = P + 1;
        double best = 0.0, value = 0.0;
        for (int64_t i = P; i >= 1; --i) {
            const double gain = (double(j) / double(j + i) - (j - 1.0) / (j + i - 1.0)) / double(P);
            value += gain - pair * (positives[i - 1] - score);
            if (value >= best) {
                place = i;
                best = value;
            }
        }
        above[place - 1] += 1;
        coef[index[P + j - 1]] = pair * double(P + 1 - place);
    }
    double loss = 0.0;
    for (int64_t i = 1, n = 0; i <= P; ++i) {
        n += above[i - 1];
        coef[index[i - 1]] = -pair * double(n);
        loss += double(n) / double(n + i) / double(P);
    }
    return loss;
}
