"""Models: the table as it is shipped, the user's own file over it, and names that are in neither."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import turnlog
from turnlog.errors import InputError
from turnlog.log.records import UsageRecord
from turnlog.log.usage import Usage
from turnlog.models.abilities import Abilities
from turnlog.models.catalog import (
    VARIABLE,
    CacheRules,
    ModelFacts,
    Prices,
    PriceTier,
    find_model,
    model_facts,
    own_file,
)
from turnlog.models.makers import PROVIDER_ROWS
from turnlog.models.target import UnknownModelWarning

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = json.loads((ROOT / "src/turnlog/models/data/models.json").read_text("utf-8"))
_NUMBERS = count()


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Path]:
    """Writes the user's own file: its models, or its whole text. Files are read once, so each is another."""

    def write(held: Any) -> Path:
        path = tmp_path / f"models-{next(_NUMBERS)}.json"
        path.write_text(held if isinstance(held, str) else json.dumps({"models": held}), "utf-8")
        monkeypatch.setenv(VARIABLE, str(path))
        return path

    return write


def table_facts(model: str) -> ModelFacts | None:
    """What the table knows of a model, without what is known of its family."""
    facts = model_facts(model)
    return facts and msgspec.structs.replace(facts, abilities=Abilities())


def entries() -> Iterator[tuple[str, ModelFacts]]:
    """The shipped table, checked against its types."""
    for name, entry in SHIPPED["models"].items():
        yield name, msgspec.convert(entry, ModelFacts)


def test_the_table_is_whole_and_dated() -> None:
    """A table without source, date or limits, or with an entry that no type allows."""
    assert (SHIPPED["date"], SHIPPED["date"] in SHIPPED["source"]) == ("2026-11-21", True)
    found = dict(entries())
    assert len(found) > 150
    assert {facts.provider for facts in found.values()} == {"openai", "anthropic", "google"}
    without = sorted(name for name, facts in found.items() if not (facts.input and facts.output))
    assert all("gemma-2" in name or "cyber" in name or "rosalind" in name for name in without), without


def test_caches_never_cost_more_than_they_save() -> None:
    """A price in the wrong column: reading a cache is cheaper than reading, writing it is not, and an
    answer costs more than a question. Zero is no price."""
    for name, facts in entries():
        prices = facts.prices
        known = {kind: price for kind, price in msgspec.structs.asdict(prices).items() if isinstance(price, Decimal)}
        assert all(price > 0 for price in known.values()), name
        if not known:
            continue
        assert prices.input is not None and prices.output is not None, name
        assert prices.input <= prices.output, name
        assert prices.cached is None or prices.cached < prices.input, name
        assert prices.cache_write is None or prices.cache_write > prices.input, name
        assert prices.cache_write_1h is None or prices.cache_write_1h > (prices.cache_write or 0), name
        assert (prices.cached is None) == (facts.cache.mode is None), name
        assert (facts.cache.mode == "marked") == (facts.provider == "anthropic"), name


def test_what_is_known_of_some_models() -> None:
    """The figures that providers publish come out of the table as they are."""
    assert table_facts("claude-sonnet-4-5") == ModelFacts(
        provider="anthropic",
        input=200_000,
        output=64_000,
        media=("image", "document"),
        cache=CacheRules("marked", 1024, lifetime=300, long_lifetime=3_600, lookback=20),
        prices=Prices(
            Decimal(3),
            Decimal(15),
            Decimal("0.3"),
            Decimal("3.75"),
            Decimal(6),
            tiers=(PriceTier(200_000, Decimal(6), Decimal("22.5"), Decimal("0.6"), Decimal("7.5"), Decimal(12)),),
        ),
    )
    assert turnlog.target("openai-chat", "gpt-5").input_limit == 272_000
    assert turnlog.target("openai-responses", "gpt-5.1-codex").input_limit == 272_000
    assert turnlog.target("google", "gemini-2.5-flash").input_media == {"image", "document", "audio", "video"}


