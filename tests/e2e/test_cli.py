"""The compiled CLI against a whole suite with f16 weights: the oracle's own words, keys, Ctrl-C."""
import json
import signal
import subprocess
import time

from suite import BIN, MODEL, ROOT, Suite, wait_for

ORACLE = json.loads((ROOT / "models" / MODEL / "oracle.json").read_text())


def chat_says_what_the_oracle_says(suite):
    assert len(ORACLE["prompts"]) == 5
    for prompt in ORACLE["prompts"]:
        want = prompt["greedy_text"]
        said = suite.cli("chat", "--temperature", "0", "--max-tokens", "128", prompt["text"])
        assert said.stdout == want + ("" if want.endswith("\n") else "\n"), (prompt["text"], said)
        assert said.stderr == "", said.stderr


def a_seed_repeats(suite):
    def once(seed):
        return suite.cli("chat", "--seed", seed, "--temperature", "0.8", "Call me").stdout

    assert once("7") == once("7")
    assert once("7") != once("8")


def models_are_listed(suite):
    head, row = suite.cli("models").stdout.splitlines()
    assert head.split() == ["NAME", "DTYPE", "SIZE", "CONTEXT", "IMPORTED", "VERSION"], head
    assert row.split()[:2] == [MODEL, "f16"], row


def a_revoked_key_is_refused(suite):
    suite.cli("tenants", "create", "acme", "--weight", "2")
    made = suite.cli("keys", "create", "--tenant", "acme", "--label", "for a test")
    key_id = made.stderr.split()[2].rstrip(",")
    environment = {**suite.env, "FX_API_KEY": made.stdout.strip()}
    command = [BIN / "fractal-cli", "chat", "--max-tokens", "4", "hello"]

    def ask():
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert ask().returncode == 0
    assert f"{key_id}  active" in suite.cli("keys", "list", "--tenant", "acme").stdout
    suite.cli("keys", "revoke", key_id)
    assert f"{key_id}  revoked" in suite.cli("keys", "list", "--tenant", "acme").stdout
    refused = wait_for(lambda: ask() if ask().returncode else None, "the key is refused", 10)
    assert "HTTP 401" in refused.stderr and "./fractal keys create" in refused.stderr, refused


def ctrl_c_cancels(suite):
    worker = suite.processes["worker-0"]
    worker.signal(signal.SIGSTOP)  # nothing is finished meanwhile
    chat = subprocess.Popen([BIN / "fractal-cli", "chat", "--max-tokens", "900", "Call me"],
                            env=suite.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        time.sleep(0.3)
        begin = time.monotonic()
        chat.send_signal(signal.SIGINT)
        _, said = chat.communicate(timeout=10)
        assert chat.returncode == 130 and b"cancelled" in said, (chat.returncode, said)
        assert time.monotonic() - begin < 2
    finally:
        worker.signal(signal.SIGCONT)
        chat.kill()
    slots = worker.metrics()["fractal_worker_slots"]
    wait_for(lambda: worker.metrics()["fractal_worker_slots_free"] == slots, "all slots free", 10)


def failures_name_the_remedy(suite):
    def said(*arguments):
        done = suite.cli(*arguments, check=False)
        assert done.returncode == 1, done
        return done.stderr

    assert "HTTP 404" in said("chat", "--model", "nope", "x")
    assert "./fractal models" in said("chat", "--model", "nope", "x")
    assert "config.json" in said("import", str(suite.folder), "--name", "x")
    assert "no tenant 'nobody'" in said("keys", "create", "--tenant", "nobody")


def main():
    with Suite(dtype="f16") as suite:
        suite.env["FX_API_KEY"] = suite.key
        for check in (chat_says_what_the_oracle_says, a_seed_repeats, models_are_listed,
                      a_revoked_key_is_refused, ctrl_c_cancels, failures_name_the_remedy):
            check(suite)
            print(f"ok {check.__name__}", flush=True)


main()
