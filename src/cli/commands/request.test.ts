import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test, vi } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { freePort } from '../../../test/fixtures/real-envoy.ts';
import { DebuggerAccess } from '../../runtime/trace/debugger-access.ts';
import { requestCommand } from './request.ts';

async function runRequest(...args: string[]): Promise<{ printed: string; seen: string[] }> {
  const seenRequests: string[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    seenRequests.push(`${request.method} ${request.url} ${body}`);
    if (request.url === '/moved') response.writeHead(302, { location: '/there' }).end();
    else if (request.url === '/missing') response.writeHead(404).end('no such path');
    else if (request.url === '/broken') response.writeHead(500).end('out of order');
    else response.end('fine');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  let printedText = '';
  const target = {
    target: 'a test',
    host: '127.0.0.1',
    defaultPort: port,
    allowedPorts: [port],
    example: '',
    failed: 1,
  };
  const command = requestCommand(target, (responseText) => {
    printedText += responseText;
  });
  await command.parseAsync(args, { from: 'user' });
  return { printed: printedText, seen: seenRequests };
}

test('the request command sends a body, accepts a path without a leading slash, and prints the response body (agent §11)', async () => {
  expect(await runRequest('post', 'logging', 'level=debug')).toEqual({
    printed: 'fine',
    seen: ['POST /logging level=debug'],
  });
});

test('the request command sends the request to the address of --from, with or without scheme', async () => {
  const server = createServer((request, response) => response.end(`${request.method} ${request.url}`));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const target = { target: 'a test', host: '127.0.0.1', defaultPort: 9, allowedPorts: [], example: '', failed: 1 };
  for (const from of [`127.0.0.1:${port}`, `http://127.0.0.1:${port}`]) {
    let printedText = '';
    const command = requestCommand({ ...target, acceptsFrom: true }, (responseText) => (printedText += responseText));
    await command.parseAsync(['PUT', '/scopej/ads?a=b', '{}', '--from', from], { from: 'user' });
    expect(printedText).toBe('PUT /scopej/ads?a=b');
  }
  const withoutFrom = requestCommand(target)
    .exitOverride()
    .configureOutput({ writeErr: () => {} });
  await expect(withoutFrom.parseAsync(['GET', '/', '--from', 'x'], { from: 'user' })).rejects.toThrow(/unknown option/);
});

test('the request command rejects an address in place of the path, and names the flag for the address', async () => {
  const port = await freePort();
  const target = { target: 'a test', host: '127.0.0.1', defaultPort: port, allowedPorts: [], example: '', failed: 1 };
  const args = ['GET', 'http://10.0.0.1:23514/scopej/ads?a=b'];
  const rejected = requestCommand({ ...target, acceptsFrom: true }).parseAsync(args, { from: 'user' });
  await expect(rejected).rejects.toMatchObject({
    code: 'FLAG_INVALID',
    hint: 'Use: request GET /scopej/ads?a=b --from 10.0.0.1:23514',
  });
  await expect(runRequest(...args)).rejects.toMatchObject({
    code: 'FLAG_INVALID',
    hint: 'Use: request GET /scopej/ads?a=b --debug-port PORT',
  });
});

test('the request command follows a redirect, and prints a 404 response (agent §11)', async () => {
  expect((await runRequest('GET', '/moved')).seen).toEqual(['GET /moved ', 'GET /there ']);
  expect((await runRequest('GET', '/missing')).printed).toBe('no such path');
});

test('the request command reports other failure statuses as errors with the response (agent §11)', async () => {
  await expect(runRequest('GET', '/broken')).rejects.toThrow(/request failed: GET .*\/broken: status 500 out of order/);
});

test('the request command rejects a forbidden port before sending anything (agent §11)', async () => {
  await expect(runRequest('GET', '/', '--debug-port', '22')).rejects.toThrow(
    codedError('FLAG_INVALID', { code: 'FIELD_VALUE_UNKNOWN', path: '--debug-port', got: '"22"' }),
  );
});

test('the request command rejects a body that cannot be sent before sending anything, with this reason (agent §11)', async () => {
  await expect(runRequest('get', '/', 'body')).rejects.toThrow(
    codedError('FLAG_INVALID', { code: 'FIELD_NOT_ALLOWED', path: '[body]' }),
  );
});

test('the request command reports an unused port as an error with this reason (agent §11)', async () => {
  const port = await freePort();
  const target = { target: 'a test', host: '127.0.0.1', defaultPort: port, allowedPorts: [], example: '', failed: 1 };
  const result = requestCommand(target, () => {}).parseAsync(['GET', '/'], { from: 'user' });
  await expect(result).rejects.toThrow(/GET http:\/\/127\.0\.0\.1:\d+\/: .*ECONNREFUSED/);
});

/** Issue 33, item 2: pages of the status port that need the debugger's token. */
test.each([
  ['127.0.0.1', '127.0.0.1'],
  ['::1', '[::1]'],
])(
  "the request command sends the debugger's token with method and body to a page at %s that needs it",
  async (host, urlHost) => {
    const temporary = mkdtempSync(join(tmpdir(), 'request-'));
    vi.stubEnv('TMPDIR', temporary);
    onTestFinished(() => {
      vi.unstubAllEnvs();
      rmSync(temporary, { recursive: true });
    });
    const access = new DebuggerAccess({ runDir: join(temporary, `chartpilot-${process.geteuid!()}`) });
    const seenRequests: string[] = [];
    const server = createServer(async (request, response) => {
      const { method = '', headers, socket } = request;
      const refusal = access.refusalOf({ method, headers, peer: socket }, { methods: ['POST'] });
      const body = await text(request);
      if (refusal === undefined) seenRequests.push(`${method} ${request.url} ${body}`);
      response.writeHead(refusal?.status ?? 200, refusal?.headers).end(refusal?.body ?? 'OK');
    });
    await new Promise<void>((resolve) => server.listen(0, host, () => resolve()));
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    let printedText = '';
    const target = { target: 'a test', host: urlHost, defaultPort: port, allowedPorts: [], example: '', failed: 1 };
    const sendRequest = () =>
      requestCommand(target, (responseText) => (printedText += responseText)).parseAsync(['POST', '/upgrade', 'x'], {
        from: 'user',
      });
    await expect(sendRequest()).rejects.toThrow(/status 401 refused: send "Authorization: Bearer TOKEN"/);
    access.onPortOpened(port);
    onTestFinished(() => access.removeTokenFiles());
    await sendRequest();
    expect([printedText, seenRequests]).toEqual(['OK', ['POST /upgrade x']]);
  },
);
