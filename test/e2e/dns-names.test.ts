/** From the control plane's configuration to an application's question: the names of the mesh are answered by the agent. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type DecodedPacket, decode, encode } from 'dns-packet';
import { afterAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { type Mesh, sampleHost, startMesh } from '../harness/mesh.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh | undefined;

afterAll(async () => {
  if (mesh !== undefined) await conclude(mesh);
});

async function ask(port: number, name: string): Promise<DecodedPacket> {
  const client = createSocket('udp4');
  try {
    client.send(encode({ type: 'query', id: 3, questions: [{ type: 'A', name }] }), port, '127.0.0.1');
    const [response] = (await once(client, 'message', { signal: AbortSignal.timeout(10_000) })) as [Buffer];
    return decode(response);
  } finally {
    client.close();
  }
}

test('a host of a ServiceEntry is answered with the address that the control plane allocated for it', async () => {
  const [port] = (await freePorts(1)) as [number];
  const env = { ISTIO_META_DNS_CAPTURE: 'true', DNS_PROXY_ADDR: `127.0.0.1:${port}`, DNS_FORWARD_TIMEOUT: '100ms' };
  mesh = await startMesh({ env });
  const found = await eventually('the table has come', async () => {
    const response = await ask(port, sampleHost);
    return response.flag_aa ? response : undefined;
  });
  expect(found.answers).toMatchObject([
    { name: sampleHost, type: 'A', ttl: 30, data: expect.stringMatching(/^240\.240\./) },
  ]);
  expect((await ask(port, 'nobody.invalid')).flag_aa).toBe(false);
});
