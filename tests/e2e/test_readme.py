"""The README's console lines print what the README shows, ids and times apart."""
import re
import subprocess

from suite import ROOT, run


def blocks():
    """(command, output) of every `$ ` line in the README's console blocks."""
    text = (ROOT / "README.md").read_text()
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        parts = re.split(r"^\$ ", block, flags=re.M)
        assert parts[0] == "", block
        for part in parts[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def plain(text):
    text = re.sub(r'"created":\d+', '"created":0', text)
    return re.sub(r"cmpl-[0-9a-f]{32}", "cmpl-0", text).strip()


def every_line_prints_what_it_shows(suite):
    (suite.folder / ".fractal").mkdir()
    (suite.folder / ".fractal" / "api-key").write_text(suite.key + "\n")
    count, setup = 0, ""
    for command, want in blocks():
        command = command.replace("localhost:5000", f"127.0.0.1:{suite.http_ports[0]}")
        if not want:  # sets a variable for the lines below
            setup += command + "\n"
            continue
        got = subprocess.run(["sh", "-c", setup + command], cwd=suite.folder, text=True, timeout=60,
                             capture_output=True).stdout
        assert plain(got) == plain(want), f"{command}\nprints {got!r}\nthe README shows {want!r}"
        count += 1
    assert count >= 6, "the README has lost its examples"


run([every_line_prints_what_it_shows])
