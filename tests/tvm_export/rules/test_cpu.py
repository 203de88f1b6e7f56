"""The default schedules: right values at odd sizes, the rule meant, the loops meant, no crash."""

import math
import platform

import pytest

from tests.conftest import Processes
from tests.tvm_export.rules.cpu_functions import FAMILIES
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.rules.cpu_functions"
# Of the sweeps over seeds, `make test` has the first; `make follow` has the rest.
IN_FOLLOW = [pytest.mark.pages, pytest.mark.slow]
SEEDS = [0, 1, pytest.param(2, marks=IN_FOLLOW)]

# What the sum of a few families may also be: a sum of one element is none to tile.
RULES = {
    "matmul": {"contraction", "injective"},
    "dense": {"contraction"},
    "convolution": {"contraction", "reduction"},
    "3x3 convolution": {"winograd"},
    "3x3 convolution, channels last": {"winograd", "injective"},
    "grouped convolution": {"contraction", "reduction"},
    "convolution, channels last": {"contraction"},
    "convolution, by pixels": {"contraction", "injective"},
    "convolution, in blocks": {"contraction", "injective"},
    "depthwise convolution, channels last": {"reduction", "injective"},
    "transposed convolution": {"contraction"},
    "depthwise convolution": {"reduction"},
    "softmax": {"reduction"},
    "normalization": {"reduction"},
    "pooling": {"reduction"},
    "sums": {"reduction", "injective"},
    "movement": {"injective"},
    "gather": {"injective"},
}

x86 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="not an x86-64 machine"
)


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_values_at_odd_sizes(session: engines.Session, family: str, seed: int) -> None:
    drawn = session.call(f"{FUNCTIONS}:compare", {"family": family, "seed": seed})
    assert drawn["shapes"][0] == drawn["shapes"][1] and drawn["finite"], drawn
    assert drawn["error"] < 1e-5, drawn
    assert set(drawn["rules"]) <= RULES[family], drawn


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("1x1 convolution, padded", "contraction"),
        ("3x3 convolution, padded", "winograd"),
        ("convolution, padded at once", "contraction"),
        ("pooling, padded", "reduction"),
        ("depthwise convolution, padded", "reduction"),
        ("log of a softmax", "reduction"),
        ("a column of three", "injective"),
        ("log_softmax, short axis", "reduction"),
        ("log_softmax, axis 1", "reduction"),
    ],
)
def test_values_that_were_wrong(session: engines.Session, case: str, rule: str) -> None:
    drawn = session.call(f"{FUNCTIONS}:compare", {"family": case, "seed": 0})
    assert drawn["finite"] and drawn["error"] < 1e-5, drawn
    assert drawn["rules"][-1] == rule, drawn


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(each, marks=IN_FOLLOW) for each in (2, 3))])
@pytest.mark.parametrize(
    "family",
    [
        "matmul",
        "dense",
        "convolution",
        "3x3 convolution",
        "grouped convolution",
        "transposed convolution",
        "convolution, by pixels",
    ],
)
def test_values_with_a_tuners_tiles(session: engines.Session, family: str, seed: int) -> None:
    arguments = {"family": family, "seed": 50 + seed, "advised": True}
    drawn = session.call(f"{FUNCTIONS}:compare", arguments)
    assert drawn["error"] < 1e-5, drawn
    assert set(drawn["rules"]) <= RULES[family] - {"winograd"}, drawn


@x86
@pytest.mark.parametrize("mcpu", ["x86-64-v2", "haswell"])
@pytest.mark.parametrize(
    "family",
    [
        "dense",
        "convolution",
        "convolution, by pixels",
        "3x3 convolution",
        "3x3 convolution, channels last",
        "softmax",
        "depthwise convolution",
        "depthwise convolution, channels last",
    ],
)
def test_values_with_narrower_vectors(session: engines.Session, family: str, mcpu: str) -> None:
    if mcpu == "haswell" and engines.host().vector_lanes < 8:
        pytest.skip("no AVX2 here")
    drawn = session.call(f"{FUNCTIONS}:compare", {"family": family, "seed": 9, "mcpu": mcpu})
    assert drawn["error"] < 1e-5 and set(drawn["rules"]) <= RULES[family], drawn


