"""tinyllm: an OpenAI-compatible inference server of which every byte can be read.

Importing the package costs nothing: the layers are imported by those who use them.
"""

__version__ = "0.1.0"

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"  # of all our processes