def test_the_table_is_what_its_script_writes(shared: Path, tmp_path: Path) -> None:
    """A table that was edited by hand, or that is older than its script."""
    script = (ROOT / "scripts/models_table.py").read_text("utf-8")
    made = tmp_path / "src/turnlog/models/data/models.json"
    made.parent.mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/models_table.py").write_text(script, "utf-8")
    command = [sys.executable, str(tmp_path / "scripts/models_table.py"), str(shared / "data/models.json")]
    subprocess.run(command, check=True)
    assert made.read_text("utf-8") == (ROOT / "src/turnlog/models/data/models.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "like", "taken_for"),
    [
        ("gpt-4o", "gpt-4o", ""),
        ("openrouter/openai/gpt-4o", "gpt-4o", ""),
        ("gpt-35-turbo", "gpt-3.5-turbo", ""),
        ("azure/gpt-35-turbo-16k", "gpt-3.5-turbo-16k", ""),
        ("Claude-Sonnet-4-5", "claude-sonnet-4-5", ""),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5", ""),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", ""),
        ("gpt-4o-2031-01-01", "gpt-4o", "gpt-4o"),
        ("claude-sonnet-4-5@20310101", "claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("gpt-5.2-pro-quick", "gpt-5.2-pro", "gpt-5.2-pro"),
        ("openai/gpt-5:free", "gpt-5", "gpt-5"),
        ("ft:gpt-4o-2024-08-06:org:name:1", "ft:gpt-4o-2024-08-06", "ft:gpt-4o-2024-08-06"),
        ("gpt-4ohm", "", None),
        ("claude-sonnet-4", "claude-sonnet-4-0", ""),
        ("claude-opus-4-1-20250805", "claude-opus-4-1", "claude-opus-4-1"),
        ("openrouter/anthropic/claude-4.5-sonnet-20250929", "claude-sonnet-4-5-20250929", ""),
        ("gpt-5-1-codex-max", "gpt-5.1-codex-max", ""),
        ("gemini-3-pro", "gemini-3-pro-preview", ""),
        ("", "", None),
    ],
)
def test_names(name: str, like: str, taken_for: str | None) -> None:
    """A model taken for another without saying so, or for one that merely begins alike."""
    found = find_model(name)
    if taken_for is None:
        assert found is None
    else:
        assert found is not None
        assert (table_facts(name), found.taken_for) == (table_facts(like), taken_for)


@pytest.mark.parametrize("gateway", ["", "openrouter/openai/"])
@pytest.mark.parametrize("base", ["gpt-5.2", "gpt-4o-2031-01-01"])
def test_a_tuned_model_is_what_it_was_made_of_at_a_price_of_its_own(base: str, gateway: str) -> None:
    """A tuned model that the table does not list had the smallest window that there is, though its base is known; or
    it had so behind a gateway."""
    name, known = f"{gateway}ft:{base}:acme:ledger:id1", find_model(base)
    assert known is not None and model_facts(f"ft:{base}") not in (None, known.facts)
    found = find_model(name)
    assert found is not None and found.taken_for == (known.taken_for or base)
    assert table_facts(name) == msgspec.structs.replace(known.facts, prices=Prices(), abilities=Abilities())
    assert find_model("ft:company-model:acme::id2") is None


@pytest.mark.parametrize("provider", PROVIDER_ROWS)
def test_a_target_has_a_model(provider: str) -> None:
    """A variable of the environment that is not set gave a session without a target, and a request without a model."""
    with pytest.raises(InputError, match=f"give a model such as '{PROVIDER_ROWS[provider].model}'"):
        turnlog.target(provider, "")