@pytest.mark.parametrize(
    "name",
    ["transformer"]
    + [pytest.param(each, marks=IN_FOLLOW) for each in ("load_small_resnet", "load_resnet18")],
)
def test_models_agree_with_pytorch_and_nothing_is_left_scalar(
    session: engines.Session, name: str
) -> None:
    built = session.call(f"{FUNCTIONS}:model", {"name": name})
    assert built["error"] < 1e-5
    used = {"contraction", "reduction", "injective"} | ({"winograd"} if "resnet" in name else set())
    assert set(built["rules"].values()) == used
    assert built["prepacked"] > 3 and built["left_to_pack"] == 0
    assert built["views"], "a reshape would be copied"


@pytest.mark.parametrize("rows", [128, 131])
def test_a_dense_layer_is_tiled_in_registers(session: engines.Session, rows: int) -> None:
    made = session.call(f"{FUNCTIONS}:dense_loops", {"rows": rows})
    # Nothing is copied beforehand, though no tile divides 131 rows.
    assert sorted(made["loops"]) == ["compute", "matmul_tile_init", "matmul_tile_update"]
    update = made["loops"]["matmul_tile_update"]
    assert update[0] == "parallel" and update[-1] == "vectorized"
    assert update[-3:-1] == ["unrolled", "unrolled"] and "serial" in update
    assert made["loops"]["compute"][-1] == "vectorized"
    tiles, inner, columns = made["weight"]
    assert inner == 256 and tiles * columns == 512 and columns % engines.host().vector_lanes == 0
    assert "tirx.is_scheduled" in made["attributes"]
    assert "layout_free_buffers" not in made["attributes"]


def test_weights_are_asked_for_ahead_where_row_tiles_share_them(
    session: engines.Session,
) -> None:
    for chunks, terms in ((1, 256), (4, 256), (1, 1536), (4, 1536), (3, 1536)):
        sums = {"chunks": chunks, "terms": terms}
        many = session.call(f"{FUNCTIONS}:prefetches", {"rows": 128, **sums})
        assert many["weights"] <= many["asked for"] < 1.3 * many["weights"], sums
        assert many["error"] < 4e-4
        two = session.call(f"{FUNCTIONS}:prefetches", {"rows": 8, **sums})
        assert two["asked for"] >= two["weights"] and two["error"] < 4e-4, sums
    one = session.call(f"{FUNCTIONS}:prefetches", {"rows": 4, "chunks": 1, "terms": 1536})
    assert one["asked for"] == 0 and one["error"] < 4e-4


def test_a_long_sum_is_as_exact_as_a_short_one(session: engines.Session) -> None:
    """As PyTorch's are, see Higham; Mamba of random weights was wrong without."""
    found = session.call(f"{FUNCTIONS}:long_sums")
    prime = found["product"].pop("1031")  # no parts divide it
    assert 4.5e-7 < prime < 8e-7, prime
    for kind, shares in found.items():
        for terms, share in shares.items():
            assert share < 3.6e-7, (kind, terms, share)


@pytest.mark.parametrize("of_open_extents", [False, True], ids=["known extents", "open extents"])
def test_reductions_over_millions_of_numbers_are_exact(
    session: engines.Session, of_open_extents: bool
) -> None:
    """Added one after another they are off by 1e-5 to 0.3."""
    sums = session.call(f"{FUNCTIONS}:sums_of_many", {"of_open_extents": of_open_extents})
    for name, found in sums.items():
        assert set(found["rules"]) <= {"reduction", "injective"}, (name, found)
        assert found["error"] < 2e-6, (name, found)


def test_a_short_sum_of_a_long_one_in_one_function(session: engines.Session) -> None:
    assert session.call(f"{FUNCTIONS}:a_short_sum_of_a_long_one") < 1e-4


def test_sums_that_four_does_not_divide_are_unrolled_and_taken_in_parts(
    session: engines.Session,
) -> None:
    tile = session.call(f"{FUNCTIONS}:tile_of_product", {"rows": 35, "steps": 650, "columns": 960})
    assert tile["unroll"] == 5 and tile["chunks"] in (1, 2, 5)
    prime = session.call(f"{FUNCTIONS}:tile_of_product", {"rows": 35, "steps": 641, "columns": 960})
    assert prime["unroll"] == prime["chunks"] == 1


def test_a_tuner_can_choose_every_tile_that_is_ranked(session: engines.Session) -> None:
    for steps in (49, 147, 641, 650, 768, 784):
        product = {"rows": 35, "steps": steps, "columns": 960}
        assert session.call(f"{FUNCTIONS}:tile_of_product", product)["of no tuner"] == 0, steps


