"""An echo agent written after the a2a-protocol skill: JSON-RPC with `a2a.` methods, HTTP+JSON with `/messages`, card in snake_case.

It is strict, so that a client that uses the forms of the specification gets an error and not an answer.
"""

import asyncio
import json
import uuid

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

import listen

ENDED = ('completed', 'canceled', 'failed', 'rejected')
WAITING = ('input-required', 'auth-required')
TASKS_OF = ('ask me', 'give it back', 'work for ever', 'work in pieces')
MESSAGE = {'message_id', 'task_id', 'context_id', 'role', 'parts', 'metadata'}
PART = {'text', 'raw', 'uri', 'data', 'filename', 'media_type', 'metadata'}

# Tasks by their id, for each the queues of those who follow it, and its push-notification configurations.
TASKS = {}
FOLLOWERS = {}
CONFIGS = {}


class Refusal(Exception):
    def __init__(self, code, message, status=400):
        super().__init__(message)
        self.error = {'code': code, 'message': message}
        self.status = status


def checked(params):
    """The message of a call, in the members of the skill and no others."""
    message = params.get('message')
    if not isinstance(message, dict) or set(message) - MESSAGE or message.get('role') != 'user':
        raise Refusal(-32602, 'Invalid parameters')
    if 'message_id' not in message or any(set(part) - PART for part in message['parts']):
        raise Refusal(-32602, 'Invalid parameters')
    return message


def answer(text, context):
    return {
        'message_id': uuid.uuid4().hex,
        'context_id': context,
        'role': 'agent',
        'parts': [{'text': text}],
    }


def tell(task, event):
    for queue in FOLLOWERS.get(task['id'], []):
        queue.put_nowait(event)


def names(task):
    return {'task_id': task['id'], 'context_id': task['context_id']}


def set_state(task, state, text=None):
    task['status'] = {'state': state}
    if text is not None:
        task['status']['message'] = answer(text, task['context_id'])
    tell(task, {'statusUpdate': {**names(task), 'status': task['status']}})


def add_artifact(task, parts, append=False, last=True):
    artifact = {'artifact_id': 'answer', 'name': 'Numbers', 'parts': parts}
    if append:
        task['artifacts'][0]['parts'].extend(parts)
    else:
        task['artifacts'].append({**artifact, 'parts': list(parts)})
    update = {**names(task), 'artifact': artifact, 'append': append, 'last_chunk': last}
    tell(task, {'artifactUpdate': update})


def work(task, message):
    text = ' '.join(part['text'] for part in message['parts'] if 'text' in part)
    if text == 'ask me':
        set_state(task, 'input-required', 'which one?')
    elif text == 'give it back':
        add_artifact(task, [part for part in message['parts'] if 'text' not in part])
        set_state(task, 'completed')
    elif text == 'work for ever':
        set_state(task, 'working', 'it takes a while')
        add_artifact(task, [{'text': 'one\n'}], last=False)
    elif text == 'work in pieces':
        set_state(task, 'working', 'counting')
        for nth, piece in enumerate(['one, ', 'two, ', 'three']):
            add_artifact(task, [{'text': piece}], append=nth > 0, last=nth == 2)
        set_state(task, 'completed')
    else:
        add_artifact(task, [{'text': f'skill heard {text}'}])
        set_state(task, 'completed')


def begun(message):
    """The task of a message: one that waits for it, a new one, or none where a message is the whole answer."""
    if 'task_id' in message:
        task = known(message['task_id'])
        if task['context_id'] != message.get('context_id', task['context_id']):
            raise Refusal(-32602, 'the task belongs to another context')
        if task['status']['state'] not in WAITING:
            raise Refusal(-32602, 'the task does not wait for a message')
        task['status'] = {'state': 'working'}
        return task
    if message['parts'][0].get('text') not in TASKS_OF:
        return None
    task = {
        'id': uuid.uuid4().hex,
        'context_id': message.get('context_id') or uuid.uuid4().hex,
        'status': {'state': 'submitted'},
        'artifacts': [],
    }
    TASKS[task['id']] = task
    return task


def known(task):
    if task not in TASKS:
        raise Refusal(-32001, 'TaskNotFoundError', 404)
    return TASKS[task]


def send(params):
    message = checked(params)
    task = begun(message)
    if task is None:
        context = message.get('context_id') or uuid.uuid4().hex
        return answer(f'skill heard {message["parts"][0]["text"]}', context)
    work(task, message)
    return task


def followed(task):
    queue = asyncio.Queue()
    queue.put_nowait({'task': json.loads(json.dumps(task))})
    FOLLOWERS.setdefault(task['id'], []).append(queue)
    return queue


def stream(params):
    message = checked(params)
    task = begun(message)
    if task is None:
        queue = asyncio.Queue()
        context = message.get('context_id') or uuid.uuid4().hex
        said = answer(f'skill heard {message["parts"][0]["text"]}', context)
        queue.put_nowait({'message': said})
        return queue
    queue = followed(task)
    work(task, message)
    return queue


def subscribe(params):
    task = known(params['id'])
    if task['status']['state'] in ENDED:
        raise Refusal(-32004, 'UnsupportedOperationError')
    return followed(task)


def cancel(params):
    task = known(params['id'])
    if task['status']['state'] in ENDED:
        raise Refusal(-32002, 'TaskNotCancelableError', 409)
    set_state(task, 'canceled')
    return task


def tasks(params):
    wanted = params.get('status')
    if wanted is not None and wanted not in (*ENDED, *WAITING, 'submitted', 'working'):
        raise Refusal(-32602, 'no such state')
    found = [task for task in TASKS.values() if wanted in (None, task['status']['state'])]
    return {'tasks': found}


