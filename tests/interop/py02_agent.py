"""An echo agent on a2a-sdk 0.2: JSON-RPC, card at /.well-known/agent.json only."""

from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryPushNotificationConfigStore, InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, Part, TextPart
from a2a.utils import new_agent_text_message, new_task

import listen
import tasks


def part(text):
    return Part(root=TextPart(text=text))


class Echo(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        answer = f'py02 heard {text}'
        print(f'MESSAGE {text}', flush=True)
        if not tasks.is_task(context, text):
            await event_queue.enqueue_event(new_agent_text_message(answer))
            return
        task = context.current_task
        if task is None:
            task = new_task(context.message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.contextId)
        await tasks.perform(context, updater, part, text, answer)

    async def cancel(self, context, event_queue):
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


listener, base = listen.bind()
card = AgentCard(
    name='Haiku house',
    description='Counts syllables and turns prose into haiku.',
    version='2.16.0',
    url=f'{base}/',
    capabilities=AgentCapabilities(streaming=True, pushNotifications=True),
    default_input_modes=['text/plain'],
    default_output_modes=['text/plain'],
    skills=[
        AgentSkill(
            id='write-haiku',
            name='Write haiku',
            description='Turns any sentence into seventeen syllables.',
            tags=['poetry'],
            examples=['hello'],
        )
    ],
)
app = A2AStarletteApplication(
    agent_card=card,
    http_handler=DefaultRequestHandler(
        agent_executor=Echo(),
        task_store=InMemoryTaskStore(),
        push_config_store=InMemoryPushNotificationConfigStore(),
    ),
).build()
listen.run(app, listener, base)
