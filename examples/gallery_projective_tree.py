"""A head for each word, where no arcs cross: what is it that is "with anchovies"?"""

from gallery_tree import parse

import drawing
from didyma.structures import ProjectiveTree

words = ["they", "ate", "the", "pizza", "with", "anchovies"]
arcs = {  # (word, head): score, where the root is a head too
    ("they", "ate"): 2.0,
    ("ate", "root"): 2.0,
    ("the", "pizza"): 2.0,
    ("pizza", "ate"): 2.0,
    ("with", "ate"): 0.6,
    ("with", "pizza"): 0.9,
    ("with", "anchovies"): 0.5,
    ("anchovies", "with"): 1.3,
    ("anchovies", "pizza"): 0.7,
}


def main():
    return parse(words, arcs, ProjectiveTree())


if __name__ == "__main__":
    drawing.save(main())
