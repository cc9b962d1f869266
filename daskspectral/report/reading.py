"""How each section of a report is read, for a newcomer."""

from __future__ import annotations


def _text(words: str) -> str:
    return " ".join(words.split())


SPECTRUM = _text(
    """
    A dot is a value of the fit, the line through it the interval that holds the exact value in 95 of 100 such fits, by
    chance alone. The tick is the value on rows that were not fitted to. Filled dots, on the shade, are trusted: held
    out they differ by less than a tenth, and their intervals are narrower than 30 %. Hollow dots are not. Values of one
    group in the table cannot be told apart, and any mixture of their functions fits the data as well.
    """
)
HELD_OUT = _text(
    """
    Each fold of the rows was left out once, the functions fitted to the others, and their values taken on it. On the
    line both agree; on the shade they differ by less than a tenth. Overfitted are eigenvalues farther from 0 on rows
    held out, and singular values and variances nearer to it: a wider kernel, a larger penalty or more rows help.
    """
)
FUNCTIONS = _text(
    """
    Each function has mean square 1 under the data, and its sign is free. Where it changes little, rows are alike to the
    operator; the first functions change where rows are rare, and so tell clusters and slow coordinates. Functions of
    one group of the spectrum's table may be mixed.
    """
)
SERIES = _text(
    """
    A slow function of a trajectory stays at one level for a long time and jumps between levels: these are the states,
    and the value tells how long they last. A component of a field says how strongly its pattern is present at each
    time.
    """
)
PATTERNS = _text(
    """
    A map is what the field does, in its own units, where the function is one standard deviation above its mean: the
    regression of the field on the function. Blank places were left out of the fit.
    """
)
LANDMARKS = _text(
    """
    The solution is a combination of kernel functions at these places. Where rows are and no landmark is near, it is
    smooth at best. More landmarks, or another method of choosing them, show whether they decide the values.
    """
)
CHOICE = _text(
    """
    Candidates were fitted to one half of a sample of the rows and judged on the other; a larger score is better. A flat
    top means that the choice hardly matters, a best candidate at an end that one beyond may be better. A line is a
    kernel; its dashes say how far landmarks were moved off the data, in scales.
    """
)
RANK = _text(
    """
    The Gram matrix holds the inner products of the basis functions under the data. Its small eigenvalues are directions
    that the rows do not tell from zero. A rank far below the number of functions means a kernel that is wide for these
    data: more landmarks cannot help then, a narrower kernel can.
    """
)
EIGENSPACES = _text(
    """
    The fitted function is a sum over the eigenspaces of the manifold's Laplacian, smooth ones first. A bar is the share
    of its square in one of them. A tail that does not fall means a target rougher than the smoothness that was assumed,
    or noise.
    """
)
PENALTIES = _text(
    """
    To the left of the least error the fit follows noise, to the right it is too smooth. A least error at an end means
    that the other parameters (kernel, scale, functions) decide.
    """
)