def set_config(params):
    task = known(params['task_id'])
    config = dict(params['push_notification_config'])
    config.setdefault('id', uuid.uuid4().hex)
    CONFIGS.setdefault(task['id'], {})[config['id']] = config
    return config


def config(params):
    found = CONFIGS.get(params['task_id'], {})
    if params['id'] not in found:
        raise Refusal(-32001, 'no such configuration', 404)
    return found[params['id']]


def delete_config(params):
    config(params)
    del CONFIGS[params['task_id']][params['id']]


METHODS = {
    'a2a.sendMessage': send,
    'a2a.getTask': lambda params: known(params['id']),
    'a2a.listTasks': tasks,
    'a2a.cancelTask': cancel,
    'a2a.createTaskPushNotificationConfig': set_config,
    'a2a.getTaskPushNotificationConfig': config,
    'a2a.listTaskPushNotificationConfigs': lambda params: list(
        CONFIGS.get(params['task_id'], {}).values()
    ),
    'a2a.deleteTaskPushNotificationConfig': delete_config,
    'a2a.getExtendedAgentCard': lambda _: {**CARD, 'name': CARD['name'] + ', extended'},
}
STREAMS = {'a2a.sendStreamingMessage': stream, 'a2a.subscribeToTask': subscribe}


def ends(event):
    if 'message' in event:
        return True
    holder = event.get('task') or event.get('statusUpdate')
    return holder is not None and holder['status']['state'] in (*ENDED, *WAITING)


def events(queue, wrap):
    async def generated():
        while True:
            event = await queue.get()
            yield f'data: {json.dumps(wrap(event))}\n\n'
            if ends(event):
                return

    return StreamingResponse(generated(), media_type='text/event-stream')


async def rpc(request):
    body = await request.json()
    call, method, params = body.get('id'), body.get('method'), body.get('params') or {}

    def envelope(result):
        return {'jsonrpc': '2.0', 'id': call, 'result': result}

    try:
        if method not in METHODS and method not in STREAMS:
            raise Refusal(-32601, 'Method not found')
        if params.get('a2a-version') != '1.0':
            raise Refusal(-32009, 'VersionNotSupportedError')
        if method in STREAMS:
            return events(STREAMS[method](params), envelope)
        return JSONResponse(envelope(METHODS[method](params)))
    except Refusal as refusal:
        return JSONResponse({'jsonrpc': '2.0', 'id': call, 'error': refusal.error})


def rest(method, streams=False):
    """The operation of that name at a path, whose parameters are those of the path, the query and the body."""

    async def answered(request):
        body = await request.body()
        params = {**request.query_params, **(json.loads(body) if body else {}), **request.path_params}
        try:
            if request.headers.get('a2a-version') != '1.0':
                raise Refusal(-32009, 'VersionNotSupportedError')
            if streams:
                return events(STREAMS[method](params), lambda event: event)
            result = METHODS[method](params)
            return Response(status_code=204) if result is None else JSONResponse(result)
        except Refusal as refusal:
            return JSONResponse({'error': refusal.error}, refusal.status)

    return answered


PUSH = '/tasks/{task_id}/pushNotificationConfigs'
PATHS = [
    Route('/messages', rest('a2a.sendMessage'), methods=['POST']),
    Route('/messages:stream', rest('a2a.sendStreamingMessage', True), methods=['POST']),
    Route('/tasks', rest('a2a.listTasks')),
    Route('/tasks/{id}:cancel', rest('a2a.cancelTask'), methods=['POST']),
    Route('/tasks/{id}:subscribe', rest('a2a.subscribeToTask', True), methods=['POST']),
    Route('/tasks/{id}', rest('a2a.getTask')),
    Route(PUSH, rest('a2a.createTaskPushNotificationConfig'), methods=['POST']),
    Route(PUSH, rest('a2a.listTaskPushNotificationConfigs')),
    Route(PUSH + '/{id}', rest('a2a.getTaskPushNotificationConfig')),
    Route(PUSH + '/{id}', rest('a2a.deleteTaskPushNotificationConfig'), methods=['DELETE']),
    Route('/agent-card', rest('a2a.getExtendedAgentCard')),
]

listener, base = listen.bind()
CARD = {
    'name': 'Snail mail',
    'description': 'Carries every word on its belly.',
    'supported_interfaces': [
        {'url': f'{base}/a2a', 'protocol_binding': 'jsonrpc', 'protocol_version': '1.0'},
        {
            'url': f'{base}/rest',
            'protocol_binding': 'http+json',
            'protocol_version': '1.0',
            'tenant': 'garden',
        },
    ],
    'provider': {'organization': 'Slow post', 'url': 'https://slow.example'},
    'version': '1.0.0',
    'capabilities': {'streaming': True, 'push_notifications': True, 'extended_agent_card': True},
    'default_input_modes': ['text/plain'],
    'default_output_modes': ['text/plain'],
    'skills': [
        {
            'id': 'carry-letters',
            'name': 'Carry letters',
            'description': 'Delivers before the leaves fall.',
            'tags': ['snail'],
            'examples': ['hello'],
        }
    ],
}


async def card(_):
    return JSONResponse(CARD)


app = Starlette(
    routes=[
        Route('/.well-known/agent-card.json', card),
        Route('/a2a', rpc, methods=['POST']),
        Mount('/rest/tenants/garden', routes=PATHS),
    ]
)
listen.run(app, listener, base)
