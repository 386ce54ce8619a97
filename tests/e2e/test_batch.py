"""Thirty-two streams at once: each says what the same request says alone, and the batch is full."""
import threading

from suite import run, wait_for

STREAMS = 32
TOKENS = 900
WORKER = "worker-0"
OPENINGS = ["It was", "The whale", "My dear", "Call me", "In the", "She had", "There is", "A man"]


def prompt(i):
    return f"{OPENINGS[i % len(OPENINGS)]} {'very ' * (i // len(OPENINGS))}"


def fields(i, seeded):
    sampled = {"temperature": 0.8, "seed": 1000 + i} if seeded else {"temperature": 0}
    return {"max_tokens": TOKENS, **sampled}


def together(suite, seeded):
    texts, errors = [None] * STREAMS, []
    start = threading.Barrier(STREAMS)

    def one(i):
        try:
            start.wait()
            texts[i] = suite.stream(prompt(i), **fields(i, seeded)).text()
        except Exception as error:  # reported by the main thread
            errors.append(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(STREAMS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    return texts


def counters(suite):
    return suite.processes[WORKER].metrics()


def mean_rows(before, after, kind):
    rows = after[f"fractal_worker_{kind}_rows_total"] - before[f"fractal_worker_{kind}_rows_total"]
    runs = (after[f"fractal_worker_{kind}_matmuls_total"]
            - before[f"fractal_worker_{kind}_matmuls_total"])
    return rows / runs


class Watch(threading.Thread):
    """The counters when all streams were first and last seen in the batch together."""

    def __init__(self, suite):
        super().__init__(daemon=True)
        self.suite, self.first, self.last, self.ended = suite, None, None, threading.Event()
        self.start()

    def run(self):
        while not self.ended.wait(0.02):
            now = counters(self.suite)
            if now["fractal_worker_running"] == STREAMS:
                self.first, self.last = self.first or now, now

    def window(self):
        self.ended.set()
        self.join()
        return self.first, self.last


def watched(suite, seeded):
    """All streams at once. A busy machine may start the last when the first has ended: again."""
    for _ in range(3):
        watch = Watch(suite)
        texts = together(suite, seeded)
        first, last = watch.window()
        if first is not last:
            return texts, (first, last)
    raise AssertionError("the streams never ran all at once")


def bytes_per_token(before, after):
    read, tokens = (after[name] - before[name] for name in (
        "fractal_worker_weight_bytes_read_total", "fractal_worker_tokens_decoded_total"))
    return read / tokens


def all_free(suite):
    now = counters(suite)
    return (now["fractal_worker_slots_free"] == now["fractal_worker_slots"]
            and now["fractal_worker_kv_blocks_free"] == now["fractal_worker_kv_blocks"])


def check(suite, seeded):
    start = counters(suite)
    alone = [suite.complete(prompt(i), **fields(i, seeded)) for i in range(STREAMS)]
    middle = counters(suite)
    texts, window = watched(suite, seeded)
    end = counters(suite)
    for i in range(STREAMS):
        assert texts[i] == alone[i], f"{prompt(i)!r}: {texts[i]!r} is not {alone[i]!r}"
    dense, expert = (mean_rows(*window, kind) for kind in ("dense", "expert"))
    saved = bytes_per_token(start, middle) / bytes_per_token(*window)
    steps = window[1]["fractal_worker_steps_total"] - window[0]["fractal_worker_steps_total"]
    print(f"seeded={seeded}: {dense:.1f} rows a dense matmul and {expert:.1f} an active expert over "
          f"{steps:.0f} steps with all streams ({mean_rows(middle, end, 'dense'):.1f} and "
          f"{mean_rows(middle, end, 'expert'):.1f} with start and end); weight bytes a token fall "
          f"by {saved:.1f}")
    assert steps >= TOKENS // 4, "all streams at once, but too shortly to tell"
    assert dense >= 24 and expert >= 6, (dense, expert)
    assert saved >= 4, saved
    wait_for(lambda: all_free(suite), "every slot and KV block is free", 2)
    assert len(set(alone)) > STREAMS // 2, "the prompts are meant to differ"


def greedy(suite):
    check(suite, seeded=False)


def seeded(suite):
    check(suite, seeded=True)


run([greedy, seeded], worker_env={"FX_SLOTS_MAX": str(STREAMS)})
