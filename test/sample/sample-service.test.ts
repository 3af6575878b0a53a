import { once } from 'node:events';
import { connect } from 'node:http2';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { startSampleService } from './sample-service.ts';

async function sample(): Promise<string> {
  const service = await startSampleService({ version: 'v1' });
  onTestFinished(() => service.close());
  return `http://127.0.0.1:${service.port}`;
}

test('the sample service returns its version in a header and in the body', async () => {
  const response = await fetch(await sample());
  expect(response.headers.get('x-version')).toBe('v1');
  expect(await response.text()).toBe('hello from v1\n');
});

test('a streamed response lasts the requested time and ends with a marker', async () => {
  const startedAt = performance.now();
  const body = await (await fetch(`${await sample()}/stream?seconds=1`)).text();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990);
  expect(body.split('\n').length).toBeGreaterThanOrEqual(4);
  expect(body.endsWith('end\n')).toBe(true);
});

test('a slow response arrives after the requested time', async () => {
  const startedAt = performance.now();
  await (await fetch(`${await sample()}/slow?ms=100`)).text();
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
});

test('the sample service accepts HTTP/2 with prior knowledge on the same port', async () => {
  const session = connect(await sample());
  onTestFinished(() => session.destroy());
  const stream = session.request({ ':path': '/' });
  const [headers] = await once(stream, 'response');
  expect(headers['x-version']).toBe('v1');
  expect(await text(stream)).toBe('hello from v1\n');
});
