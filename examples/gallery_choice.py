"""One of several options: SparseMAP is then sparsemax, which rules out the unlikely ones."""

import didyma
import drawing
from didyma.structures import Choice

senses = ["river bank", "savings bank", "blood bank", "snow bank", "bank shot"]
scores = [0.9, 1.4, 0.3, 0.6, -0.8]  # of the senses in "she walked along the bank to the ATM"


def main():
    marginals, solution = didyma.sparsemap(scores, Choice(), return_solution=True)
    softmax = Choice().marginals(scores)
    for sense, sparse, dense in zip(senses, marginals, softmax):
        print(f"{sense:12}  SparseMAP {sparse:4.0%}   softmax {dense:4.0%}")
    return drawing.choices(solution[0], senses)


if __name__ == "__main__":
    drawing.save(main())
