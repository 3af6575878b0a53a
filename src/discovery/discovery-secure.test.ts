/** xDS over TLS, with certificates from files. */
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { fromBinary } from '@bufbuild/protobuf';
import { credentials, status } from '@grpc/grpc-js';
import { decode, encode } from 'dns-packet';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { typeUrls } from '../../test/ads-client.ts';
import { type CertificateAuthority, createAuthority } from '../../test/certs/authority.ts';
import { ControlPlane, cartCluster, sidecar, stopControlPlanes } from '../../test/harness/control-plane.ts';
import { eventually } from '../../test/harness/eventually.ts';
import { ClusterSchema } from '../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { frameMessage } from '../runtime/dns/tcp-messages.ts';
import type { DiscoveryFlags } from './options/discovery-flags.ts';

let root: string;
let authority: CertificateAuthority;
let flags: DiscoveryFlags;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'chartpilot-secure-'));
  authority = createAuthority();
  const issuedCertificate = authority.issue(['127.0.0.1']);
  const file = (name: string, text: string): string => {
    writeFileSync(join(root, name), text);
    return join(root, name);
  };
  flags = {
    secureGRPCAddr: '127.0.0.1:0',
    caCertFile: file('ca', authority.certificate),
    tlsCertFile: file('cert', issuedCertificate.certificate),
    tlsKeyFile: file('key', issuedCertificate.privateKey),
  };
});

afterEach(async () => {
  await stopControlPlanes();
  rmSync(root, { recursive: true });
});

async function startPlane(env: NodeJS.ProcessEnv = {}): Promise<ControlPlane> {
  const plane = ControlPlane.starting(flags, undefined, env);
  await plane.ready();
  return plane;
}

/** Opens a stream over TLS that verifies the server's certificate. */
function subscribe(plane: ControlPlane, trusted = authority) {
  const tlsCredentials = credentials.createSsl(Buffer.from(trusted.certificate));
  const stream = plane.client(plane.port('ads.listening'), tlsCredentials).sotw();
  stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
  return stream;
}

it('xDS over TLS is served before the plaintext port opens', async () => {
  const plane = await startPlane({ XDS_AUTH: 'false' });
  const { resources } = await subscribe(plane).next();
  expect(resources.map(({ value }) => fromBinary(ClusterSchema, value).name)).toContain(cartCluster);
  const openedPorts = plane.records.flatMap((r) =>
    r.kind === 'event' && r.event.type === 'ads.listening' ? [r.event] : [],
  );
  expect(openedPorts.map(({ port }) => port)).toEqual(['secure', 'plaintext']);
  expect((await plane.subscribe()).clusters).toContain(cartCluster);
  expect(plane.deviations()).toEqual([]);
});

it('xDS over TLS requires client authentication', async () => {
  const plane = await startPlane();
  expect((await subscribe(plane).ended).code).toBe(status.UNAUTHENTICATED);
  expect((await plane.subscribe()).clusters).toContain(cartCluster);
});

it('xDS over TLS presents the certificate from the configured file', async () => {
  const plane = await startPlane({ XDS_AUTH: 'false' });
  const { code, details } = await subscribe(plane, createAuthority()).ended;
  expect([code, details]).toEqual([status.UNAVAILABLE, expect.stringMatching(/certificate/)]);
});

it('DNS over TLS on DNS_ADDR resolves service names, and its address is reported', async () => {
  const plane = await startPlane({ DNS_ADDR: '127.0.0.1:0' });
  const { address } = await eventually('the DNS server listens', () =>
    plane.records.flatMap((r) => (r.kind === 'event' && r.event.type === 'names.listening' ? [r.event] : [])).at(0),
  );
  const port = Number(String(address).split(':').at(-1));
  const socket = connect({ port, host: '127.0.0.1', ca: authority.certificate });
  socket.write(frameMessage(encode({ type: 'query', id: 1, questions: [{ name: 'example.com', type: 'A' }] })));
  const [chunk] = (await once(socket, 'data')) as [Buffer];
  socket.destroy();
  expect(decode(chunk.subarray(2))).toMatchObject({ rcode: 'REFUSED' });
});
