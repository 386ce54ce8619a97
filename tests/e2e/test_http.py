"""The front door: what a client sees when it asks well, and when it does not."""
import hashlib
import json
import socket

from suite import MODEL, run, wait_for

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"


def error_of(answer):
    status, headers, body = answer
    error = body["error"]
    assert isinstance(error["message"], str) and error["message"], body
    assert isinstance(error["type"], str), body
    assert error["code"] is None or isinstance(error["code"], str), body
    assert headers.get("x-request-id") or headers.get("X-Request-Id"), headers
    return status, error


def chat(**fields):
    return {"model": MODEL, "messages": [{"role": "user", "content": "Call me Ishmael."}],
            "max_tokens": 8, "temperature": 0, **fields}


def models_are_listed(suite):
    status, _, body = suite.request("GET", "/v1/models")
    assert status == 200 and body["object"] == "list"
    assert [model["id"] for model in body["data"]] == [MODEL], body
    status, _, body = suite.request("GET", f"/v1/models/{MODEL}")
    assert status == 200 and body["id"] == MODEL and body["object"] == "model"
    status, error = error_of(suite.request("GET", "/v1/models/no-such-model"))
    assert status == 404, error


def chat_answers(suite):
    status, headers, body = suite.request("POST", CHAT, chat())
    assert status == 200, body
    choice = body["choices"][0]
    assert body["object"] == "chat.completion" and choice["message"]["role"] == "assistant"
    assert choice["message"]["content"] and choice["finish_reason"] in ("stop", "length")
    assert body["usage"]["completion_tokens"] <= 8
    assert body["usage"]["total_tokens"] == (body["usage"]["prompt_tokens"]
                                             + body["usage"]["completion_tokens"])


def a_stream_says_the_same(suite):
    whole = suite.complete("It is a truth universally acknowledged,", max_tokens=48)
    assert suite.stream("It is a truth universally acknowledged,", max_tokens=48).text() == whole


