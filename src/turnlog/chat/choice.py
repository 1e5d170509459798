"""Which model answers: from `--model` and `--program`, or from the keys in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from msgspec import Struct

from ..errors import InputError, RunnerNotFound, install_extra
from ..models.catalog import known_models
from ..models.target import DEFAULT_MODELS, Target, target
from ..runners import DEMO_MODEL, PROGRAMS, ProgramRunner, Runner, ScriptedRunner, SdkRunner

_PROVIDERS = {
    "anthropic": "anthropic",
    "gemini": "google",
    "google": "google",
    "google-interactions": "google-interactions",
    "openai": "openai-responses",
    "openai-chat": "openai-chat",
    "openai-responses": "openai-responses",
}
"""Words for providers, and the API that each stands for."""

_KEYS = {
    "ANTHROPIC_API_KEY": "anthropic",
    "OPENAI_API_KEY": "openai-responses",
    "GEMINI_API_KEY": "google",
    "GOOGLE_API_KEY": "google",
}
_NOBODY = (
    "no model to talk to: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY;\n"
    "or point at a local server: turnlog chat --model openai/NAME --base-url http://127.0.0.1:8080/v1;\n"
    f"or try it without one: turnlog chat --model {DEMO_MODEL}, or --program {', '.join(PROGRAMS)}"
)
_PAUSE = 0.02
"""Seconds between the words of the built-in model."""

_OUTPUT = 8_000
"""The most tokens of an answer, for providers that want to be told."""


class Choice(Struct, frozen=True):
    """A model to talk to. `brings_tools`: it is a program, which has its own."""

    target: Target
    runner: Runner
    brings_tools: bool = False


def chosen(
    model: str = "", program: str = "", *, base_url: str = "", environment: Mapping[str, str] = os.environ
) -> Choice:
    """The model that `model` (PROVIDER/MODEL), `program` or else the keys in the environment name. Raises InputError,
    which says in three lines what to do, if nothing names one; RunnerNotFound without the SDK of a local server."""
    if program:
        runner = ProgramRunner(program, model=model)
        provider = PROGRAMS[program].makers[0]
        return Choice(target(provider, DEFAULT_MODELS[provider], **_settings(provider)), runner, brings_tools=True)
    if base_url and not model:
        raise InputError(f"which model is at {base_url}? name it: --model openai/NAME --base-url {base_url}")
    if not model:
        found = next((provider for key, provider in _KEYS.items() if environment.get(key)), "")
        if not found:
            raise InputError(_NOBODY)
        return Choice(target(found, DEFAULT_MODELS[found], **_settings(found)), SdkRunner())
    return _named(model, base_url)


def suggested(beginning: str) -> list[str]:
    """Names of models, as `chosen` takes them, that begin so: the providers first, then the models of one."""
    word, slash, _ = beginning.partition("/")
    if not slash:
        return [DEMO_MODEL, *(f"{name}/" for name in _PROVIDERS)]
    maker = _PROVIDERS.get(word, "").partition("-")[0]
    known = known_models().items() if maker else ()
    return [f"{word}/{name}" for name, facts in known if facts.provider == maker and ":" not in name]


def choice_for(aim: Target) -> Choice:
    """The model that a session has been talking to."""
    if aim.model == DEMO_MODEL:
        return Choice(aim, ScriptedRunner(pause=_PAUSE))
    if aim.base_url and aim.provider.startswith("openai") and not os.environ.get("OPENAI_API_KEY"):
        return Choice(aim, SdkRunner(openai=_keyless(aim.base_url)))
    return Choice(aim, SdkRunner())


def _named(model: str, base_url: str) -> Choice:
    word, slash, name = model.partition("/")
    if model == DEMO_MODEL:
        return choice_for(target("openai-chat", DEMO_MODEL))
    if not slash or not name or word not in _PROVIDERS:
        there = f"{', '.join(_PROVIDERS)}; or {DEMO_MODEL}"
        raise InputError(f"a model is named PROVIDER/MODEL, not {model!r}; providers are {there}")
    if base_url and not base_url.startswith(("http://", "https://")):
        raise InputError(f"the URL of a server begins with http:// or https://, unlike {base_url!r}")
    provider = "openai-chat" if base_url and word == "openai" else _PROVIDERS[word]
    return choice_for(target(provider, name, base_url=base_url, **_settings(provider)))


def _settings(provider: str) -> dict[str, Any]:
    return {"max_tokens": _OUTPUT} if provider == "anthropic" else {}


def _keyless(base_url: str) -> Any:
    """A client for a server that wants no key, without which the SDK makes none."""
    try:
        return import_module("openai").AsyncOpenAI(base_url=base_url, api_key="none")
    except ImportError as error:
        raise RunnerNotFound("openai", install_extra("openai"), what="the SDK openai") from error
