"""The page of `tvm-practice watch --page`: the last check, on localhost, anew after each save."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from types import TracebackType
from typing import Any

from tvm_practice.course.grading import Verdict

_TEMPLATE = "watch.html.j2"
_STATUS = {
    "passed": "passes",
    "failed": "is wrong",
    "todo": "is to do",
    "unavailable": "cannot be graded here",
}
_HEADINGS = (
    "Accesses: the first quarter, yours and a correct answer's",
    "Simulated misses of two small caches",
)


def render(verdict: Verdict | None, sketch: dict[str, Any], version: int) -> str:
    """The page as HTML.

    Args:
        verdict: of the last check; None before the first.
        sketch: see grading.Grader.sketch; {} without pictures.
        version: the page reloads itself when the server tells another one.
    """
    import jinja2
    from markupsafe import Markup

    folder = resources.files("tvm_practice.viz") / "page"
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    # SVG that the project draws itself, of names that TVM gave; all other text is escaped.
    pictures = zip(_HEADINGS, map(Markup, sketch.get("pictures", [])), strict=False)
    return environment.from_string((folder / _TEMPLATE).read_text(encoding="utf-8")).render(
        title=verdict.exercise.id if verdict else "tvm-practice watch",
        facts=_STATUS[verdict.status] if verdict else "The first check is running.",
        message=verdict.message if verdict else "",
        loops_heading="Your result (red) and a correct answer's (green)"
        if verdict and verdict.gives
        else "A correct answer's result",
        loops=_loops(verdict),
        pictures=list(pictures),
        version=version,
        css=Markup((folder / "report.css").read_text(encoding="utf-8")),
    )


def _loops(verdict: Verdict | None) -> list[tuple[str, str]]:
    """Lines with the class of each: what is only in the learner's result, or only in the right."""
    if verdict is None or verdict.status not in ("passed", "failed"):
        return []
    if not verdict.gives:
        return [("", line) for line in verdict.exercise.looks_like.split("\n")]
    kinds = {"-": "gone", "+": "new"}
    return [(kinds.get(line[:1], ""), line) for line in verdict.gives.split("\n")]


class WatchPage:
    """A server of one page, from `__enter__` to `__exit__`.

    Attributes:
        address: of the page, on localhost.
    """

    def __init__(self) -> None:
        self._version = 0
        self._html = render(None, {}, 0)
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page._answer(self)

            def log_message(self, *_: Any) -> None:
                pass  # the terminal is the learner's

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/"

    def show(self, verdict: Verdict, sketch: dict[str, Any] | None = None) -> None:
        """Show the outcome of a check from now on, also in browsers that have the page open."""
        self._html = render(verdict, sketch or {}, self._version + 1)
        self._version += 1

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        found = {"/": ("text/html", self._html), "/version": ("text/plain", str(self._version))}
        if request.path not in found:
            request.send_error(404)
            return
        kind, text = found[request.path]
        body = text.encode()
        request.send_response(200)
        request.send_header("Content-Type", f"{kind}; charset=utf-8")
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Cache-Control", "no-store")
        request.end_headers()
        request.wfile.write(body)

    def __enter__(self) -> "WatchPage":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
