"""Files on disk and next-token logits: checkpoints, their readers, and the model boundary."""

from tinyllm.model.base import LanguageModel, State
from tinyllm.model.bigram import Bigram, read_bigram_weight
from tinyllm.model.config import ModelConfig, read_config, write_config
from tinyllm.model.errors import CheckpointError, ConfigError, SafetensorsError
from tinyllm.model.loader import load_model
from tinyllm.model.safetensors import read_index, safetensors_bytes, write_safetensors
from tinyllm.model.source import BufferSource, FileSource

__all__ = [
    "Bigram",
    "BufferSource",
    "CheckpointError",
    "ConfigError",
    "FileSource",
    "LanguageModel",
    "ModelConfig",
    "SafetensorsError",
    "State",
    "load_model",
    "read_bigram_weight",
    "read_config",
    "read_index",
    "safetensors_bytes",
    "write_config",
    "write_safetensors",
]
