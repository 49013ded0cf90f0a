"""An echo agent for protocol 0.1, which no SDK speaks: JSON-RPC with `tasks/send` and its kin, card at agent.json only.

It is strict, so that a client that uses a later form gets an error and not an answer.
"""

import asyncio
import json
import uuid

from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

import listen

PART_TYPES = {'text': 'text', 'file': 'file', 'data': 'data'}
ENDED = ('completed', 'canceled', 'failed')

# Tasks by their id, and for each the queues of those who follow it.
TASKS = {}
FOLLOWERS = {}


class Refusal(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.error = {'code': code, 'message': message}


def text_part(text):
    return {'type': 'text', 'text': text}


def checked(params):
    """The parts of a message in the form of 0.1, and its text."""
    message = params.get('message')
    if not isinstance(message, dict) or set(message) - {'role', 'parts', 'metadata'}:
        raise Refusal(-32602, 'Invalid parameters')
    for part in message['parts']:
        if PART_TYPES.get(part.get('type')) not in part or 'kind' in part:
            raise Refusal(-32602, 'Invalid parameters')
    texts = [part['text'] for part in message['parts'] if part['type'] == 'text']
    return message['parts'], ' '.join(texts)


def tell(task, event):
    for queue in FOLLOWERS.get(task['id'], []):
        queue.put_nowait(event)


def set_state(task, state, text=None):
    task['status'] = {'state': state}
    if text is not None:
        task['status']['message'] = {'role': 'agent', 'parts': [text_part(text)]}
    final = state in ENDED or state == 'input-required'
    tell(task, {'id': task['id'], 'status': task['status'], 'final': final})


def add_artifact(task, parts, index=0, append=False, last=True):
    artifact = {'name': 'Answer', 'parts': parts, 'index': index, 'append': append, 'lastChunk': last}
    if append:
        task['artifacts'][index]['parts'].extend(parts)
    else:
        task['artifacts'].append({**artifact, 'parts': list(parts)})
    tell(task, {'id': task['id'], 'artifact': artifact})


async def work(task, parts, text, continued):
    print(f'MESSAGE {text}', flush=True)
    if continued:
        text = 'continued: ' + text
    if text == 'ask me':
        set_state(task, 'input-required', 'which one?')
    elif text == 'give it back':
        add_artifact(task, [part for part in parts if part['type'] != 'text'])
        set_state(task, 'completed')
    elif text == 'work for ever':
        set_state(task, 'working', 'it takes a while')
        add_artifact(task, [text_part('one\n')], last=False)
    elif text == 'work in pieces':
        set_state(task, 'working', 'counting')
        for nth, piece in enumerate(['one, ', 'two, ', 'three']):
            add_artifact(task, [text_part(piece)], append=nth > 0, last=nth == 2)
        set_state(task, 'completed')
    else:
        add_artifact(task, [text_part('v01 heard ' + text.removeprefix('continued: '))])
        set_state(task, 'completed')


def begun(params):
    """The task of a message: a new one with the id that the client chose, or the one that waits for it."""
    task = TASKS.get(params['id'])
    if task is None:
        task = {
            'id': params['id'],
            'sessionId': params.get('sessionId') or uuid.uuid4().hex,
            'status': {'state': 'submitted'},
            'artifacts': [],
        }
        TASKS[task['id']] = task
        return task, False
    if task['status']['state'] != 'input-required':
        raise Refusal(-32602, 'the task does not wait for a message')
    return task, True


def known(params):
    if params.get('id') not in TASKS:
        raise Refusal(-32001, 'Task not found')
    return TASKS[params['id']]


def followed(task):
    queue = asyncio.Queue()
    FOLLOWERS.setdefault(task['id'], []).append(queue)
    return queue


async def events(call, queue):
    while True:
        event = await queue.get()
        yield f'data: {json.dumps({"jsonrpc": "2.0", "id": call, "result": event})}\n\n'
        if event.get('final'):
            return


async def rpc(request):
    body = await request.json()
    call, params = body.get('id'), body.get('params') or {}
    try:
        match body.get('method'):
            case 'tasks/send':
                parts, text = checked(params)
                task, continued = begun(params)
                await work(task, parts, text, continued)
            case 'tasks/sendSubscribe':
                parts, text = checked(params)
                task, continued = begun(params)
                queue = followed(task)
                await work(task, parts, text, continued)
                return StreamingResponse(events(call, queue), media_type='text/event-stream')
            case 'tasks/resubscribe':
                task = known(params)
                queue = followed(task)
                if task['status']['state'] in ENDED:
                    set_state(task, task['status']['state'])
                return StreamingResponse(events(call, queue), media_type='text/event-stream')
            case 'tasks/get':
                task = known(params)
            case 'tasks/pushNotification/set':
                task = known(params)
                task['push'] = params['pushNotificationConfig']
                result = {'id': task['id'], 'pushNotificationConfig': task['push']}
                return JSONResponse({'jsonrpc': '2.0', 'id': call, 'result': result})
            case 'tasks/pushNotification/get':
                task = known(params)
                result = {'id': task['id'], 'pushNotificationConfig': task['push']}
                return JSONResponse({'jsonrpc': '2.0', 'id': call, 'result': result})
            case 'tasks/cancel':
                task = known(params)
                if task['status']['state'] in ENDED:
                    raise Refusal(-32002, 'Task cannot be canceled')
                set_state(task, 'canceled')
            case _:
                raise Refusal(-32601, 'Method not found')
    except Refusal as refusal:
        return JSONResponse({'jsonrpc': '2.0', 'id': call, 'error': refusal.error})
    shown = {name: value for name, value in task.items() if name != 'push'}
    return JSONResponse({'jsonrpc': '2.0', 'id': call, 'result': shown})


listener, base = listen.bind()
CARD = {
    'name': 'Attic radio',
    'description': 'Still plays what nobody sends any more.',
    'url': f'{base}/',
    'version': '0.1.0',
    'authentication': {'schemes': []},
    'capabilities': {'streaming': True, 'pushNotifications': True},
    'defaultInputModes': ['text'],
    'defaultOutputModes': ['text'],
    'skills': [
        {
            'id': 'play-radio',
            'name': 'Play radio',
            'description': 'Long wave, medium wave, and the noise between them.',
            'tags': ['attic'],
            'examples': ['hello'],
        }
    ],
}


async def card(_):
    return JSONResponse(CARD)


app = Starlette(
    routes=[Route('/.well-known/agent.json', card), Route('/', rpc, methods=['POST'])]
)
listen.run(app, listener, base)
