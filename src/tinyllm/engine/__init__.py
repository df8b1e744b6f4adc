"""One request from its prompt ids to a stream of ids; no HTTP here."""

from tinyllm.engine.engine import SLICE_TOKENS, Engine, Sink, Task, TaskState
from tinyllm.engine.generation import Generation, SamplingParams, generate_tokens

__all__ = [
    "SLICE_TOKENS",
    "Engine",
    "Generation",
    "SamplingParams",
    "Sink",
    "Task",
    "TaskState",
    "generate_tokens",
]
