"""What opencode writes: entries with blocks. Those of its first generation are messages with parts, which are read as
entries, too: the role is the kind, and the parts are the `content`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..log.messages import Outcome
from ..log.usage import tokens_billed
from .edits import KnownChange
from .fields import Fields, kind_of
from .json_values import items, objects, within, word
from .parts import called, shown, texts
from .writing import Handler, SessionWriter, kinds

USAGE = {
    "input": "input cache.read cache.write",
    "output": "output reasoning",
    "cached": "cache.read",
    "cache_write": "cache.write",
    "reasoning": "reasoning",
}
"""Figures of opencode: its input is without the cache, its output without the reasoning."""

NOISE = (
    "time time_created time_updated seq parentID mode variant shellID callIDs snapshot executed provider raw title "
    "filepath truncated todos preview"
)
"""Keys of blocks and entries that say nothing, or repeat a call or its result."""
_SAID = ("text", "file", "subtask")
_GOES_ON = ("tool-calls", "unknown")
_ENDS = {"succeeded": "completed", "failed": "failed", "interrupted": "cancelled"}


# -- entries ---------------------------------------------------------------------------------------


def _asked(writer: SessionWriter, entry: Fields, line: int) -> None:
    text, files = entry.text("text"), entry.get("files")
    given = [{"type": "text", "text": text}] * bool(text) + [{"type": "file", **file} for file in objects(files)]
    blocks = [Fields(block) for block in (*items(entry.get("content")), *given)]
    answers(writer, "", "", "")  # for blocks that only answers have
    writer.state |= {"role": "user", "is_synthetic": False}
    if any(block.value.get("type") in _SAID and not block.value.get("synthetic") for block in blocks):
        writer.turn(writer.state["id"])
    _take(writer, blocks, line)
    _results(writer)
    entry.skip("tools", "agent", "model")  # each answer names its own
    about = entry.inside("summary")
    about.skip("diffs")  # change while the turn runs; calls tell of them
    writer.note("user", {"title": about.text("title"), "body": about.text("body"), "system": entry.text("system")})


def _take(writer: SessionWriter, blocks: Iterable[Fields], line: int) -> None:
    for block in blocks:
        writer.take(block, line, kind_of(block, "type"), PARTS)


def _answered(writer: SessionWriter, entry: Fields, line: int) -> None:
    model, error = entry.inside("model"), entry.inside("error")
    vendor = entry.text("providerID") or model.text("providerID")
    answers(writer, entry.text("modelID") or model.text("modelID", "id"), vendor, entry.text("finish"))
    entry.skip("agent")
    writer.log.files.work_in(within(entry.get("path"), "cwd"))
    name = error.text("name", "type")
    reason = error.inside("data").text("message") or error.text("message") or name
    writer.state["is_summary"] = entry.get("summary") is True and not reason
    _take(writer, map(Fields, items(entry.get("content"))), line)
    end_answer(writer, entry, reason, "abort" in name.lower())


def _told(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.say("user", texts(entry.text("text")), line, by_program=True, source=writer.state["id"])


def _instructed(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.say("system", texts(entry.text("text")), line, source=writer.state["id"])


def _ran(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A command that the user ran; the model sees it as the user's words."""
    said = "\n".join(filter(None, (f"$ {entry.text('command')}", entry.text("output"))))
    writer.say("user", texts(said), line, source=writer.state["id"])


def _summarised(writer: SessionWriter, entry: Fields, line: int) -> None:
    answers(writer, "", "", "")
    summary, recent = entry.text("summary"), entry.text("recent")
    if entry.text("status") in ("", "completed"):
        _compact(writer, "\n\n".join(filter(None, (summary, recent))), line)
    else:
        writer.note("compaction", {"summary": summary, "recent": recent})
    _bill(writer, entry.get("tokens"), entry.get("cost"), word(writer.state["id"]))


