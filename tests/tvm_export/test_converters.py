"""Converters of a person's own, on both engines."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.converters_functions"


@pytest.fixture(scope="module", params=[engines.CURRENT, engines.CLASSIC])
def session(request: pytest.FixtureRequest, process_of: Processes) -> engines.Session:
    return process_of(request.param)


def error_with(session: engines.Session, converters: str | None, inline: bool = False) -> float:
    given = {"engine": session.engine, "converters": converters, "inline": inline}
    error: float = session.call(f"{FUNCTIONS}:error_with", given)
    return error


def test_an_operator_that_tvm_lacks(session: engines.Session) -> None:
    with pytest.raises(engines.PlainError, match=r"doubled.*--converters"):
        error_with(session, None)
    assert error_with(session, f"{FUNCTIONS}:own_converters") < 1e-5
    assert error_with(session, None, inline=True) < 1e-5


@pytest.mark.parametrize(
    ("converters", "told"),
    [("of_another_type", "int32.*float32"), ("of_another_shape", r"\(4, 8\).*\(5, 8\)")],
)
def test_a_result_that_is_not_pytorchs_is_one_line(
    session: engines.Session, converters: str, told: str
) -> None:
    with pytest.raises(engines.PlainError, match=f"^(Relay|Relax) cannot .*doubled.*{told}"):
        error_with(session, f"{FUNCTIONS}:{converters}")


def test_what_tvm_has_no_code_for_is_one_line(session: engines.Session) -> None:
    with pytest.raises(engines.PlainError, match=r"^(Relay|TVM) cannot [^\n]*$") as told:
        error_with(session, f"{FUNCTIONS}:without_code")
    assert not isinstance(told.value, engines.RemoteError)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("fails", "fails raised ValueError: not today"),
        ("load", "not a dictionary of converters"),
        ("own_convertres", "did you mean own_converters"),
    ],
)
def test_a_mistake_is_one_line(session: engines.Session, named: str, message: str) -> None:
    with pytest.raises(engines.PlainError, match=message):
        error_with(session, f"{FUNCTIONS}:{named}")
