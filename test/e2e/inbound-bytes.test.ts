/** Any bytes sent to a sidecar match a filter chain of its virtual inbound listener, in a real Envoy. */
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inboundPassthroughCluster } from '../../src/networking/traffic/resource-names.ts';
import {
  exchange,
  type InboundListener,
  type InboundPlace,
  plain,
  startInboundListener,
  waitUntil,
} from '../networking/inbound-listener.ts';

/** The port in the golden case without a declared protocol. */
const sniffedPort = 7000;

describe.each<[string, Omit<InboundPlace, 'of'>]>([
  ['a port of no service', { cluster: inboundPassthroughCluster }],
  ['a port without a declared protocol', { port: sniffedPort, cluster: `inbound|${sniffedPort}||` }],
])('%s of a sidecar', (_, inboundPlace) => {
  let inbound: InboundListener;

  beforeAll(async () => {
    inbound = await startInboundListener({ of: 'sidecar-sniffed', ...inboundPlace });
  });

  afterAll(() => inbound?.stop());

  test('forwards raw bytes to the application', async () => {
    expect(await exchange(plain(inbound.port), 'raw bytes\n')).toBe('raw bytes\n');
  });

  test('parses HTTP requests', async () => {
    inbound.application.received.length = 0;
    await exchange(plain(inbound.port), 'GET /read HTTP/1.1\r\nhost: any.test\r\n\r\n');
    const receivedText = Buffer.concat(inbound.application.received).toString();
    expect(receivedText).toContain('GET /read HTTP/1.1');
    expect(receivedText).toContain('x-request-id: ');
  });

  test('forwards TLS to the application unchanged', async () => {
    inbound.application.received.length = 0;
    const client = connectTls({ host: '127.0.0.1', port: inbound.port, rejectUnauthorized: false });
    client.on('error', () => client.destroy());
    await waitUntil(() => inbound.application.received.length > 0);
    client.destroy();
    // A TLS handshake record.
    expect(inbound.application.received[0]?.[0]).toBe(0x16);
  });
});
