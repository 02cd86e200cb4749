"""A conversation with a model behind a server that has OpenAI's interface, such as `zoo serve`."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from ...errors import InputError, ZooError
from ...images.data_uri import data_uri
from ...tasks.conversation import Turns

SECONDS = 600  # without a byte
LINE = 1 << 20  # bytes of an event
# Names of zoo -> those of the interface; the others are equal.
NAMES = {"max_new_tokens": "max_tokens", "stop_strings": "stop"}


class ServerConversation(Turns):
    """A chat with a server, which gets all turns each time.  ZOO_API_KEY is sent, if it is set."""

    def __init__(self, server: str, model: str, system: str | None, options: dict[str, Any]):
        if urlsplit(server).scheme not in ("http", "https"):
            raise InputError(f"--server {server!r}: expected an address such as http://127.0.0.1:8000")
        super().__init__(system)
        self.url, self.model = server.rstrip("/").removesuffix("/v1") + "/v1/", model
        options = dict(options)
        if options.pop("do_sample", True) is False:
            options["temperature"] = 0
        self.options = {NAMES.get(name, name): value for name, value in options.items()}

    def image_part(self, image: Any) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": data_uri(image)}}

    def _answer(self) -> Iterator[str]:
        begin = int(self.messages[0]["role"] == "system")
        self.left_out = min(self.left_out, len(self.messages) - 1 - begin)
        while True:
            rest = self.messages[begin + self.left_out :]
            body = {"messages": [*self.messages[:begin], *rest]}
            try:
                yield from self._stream("chat/completions", body)
                return
            except ServerError as e:
                later = next((i for i, one in enumerate(rest) if i and one["role"] == "user"), None)
                if e.code == "no_chat_template":
                    yield from self._stream("completions", {"prompt": rest[-1]["content"]})
                    return
                if e.code != "context_length_exceeded" or later is None:
                    raise
                self.left_out += later

    def _stream(self, path: str, body: dict[str, Any]) -> Iterator[str]:
        data = json.dumps({"model": self.model, "stream": True, **body, **self.options}).encode()
        headers = {"content-type": "application/json"}
        if key := os.environ.get("ZOO_API_KEY"):
            headers["authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self.url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                thinks = False
                while line := answer.readline(LINE):
                    if line.startswith(b"data: ") and (data := line[6:].strip()) != b"[DONE]":
                        event = json.loads(data)
                        if "error" in event:
                            raise ServerError(self.url, event)
                        for choice in event.get("choices", ()):
                            delta = choice.get("delta", {})
                            if thought := delta.get("reasoning_content"):  # as a model that runs here writes it
                                yield thought if thinks else f"<think>\n{thought}"
                                thinks = True
                            if piece := choice.get("text") or delta.get("content"):
                                yield f"\n</think>\n\n{piece}" if thinks else piece
                                thinks = False
        except urllib.error.HTTPError as e:
            try:
                found = json.loads(e.read(LINE))
            except ValueError:
                found = {"error": {"message": f"{e.code} {e.reason}"}}
            raise ServerError(self.url, found) from None
        except (OSError, ValueError, http.client.HTTPException) as e:
            raise ZooError(f"{self.url}: {getattr(e, 'reason', None) or e}") from None


class ServerError(ZooError):
    """An error in a server's answer."""

    def __init__(self, url: str, found: Any):
        error = found.get("error") if isinstance(found, dict) else None
        error = error if isinstance(error, dict) else {"message": str(error or found)}
        self.code = error.get("code")
        super().__init__(f"{url}: {error.get('message')}")
