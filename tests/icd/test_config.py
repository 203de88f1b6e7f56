"""Configurations: files, overrides, and a line for each mistake."""

import json
from pathlib import Path
from typing import Any

import pytest

from tvm_practice.icd.config import keys, load_config
from tvm_practice.tvm_export.errors import BadInput

ROOT = Path(__file__).parents[2]
MINIMAL = {"model": {"loader": "tests.icd.models:small"}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "run.json"
    written.write_text(json.dumps(MINIMAL))
    return written


def test_defaults(file: Path) -> None:
    config = load_config(file)
    assert config.pipeline.mode == "eager" and config.seed == 0
    assert (config.measure.warmup, config.measure.repeats) == (20, 200)
    assert not config.measure.tvm_enable and config.measure.tvm_target == "llvm"


def test_overrides_are_yaml_and_the_last_one_counts(file: Path) -> None:
    config = load_config(
        file,
        [
            "measure.tvm_enable=true",
            "measure.tvm_target=cuda -arch=sm_80",
            "measure.tvm_trials=5",
            "measure.tvm_trials=1000",
            "model.example=[{shape: [1, 128], dtype: int64}, {shape: []}]",
            "pipeline.atol=1e-2",
            "measure.tvm_log=null",
        ],
    )
    assert config.measure.tvm_enable is True and config.measure.tvm_trials == 1000
    assert config.measure.tvm_target == "cuda -arch=sm_80"
    assert config.model.example is not None
    assert [each.shape for each in config.model.example] == [[1, 128], []]
    assert [each.dtype for each in config.model.example] == ["int64", None]
    assert config.pipeline.atol == 0.01 and config.measure.tvm_log is None


def test_yaml_with_references_between_keys(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(
        "model: {loader: 'tests.icd.models:small'}\n"
        "measure:\n  repeats: 7\n  tvm_repeats: ${measure.repeats}\n"
    )
    assert load_config(file).measure.tvm_repeats == 7


def test_graph_loader_is_the_older_name(tmp_path: Path) -> None:
    file, older, newer = tmp_path / "run.json", "a:older", "a:newer"

    def loader(content: dict[str, Any], *overrides: str) -> str:
        file.write_text(json.dumps(content))
        return load_config(file, overrides).model.loader

    both = {"graph": {"loader": older}, "model": {"loader": newer}}
    assert loader({"graph": {"loader": older}}) == older
    assert loader({"graph": {"loader": older}}, f"model.loader={newer}") == newer
    assert loader({"model": {"loader": newer}}, f"graph.loader={older}") == older
    assert loader(both, "model.loader=a:x", "graph.loader=a:y") == "a:y"
    assert loader(both, "graph.loader=a:y", "model.loader=a:x") == "a:x"
    assert loader({"graph": {"loader": newer}, "model": {"loader": newer}}) == newer
    with pytest.raises(BadInput, match=r"graph.loader is the older name of model.loader"):
        loader(both)
    with pytest.raises(BadInput, match=r"unknown key graph\.example"):
        loader({"graph": {"loader": older, "example": []}})
    with pytest.raises(BadInput, match="model=3 is not a section"):
        loader({"graph": {"loader": older}, "model": 3})


def test_every_published_configuration_is_valid() -> None:
    files = sorted((ROOT / "configs").glob("*.json"))
    assert {file.stem for file in files} == {"bert", "bert_large", "mlp", "resnet18"}
    for file in files:
        assert load_config(file).model.loader.startswith("tvm_practice.models:load_")


def test_every_key_is_on_the_page() -> None:
    page = (ROOT / "docs" / "icd.md").read_text()
    assert len(list(keys())) > 15
    assert [key for key in keys() if f"`{key}`" not in page] == []


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("measure.tvm_trails=3", "unknown key measure.tvm_trails; did you mean measure.tvm_trials"),
        ("modle.loader=a:b", "unknown key modle.loader; did you mean model.loader"),
        ("graph.lodaer=a:b", "unknown key graph.lodaer; did you mean model.loader"),
        ("graph.loader=load_mlp", "model.loader=\"load_mlp\" is not of the form module:factory"),
        ("tvm_enable=true", "unknown key tvm_enable; did you mean measure.tvm_enable"),
        ("zzzz=1", "unknown key zzzz"),
        ("pipeline.mode=iterativ", "none of eager, compiled, iterative; did you mean iterative"),
        ("measure.tvm_tuner=anser", "did you mean ansor"),
        ("model.example=[{shape: [1], dtype: float23}]", "model.example[0].dtype=\"float23\""),
        ("model.example=[{shape: [1, 0]}]", "model.example[0]: every extent must be at least 1"),
        ("model.example=[{shpe: [1]}]", "did you mean model.example[].shape? (and 1 more)"),
        ("model.example=3", "model.example=3 should be a valid list"),
        ("model.loader=load_mlp", "model.loader=\"load_mlp\" is not of the form module:factory"),
        ("model.loader=${nope}", "'nope' not found"),
        ("measure=3", "measure=3 is not a section"),
        ("measure.repeats=0", "measure.repeats=0 should be greater than or equal to 1"),
        ("measure.repeats=many", "measure.repeats=\"many\" should be a valid integer"),
        ("measure.repeats=2.5", "measure.repeats=2.5 should be a valid integer"),
        ("measure.repeats=true", "measure.repeats=true should be a valid integer"),
        ("measure.warmup=-1", "measure.warmup=-1"),
        ("measure.tvm_enable=maybe", "measure.tvm_enable=\"maybe\" should be a valid boolean"),
        ("measure.tvm_target=", "measure.tvm_target=null should be a valid string"),
        ("measure.tvm_target=''", "measure.tvm_target=\"\" should have"),
        ("measure.tvm_search.sed=7", "did you mean measure.tvm_search.seed"),
        ("measure.tvm_search.early_stopping=0", "measure.tvm_search.early_stopping=0"),
        ("measure.tvm_search.rpc_tracker=here", "measure.tvm_search.rpc_tracker: 'here' is not of"),
        ("measure.tvm_opt_level=4", "measure.tvm_opt_level=4 should be less than or equal to 3"),
        ("measure.tvm_log=7", "measure.tvm_log=7 should be a valid string"),
        ("pipeline.rounds=3", "pipeline.rounds=3 should be greater than or equal to 6"),
        ("seed=-4", "seed=-4"),
        ("seed", "'seed' is not of the form key=value"),
        ("=3", "'=3' is not of the form key=value"),
        ("measure..warmup=3", "is not of the form key=value"),
        ("model.example=[1,", "line 2, column 1"),
    ],
)  # fmt: skip
def test_a_bad_override_is_one_line(override: str, said: str, file: Path) -> None:
    with pytest.raises(BadInput) as raised:
        load_config(file, [override])
    message = str(raised.value)
    assert said in message and "\n" not in message
    assert "override" in message or said == "'nope' not found"


