"""An echo agent written after PromptKit: JSON-RPC at `/a2a` without any `kind`, card at agent.json that names no address.

It is strict, so that a client that uses another form gets an error and not an answer.
"""

import asyncio
import json
import uuid

from starlette.applications import Starlette
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

import listen

ENDED = ('completed', 'canceled', 'failed', 'rejected')
WAITING = ('input_required', 'auth_required')
MESSAGE = {'messageId', 'contextId', 'taskId', 'role', 'parts', 'metadata'}
CONTENT = {'text', 'raw', 'url', 'data'}
PART = CONTENT | {'metadata', 'filename', 'mediaType'}

# Tasks by their id, and for each the queues of those who follow it.
TASKS = {}
FOLLOWERS = {}


class Refusal(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.error = {'code': code, 'message': message}


def checked(params):
    """The message of a call, in the members of PromptKit and no others."""
    message = params.get('message')
    if not isinstance(message, dict) or set(message) - MESSAGE or message.get('role') != 'user':
        raise Refusal(-32602, 'Invalid parameters')
    for part in message['parts']:
        if set(part) - PART or len(set(part) & CONTENT) != 1:
            raise Refusal(-32602, 'Invalid parameters')
    return message


def tell(task, event):
    names = {'taskId': task['id'], 'contextId': task['contextId']}
    for queue in FOLLOWERS.get(task['id'], []):
        queue.put_nowait({**names, **event})


def set_state(task, state, text=None):
    task['status'] = {'state': state}
    if text is not None:
        message = {'messageId': uuid.uuid4().hex, 'role': 'agent', 'parts': [{'text': text}]}
        task['status']['message'] = message
    tell(task, {'status': task['status']})


def add_artifact(task, parts, append=False):
    artifact = {'artifactId': 'answer', 'name': 'Numbers', 'parts': parts}
    if append:
        task['artifacts'][0]['parts'].extend(parts)
    else:
        task['artifacts'].append({**artifact, 'parts': list(parts)})
    tell(task, {'artifact': artifact, 'append': append})


def work(task, message):
    text = ' '.join(part['text'] for part in message['parts'] if 'text' in part)
    if text == 'ask me':
        set_state(task, 'input_required', 'which one?')
    elif text == 'give it back':
        set_state(task, 'working')
        add_artifact(task, [part for part in message['parts'] if 'text' not in part])
        set_state(task, 'completed')
    elif text == 'work for ever':
        set_state(task, 'working', 'it takes a while')
        add_artifact(task, [{'text': 'one\n'}])
    elif text == 'work in pieces':
        set_state(task, 'working', 'counting')
        for nth, piece in enumerate(['one, ', 'two, ', 'three']):
            add_artifact(task, [{'text': piece}], append=nth > 0)
        set_state(task, 'completed')
    else:
        set_state(task, 'working')
        add_artifact(task, [{'text': f'promptkit heard {text}'}])
        set_state(task, 'completed')


def begun(message):
    """The task of a message: one that waits for it, or a new one."""
    if 'taskId' in message:
        task = known({'id': message['taskId']})
        if task['status']['state'] not in WAITING:
            raise Refusal(-32602, 'the task does not wait for a message')
        return task
    task = {
        'id': uuid.uuid4().hex,
        'contextId': message.get('contextId') or uuid.uuid4().hex,
        'status': {'state': 'submitted'},
        'artifacts': [],
    }
    TASKS[task['id']] = task
    return task


def known(params):
    if params.get('id') not in TASKS:
        raise Refusal(-32001, 'task not found')
    return TASKS[params['id']]


def send(params):
    message = checked(params)
    task = begun(message)
    work(task, message)
    return task


def followed(task):
    queue = asyncio.Queue()
    FOLLOWERS.setdefault(task['id'], []).append(queue)
    return queue


def stream(params):
    message = checked(params)
    task = begun(message)
    queue = followed(task)
    work(task, message)
    return queue


def subscribe(params):
    task = known(params)
    queue = followed(task)
    set_state(task, task['status']['state'])
    return queue


def cancel(params):
    task = known(params)
    if task['status']['state'] in ENDED:
        raise Refusal(-32002, 'task cannot be canceled')
    set_state(task, 'canceled')
    return task


def tasks(params):
    state, context = params.get('status'), params.get('contextId')
    if state is not None and state not in (*ENDED, *WAITING, 'submitted', 'working'):
        raise Refusal(-32602, f'a2a: invalid task state: {state}')
    found = [
        task
        for task in TASKS.values()
        if state in (None, task['status']['state']) and context in (None, task['contextId'])
    ]
    return {'tasks': found}


METHODS = {'message/send': send, 'tasks/get': known, 'tasks/cancel': cancel, 'tasks/list': tasks}
STREAMS = {'message/stream': stream, 'tasks/subscribe': subscribe}


async def events(call, queue):
    while True:
        event = await queue.get()
        yield f'data: {json.dumps({"jsonrpc": "2.0", "id": call, "result": event})}\n\n'
        if event.get('status', {}).get('state') in (*ENDED, *WAITING):
            return


async def rpc(request):
    body = await request.json()
    call, method, params = body.get('id'), body.get('method'), body.get('params') or {}
    try:
        if method in STREAMS:
            queue = STREAMS[method](params)
            return StreamingResponse(events(call, queue), media_type='text/event-stream')
        if method not in METHODS:
            raise Refusal(-32601, 'method not found')
        result = METHODS[method](params)
    except Refusal as refusal:
        return JSONResponse({'jsonrpc': '2.0', 'id': call, 'error': refusal.error})
    return JSONResponse({'jsonrpc': '2.0', 'id': call, 'result': result})


listener, base = listen.bind()
CARD = {
    'name': 'Prompt prompter',
    'description': 'Whispers from below the stage.',
    'version': '0.2.0',
    'capabilities': {'streaming': True},
    'skills': [
        {
            'id': 'whisper-lines',
            'name': 'Whisper lines',
            'description': 'Knows every part by heart.',
            'tags': ['theatre'],
            'examples': ['hello'],
        }
    ],
    'defaultInputModes': ['text/plain'],
    'defaultOutputModes': ['text/plain'],
}


async def card(_):
    return JSONResponse(CARD)


app = Starlette(
    routes=[Route('/.well-known/agent.json', card), Route('/a2a', rpc, methods=['POST'])]
)
listen.run(app, listener, base)