def test_an_unknown_model_is_warned_of_once_where_it_was_named() -> None:
    """A warning that is missing, comes with every request, or points into turnlog."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            like = turnlog.target("openai-chat", "gpt-4o-2032-02-02")
            guess = turnlog.target("anthropic", "nova-warned")
        with turnlog.open("s", target=guess, store=":memory:") as session:
            session.user("hi")
            assert session.target == guess
            session.request()
        turnlog.target("openai-chat", "gpt-4o")
        turnlog.check({"messages": []}, "openai-chat")  # names no model: nothing to warn of
    assert [(type(one.message), one.filename) for one in seen] == [(UnknownModelWarning, __file__)] * 2
    assert [str(one.message) for one in seen] == [like.doubt, guess.doubt]
    assert "the limits of 'gpt-4o' are used: 128,000 input and 16,384 output tokens" in like.doubt
    assert "the common limits of its provider are used: 200,000 input and 8,192 output tokens" in guess.doubt
    assert str(own_file()) in guess.doubt
    assert (like.known, like.taken_for, guess.known, guess.taken_for) == (True, "gpt-4o", False, "")


@pytest.mark.parametrize("name", ["nova-advised", 'nova "advised"', "nova\\advised", "nova'advised"])
def test_the_warning_says_how_to_end_it(own: Callable[[Any], Path], name: str) -> None:
    """Advice that does not work: the entry in the warning, written to the file, makes the model known."""
    doubt = turnlog.target("openai-chat", name).doubt
    own(doubt[doubt.index("{") :])
    known = turnlog.target("openai-chat", name)
    assert (known.known, known.doubt, known.input_limit, known.output_limit) == (True, "", 128_000, 16_384)


def test_the_users_file_comes_first(own: Callable[[Any], Path]) -> None:
    """An own entry that loses against ours, or that takes away what it does not name."""
    ours = model_facts("gpt-4o")
    assert ours is not None
    own(
        {
            "gpt-4o": {"input": 50_000, "prices": {"input": 0.1, "cached": None}},
            "gpt-4o-mine": {"output": 7},
            "nova-1": {"media": ["image"], "prices": {"output": 2, "up_to": 128_000}},
            "org/nova-2": {"input": 9, "output": 8},
        }
    )
    prices = msgspec.structs.replace(ours.prices, input=Decimal("0.1"), cached=None)
    assert model_facts("gpt-4o") == msgspec.structs.replace(ours, input=50_000, prices=prices)
    assert model_facts("gpt-4o-mine") == msgspec.structs.replace(ours, output=7)
    assert model_facts("nova-1") == ModelFacts(media=("image",), prices=Prices(output=Decimal(2), up_to=128_000))
    assert model_facts("org/nova-2") == ModelFacts(input=9, output=8)
    shipped = msgspec.convert(SHIPPED["models"]["gpt-5"], ModelFacts)
    cache = msgspec.structs.replace(shipped.cache, step=128, lifetime=600)  # what its family adds
    assert table_facts("gpt-5") == msgspec.structs.replace(shipped, cache=cache)
    nova = turnlog.target("openai-chat", "nova-1")
    assert (nova.input_limit, nova.output_limit, nova.input_media, nova.doubt) == (128_000, 16_384, {"image"}, "")
    later = turnlog.target("openai-chat", "nova-1-2031-01-01")
    assert (later.known, later.taken_for) == (True, "nova-1")


def test_an_own_entry_completes_any_shipped_one(own: Callable[[Any], Path]) -> None:
    """An own entry that takes away the tiers, the window or the prices that it does not name, of a model of either
    table, or of a seller; and a tier of one's own."""
    names = ("claude-sonnet-4-5", "grok-4.5", "groq/openai/gpt-oss-120b", "glm-4.6")
    before = {name: model_facts(name) for name in names}
    tier = {"above": 9_000, "output": 7}
    own({**{name: {"prices": {"input": 1}} for name in names}, "gpt-4o": {"prices": {"tiers": [tier]}}})
    for name in names:
        ours, facts = before[name], model_facts(name)
        assert ours is not None and facts is not None
        assert facts == msgspec.structs.replace(ours, prices=msgspec.structs.replace(ours.prices, input=Decimal(1)))
    assert turnlog.cost(Usage(input=10_000, output=1_000_000), "gpt-4o").total == Decimal("7.025")
    assert turnlog.cost(Usage(input=9_000, output=1_000_000), "gpt-4o").total == Decimal("10.0225")


def test_a_seller_is_recorded_and_priced() -> None:
    """An answer of Groq or OpenRouter at the price of the maker, or without one; and windows that are not known."""
    groq = turnlog.target("openai-chat", "openai/gpt-oss-120b", base_url="https://api.groq.com/openai/v1")
    own_server = turnlog.target("openai-chat", "gpt-4o", base_url="https://api.openai.com/v1")
    assert (groq.seller, groq.sold_as, groq.known, groq.input_limit) == (
        "groq",
        "groq/openai/gpt-oss-120b",
        True,
        131_072,
    )
    assert (own_server.seller, own_server.sold_as) == ("", "gpt-4o")
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 0, "total_tokens": 1_000_000}
    said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi."}}
    with turnlog.open("s", store=":memory:", target=groq) as session:
        session.user("hi")
        answer = session.receive({"model": "openai/gpt-oss-120b", "choices": [said], "usage": usage})
        record = next(session.log.of_kinds("usage"))
        assert isinstance(record.body, UsageRecord)
        assert (record.body.seller, record.body.sold_as) == ("groq", "groq/openai/gpt-oss-120b")
        assert answer.cost == session.cost == turnlog.cost(Usage(input=1_000_000), groq.sold_as)
        assert session.cost.total == Decimal("0.15")