def test_rows_of_one_set_of_the_first_cache_are_few(session: engines.Session) -> None:
    """Rows 4096 bytes apart share a set of eight places; with a little between, none is shared."""
    apart = {"rows": 24, "columns": 256}
    assert session.call(f"{FUNCTIONS}:tile_of_product", {**apart, "steps": 1024})["rows"] <= 8
    assert session.call(f"{FUNCTIONS}:rows_of_full_sets", {"steps": 1024}) == {
        "8": 0.0,
        "9": pytest.approx(3.6),
        "14": pytest.approx(5.6),
    }
    assert set(session.call(f"{FUNCTIONS}:rows_of_full_sets", {"steps": 1040}).values()) == {0.0}


def test_few_rows_are_two_tiles_where_that_asks_for_weights_ahead(session: engines.Session) -> None:
    twelve = {"rows": 12, "steps": 768, "columns": 3072}
    assert session.call(f"{FUNCTIONS}:tile_of_product", twelve)["rows"] == 6
    # Of so long a sum two panels are larger than the cache: nothing can be asked for ahead.
    long = {**twelve, "steps": 12320}
    assert session.call(f"{FUNCTIONS}:tile_of_product", long)["rows"] == 12


def test_rows_in_blocks_where_the_other_operand_is_larger_than_the_cache(
    session: engines.Session,
) -> None:
    found = session.call(f"{FUNCTIONS}:blocks_of_rows")
    for case in ("larger than the cache", "with more weights"):
        assert 4 <= found.pop(case) <= 64, case
    assert found == {"of one panel": 0, "that fits": 0, "with weights of the call": 0}


def test_parts_that_differ_in_size_are_not_computed_at_a_loop(session: engines.Session) -> None:
    """TVM does not lower two such parts in one function: Funnel's positions, on one thread."""
    found = session.call(f"{FUNCTIONS}:shifted_rows")
    assert all(isinstance(each, int) for path in found["extents"].values() for each in path), found
    assert found["error"] < 1e-6


def test_a_rule_that_is_left_out(session: engines.Session) -> None:
    assert session.call(f"{FUNCTIONS}:left_out") == [["winograd"], ["contraction"], ["reduction"]]


@pytest.mark.parametrize("rows", [128, 1024, 1003])
def test_parts_of_a_sum_wait_for_a_block_of_rows(session: engines.Session, rows: int) -> None:
    found = session.call(f"{FUNCTIONS}:parts_of_blocks", {"rows": rows})
    assert found["error"] < 1e-3
    part, tiles, *_ = [int(each.rpartition("(")[2][:-2]) for each in found["summing"]]
    assert part == 4 and 4 <= tiles <= 64, found
    waiting = math.prod(int(each.rpartition("(")[2][:-2]) for each in found["starting"])
    assert 4 * waiting <= 1 << 16, found


def test_rows_of_many_tiles_are_written_back_by_tiles(session: engines.Session) -> None:
    """LLVM takes minutes for a vector of hundreds of elements."""
    found = session.call(f"{FUNCTIONS}:rows_written_back")
    assert found["longest"] == 28 and found["error"] < 1e-4, found


def test_winograd_where_it_gains(session: engines.Session) -> None:
    cuts = session.call(f"{FUNCTIONS}:winograd_cuts")
    uncut = "every cut computes much beyond the edge, or does not fit the cache"
    strided = "the window has a stride or a dilation, or the layout is another"
    shaped = "the window is not 3x3, or the convolution is in groups"
    assert cuts == {
        "64x56": [32, 2, 64, 1],
        "128x28": [16, 4, 64, 1],
        "256x14": [8, 8, 64, 2],  # one chunk of rows: the threads divide the filters
        "64x56, AVX2": [32, 1, 16, 2],
        "256x14, small cache": uncut,
        "few pixels": "16 tiles of 2x2 outputs are too few to gain",
        "few channels": "16 channels and 64 filters are too few to gain",
        "few filters": "64 channels and 16 filters are too few to gain",
        "much beyond the edge": uncut,
        "1x1": shaped,
        "5x5": shaped,
        "stride": strided,
        "dilation": strided,
        "groups": shaped,
        "weights given": "the weights are no constant",
        "float64": "the output is not float32, or of another layout",
        "64x56, channels last": [1, 1, 1, 4, 4],
        "256x14, channels last": [1, 7, 2, 7, 2],  # every thread reads its weights once
        "512x7, channels last, 8 images": [4, 4, 1, 8, 2],
        "64x56, channels last, AVX2": [1, 1, 2, 4, 2],
        "few pixels, channels last": "16 tiles of 2x2 outputs are too few to gain",
        "odd channels, channels last": "the channels or the filters do not fill vectors",
        "few channels, channels last": "the transforms would take what the products save",
    }


