"""Serves an ASGI application on a loopback port, and gRPC beside it, and prints a line once it accepts requests."""

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


def run(app, listener: socket.socket, base: str, add_services=None, lifespan='off') -> None:
    """Prints `READY <base url>` and serves until the process is ended.

    With `cors` as the second argument, pages of every origin may call. `add_services` adds services to a gRPC server; then
    `GRPC <host:port>` is printed first, without TLS behind it.
    """
    if 'cors' in sys.argv[2:]:
        app = CORSMiddleware(app, allow_origins=['*'], allow_methods=['*'], allow_headers=['*'])
    server = uvicorn.Server(uvicorn.Config(app, log_level='warning', lifespan=lifespan))

    async def serve():
        if add_services is not None:
            # Only agents with services need the package.
            import grpc.aio

            services = grpc.aio.server()
            add_services(services)
            port = services.add_insecure_port('127.0.0.1:0')
            await services.start()
            print(f'GRPC 127.0.0.1:{port}', flush=True)
        print(f'READY {base}', flush=True)
        await server.serve(sockets=[listener])

    asyncio.run(serve())
