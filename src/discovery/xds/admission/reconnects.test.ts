/** Many clients connect together over TLS while clients of another address do not complete their handshakes. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { credentials, ServerCredentials } from '@grpc/grpc-js';
import { expect, test } from 'vitest';
import { clusterType } from '../../../../machines/discovery/xds/ads-types.ts';
import { AdsTestClient } from '../../../../test/ads-client.ts';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { openSubscribedStream } from '../../../../test/fixtures/given-server.ts';
import { eventually } from '../../../../test/harness/eventually.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import type { AdmissionView } from '../ads-observer.ts';
import { createAdsServer } from '../ads-server.ts';

const clients = 60;
const hostile = 200;
/** First bytes of a ClientHello. */
const unfinishedHello = Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00]);

test('The xDS server admits all clients while another address leaves its handshakes unfinished', async () => {
  const authority = createAuthority();
  const { certificate, privateKey } = authority.issue(['127.0.0.1']);
  const source = new ScriptedSource();
  source.set(clusterType, 'a');
  const refusals: string[] = [];
  const views: AdmissionView[] = [];
  const server = createAdsServer({
    ...{ source, logger: silentLogger },
    observer: {
      connectionRefused: (reason) => void refusals.push(reason),
      streamRefused: () => void refusals.push('stream'),
      admissionMeasured: (view) => void views.push(view),
    },
  });
  const pair = { cert_chain: Buffer.from(certificate), private_key: Buffer.from(privateKey) };
  const { port } = await server.listen('127.0.0.1:0', ServerCredentials.createSsl(null, [pair]));
  const sockets: Socket[] = [];
  const testClients: AdsTestClient[] = [];
  try {
    for (let i = 0; i < hostile; i++) {
      const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.9' }).on('error', () => {});
      sockets.push(socket);
      await once(socket, 'connect');
      socket.write(unfinishedHello);
    }
    await eventually('connections wait for a slot', () => views.some(({ connections }) => connections > 0));
    const root = Buffer.from(authority.certificate);
    const streams = await Promise.all(
      Array.from({ length: clients }, () => {
        const tlsCredentials = credentials.createSsl(root);
        const client = new AdsTestClient(port, tlsCredentials);
        testClients.push(client);
        return openSubscribedStream(client);
      }),
    );
    expect(streams).toHaveLength(clients);
    expect(refusals).toEqual([]);
    await eventually('no client waits', () => views.at(-1)?.connections === 0 && views.at(-1)?.streams === 0);
  } finally {
    for (const client of testClients) client.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});
