"""A receiver of hooks on the libraries of Standard Webhooks and CloudEvents.

It prints a line for each message: `CHALLENGE`, or `DELIVERY` with what it has read as JSON, or `REFUSED` with the reason.
A POST to /keys sets the keys to verify with; until then it only answers challenges. A POST to /status sets the status
of its further answers.
"""

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cloudevents.core.bindings.http import HTTPMessage, from_http_event
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from standardwebhooks import Webhook

KEYS = []
STATUS = [200]


def check_public_key(public_key, body, headers):
    """Fails unless one of the signatures of version v1a is right."""
    raw = base64.b64decode(public_key.removeprefix('whpk_'))
    key = Ed25519PublicKey.from_public_bytes(raw)
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    for one in headers['webhook-signature'].split(' '):
        version, signature = one.split(',')
        if version != 'v1a':
            continue
        try:
            key.verify(base64.b64decode(signature), content)
            return
        except Exception:
            continue
    raise ValueError('no signature of version v1a is right')


def read_message(body, headers):
    """What a message says. It fails unless it verifies under all keys."""
    event = from_http_event(HTTPMessage(headers=headers, body=body))
    for keys in KEYS:
        Webhook(keys['secret']).verify(body, headers)
        check_public_key(keys['public_key'], body, headers)
    assert event.get_id() == headers['webhook-id']
    return {
        'id': event.get_id(),
        'type': event.get_type(),
        'subject': event.get_subject(),
        'data': event.get_data(),
    }


class Receiver(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def do_POST(self):
        body = self.rfile.read(int(self.headers['content-length']))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path == '/keys':
            KEYS[:] = json.loads(body)
            return self.answer(200, {})
        if self.path == '/status':
            STATUS[:] = [json.loads(body)]
            return self.answer(200, {})
        try:
            said = read_message(body, headers)
        except Exception as error:
            print(f'REFUSED {error!r}', flush=True)
            return self.answer(400, {})
        if said['type'].endswith('hook.challenge'):
            print('CHALLENGE', flush=True)
            return self.answer(200, {'challenge': said['data']['challenge']})
        print('DELIVERY ' + json.dumps(said), flush=True)
        return self.answer(STATUS[0], {})

    def answer(self, status, content):
        content = json.dumps(content).encode()
        self.send_response(status)
        self.send_header('content-type', 'application/json')
        self.send_header('content-length', str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Receiver)
print(f'READY http://127.0.0.1:{server.server_address[1]}', flush=True)
server.serve_forever()
