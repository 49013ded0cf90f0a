"""Serves an ASGI application on a loopback port and prints a line once it accepts requests."""

import asyncio
import socket
import sys

import uvicorn
from starlette.middleware.cors import CORSMiddleware


def bind() -> tuple[socket.socket, str]:
    """Binds the port named by the first argument (0 or none: any free one) and gives its base URL.

    The socket listens before the card is built, so the card can name the real port and a client that
    connects early waits in the backlog instead of being refused.
    """
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(('127.0.0.1', port))
    listener.listen(128)
    return listener, f'http://127.0.0.1:{listener.getsockname()[1]}'


def run(app, listener: socket.socket, base: str) -> None:
    """Prints `READY <base url>` and serves until the process is ended.

    With `cors` as the second argument, pages of every origin may call.
    """
    if 'cors' in sys.argv[2:]:
        app = CORSMiddleware(app, allow_origins=['*'], allow_methods=['*'], allow_headers=['*'])
    server = uvicorn.Server(uvicorn.Config(app, log_level='warning', lifespan='off'))
    print(f'READY {base}', flush=True)
    asyncio.run(server.serve(sockets=[listener]))
