import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { freePorts } from '../../test/harness/free-ports.ts';
import { resolveInterception } from './interception-settings.ts';
import { validateInterception } from './validation.ts';

async function createValidation() {
  const [envoyPort, inboundCapturePort, probePort] = (await freePorts(3)) as [number, number, number];
  const flags = { envoyPort, inboundCapturePort, probePort, proxyUid: '0', probeTimeout: '500ms' };
  const flagValues = Object.fromEntries(Object.entries(flags).map(([flag, value]) => [flag, String(value)]));
  return { probePort, order: resolveInterception(flagValues, {}, { addresses: () => [], readFile: () => '' }) };
}

test('validation fails if no redirection exists (§10.5)', async () => {
  const { order } = await createValidation();
  await expect(validateInterception(order)).rejects.toThrow(/127\.0\.0\.6:\d+: no connection arrived within 500 ms/);
});

test('validation fails if another program accepts the connection (§10.5)', async () => {
  const { order, probePort } = await createValidation();
  const other = createServer((socket) => socket.on('error', () => {}));
  other.listen(probePort, '127.0.0.6');
  onTestFinished(() => {
    other.close();
  });
  await expect(validateInterception(order)).rejects.toThrow(/: another server accepted the connection within 500 ms/);
});