def the_wire_of_a_stream(suite):
    """Only data lines and comments; role once; one id; a finish reason; [DONE] last."""
    connection = suite.connect()
    connection.request("POST", CHAT, json.dumps(chat(stream=True)), {
        "X-Auth-Token": suite.key, "Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.getheader("Content-Type").startswith("text/event-stream")
    assert answer.getheader("Transfer-Encoding") == "chunked"
    assert (answer.getheader("Connection") or "").lower() != "close"
    raw = answer.read()
    connection.close()
    events = [event for event in raw.decode().split("\n\n") if event]
    assert all(event.startswith(("data: ", ":")) for event in events), raw
    data = [event[6:] for event in events if event.startswith("data: ")]
    assert data[-1] == "[DONE]"
    chunks = [json.loads(text) for text in data[:-1]]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert all(chunk["object"] == "chat.completion.chunk" for chunk in chunks)
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert sum("role" in delta for delta in deltas) == 1
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert [r for r in reasons if r] in (["stop"], ["length"]), reasons


def sampling_is_repeatable(suite):
    fields = {"temperature": 0.8, "seed": 7, "max_tokens": 40}
    first = suite.complete("The whale", **fields)
    assert suite.complete("The whale", **fields) == first
    assert suite.complete("The whale", **{**fields, "seed": 8}) != first


def wrong_keys_are_401(suite):
    for headers in ({"Authorization": "Bearer fx-" + "0" * 64}, {"Authorization": "Bearer "},
                    {"Authorization": "Basic abc"}, {"Authorization": ""}):
        for method, path, body in (("GET", "/v1/models", None), ("POST", CHAT, chat())):
            status, error = error_of(suite.request(method, path, body, headers=headers))
            assert status == 401, (headers, error)


def a_revoked_key_is_401(suite):
    key = suite.make_key()
    assert suite.request("GET", "/v1/models", key=key)[0] == 200
    suite.cli("keys", "revoke", hashlib.sha256(key.encode()).hexdigest()[:16])
    wait_for(lambda: suite.request("GET", "/v1/models", key=key)[0] == 401, "revoked", 6)
    assert suite.request("GET", "/v1/models")[0] == 200


def unknown_things_are_404(suite):
    for path, body in ((CHAT, chat(model="no-such-model")), ("/v1/nothing", chat())):
        status, error = error_of(suite.request("POST", path, body))
        assert status == 404, error


def bad_fields_are_400(suite):
    table = [
        '{"model": ', '', '[]', 'null', '{"model": "%s"}' % MODEL, b'{"model": "\xff"}',
        chat(temperature=-1), chat(temperature=3), chat(temperature="hot"), chat(top_p=1.5),
        chat(min_p=-0.1), chat(max_tokens=0), chat(max_tokens=-3), chat(messages=[]),
        chat(messages=[{"role": "user"}]), chat(messages="hello"), chat(stop=""), chat(stop=[""]),
        chat(stop=["a", "b", "c", "d", "e"]), chat(stop=7), chat(seed="x"), chat(stream="yes"),
        chat(model=7),
    ]
    for body in table:
        status, error = error_of(suite.request("POST", CHAT, body))
        assert status == 400, (body, status, error)
    status, error = error_of(suite.request("POST", TEXT, {"model": MODEL, "max_tokens": 1}))
    assert status == 400, error
    assert suite.complete("and then", max_tokens=2), "the gateway still answers"


def a_prompt_past_the_context_is_400(suite):
    status, error = error_of(suite.request("POST", TEXT, {
        "model": MODEL, "prompt": "x" * 1100, "max_tokens": 1}))
    assert status == 400, error


def max_tokens_is_a_ceiling(suite):
    status, _, body = suite.request("POST", TEXT, {
        "model": MODEL, "prompt": "x" * 1000, "max_tokens": 100000, "temperature": 0})
    assert status == 200 and body["choices"][0]["finish_reason"] in ("length", "stop"), body


def large_bodies_are_413(suite):
    status, error = error_of(suite.request("POST", CHAT, b" " * (64 << 20)))
    assert status == 413, error


def an_announced_large_body_is_413_at_once(suite):
    with socket.create_connection(("127.0.0.1", suite.http_ports[0]), timeout=10) as s:
        s.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {suite.key}\r\n"
                  "Content-Type: application/json\r\nContent-Length: 9999999999\r\n\r\n".encode())
        assert b" 413 " in s.recv(4096).split(b"\r\n")[0]


def the_admin_port_answers(suite):
    for process in suite.processes.values():
        if process.name != "redis":
            assert process.get("/livez")[0] == 200, process.name
            assert process.get("/readyz")[0] == 200, process.name
            assert process.metrics(), process.name
            assert process.get("/v1/models")[0] == 404, process.name


def without_redis_the_gateway_says_503(suite):
    suite.processes["redis"].stop()
    scheduler = suite.processes["scheduler-0"]
    wait_for(lambda: scheduler.get("/readyz")[0] == 503, "the scheduler is not ready", 10)
    assert scheduler.get("/livez")[0] == 200
    assert suite.processes["gateway-0"].get("/readyz")[0] == 200
    status, headers, _ = suite.request("POST", CHAT, chat())
    assert status == 503, status
    assert 1 <= int({k.lower(): v for k, v in headers.items()}["retry-after"]) <= 60
    suite.start_redis()
    wait_for(lambda: suite.request("POST", CHAT, chat())[0] == 200, "back again", 30)


run([models_are_listed, chat_answers, a_stream_says_the_same, the_wire_of_a_stream,
     sampling_is_repeatable, wrong_keys_are_401, a_revoked_key_is_401, unknown_things_are_404,
     bad_fields_are_400, a_prompt_past_the_context_is_400, max_tokens_is_a_ceiling,
     large_bodies_are_413, an_announced_large_body_is_413_at_once, the_admin_port_answers,
     without_redis_the_gateway_says_503])
