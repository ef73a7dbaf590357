import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bochner.exact.kernels import (
    KERNELS,
    RBF,
    Category,
    Constant,
    Laplace,
    Linear,
    Periodic,
    Product,
    Sum,
    parse,
)

COLUMNS = st.one_of(st.integers(0, 10**6), st.text(max_size=8))
SOME = st.lists(COLUMNS, max_size=3, unique=True)
PERIODS = st.floats(1e-50, 1e50)
SINGLE = st.one_of(
    st.builds(lambda kind, columns: kind(*columns), st.sampled_from([RBF, Laplace, Linear]), SOME),
    st.lists(COLUMNS, min_size=1, max_size=3, unique=True).map(lambda columns: Category(*columns)),
    st.builds(lambda column, period: Periodic(column, period=period), COLUMNS, PERIODS),
    st.builds(lambda column, near: Periodic(column, near=near), COLUMNS, PERIODS),
    st.just(Constant()),
)
ANY = st.recursive(
    SINGLE,
    lambda parts: st.builds(
        lambda kind, own: kind(tuple(own)),
        st.sampled_from([Sum, Product]),
        st.lists(parts, min_size=2, max_size=3),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(ANY)
def test_a_kernel_is_made_again_from_its_text_and_from_its_code(kernel):
    assert parse(str(kernel)) == kernel
    assert str(parse(str(kernel))) == str(kernel)
    names = {kind.__name__: kind for kind in KERNELS.values()}
    assert eval(repr(kernel), names) == kernel


READ = {
    "rbf": RBF(),
    "RBF()": RBF(),
    "rbf(lat, lon) + laplace + linear + category(route) * laplace('dep time')": (
        RBF("lat", "lon") + Laplace() + Linear() + Category("route") * Laplace("dep time")
    ),
    " ( rbf ( 0,3 )\n+\tlinear )*constant": (RBF(0, 3) + Linear()) * Constant(),
    "rbf + linear * constant": RBF() + Linear() * Constant(),
    "rbf * linear * constant + (laplace + rbf)": (
        RBF() * Linear() * Constant() + Laplace() + RBF()
    ),
    "periodic(day, period=365.25)": Periodic("day", period=365.25),
    "periodic(near, near=1e2)": Periodic("near", near=100.0),
    "rbf('0', 'it\\'s', 'back\\\\slash', größe)": RBF("0", "it's", "back\\slash", "größe"),
    "(((rbf)))": RBF(),
}


@pytest.mark.parametrize("text", READ)
def test_texts_are_read(text):
    assert parse(text) == READ[text]


REFUSED = [
    ("", "expected one of rbf", 0),
    ("rbf +", "expected one of rbf", 5),
    ("rbf + + linear", "expected one of rbf", 6),
    ("rbf linear", "expected `+`, `*` or the end", 4),
    ("rbf(lat", "expected `)`", 7),
    ("rbf(lat lon)", "expected `)`", 8),
    ("rbf(lat,)", "expected the name of a column", 8),
    ("rbf)", "expected `+`, `*` or the end", 3),
    ("(rbf + linear", "expected `)`", 13),
    ("rfb(lat)", "Did you mean 'rbf'?", 0),
    ("linear + matern", "there is no kernel 'matern'", 9),
    ("rbf(dep-time)", "this sign has no meaning", 7),
    ("rbf('dep time)", "a quote is not closed", 4),
    ("rbf(1.5)", "the place of a column is a whole number", 4),
    ("rbf(lat, period=3)", "`rbf` takes no 'period' here", 9),
    ("periodic(day, perod=3)", "Did you mean 'period'?", 14),
    ("periodic(day, period=week)", "expected a number", 21),
    ("periodic(day, period=3, period=4)", "takes no 'period' here", 24),
    ("linear + periodic(day)", "either `period` or `near`", 9),
    ("periodic(day, period=0)", "a number above 0", 0),
    ("category", "needs the name of a column", 0),
    ("constant(lat)", "takes", 0),
    ("rbf(lat, lat)", "each once", 0),
    ("rbf + import os; linear", "there is no kernel 'import'", 6),
]


@pytest.mark.parametrize(("text", "said", "place"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_errors_point_at_the_place(text, said, place):
    with pytest.raises(ValueError, match="cannot read the kernel") as caught:
        parse(text)
    message, line, caret = str(caught.value).split("\n")
    assert said in message
    assert line == f"    {text}"
    assert caret == " " * (4 + place) + "^"


def test_errors_in_several_lines_show_the_one_concerned():
    with pytest.raises(ValueError, match="no kernel 'plane'") as caught:
        parse("rbf(lat)\n\t+ plane\n+ constant")
    assert str(caught.value).endswith("\n     + plane\n       ^")


def test_depth_and_length_have_limits():
    assert parse("(" * 8 + "rbf" + ")" * 8) == RBF()
    with pytest.raises(ValueError, match="more than 8 parentheses"):
        parse("(" * 9_000 + "rbf")
    with pytest.raises(ValueError, match=r"at most 10,000 characters"):
        parse("rbf" + " " * 10_000)
    assert len(parse(" + ".join(["rbf"] * 64)).parts) == 64  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ValueError, match="two to 64 kernels"):
        parse(" + ".join(["rbf"] * 65))


PIECES = [
    "rbf",
    "linear",
    "periodic",
    "period",
    "category",
    "day",
    "'a b'",
    "'",
    "0",
    "2.5",
    "1e3",
    "é",
    "\n",
    " ",
]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*PIECES, *"()+*,=", "(", ")", ";", "\\"]), max_size=12))
def test_any_text_is_a_kernel_or_an_error_in_words(pieces):
    kernel, said = None, ""
    try:
        kernel = parse("".join(pieces))
    except ValueError as error:
        said = str(error)
    assert said.startswith("cannot read the kernel: ") or parse(str(kernel)) == kernel


def test_sums_of_sums_and_products_of_products_are_flat():
    assert (RBF() + Linear()) + (
        Laplace() + Constant()
    ) == RBF() + Linear() + Laplace() + Constant()
    assert RBF() * (Linear() * Laplace()) == RBF() * Linear() * Laplace()
    assert len((RBF() * (Linear() + Laplace())).parts) == 2  # pyright: ignore[reportAttributeAccessIssue]


def test_what_cannot_be_combined_is_refused():
    with pytest.raises(ValueError, match="two to 64"):
        Sum((RBF(),))
    kernel = RBF()
    for _ in range(4):
        kernel = (kernel + Linear()) * Constant()
    with pytest.raises(ValueError, match="8 deep at most"):
        kernel + Linear()


@pytest.mark.parametrize("columns", [(-1,), ("a", "a"), (0, 0)], ids=str)
def test_columns_are_places_from_zero_or_names_each_once(columns):
    with pytest.raises(ValueError, match="each once"):
        RBF(*columns)
