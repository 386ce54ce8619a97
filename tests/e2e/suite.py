"""A whole suite of real processes on free ports in a temporary folder, and what tests ask of it.

The standard library is enough: HTTP by http.client, Redis by a few lines of RESP.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("E2E_BIN_DIR", ROOT / "build/release/bin"))
MODEL = "fractal-tiny-moe"
READY_S = 60


def free_ports(count):
    """Ports nobody listens on now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def wait_for(condition, what, seconds=READY_S, pause=0.01):
    """Polls until `condition()` is true; returns its value and fails with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(pause)


def quick_folder():
    """A new folder in memory where there is room: another test's disk traffic delays no fsync."""
    memory = pathlib.Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > 256 << 20
    return pathlib.Path(tempfile.mkdtemp(prefix="fx-e2e-", dir=memory if roomy else None))


class Redis:
    """One blocking connection."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        parts = [str(word).encode() for word in words]
        head = f"*{len(parts)}\r\n".encode()
        self.socket.sendall(head + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
        return self._read()

    def _read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self._read() for _ in range(int(rest))]
        return rest

    def close(self):
        self.file.close()
        self.socket.close()


class Process:
    def __init__(self, name, argv, env, folder):
        self.name, self.log = name, folder / f"{name}.log"
        self.admin = env.get("FX_ADMIN_ADDR")
        with open(self.log, "ab") as log:
            self.popen = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                          stderr=log, start_new_session=True)
        self.pid = self.popen.pid

    def alive(self):
        return self.popen.poll() is None

    def text(self):
        return self.log.read_text(errors="replace")

    def signal(self, number):
        os.kill(self.pid, number)

    def get(self, path):
        """Status and body of the admin endpoint; status 0 when nobody answers."""
        connection = http.client.HTTPConnection(self.admin, timeout=5)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def metrics(self):
        """Name to value, summed over labels."""
        status, body = self.get("/metrics")
        assert status == 200, f"{self.name}: /metrics answers {status}"
        sums = {}
        for line in body.splitlines():
            if line and line[0] != "#":
                name, value = line.rsplit(" ", 1)
                name = name.split("{")[0]
                sums[name] = sums.get(name, 0.0) + float(value)
        return sums

    def stop(self, seconds=20):
        if self.alive():
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            return None


class Suite:
    """with Suite(workers=2) as suite: ..."""

    def __init__(self, workers=1, schedulers=1, gateways=1, worker_env=None, env=None, dtype="int4"):
        self.counts = (workers, schedulers, gateways)
        self.worker_env, self.extra_env, self.dtype = worker_env or {}, env or {}, dtype
        self.processes, self.killed = {}, set()

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fx-e2e-"))
        self.redis_folder = quick_folder()
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, error, trace):
        if kind:
            self.show_logs()
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.redis_folder, ignore_errors=True)

    # -- starting -------------------------------------------------------------------------------

    def _start(self):
        workers, schedulers, gateways = self.counts
        tenant, slicer, *rest = free_ports(2 + schedulers + gateways)
        self.scheduler_ports, self.http_ports = rest[:schedulers], rest[schedulers:]
        self.models = self.folder / "models"
        self.models.mkdir()
        self.token = os.urandom(32).hex()
        self._write_secret("bootstrap-token", self.token)
        self.env = {
            "PATH": os.environ["PATH"], "HOME": str(self.folder),
            "FX_REDIS_URL": f"unix://{self.folder}/redis.sock", "FX_MODEL_DIR": str(self.models),
            "FX_BOOTSTRAP_TOKEN_FILE": str(self.folder / "bootstrap-token"),
            "FX_TENANT_ADDR": f"127.0.0.1:{tenant}", "FX_SLICER_ADDR": f"127.0.0.1:{slicer}",
            "FX_SCHEDULER_ADDR": ",".join(f"127.0.0.1:{p}" for p in self.scheduler_ports),
            "FX_HTTP_ADDR": f"127.0.0.1:{self.http_ports[0]}", **self.extra_env}
        self.start_redis()
        self._service("tenant", "tenant", tenant)
        self._service("slicer", "slicer", slicer)
        self.ready("tenant", "slicer")
        self.cli("import", str(ROOT / "models" / MODEL), "--name", MODEL, "--dtype", self.dtype)
        for i in range(schedulers):
            self._service("scheduler", f"scheduler-{i}", self.scheduler_ports[i])
        self.ready(*(f"scheduler-{i}" for i in range(schedulers)))
        for i in range(workers):
            self.start_worker(i, wait=False)
        for i in range(gateways):
            self._service("gateway", f"gateway-{i}", None,
                          FX_HTTP_ADDR=f"127.0.0.1:{self.http_ports[i]}")
        self.ready(*self.processes)
        self.key = self.make_key()

    def _write_secret(self, name, text):
        descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")

    def start_redis(self):
        path = self.folder / "redis.sock"
        self.processes["redis"] = Process("redis", [
            "redis-server", "--port", "0", "--unixsocket", str(path), "--dir", str(self.redis_folder),
            "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--maxmemory-policy",
            "noeviction"], {"PATH": os.environ["PATH"]}, self.folder)
        wait_for(self._redis_answers, "redis")
        self.redis = Redis(path)

    def _redis_answers(self):
        try:
            redis = Redis(self.folder / "redis.sock")
            answer = redis("PING")
            redis.close()
            return answer == b"PONG"
        except (OSError, RuntimeError):
            return False

    def _service(self, service, name, port, **env):
        grpc, admin = free_ports(2)
        variables = {**self.env, "FX_GRPC_ADDR": f"127.0.0.1:{port or grpc}",
                     "FX_ADMIN_ADDR": f"127.0.0.1:{admin}", **env}
        self.processes[name] = Process(name, [str(BIN / f"fractal-{service}")], variables,
                                       self.folder)

    def start_worker(self, number, wait=True, **env):
        name = f"worker-{number}"
        self._service("worker", name, None, FX_MODEL=MODEL, **{**self.worker_env, **env})
        if wait:
            self.ready(name)
        return self.processes[name]

    def is_ready(self, process):
        assert process.alive(), f"{process.name} ended: {process.text()[-800:]}"
        return process.name == "redis" or process.get("/readyz")[0] == 200

    def ready(self, *names):
        for name in names:
            wait_for(lambda: self.is_ready(self.processes[name]), f"{name} is ready")

    def cli(self, *arguments, check=True):
        done = subprocess.run([str(BIN / "fractal-cli"), *arguments], env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        assert not check or done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
        return done

    def make_key(self, tenant="default"):
        said = self.cli("keys", "create", "--tenant", tenant).stdout
        return re.search(r"fx-[0-9a-f]{64}", said).group(0)

    # -- ending ---------------------------------------------------------------------------------

    def stop(self):
        """Gateways first, Redis last; every process ends by SIGTERM."""
        if hasattr(self, "redis"):
            self.redis.close()
        order = ["gateway", "worker", "scheduler", "slicer", "tenant", "redis"]
        names = sorted(self.processes, key=lambda name: order.index(name.split("-")[0]))
        self.codes = {name: self.processes[name].stop() for name in names}

    def show_logs(self):
        for process in self.processes.values():
            print(f"--- {process.name}\n{process.text()[-3000:]}", flush=True)

    # -- asking ---------------------------------------------------------------------------------

    def connect(self, gateway=0, timeout=120):
        return http.client.HTTPConnection("127.0.0.1", self.http_ports[gateway], timeout=timeout)

    def request(self, method, path, body=None, key=None, headers=None, gateway=0):
        """Status, headers, and the body (JSON where it is)."""
        connection = self.connect(gateway)
        if isinstance(body, dict):
            body = json.dumps(body)
        sent = {"Authorization": f"Bearer {key or self.key}", "Content-Type": "application/json"}
        with contextlib.closing(connection):
            connection.request(method, path, body, {**sent, **(headers or {})})
            answer = connection.getresponse()
            data = answer.read()
        if answer.getheader("Content-Type", "").startswith("application/json"):
            data = json.loads(data)
        return answer.status, dict(answer.getheaders()), data

    def complete(self, prompt, **fields):
        """The text of a completion, not streamed."""
        body = {"model": MODEL, "prompt": prompt, "max_tokens": 32, "temperature": 0, **fields}
        status, _, answer = self.request("POST", "/v1/completions", body)
        assert status == 200, f"{status}: {answer}"
        return answer["choices"][0]["text"]

    def stream(self, prompt, path="/v1/completions", gateway=0, **fields):
        """An open stream of a completion."""
        return Stream(self, path, gateway,
                      {"model": MODEL, "prompt": prompt, "max_tokens": 32, "temperature": 0,
                       "stream": True, **fields})


class Stream:
    """Chunks of one SSE answer; iterate, or close() to hang up."""

    def __init__(self, suite, path, gateway, body):
        self.connection = suite.connect(gateway)
        self.connection.request("POST", path, json.dumps(body), {
            "Authorization": f"Bearer {suite.key}", "Content-Type": "application/json"})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, f"{self.answer.status}: {self.answer.read()}"
        self.chunks, self.done, self.generation = 0, False, None

    def __iter__(self):
        for line in self.answer:
            line = line.rstrip(b"\r\n")
            if line == b"data: [DONE]":
                self.done = True
            elif line.startswith(b"data: "):
                self.chunks += 1
                yield self._chunk(json.loads(line[6:]))

    def _chunk(self, chunk):
        assert "error" not in chunk, chunk
        self.generation = chunk["id"]
        return chunk

    def text(self):
        """Reads to the end."""
        parts = []
        for chunk in self:
            for choice in chunk["choices"]:
                parts.append(choice.get("text") or choice.get("delta", {}).get("content") or "")
        assert self.done, "the stream ended without [DONE]"
        self.close()
        return "".join(parts)

    def close(self):
        """The socket itself: http.client keeps it open as long as the answer lives."""
        self.answer.close()
        self.connection.close()


def run(tests, **options):
    """Every test over one suite; the first that fails ends it and shows the services' logs."""
    with Suite(**options) as suite:
        for test in tests:
            begin = time.monotonic()
            print(f"[ RUN  ] {test.__name__}", flush=True)
            test(suite)
            print(f"[  OK  ] {test.__name__} {time.monotonic() - begin:.2f} s", flush=True)
    ended_badly = {name: code for name, code in suite.codes.items() if code != 0}
    assert not set(ended_badly) - suite.killed, f"these did not end well: {ended_badly}"
