"""Which model answers: from `--model` and `--program`, or from the keys in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct

from ..errors import InputError
from ..models.catalog import known_models
from ..models.makers import PROVIDER_ROWS, default_model, maker_of, makers
from ..models.target import Target, target
from ..providers import provider
from ..runners import DEMO_MODEL, ProgramRunner, Runner, ScriptedRunner, SdkRunner
from ..runners.programs.runner import PROGRAMS
from ..runners.sdk import client_of

_PAUSE = 0.02
"""Seconds between the words of the built-in model."""

_OUTPUT = 8_000
"""The most tokens of an answer, for providers that require a limit."""


def _providers() -> dict[str, str]:
    """Words for providers, and the API that each stands for."""
    providers = {name: name for name in PROVIDER_ROWS}
    for maker in makers().values():
        providers |= dict.fromkeys((maker.name, *maker.words), maker.provider)
    return dict(sorted(providers.items()))


def _nobody() -> str:
    *keys, last = (maker.sdk.keys[0] for maker in makers().values())
    return (
        f"no model to talk to: set {', '.join(keys)} or {last};\n"
        "or point at a local server: turnlog chat --model openai/NAME --base-url http://127.0.0.1:8080/v1;\n"
        f"or try it without one: turnlog chat --model {DEMO_MODEL}, or --program {', '.join(PROGRAMS)}"
    )


class Choice(Struct, frozen=True):
    """A model to talk to. `brings_tools`: it is a program with tools of its own."""

    target: Target
    runner: Runner
    brings_tools: bool = False


def chosen(
    model: str = "",
    program: str = "",
    *,
    base_url: str = "",
    server: str = "",
    environment: Mapping[str, str] = os.environ,
) -> Choice:
    """The model that `model` (PROVIDER/MODEL) or `program` names, else one whose key is in the environment. `base_url`
    and `server` are those of `turnlog.target`. Raises InputError, with advice in three lines, if there is none;
    RunnerNotFound without the SDK for a local server."""
    if program:
        runner = ProgramRunner(program, model=model)
        return Choice(_usual(makers()[PROGRAMS[program].maker].provider), runner, brings_tools=True)
    if base_url and not model:
        raise InputError(f"which model is at {base_url}? name it: --model openai/NAME --base-url {base_url}")
    if not model:
        maker = next((maker for maker in makers().values() if any(map(environment.get, maker.sdk.keys))), None)
        if maker is None:
            raise InputError(_nobody())
        return Choice(_usual(maker.provider), SdkRunner())
    return _named(model, base_url, server)


def suggested(beginning: str) -> list[str]:
    """Names of models, as `chosen` takes them, that begin with `beginning`: providers or, after a provider, its
    models."""
    word, slash, _ = beginning.partition("/")
    if not slash:
        return [DEMO_MODEL, *(f"{name}/" for name in _providers())]
    maker = maker_of(_providers().get(word, ""))
    models = known_models().items() if maker else ()
    return [f"{word}/{name}" for name, facts in models if maker and facts.provider == maker.name and ":" not in name]


def choice_for(aim: Target) -> Choice:
    """The choice for the target of a session: the target, and the runner that asks it."""
    if aim.model == DEMO_MODEL:
        return Choice(aim, ScriptedRunner(pause=_PAUSE))
    maker = provider(aim.provider).row.maker
    if aim.base_url and maker.imitated and not any(map(os.environ.get, maker.sdk.keys)):
        # a client for a server that wants no key, without which the SDK makes none
        return Choice(aim, SdkRunner(**{maker.name: client_of(maker, aim.base_url, api_key="none")}))
    return Choice(aim, SdkRunner())


def _named(model: str, base_url: str, server: str) -> Choice:
    word, slash, name = model.partition("/")
    if model == DEMO_MODEL:
        return choice_for(target("openai-chat", DEMO_MODEL))
    words = _providers()
    if not slash or not name or word not in words:
        names = f"{', '.join(words)}; or {DEMO_MODEL}"
        raise InputError(f"a model is named PROVIDER/MODEL, not {model!r}; providers are {names}")
    if base_url and not base_url.startswith(("http://", "https://")):
        raise InputError(f"the URL of a server begins with http:// or https://, unlike {base_url!r}")
    imitated = makers()[word].imitated if (base_url or server) and word in makers() else ""
    return choice_for(_limited(target(imitated or words[word], name, base_url=base_url, server=server)))


def _usual(name: str) -> Target:
    return _limited(target(name, default_model(name)))


def _limited(aim: Target) -> Target:
    """The target with a limit on the answer, if its provider requires one."""
    speaker = provider(aim.provider)
    key = speaker.setting_paths.get("max_output_tokens", ("",))[0]
    return aim.with_settings(**{key: _OUTPUT}) if key in speaker.required_settings(aim) else aim
