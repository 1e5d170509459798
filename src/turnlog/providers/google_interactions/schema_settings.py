"""The schema of settings: `generation_config` and safety settings (google-genai 3.4.0)."""

from __future__ import annotations

from ..schema import STRING, Either, Many, Tagged, Value, record, words

_RATIOS = words("1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:8 8:1 1:4 4:1")
_SIZES = words("512 1K 2K 4K")
_SPEECH = record("language speaker voice")
_MODE = words("auto any none validated")
_TIMED = "diarization_mode timestamp_granularities:texts"

GENERATION = record(
    "max_output_tokens:int seed:int",
    {
        "image_config": record("", {"aspect_ratio": _RATIOS, "image_size": _SIZES}),
        "speech_config": Either((Many(_SPEECH), record("", {"speakers": Many(_SPEECH)}))),
        # "at most 5 stop sequences are supported." (generateContent)
        "stop_sequences": Many(STRING, 5),
        # "temperature must be in the range [0.0, 2.0]." (generateContent)
        "temperature": Value("number", 0, 2),
        "thinking_level": words("minimal low medium high xhigh"),
        "thinking_summaries": words("auto none"),
        "tool_choice": Either((record("", {"allowed_tools": record("tools:texts", {"mode": _MODE})}), _MODE)),
        "top_p": Value("number"),
        "transcription_config": record(
            f"adaptation_phrases:texts custom_vocabulary:texts language_codes:texts language_hints:texts {_TIMED}",
            {
                "mode": Either(
                    (
                        Tagged(
                            "type",
                            {"smart": record("type! source_text"), "verbatim": record(f"type! {_TIMED}")},
                        ),
                        words("verbatim smart"),
                    )
                )
            },
        ),
        "video_config": record(
            "", {"task": words("text_to_video image_to_video reference_to_video edit extend upscale")}
        ),
    },
)
"""`generation_config`."""

SAFETY = record(
    "",
    {
        "threshold!": words("block_low_and_above block_medium_and_above block_only_high block_none off"),
        "type!": words(
            "hate_speech dangerous_content harassment sexually_explicit civic_integrity image_hate "
            "image_dangerous_content image_harassment image_sexually_explicit jailbreak"
        ),
        "method": words("severity probability"),
    },
)
"""A safety setting."""
