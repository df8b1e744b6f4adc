"""One request from its prompt ids to a stream of ids; no HTTP here."""

from tinyllm.engine.engine import Engine, Sink, Task, TaskState
from tinyllm.engine.generation import Generation, SamplingParams, generate_tokens

__all__ = [
    "Engine",
    "Generation",
    "SamplingParams",
    "Sink",
    "Task",
    "TaskState",
    "generate_tokens",
]
