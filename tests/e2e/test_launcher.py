"""./fractal itself: up, a second up, down; what it says when something is in the way."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from suite import BIN, ROOT, free_ports, wait_for

FRACTAL = str(ROOT / "fractal")


class Checkout:
    """A data folder and ports of its own."""

    def __init__(self):
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="fx-up-"))
        self.port = free_ports(1)[0]
        self.base = self.free_base()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("FX_")}
        self.env["FRACTAL_BUILD"] = str(BIN.parent)

    @staticmethod
    def free_base():
        """A base whose ports of one instance, and the admin ports above them, are free."""
        for base in range(20000 + os.getpid() % 1000 * 20, 60000, 20):
            ports = [base + i for i in range(20)] + [base + 1000 + i for i in range(20)]
            if not any(Checkout.listening(port) for port in ports):
                return base
        raise AssertionError("no free ports")

    @staticmethod
    def listening(port):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0

    def argv(self, command, *arguments):
        return [FRACTAL, command, "--data", str(self.data), *arguments]

    def up_argv(self, *arguments):
        return self.argv("up", "--port", str(self.port), "--base-port", str(self.base), *arguments)

    def run(self, argv, env=None, check=True):
        done = subprocess.run(argv, env={**self.env, **(env or {})}, text=True, timeout=300,
                              stdin=subprocess.DEVNULL, capture_output=True)
        assert not check or done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
        return done

    def processes(self):
        """Pids whose environment or arguments name the data folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(self.data).encode() in text:
                found.append(int(entry.name))
        return found

    def assert_nothing_left(self):
        wait_for(lambda: not self.processes(), f"no process is left: {self.processes()}", 5)
        sockets = [p for p in self.data.rglob("*") if p.is_socket()]
        assert not sockets, sockets
        assert not list((self.data / "run").glob("*.pid"))
        assert not self.listening(self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.run(self.argv("down"), check=False)
        shutil.rmtree(self.data, ignore_errors=True)


def curl_line(text):
    return re.search(r"^Try\s+(curl .*)$", text, re.M).group(1)


def up_down_up():
    with Checkout() as checkout:
        first = checkout.run(checkout.up_argv())
        assert f"http://localhost:{checkout.port}/v1" in first.stdout
        answer = first.stdout.split("\nURL")[0].strip()
        assert len(answer) > 10, f"no first answer: {first.stdout}"
        pasted = checkout.run(["sh", "-c", curl_line(first.stdout)]).stdout
        assert pasted.rstrip().endswith("data: [DONE]") and '"delta"' in pasted, pasted
        for name in ("api-key", "bootstrap-token"):
            assert (checkout.data / name).stat().st_mode & 0o777 == 0o600, name
        assert checkout.data.stat().st_mode & 0o777 == 0o700
        second_up_is_a_no_op(checkout, first)
        status_tells(checkout)
        import_starts_a_worker(checkout)
        checkout.run(checkout.argv("down"))
        checkout.assert_nothing_left()
        data_stays(checkout, first)


def second_up_is_a_no_op(checkout, first):
    before, begin = sorted(checkout.processes()), time.monotonic()
    second = checkout.run(checkout.up_argv())
    took = time.monotonic() - begin
    print(f"second up: {took:.2f} s")
    assert took < 3 and sorted(checkout.processes()) == before
    assert "already running" in second.stderr
    assert curl_line(second.stdout) == curl_line(first.stdout)


def status_tells(checkout):
    status = checkout.run(checkout.argv("status"))
    for name in ("redis", "tenant", "slicer", "scheduler-0", "worker-fractal-tiny-moe-0",
                 "gateway-0"):
        assert re.search(rf"^{name} +\d+ +ready ", status.stdout, re.M), status.stdout
    assert "fractal-tiny-moe" in checkout.run(checkout.argv("models")).stdout
    assert "ready" in checkout.run(checkout.argv("logs", "worker")).stdout


def import_starts_a_worker(checkout):
    checkout.run(checkout.argv("import", str(ROOT / "models/fractal-tiny-moe"), "--name", "second",
                               "--dtype", "f16"))
    said = checkout.run(checkout.argv("chat", "--model", "second", "Call me Ishmael.")).stdout
    assert len(said.strip()) > 10, said


def data_stays(checkout, first):
    again = checkout.run(checkout.up_argv("--quiet"))
    assert curl_line(again.stdout) == curl_line(first.stdout)
    pasted = checkout.run(["sh", "-c", curl_line(again.stdout)]).stdout
    assert pasted.rstrip().endswith("data: [DONE]"), pasted
    checkout.run(checkout.argv("down"))
    checkout.assert_nothing_left()
    assert "nothing is running" in checkout.run(checkout.argv("down")).stderr


def port_in_use():
    with Checkout() as checkout, socket.socket() as holder:
        holder.bind(("127.0.0.1", checkout.port))
        holder.listen()
        done = checkout.run(checkout.up_argv(), check=False)
        assert done.returncode != 0
        assert f"port {checkout.port} is in use by process {os.getpid()}" in done.stderr
        assert "--port" in done.stderr
        assert not checkout.processes()
    with Checkout() as checkout, socket.socket() as holder:
        holder.bind(("127.0.0.1", checkout.base + 2))
        holder.listen()
        done = checkout.run(checkout.up_argv(), check=False)
        assert done.returncode != 0 and f"port {checkout.base + 2} is in use" in done.stderr
        assert "--base-port" in done.stderr
        checkout.assert_nothing_left()


def redis_missing():
    """A PATH that has everything but Redis."""
    with Checkout() as checkout:
        tools = checkout.data / "tools"
        tools.mkdir()
        for folder in ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"):
            for path in pathlib.Path(folder).glob("*"):
                if not path.name.startswith("redis") and not (tools / path.name).exists():
                    (tools / path.name).symlink_to(path)
        done = checkout.run(checkout.up_argv(), env={"PATH": str(tools)}, check=False)
        assert done.returncode != 0
        assert "redis-server is not installed" in done.stderr, done.stderr
        assert "apt-get install redis-server" in done.stderr
        checkout.assert_nothing_left()


def packages_that_cannot_be_installed():
    """dpkg-query that knows nothing, and an apt-get that fails."""
    with Checkout() as checkout:
        fakes = checkout.data / "fakes"
        fakes.mkdir()
        for name in ("dpkg-query", "apt-get", "sudo"):
            (fakes / name).write_text("#!/bin/sh\necho \"$0 fails\" >&2\nexit 1\n")
            (fakes / name).chmod(0o755)
        policy = pathlib.Path("/usr/sbin/policy-rc.d")
        before = policy.read_bytes() if policy.exists() else None
        done = checkout.run(checkout.up_argv(), check=False,
                            env={"PATH": f"{fakes}:{checkout.env['PATH']}"})
        assert done.returncode != 0 and "libgrpc-dev" in done.stderr, done.stderr
        assert "remedy:" in done.stderr
        assert (policy.read_bytes() if policy.exists() else None) == before
        checkout.assert_nothing_left()


def interrupted_up():
    """Ctrl-C at several moments."""
    for seconds in (0.3, 0.8, 1.5):
        with Checkout() as checkout:
            up = subprocess.Popen(checkout.up_argv(), env=checkout.env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True)
            time.sleep(seconds)
            if up.poll() is None:
                os.killpg(up.pid, signal.SIGINT)
                assert up.wait(60) == 130, up.returncode
                checkout.assert_nothing_left()
            print(f"interrupted after {seconds} s", flush=True)


def a_stale_pid_file_harms_nobody():
    with Checkout() as checkout, subprocess.Popen(["sleep", "60"]) as innocent:
        (checkout.data / "run").mkdir()
        (checkout.data / "run" / "gateway-0.pid").write_text(f"{innocent.pid} 1\n")
        checkout.run(checkout.argv("down"))
        time.sleep(0.2)
        assert innocent.poll() is None, "down ended what it did not start"
        innocent.kill()


def two_ups_at_once():
    with Checkout() as checkout:
        ups = [subprocess.Popen(checkout.up_argv("--quiet"), env=checkout.env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE) for _ in range(2)]
        ends = [(up.communicate(timeout=300), up.returncode) for up in ups]
        codes = sorted(code for _, code in ends)
        assert codes == [0, 1], ends
        assert any("another ./fractal" in text[1] for text, code in ends if code), ends


def main():
    for test in (up_down_up, port_in_use, redis_missing, packages_that_cannot_be_installed,
                 interrupted_up, a_stale_pid_file_harms_nobody, two_ups_at_once):
        begin = time.monotonic()
        print(f"[ RUN  ] {test.__name__}", flush=True)
        test()
        print(f"[  OK  ] {test.__name__} {time.monotonic() - begin:.2f} s", flush=True)


main()
