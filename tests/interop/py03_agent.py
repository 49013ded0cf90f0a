"""An echo agent on a2a-sdk 0.3: JSON-RPC, HTTP+JSON below /rest, gRPC, card at both well-known paths."""

from a2a.grpc import a2a_pb2_grpc
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart, TransportProtocol
from a2a.utils import new_agent_text_message, new_task

import listen
import tasks


def part(text):
    return Part(root=TextPart(text=text))


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        answer = f'py03 heard {text}'
        print(f'MESSAGE {text}', flush=True)
        if not tasks.is_task(context, text):
            await event_queue.enqueue_event(new_agent_text_message(answer))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await tasks.perform(context, updater, part, text, answer)

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener, base = listen.bind()
card = AgentCard(
    name='Tide table',
    description='Knows when the sea comes and goes.',
    version='3.26.0',
    url=f'{base}/',
    preferred_transport=TransportProtocol.jsonrpc,
    capabilities=AgentCapabilities(streaming=True, push_notifications=True),
    supports_authenticated_extended_card=True,
    default_input_modes=['text/plain'],
    default_output_modes=['text/plain'],
    skills=[
        AgentSkill(
            id='forecast-tides',
            name='Forecast tides',
            description='High and low water for any harbour.',
            tags=['sea'],
            examples=['hello'],
        )
    ],
)
handler = DefaultRequestHandler(
    agent_executor=Echo(),
    task_store=InMemoryTaskStore(),
    push_config_store=InMemoryPushNotificationConfigStore(),
)
extended = card.model_copy(update={'name': 'Tide table, extended'})
both = {'agent_card': card, 'extended_agent_card': extended, 'http_handler': handler}
app = A2AStarletteApplication(**both).build()
app.mount('/rest', A2ARESTFastAPIApplication(**both).build())
listen.run(
    app,
    listener,
    base,
    lambda server: a2a_pb2_grpc.add_A2AServiceServicer_to_server(
        GrpcHandler(card, handler), server
    ),
)