def test_two_tuners_contradict(file: Path) -> None:
    with pytest.raises(BadInput, match="tvm_use_ansor=true contradicts tvm_tuner=autotvm"):
        load_config(file, ["measure.tvm_use_ansor=true", "measure.tvm_tuner=autotvm"])


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["measure.tvm_trials=9", "measure.tvm_search={policy: sketch.xgb}"], "policy: autotvm"),
        (["measure.tvm_trials=9", "measure.tvm_input_shapes={x: [n, 3]}"], "takes numbers only"),
    ],
)
def test_what_no_export_could_do_is_said_before_the_run(
    overrides: list[str], said: str, file: Path
) -> None:
    with pytest.raises(BadInput, match=said):
        load_config(file, overrides)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"model": {"loader": }', "is neither JSON nor YAML"),
        ('{"seed": 1, "seed": 2}', "is neither JSON nor YAML: found duplicate key seed, line 1"),
        ("[1, 2]", "holds a list"),
        ("3", "run.json"),
        ("", "model.loader is missing"),
        ('{"model": {}}', "model.loader is missing"),
        ('{"model": {"loader": "a:b"}, "measure": {"repeat": 3}}', "did you mean measure.repeats"),
        ('{"model": {"loader": "???"}}', "loader"),
        (b"\xff\xfe\x00", "run.json"),
    ],
)
def test_a_bad_file_is_one_line(text: Any, said: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput) as raised:
        load_config(file)
    message = str(raised.value)
    assert said in message and "run.json" in message and "\n" not in message


@pytest.mark.parametrize("name", ["missing.json", "."])
def test_a_file_that_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot read"):
        load_config(tmp_path / name)


def test_both_sides_have_the_weights_of_the_seed(file: Path) -> None:
    assert load_config(file, ["seed=7"]).export_request(Path("out")).model_seed == 7


def test_what_is_nested_too_deep_is_one_line_and_no_crash(tmp_path: Path, file: Path) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(BadInput, match=r"deep.json is nested more than 100 deep"):
        load_config(deep)
    with pytest.raises(BadInput, match=r"override model.example is nested more than 100 deep"):
        load_config(file, ["model.example=" + "[" * 2000 + "]" * 2000])
