"""Sentences that stand on every owner's page: what the numbers rest on, and when nobody is advised."""

from collections.abc import Collection

LIMITS = {  # assumptions that an owner has to know: name → plain words
    "features-from-edges": "What the rows of others say of this {one} (for example payments that both took part in) is "
    "not covered "
    "by these numbers: only its own row, label and place among the others are.",
    "test-graph-public": "The {many} who test, with the ties among them, are taken as public: nothing of them is protected.",
    "features-labels-public": "Attributes and labels are taken as public: only who is tied to whom is protected.",
    "promised-degree": "The numbers hold only if no {one} has more ties than was promised.",
}
SHORT = (
    "This was a short run (--quick), whose models have hardly been trained. It shows what this page looks like, and it "
    "cannot say "
    "whether you should join. Run the scenario without --quick before you decide."
)
FEW_SEEDS = (
    "No advice: the run was repeated {count} time(s), and below {fewest} times chance may decide. The numbers below are what "
    "was seen."
)


def unit_word(unit: str, called: tuple[str, str]) -> str:
    """What one unit of the guarantee is called. unit: ``node`` or ``edge``. called: one node, and several."""
    one, many = called
    return one if unit == "node" else f"tie between two {many}"


def closing_words(unit: str, called: tuple[str, str], assumed: Collection[str]) -> tuple[str, ...]:
    """What the numbers rest on, at the end of a page. unit, called: as ``unit_word``. assumed: by the rows' statements."""
    one, many = called
    return (
        f"ε says how much the presence of one {unit_word(unit, called)} can change what others see: the smaller, the less they "
        "learn. At ε = ∞ "
        "nothing is hidden.",
        "Numbers in the table are out of 100, as above. “Alone” there: at a finite ε the model may be shown to anybody; "
        "at ε = ∞ it "
        "must stay with you. The verdict compares the best way of joining in a row with your best model that stays with you.",
        *(words.format(one=one, many=many) for name, words in LIMITS.items() if name in assumed),
        f"“Own head”, “own weights”: you adapt the last step, or all of the shared model, to your own {many} in the "
        "clear. That costs "
        "them nothing toward others as long as what you adapted and its answers stay with you; whoever sees those is not "
        "kept from "
        "anything.",
        "“Left out”: the others trained without you, and you use their model. “One curator”: everybody would give all "
        "data to one "
        "holder.",
        "In each row the method is the one that was best for you, picked by these same numbers, so they are a little "
        "optimistic; a verdict takes off how many were tried. "
        "The guarantees, and what they rest on, are under “The privacy of every row” in report.html.",
    )