def _switched(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.log.files.work_in(entry.inside("location").text("directory"))
    writer.facts("switched", {key: entry.get(key) for key in ("agent", "model", "location")})


def _idle(writer: SessionWriter, entry: Fields, line: int) -> None:
    outcome = entry.text("outcome")
    if writer.log.turn:
        writer.end(_ENDS.get(outcome, outcome or "completed"))


ENTRIES: dict[str, Handler | None] = {
    "user": _asked,
    "assistant": _answered,
    **kinds("synthetic skill", _told),
    "system": _instructed,
    "shell": _ran,
    "compaction": _summarised,
    **kinds("agent-switched model-switched location-switched", _switched),
    "idle": _idle,
}


# -- answers ---------------------------------------------------------------------------------------


def answers(writer: SessionWriter, model: str, vendor: str, stop: str) -> None:
    """Set what the parts of an answer need to know of it."""
    about = {"model": model, "stop": stop}
    writer.vendor = vendor
    writer.state |= {"role": "assistant", "about": about, "results": [], "steps": [], "is_summary": False}


def end_answer(writer: SessionWriter, info: Fields, reason: str, is_aborted: bool) -> None:
    """Record the results of an answer, its usage and how it ended."""
    is_cut = bool(reason) and not writer.state["results"]
    writer.flush(reason if is_cut else "")
    _results(writer)
    tokens, cost, time = info.get("tokens"), info.get("cost"), info.value.get("time")
    created = within(time, "created")
    for n, (billed, paid) in enumerate(writer.state["steps"] or [(tokens, cost)], 1):
        _bill(writer, billed, paid, f"{created} {within(time, 'completed')} {n}" if created else "")
    stop = writer.state["about"]["stop"]
    if writer.log.turn and (reason or (stop and stop not in _GOES_ON)):
        writer.end(("cancelled" if is_aborted else "failed") if reason else "completed", reason)
    elif reason:
        writer.note("error", {"message": reason})


def _bill(writer: SessionWriter, tokens: Any, cost: Any, times: str) -> None:
    """Record usage. A fork has copies of the answers before it, with their times: sums count these once."""
    model = writer.state["about"]["model"]
    answer = f"{writer.vendor}/{model} {times}" if times else ""
    writer.usage(tokens, USAGE, model=model, cost=cost, response_id=answer)


def _results(writer: SessionWriter) -> None:
    """Record the results of the calls of an answer, which opencode keeps with the calls."""
    for call_id, content, outcome, change in writer.state.get("results", ()):
        writer.result(call_id, content, outcome=outcome, change=change, source=writer.state["id"])
    writer.state["results"] = []
    writer.flush()


# -- parts -----------------------------------------------------------------------------------------


def _text(writer: SessionWriter, part: Fields, line: int) -> None:
    text, is_synthetic = part.text("text"), part.get("synthetic") is True
    if part.get("ignored") is True:
        writer.note("ignored", {"text": text})
    elif writer.state["role"] == "user":
        _ask(writer, texts(text), is_synthetic)
    elif writer.state.get("is_summary"):
        _compact(writer, text, line)
    else:
        _say(writer, texts(text))


def _ask(writer: SessionWriter, parts: Any, is_synthetic: bool = False) -> None:
    """Add to what the user said, or to what the program said in the user's name."""
    if is_synthetic is not writer.state["is_synthetic"]:
        writer.flush()
    writer.state["is_synthetic"] = is_synthetic
    writer.say("user", parts, joined=True, by_program=is_synthetic, source=writer.state["id"])


def _say(writer: SessionWriter, parts: Any) -> None:
    writer.say("assistant", parts, joined=True, source=writer.state["id"], **writer.state["about"])


def _compact(writer: SessionWriter, summary: str, line: int) -> None:
    """From here on the model saw a summary in place of what came before it, but for a tail that was kept."""
    writer.flush()
    tail = writer.state.get("first", {}).get(writer.state.pop("tail", ""), writer.log.last + 1)
    if tail > 1 and summary:
        number = writer.log.last + 1
        writer.log.compacted(1, tail - 1, "opencode compacted", {"summary": number + 1})
    writer.say("user", texts(summary), line, by_program=True, source=writer.state["id"])
    writer.flush()


def _reasoning(writer: SessionWriter, part: Fields, line: int) -> None:
    signature = part.inside("metadata", "anthropic").text("signature") or part.inside("native").text("signature")
    if writer.state["role"] == "assistant":
        _say(writer, writer.thinking(part.text("text"), signature=signature))


def _tool(writer: SessionWriter, part: Fields, line: int) -> None:
    state, call_id, name = part.inside("state"), part.text("callID", "id"), part.text("tool", "name")
    compacted = within(state.value, "time", "compacted")
    writer.note("tool", {"call_id": call_id, "compacted": compacted} if compacted else None)
    arguments = state.get("input")
    status, error, more = state.text("status"), state.get("error"), state.inside("metadata")
    if status in ("pending", "streaming"):
        writer.log.count("a call whose arguments had not arrived", 0, "nothing")
        return
    _say(writer, [called(call_id, name, arguments)])
    if status not in ("completed", "error"):
        return
    outcome: Outcome = "ok"
    if status == "error":
        outcome = "aborted" if more.get("interrupted") is True else "failed"
        error = error if isinstance(error, str) else within(error, "message") or error
    output = state.get("output", "structured") if "content" not in state.value else state.get("content")
    content = [*items(output if isinstance(output, list) else [output]), *items(state.get("attachments")), error]
    content = [each for each in content if each not in (None, "")]
    writer.state["results"].append((call_id, _content(content), outcome, _change(more)))


def _content(content: list[Any]) -> Any:
    """What a tool returned: one text, or texts and files, whose address is under `url` or `uri`."""
    if len(content) == 1 and not isinstance(content[0], dict):
        return content[0]
    return [{"url": each["uri"], **each} if isinstance(each, dict) and "uri" in each else each for each in content]


def _change(metadata: Fields) -> KnownChange | None:
    """What a tool that edits a file says of its change."""
    whole, diff, exists = metadata.get("filediff"), metadata.text("diff"), metadata.get("exists")
    metadata.skip("output")
    before, after = within(whole, "before"), within(whole, "after")
    if isinstance(before, str) and isinstance(after, str):
        return KnownChange(before, after, is_new=exists is False)
    return KnownChange(diff=diff, is_new=exists is False) if diff or exists is False else None


def _file(writer: SessionWriter, part: Fields, line: int) -> None:
    """A file that the user named or gave. Those that are text follow as texts of the program."""
    mime, url = part.text("mime"), part.text("url", "uri")
    is_text = mime.startswith(("text/", "application/x-directory"))
    found = shown([{"type": "file", "mime": mime, "url": url, "filename": part.value.get("filename")}], writer.log.blob)
    is_shown = url.startswith(("data:", "http")) and not any(hasattr(each, "text") for each in found)
    if is_shown and not is_text and writer.state["role"] == "user":
        part.skip("filename", "name", "source", "description")
        _ask(writer, found)
        return
    writer.note("file", dict(part.value))
    part.skip(*part.value)
    if not is_text:
        what = "a file of an answer" if is_shown else "a file that is not in the transcript"
        writer.log.count(f"{what}; it is kept as a note", line)


def _began(writer: SessionWriter, part: Fields, line: int) -> None:
    writer.flush()
    if writer.state["role"] == "assistant":
        _results(writer)


def _finished(writer: SessionWriter, part: Fields, line: int) -> None:
    """The end of a step. If steps have usage, that of the message is only the last one's."""
    part.skip("reason")
    tokens, cost = part.get("tokens"), part.get("cost")
    if writer.state["role"] == "assistant" and tokens_billed(within(tokens, "output")):
        writer.state["steps"].append((tokens, cost))


def _compaction(writer: SessionWriter, part: Fields, line: int) -> None:
    writer.state["tail"] = part.text("tail_start_id")


PARTS: dict[str, Handler | None] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "file": _file,
    "step-start": _began,
    "step-finish": _finished,
    "compaction": _compaction,
    "subtask": lambda writer, part, line: _ask(writer, texts(part.text("prompt"))),
    **kinds("snapshot patch agent retry"),
}
