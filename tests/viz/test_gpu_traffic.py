"""The picture of GPU kernels' requests to memory."""

from pathlib import Path

from tests.viz.test_scaling import texts
from tvm_practice.viz.gpu_traffic import traffic_figure


def test_kernels_are_named_and_wavefronts_add_up(tmp_path: Path) -> None:
    traffic = {
        "bind": {"intensity": 0.4, "wavefronts": 0.0, "conflicts": 0.0},
        "tensor": {"intensity": 62.1, "wavefronts": 0.164, "conflicts": 0.133},
    }
    figure = traffic_figure(traffic, size=4096)
    figure.savefig(tmp_path / "a.svg")
    assert {"bind", "tensor", "62.1", "needed", "bank conflicts"} <= texts(tmp_path / "a.svg")
    needed, conflicts = figure.axes[1].containers
    ends = [bar.get_x() + bar.get_width() for bar in conflicts]
    assert [bar.get_x() for bar in conflicts] == [bar.get_width() for bar in needed]
    assert ends == [0.0, 0.164]
