"""nginx as a reverse proxy, with a folder and a port of its own; it needs no privileges.

Started by root, its worker is nobody, who must be able to enter the folder.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from support.tools import require
from support.wire import Address

# Everything that is not about paths and ports is nginx's default, buffering above all.
CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{ proxy_pass http://{upstream[0]}:{upstream[1]}; }}
    }}
}}
"""


@contextmanager
def nginx_before(upstream: Address) -> Iterator[Address]:
    """Run nginx in front of a server; give the address it listens on.

    nginx adopts the listening sockets that its environment variable NGINX names, so that it
    gets a free port without a race, and clients may connect before it is ready.
    """
    nginx = require("nginx")
    with (
        TemporaryDirectory(prefix="nginx-") as name,
        socket.create_server(("127.0.0.1", 0)) as listener,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        address: Address = listener.getsockname()
        configuration = folder / "nginx.conf"
        text = CONFIGURATION.format(folder=folder, port=address[1], upstream=upstream)
        configuration.write_text(text)
        process = subprocess.Popen(
            [nginx, "-p", folder, "-c", configuration, "-e", "stderr"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env={**os.environ, "NGINX": f"{listener.fileno()};"},
        )
        listener.close()
        try:
            yield address
        finally:
            process.terminate()
            process.communicate(timeout=20)
