import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../test/fixtures/error-details.ts';
import { freePorts } from '../../../test/harness/free-ports.ts';
import { waitCommand } from './wait.ts';

async function serve(handler: RequestListener): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/ready`;
}

async function runWait(...args: string[]): Promise<string[]> {
  const printedLines: string[] = [];
  await waitCommand((line) => printedLines.push(line)).parseAsync(args, { from: 'user' });
  return printedLines;
}

test('the wait command sends the first request after one period, and repeats it until the response is 200 (agent §11)', async () => {
  let requestCount = 0;
  let first = 0;
  const startMs = performance.now();
  const url = await serve((_, response) => {
    first ||= performance.now() - startMs;
    response.writeHead(++requestCount < 3 ? 503 : 200).end('x'.repeat(1_000_000));
  });
  expect((await runWait('--url', url, '--periodMillis', '50')).at(-1)).toBe('Envoy is ready!');
  expect(requestCount).toBe(3);
  expect(first).toBeGreaterThan(45);
});

test('the wait command reports the last error when the timeout has expired (agent §11)', async () => {
  const url = await serve((_, response) => response.writeHead(503).end());
  await expect(runWait('--url', url, '--timeoutSeconds', '1', '--periodMillis', '100')).rejects.toThrow(
    codedError('REQUEST_FAILED', { path: url, expected: 'HTTP status code 200', got: 'HTTP status code 503' }),
  );
  const silentUrl = await serve(() => {});
  await expect(
    runWait('--url', silentUrl, '--timeoutSeconds', '1', '--periodMillis', '100', '--requestTimeoutMillis', '100'),
  ).rejects.toThrow(codedError('REQUEST_FAILED', { path: silentUrl, got: expect.stringMatching(/timeout|aborted/) }));
  const [port] = await freePorts(1);
  const closedUrl = `http://127.0.0.1:${port}/`;
  await expect(runWait('--url', closedUrl, '--timeoutSeconds', '1', '--periodMillis', '100')).rejects.toThrow(
    codedError('REQUEST_FAILED', { path: closedUrl, got: expect.stringContaining('ECONNREFUSED') }),
  );
});

test('the wait command fails without a request if the timeout is 0 (agent §11)', async () => {
  let requestCount = 0;
  const url = await serve((_, response) => {
    requestCount++;
    response.end();
  });
  await expect(runWait('--url', url, '--timeoutSeconds', '0')).rejects.toThrow(
    codedError('REQUEST_FAILED', { path: url, got: 'no request was sent' }),
  );
  expect(requestCount).toBe(0);
});

test('the wait command reports invalid values (agent §11)', async () => {
  await expect(runWait('--timeoutSeconds', 'soon')).rejects.toThrow(
    codedError('FLAG_INVALID', { path: '--timeoutSeconds', got: '"soon"' }),
  );
  await expect(runWait('--periodMillis', '0')).rejects.toThrow(
    codedError('FLAG_INVALID', { path: '--periodMillis', got: '"0"' }),
  );
  await expect(runWait('--url', 'localhost')).rejects.toThrow(
    codedError('FLAG_INVALID', { path: '--url', got: '"localhost"' }),
  );
});