def test_null_says_that_nothing_is_known(own: Callable[[Any], Path]) -> None:
    """As documented, of any field; of `prices` and `cache` it was a mistake in the file."""
    own({"gpt-4o": {"prices": None, "cache": None, "media": None}})
    facts = model_facts("gpt-4o")
    assert facts is not None
    assert (facts.prices, facts.cache, facts.media, facts.input) == (Prices(), CacheRules(), None, 128_000)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"nova": {"inptu": 5}}, "model 'nova': Object contains unknown field `inptu`"),
        ({"nova": {"input": "many"}}, "model 'nova': Expected `int | null`, got `str` - at `$.input`"),
        ({"nova": {"input": 0}}, "model 'nova': Expected `int` >= 1 - at `$.input`"),
        ({"nova": {"provider": "acme"}}, "model 'nova': provider: 'acme'; use one of anthropic, openai, google"),
        ({"nova": {"media": ["smell"]}}, "model 'nova': Invalid enum value 'smell' - at `$.media[0]`"),
        ({"nova": {"prices": {"input": -1}}}, "model 'nova': prices.input must not be below 0"),
        ({"nova": {"prices": {"input": "NaN"}}}, "model 'nova': prices.input must be a number"),
        ({"nova": {"prices": {"cached": "-Infinity"}}}, "model 'nova': prices.cached must be a number"),
        (
            '{"models": {"nova": {"prices": {"output": 1e999}}}}',
            "model 'nova': prices.output must not be above 1,000,000",
        ),
        ({"nova": {"prices": {"input": True}}}, "model 'nova': Expected `decimal | null`, got `bool`"),
        ({"nova": {"cache": {"mode": "magic"}}}, "model 'nova': Invalid enum value 'magic' - at `$.cache.mode`"),
        ({"nova": {"prices": {"tiers": [{"input": 1}]}}}, "model 'nova': Object missing required field `above`"),
        (
            {"nova": {"prices": {"tiers": [{"above": 5, "input": -1}]}}},
            "model 'nova': prices.tiers[0].input must not be below 0",
        ),
        ({"nova": 5}, "model 'nova': Expected `object`, got `int`"),
        ('{"models": {"nova": {"prices": {"input": NaN}}}}', "not JSON: NaN is not a JSON number"),
        ('{"models": ', "not JSON: Expecting value"),
        ('{"nova": {}}', 'expected {"models": {NAME: {...}}}'),
        ("[]", 'expected {"models": {NAME: {...}}}'),
    ],
)
def test_a_bad_entry_is_named(own: Callable[[Any], Path], held: Any, said: str) -> None:
    """A mistake in the user's file that passes in silence, or without file, model and field."""
    path = own(held)
    with pytest.raises(InputError) as caught:
        turnlog.target("openai-chat", "gpt-4o")
    assert str(caught.value).startswith(f"{path}: {said}")


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is named and not there is a mistake; one in its usual place is not looked for in vain."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert own_file() == tmp_path / "turnlog" / "models.json"
    script = "import turnlog; print(turnlog.target('openai-chat', 'gpt-4o').input_limit)"
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "128000\n"
    own_file().parent.mkdir()
    own_file().write_text('{"models": {"gpt-4o": {"input": 5}}}', "utf-8")
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "5\n"
    monkeypatch.setenv(VARIABLE, str(tmp_path / "absent.json"))
    with pytest.raises(InputError, match=r"absent\.json: cannot be read .*TURNLOG_MODELS names this file"):
        turnlog.target("openai-chat", "gpt-4o")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table in its usual place that is passed over, as it is a link to nothing, or a folder."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    script = "import turnlog; turnlog.target('openai-chat', 'gpt-4o')"
    own_file().parent.mkdir()
    for make in (lambda: own_file().symlink_to("nowhere"), lambda: (own_file().unlink(), own_file().mkdir())):
        make()
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert f"InputError: {own_file()}: cannot be read (" in ended.stderr


def test_importing_reads_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`import turnlog` that opens a table, or fails over a broken one."""
    broken = tmp_path / "models.json"
    broken.write_text("{", "utf-8")
    monkeypatch.setenv(VARIABLE, str(broken))
    script = """if True:
        import sys
        seen = []
        sys.addaudithook(lambda event, args: seen.append(str(args[0])) if event == "open" else None)
        import turnlog
        print([name for name in seen if name.endswith("models.json")])
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
