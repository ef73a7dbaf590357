"""Actors without processes: handles like Ray's, whose calls run in one event loop here."""

import asyncio
import inspect


class Handle:
    """Stands for an actor; `handle.method.remote(...)` gives something to wait for."""

    def __init__(self, actor):
        self._actor = actor

    def __getattr__(self, name):
        return _Method(getattr(self._actor, name))


class _Method:
    def __init__(self, method):
        self._method = method

    async def remote(self, *args, **options):
        result = self._method(*args, **options)
        return await result if inspect.isawaitable(result) else result


class Loop:
    """An event loop of a test, and a way to wait for calls, as `ray.get` is one."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()

    def wait(self, calls):
        if isinstance(calls, list):
            return [self.loop.run_until_complete(call) for call in calls]
        return self.loop.run_until_complete(calls)

    def begin(self, call):
        """Start something that ends later."""
        task = self.loop.create_task(call)
        self.loop.run_until_complete(asyncio.sleep(0))
        return task

    def close(self):
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()
