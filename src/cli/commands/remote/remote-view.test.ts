/** Commands that read from a running control plane, with addresses of other programs. */
import { createServer, type RequestListener } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { codedError } from '../../../../test/fixtures/error-details.ts';
import { ChartpilotError } from '../../../runtime/errors.ts';
import { requestProgram } from '../../../runtime/trace/program-request.ts';
import { explainCommand } from '../explain.ts';
import { requestCommand } from '../request.ts';
import { certificatesCommand } from './certificates.ts';
import { changesCommand } from './changes.ts';

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as { port: number }).port}`;
}

const target = { target: 'a test', host: '127.0.0.1', defaultPort: 9, allowedPorts: [], example: '', failed: 1 };
const commands: Readonly<Record<string, (from: string) => Promise<unknown>>> = {
  changes: (from) => changesCommand(() => {}).parseAsync(['--from', from], { from: 'user' }),
  'changes --format json': (from) =>
    changesCommand(() => {}).parseAsync(['--format', 'json', '--from', from], { from: 'user' }),
  certificates: (from) => certificatesCommand(() => {}).parseAsync(['--from', from], { from: 'user' }),
  explain: (from) => explainCommand(() => {}).parseAsync(['--from', from], { from: 'user' }),
};
const request = (from: string) =>
  requestCommand({ ...target, acceptsFrom: true }, () => {}).parseAsync(['GET', '/', '--from', from], { from: 'user' });
const bodiesOfOthers = [
  'null',
  '[]',
  '{}',
  '"UP"',
  '{"since":"x","pushes":[null],"counts":{"a":1},"certificates":[{}]}',
];

test.each(Object.entries(commands))(
  '%s reports JSON of another service as an error with the address and the next step',
  async (_, run) => {
    for (const body of [...bodiesOfOthers, '<html>']) {
      const address = await serve((_request, response) => response.end(body));
      const error = await run(address).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect.soft(error, body).toBeInstanceOf(ChartpilotError);
      expect.soft(error, body).toMatchObject({
        code: 'REQUEST_FAILED',
        message: expect.stringContaining(`GET http://${address}/`),
        hint: expect.stringContaining('Check --from'),
      });
    }
  },
);

test.each(Object.entries({ ...commands, request }))(
  '%s accepts --from only as an address, and names the wrong value and the right form',
  async (_, run) => {
    for (const [from, hint] of [
      ['46014', 'Use: --from 127.0.0.1:46014'],
      ['127.0.0.1:46014/debug/syncz', 'Use: --from 127.0.0.1:46014'],
      ['http://pilot:15014/?a', 'Use: --from http://pilot:15014'],
      ['ftp://pilot:15014', undefined],
      ['pilot:99999', undefined],
      ['', undefined],
    ] as const) {
      const result = expect.soft(run(from), from).rejects;
      await result.toThrow(codedError('FLAG_INVALID', { code: 'FIELD_FORMAT_INVALID', path: '--from' }));
      await expect.soft(run(from), from).rejects.toMatchObject({ hint });
    }
  },
);

test('the request command rejects a path that begins with host and port', async () => {
  for (const address of ['127.0.0.1:46014', 'localhost:15000', '[::1]:15000']) {
    const args = ['GET', `${address}/ready?a=b`];
    await expect(
      requestCommand({ ...target, acceptsFrom: true }).parseAsync(args, { from: 'user' }),
    ).rejects.toMatchObject({
      code: 'FLAG_INVALID',
      hint: `Use: request GET /ready?a=b --from ${address}`,
    });
  }
});

test('a response that exceeds the limit is an error with the address, and is not read to its end', async () => {
  let isClosed = false;
  const address = await serve((_request, response) => {
    const send = (): void => {
      while (!response.destroyed && response.write('x'.repeat(10_000)));
    };
    response.on('drain', send).on('close', () => (isClosed = true));
    send();
  });
  const order = { url: new URL(`http://${address}/`), method: 'GET', hint: 'Check --from.', maxBytes: 100_000 };
  await expect(requestProgram(order)).rejects.toMatchObject({
    code: 'REQUEST_FAILED',
    message: `request failed: GET http://${address}/: response exceeds 100000 bytes`,
    hint: 'Check --from.',
  });
  await expect.poll(() => isClosed).toBe(true);
});
