"""What each Python agent does when it is told to: tasks that stream, ask, or never end."""

import asyncio

TASKS = ('ask me', 'give it back', 'work for ever', 'work in pieces')


async def perform(context, updater, part, text, answer):
    """Works on a task that was begun already. `part` makes a text part of the SDK's own type."""

    def said(words):
        return updater.new_agent_message([part(words)])

    if text == 'ask me':
        await updater.requires_input(said('which one?'))
    elif text == 'give it back':
        received = [part for part in context.message.parts if not is_text(part)]
        await updater.add_artifact(received, artifact_id='received', name='Received')
        await updater.complete()
    elif text == 'work for ever':
        await updater.start_work(said('it takes a while'))
        await updater.add_artifact([part('one\n')], artifact_id='numbers', name='Numbers')
        await asyncio.Event().wait()
    elif text == 'work in pieces':
        await updater.start_work(said('counting'))
        for nth, piece in enumerate(['one, ', 'two, ', 'three']):
            await updater.add_artifact(
                [part(piece)],
                artifact_id='numbers',
                name='Numbers',
                append=nth > 0,
                last_chunk=nth == 2,
            )
        await updater.complete()
    else:
        await updater.add_artifact([part(answer)], artifact_id='answer', name='Answer')
        await updater.complete()


def is_task(context, text):
    """Whether a message is the beginning of a task or belongs to one; else it is answered by a message."""
    return context.current_task is not None or text in TASKS


def is_text(part):
    """Whether a part is a text, in the types of either generation."""
    return getattr(part, 'root', part).__class__.__name__ == 'TextPart' or bool(getattr(part, 'text', ''))