@pytest.mark.parametrize("channels_last", [False, True])
def test_winograds_outputs_are_of_their_own_window_alone(
    session: engines.Session, channels_last: bool
) -> None:
    """A tile is of 4x4 inputs; NaN in the fourth row is none of the first row's outputs."""
    found = session.call(f"{FUNCTIONS}:winograd_beside_nan", {"channels_last": channels_last})
    assert "winograd" in found["rules"] and found["error"] < 1e-6, found
    assert found["touched"] > 0 == found["finite"] == found["changed"], found


@x86
def test_another_processors_cache_is_not_this_ones(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:caches")
    assert found == {"here": 7 << 20, "any": 7 << 20, "another": 1 << 20, "arm": 1 << 19}


def test_winograd_is_for_sums_of_products_alone(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:other_window_sums")
    by_winograd = {name for name, each in found.items() if each["rule"] == "winograd"}
    assert by_winograd == {"sum x*w", "sum w*x"}
    for name, each in found.items():
        assert each["error"] < 1e-5, name
        if name not in by_winograd:
            assert each["why"] == "a step does not add a product of the operands to a sum from 0"


def test_what_is_given_and_what_is_scheduled_already_stay(session: engines.Session) -> None:
    assert session.call(f"{FUNCTIONS}:left_alone") == {
        "given": True,
        "scheduled before": True,
        "reported": False,
    }


def test_a_rule_that_fails_leaves_the_function_to_the_next(session: engines.Session) -> None:
    refused = session.call(f"{FUNCTIONS}:refused")
    for case in ("fallback", "unscheduled"):
        assert set(refused[case]["rules"]) == {case} and refused[case]["error"] < 1e-4
        assert refused[case]["declined"] == {
            "broken": "failed: ZeroDivisionError: a mistake in a rule",
            "unfit": "not this one",
        }
    assert refused["strict"] == "a mistake in a rule"


def test_an_operator_without_a_rule_runs_in_parallel(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:unknown_operator")
    assert made["same"] and made["parallel"] and made["rules"] == ["fallback"]


def test_other_types_than_float32(session: engines.Session) -> None:
    errors = session.call(f"{FUNCTIONS}:other_types")
    assert errors["int8"] == 0 and errors["float64"] < 1e-15 and errors["float16"] < 1e-6


def test_any_batch_size(session: engines.Session) -> None:
    for each in session.call(f"{FUNCTIONS}:any_batch"):
        assert each["error"] < 1e-5, each


def test_a_chain_of_operators_does_not_double_with_each(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:deep_chain")
    assert made["error"] < 1e-4
    assert made["seconds"] < 60  # a second or two; written out whole, hours


def test_a_weight_that_is_an_input_elsewhere_is_not_packed_ahead(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:weight_or_not")
    assert made["error"] < 1e-5
    assert not any("prepack" in each for each in made["functions"])


@pytest.mark.parametrize(
    ("name", "special"),
    [
        ("exp", ["nan", "inf", "0.0", "1.0", "1.0"]),
        ("log", ["nan", "inf", "nan", "-inf", "-69.07755"]),
        ("erf", ["nan", "1.0", "-1.0", "0.0", "1.1283791e-30"]),
        ("tanh", ["nan", "1.0", "-1.0", "0.0", "1e-30"]),
        ("sigmoid", ["nan", "1.0", "0.0", "0.5", "0.5"]),
        ("cube", ["nan", "inf", "-inf", "0.0", "0.0"]),
    ],
)
def test_arithmetic_in_place_of_calls(
    session: engines.Session, name: str, special: list[str]
) -> None:
    made = session.call(f"{FUNCTIONS}:arithmetic")[name]
    assert made["ulp"] < 4 and made["special"] == special
    assert made["called before"] and not made["called"]


def test_bytes_are_rounded_without_a_rounding(session: engines.Session) -> None:
    made = session.call(f"{FUNCTIONS}:rounded_bytes")
    assert not any(each["wrong"] for each in made.values()), made
    assert [each["rounds"] for each in made.values()] == [False] * 5 + [True, True]


def test_values_that_a_vector_shares_go_through_any_function(session: engines.Session) -> None:
    """TVM's own failure: "Let cannot bind the same var to two different values"."""
    errors = session.call(f"{FUNCTIONS}:functions_of_shared_values")
    assert max(errors.values()) < 1e-6, errors
