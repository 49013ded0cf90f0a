"""An echo agent on a2a-sdk 1: protocol 1.0 over JSON-RPC, HTTP+JSON and gRPC, with streaming."""

from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2_grpc, AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

import listen
import tasks


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        answer = f'py1 heard {text}'
        print(f'MESSAGE {text}', flush=True)
        if not tasks.is_task(context, text):
            await event_queue.enqueue_event(new_text_message(answer))
            return
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await tasks.perform(context, updater, new_text_part, text, answer)

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener, base = listen.bind()
card = AgentCard(
    name='Shell sorter',
    description='Puts what the beach gives into order.',
    version='1.3.0',
    supported_interfaces=[
        AgentInterface(url=f'{base}/rpc', protocol_binding='JSONRPC', protocol_version='1.0'),
        AgentInterface(url=f'{base}/rest', protocol_binding='HTTP+JSON', protocol_version='1.0'),
    ],
    capabilities=AgentCapabilities(streaming=True, push_notifications=True, extended_agent_card=True),
    default_input_modes=['text/plain'],
    default_output_modes=['text/plain'],
    skills=[
        AgentSkill(
            id='sort-seashells',
            name='Sort seashells',
            description='By size, by colour, or by the sound of the sea in them.',
            tags=['beach'],
            examples=['hello'],
        )
    ],
)
extended = AgentCard()
extended.CopyFrom(card)
extended.name = 'Shell sorter, extended'
handler = DefaultRequestHandler(
    agent_executor=Echo(),
    task_store=InMemoryTaskStore(),
    agent_card=card,
    extended_agent_card=extended,
    push_config_store=InMemoryPushNotificationConfigStore(),
)
app = Starlette(
    routes=[
        *create_agent_card_routes(card),
        *create_jsonrpc_routes(handler, rpc_url='/rpc'),
        *create_rest_routes(handler, path_prefix='/rest'),
    ]
)
listen.run(
    app,
    listener,
    base,
    lambda server: a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server),
)
