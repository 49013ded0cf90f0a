"""An echo agent on fasta2a 2: protocol 1.0 over JSON-RPC, every answer a task."""

import asyncio
from contextlib import asynccontextmanager

from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.schema import Artifact, Message, Skill
from fasta2a.storage import InMemoryStorage

import listen


class Echo(Worker):
    async def run_task(self, params):
        task, context = params['id'], params['context_id']
        parts = params['message']['parts']
        text = ' '.join(part['text'] for part in parts if 'text' in part)
        if text == 'ask me':
            await self.ask(task, context, 'which one?')
        elif text == 'give it back':
            await self.answer(task, [part for part in parts if 'text' not in part])
        elif text == 'work for ever':
            await self.working(task, context, 'it takes a while')
            await self.piece(task, context, 'one\n', append=False, last=False)
            # What is streamed is not kept unless it is stored.
            artifact = Artifact(artifact_id='answer', name='Answer', parts=[{'text': 'one\n'}])
            await self.storage.update_task(task, state='working', new_artifacts=[artifact])
        elif text == 'work in pieces':
            await self.working(task, context, 'counting')
            for nth, piece in enumerate(['one, ', 'two, ', 'three']):
                await self.piece(task, context, piece, append=nth > 0, last=nth == 2)
            await self.answer(task, [{'text': 'one, two, three'}])
        else:
            await self.answer(task, [{'text': f'fasta2a heard {text}'}])

    async def cancel_task(self, params):
        await self.storage.update_task(params['id'], state='canceled')

    async def answer(self, task, parts):
        artifact = Artifact(artifact_id='answer', name='Answer', parts=parts)
        await self.storage.update_task(task, state='completed', new_artifacts=[artifact])

    async def ask(self, task, context, text):
        message = Message(role='agent', parts=[{'text': text}], message_id='question')
        await self.storage.update_task(task, state='input-required', new_messages=[message])
        await self.publish_status(task, context, 'input-required', message)

    async def working(self, task, context, text):
        message = Message(role='agent', parts=[{'text': text}], message_id='state')
        await self.storage.update_task(task, state='working')
        await self.publish_status(task, context, 'working', message)

    async def piece(self, task, context, text, append, last):
        artifact = Artifact(artifact_id='answer', name='Answer', parts=[{'text': text}])
        await self.publish_artifact(task, context, artifact, append=append, last_chunk=last)

    def build_message_history(self, history):
        return history

    def build_artifacts(self, result):
        return result


storage, broker = InMemoryStorage(), InMemoryBroker()
worker = Echo(broker=broker, storage=storage)
listener, base = listen.bind()


@asynccontextmanager
async def lifespan(app):
    async with app.task_manager, worker.run():
        yield


app = FastA2A(
    storage=storage,
    broker=broker,
    name='Fast fern',
    url=f'{base}/',
    description='Unrolls quickly.',
    skills=[
        Skill(
            id='unroll-ferns',
            name='Unroll ferns',
            description='One leaf after the other.',
            tags=['forest'],
            examples=['hello'],
        )
    ],
    lifespan=lifespan,
)
listen.run(app, listener, base, lifespan='on')
