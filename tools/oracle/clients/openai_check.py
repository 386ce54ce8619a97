"""openai_check.py URL KEY LIMITED_KEY MODEL: the official client for Python."""
import sys

import openai

url, key, limited_key, model = sys.argv[1:]
client = openai.OpenAI(base_url=url, api_key=key, max_retries=0)
messages = [{"role": "user", "content": "It is a truth"}]
few = {"model": model, "temperature": 0, "max_tokens": 24}
right, wrong = [], []


def row(run):
    name = run.__doc__
    try:
        run()
        right.append(name)
        print(f"  ok    {name}")
    except Exception as error:  # every failure is told, the rest goes on
        wrong.append(name)
        print(f"  WRONG {name}: {type(error).__name__}: {error}")


def refused(run, kind, status):
    try:
        run()
    except openai.APIStatusError as error:
        assert type(error) is kind, type(error)
        assert error.status_code == status, error.status_code
        assert error.request_id, "x-request-id"
        return error
    raise AssertionError("it was not refused")


@row
def models():
    """models"""
    assert model in [entry.id for entry in client.models.list()]
    assert client.models.retrieve(model).object == "model"


@row
def chat():
    """chat, whole and streamed"""
    whole = client.chat.completions.create(messages=messages, **few)
    text, roles, usage = "", 0, None
    for chunk in client.chat.completions.create(
        messages=messages, stream=True, stream_options={"include_usage": True}, **few
    ):
        if not chunk.choices:
            usage = chunk.usage
            continue
        roles += chunk.choices[0].delta.role is not None
        text += chunk.choices[0].delta.content or ""
    assert text and text == whole.choices[0].message.content, text
    assert roles == 1 and usage == whole.usage, (roles, usage)


@row
def helper():
    """chat, by the stream helper, which tells a cut answer"""
    whole = client.chat.completions.create(messages=messages, **few).choices[0]
    assert whole.finish_reason == "length", whole.finish_reason
    try:
        with client.chat.completions.stream(messages=messages, **few) as stream:
            for _ in stream:
                pass
            stream.get_final_completion()
    except openai.LengthFinishReasonError as error:
        message = error.completion.choices[0].message
        assert message.role == "assistant" and message.content == whole.message.content
        return
    raise AssertionError("it was not told")


@row
def completions():
    """completions, whole and streamed"""
    prompt = "Call me Ishmael."
    whole = client.completions.create(prompt=prompt, **few).choices[0].text
    chunks = client.completions.create(prompt=prompt, stream=True, **few)
    assert whole and "".join(chunk.choices[0].text for chunk in chunks) == whole


@row
def unauthorised():
    """401"""
    stranger = openai.OpenAI(base_url=url, api_key="fx-nobody", max_retries=0)
    refused(stranger.models.list, openai.AuthenticationError, 401)


@row
def not_found():
    """404"""
    run = lambda: client.chat.completions.create(messages=messages, **{**few, "model": "nobody"})
    assert refused(run, openai.NotFoundError, 404).code == "model_not_found"


@row
def bad_request():
    """400 names the field"""
    run = lambda: client.chat.completions.create(messages=messages, **{**few, "temperature": 9})
    assert refused(run, openai.BadRequestError, 400).param == "temperature"


@row
def too_large():
    """413"""
    huge = [{"role": "user", "content": "x" * 5_000_000}]
    run = lambda: client.chat.completions.create(messages=huge, **few)
    refused(run, openai.APIStatusError, 413)


@row
def limited():
    """429"""
    other = openai.OpenAI(base_url=url, api_key=limited_key, max_retries=0)

    def run():
        for _ in range(4):
            other.chat.completions.create(messages=messages, **few)

    error = refused(run, openai.RateLimitError, 429)
    assert 1 <= int(error.response.headers["retry-after"]) <= 60


print(f"openai {openai.__version__} for Python: {len(right)} right, {len(wrong)} wrong")
sys.exit(bool(wrong))
