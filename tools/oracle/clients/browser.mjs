// A real browser (Debian's chromium by playwright-core) on the telemetry stream: a page of another
// origin than the gateway's gets a ticket with its key, listens by EventSource, and comes back with
// a fresh ticket after the gateway was killed.
// node browser.mjs CHROMIUM GATEWAY_URL KEY MODEL PAGE_PORT KILL_COMMAND START_COMMAND; the gateway
// has http://127.0.0.1:PAGE_PORT in FX_CORS_ORIGINS. The commands are bash.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createServer } from 'node:http';
import { chromium } from 'playwright-core';
import { row, end } from './check.mjs';

const [program, base, key, model, port, killCommand, startCommand] = process.argv.slice(2);
const WAIT_MS = 30000;

function bash(command) {
  execFileSync('bash', ['-c', command], { stdio: ['ignore', 'ignore', 'inherit'] });
}

// The page of the gateway's README, with counters.
const html = `<!doctype html><title>telemetry</title><script>
  const seen = {snapshots: [], tickets: [], errors: 0, failed: ''};
  async function listen(base, key) {
    const again = () => setTimeout(() => listen(base, key), 300);
    try {
      const post = {method: 'POST', headers: {Authorization: 'Bearer ' + key}};
      const answer = await fetch(base + '/v1/telemetry/tickets', post);
      if (!answer.ok) throw new Error('status ' + answer.status);
      const {ticket} = await answer.json();
      seen.tickets.push(ticket);
      const source = new EventSource(base + '/v1/telemetry?ticket=' + ticket);
      source.onmessage = (event) => seen.snapshots.push(JSON.parse(event.data));
      source.onerror = () => { seen.errors++; source.close(); again(); };
    } catch (error) {
      seen.failed = String(error);
      again();
    }
  }
</script>`;

function serve(at) {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(html);
  });
  return new Promise((resolve) => server.listen(at, '127.0.0.1', () => resolve(server)));
}

const seen = (page) => page.evaluate(() => seen);
const until = (page, condition, value) =>
  page.waitForFunction(condition, value, { timeout: WAIT_MS, polling: 50 });

const listed = await serve(Number(port));
const other = await serve(0);
const browser = await chromium.launch({
  executablePath: program,
  args: ['--no-sandbox', '--no-proxy-server'],
});
try {
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${port}/`);

  await row('a page gets a ticket, and three snapshots by EventSource', async () => {
    await page.evaluate(([at, secret]) => { listen(at, secret); }, [base, key]);
    await until(page, () => seen.snapshots.length >= 3);
    const { snapshots, tickets, errors } = await seen(page);
    assert.equal(tickets.length, 1);
    assert.equal(errors, 0);
    for (let i = 0; i < 3; i += 1) {
      const told = snapshots[i].models.find((one) => one.model === model);
      assert.ok(told, 'the model is told of');
      assert.equal(told.workers.length >= 1, true);
      assert.equal(told.kv_pages.used, 0);
      if (i) assert.ok(snapshots[i].at_ms > snapshots[i - 1].at_ms);
    }
    return `${browser.version()}, ${snapshots[2].at_ms - snapshots[1].at_ms} ms apart`;
  });

  await row('a ticket opens one stream', async () => {
    const { tickets } = await seen(page);
    const status = await page.evaluate(async ([at, ticket]) =>
      (await fetch(`${at}/v1/telemetry?ticket=${ticket}`)).status, [base, tickets[0]]);
    assert.equal(status, 401);
  });

  await row('the gateway is killed; EventSource comes back to the next one by a fresh ticket',
    async () => {
      const before = await seen(page);
      bash(killCommand);
      await until(page, (errors) => seen.errors > errors, before.errors);
      await until(page, () => seen.failed !== ''); // nobody gives tickets
      const dead = await seen(page);
      bash(startCommand);
      await until(page, (count) => seen.snapshots.length >= count + 3, dead.snapshots.length);
      const after = await seen(page);
      assert.ok(after.tickets.length > dead.tickets.length);
      assert.equal(new Set(after.tickets).size, after.tickets.length);
      return `${after.snapshots.length} snapshots, ${after.tickets.length} tickets`;
    });

  await row('a page of an origin that is not listed gets no ticket', async () => {
    const stranger = await browser.newPage();
    await stranger.goto(`http://127.0.0.1:${other.address().port}/`);
    await stranger.evaluate(([at, secret]) => { listen(at, secret); }, [base, key]);
    await until(stranger, () => seen.failed !== '');
    const { tickets, failed } = await seen(stranger);
    assert.equal(tickets.length, 0);
    return failed;
  });
} finally {
  await browser.close();
  listed.close();
  other.close();
}
end('chromium');
