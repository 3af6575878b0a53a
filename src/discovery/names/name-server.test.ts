/** Tests the control plane's DNS server over TLS with clients on real sockets. */
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect, type TLSSocket, type TlsOptions } from 'node:tls';
import { decode, encode, type Packet, RECURSION_DESIRED } from 'dns-packet';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority, type IssuedCertificate } from '../../../test/certs/authority.ts';
import { givenMesh } from '../../../test/fixtures/given-mesh.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { frameMessage, TcpMessages } from '../../runtime/dns/tcp-messages.ts';
import { clientNamespaces } from './client-namespace.ts';
import { MeshNames } from './mesh-names.ts';
import { NameServer, NameServerCounts, type NameServerLimits } from './name-server.ts';

const service = (namespace: string, name: string, address: string, exportTo = '*'): string => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}, annotations: {networking.istio.io/exportTo: "${exportTo}"}}
spec: {clusterIP: ${address}, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}-entry, namespace: ${namespace}}
spec:
  hosts: ["${name}.${namespace}.test"]
  addresses: ["${address}"]
  exportTo: ["${exportTo}"]
  ports: [{name: http, number: 80, protocol: HTTP}]
`;

const mesh = givenMesh(
  [
    service('shop', 'cart', '10.0.0.1'),
    service('shop', 'vault', '10.0.0.2', '.'),
    service('other', 'blog', '10.0.0.3'),
  ].join('---'),
);

const authority = createAuthority();
const workload = (namespace: string, issuer = authority): IssuedCertificate =>
  issuer.issue([`spiffe://cluster.local/ns/${namespace}/sa/default`]);

interface Started {
  readonly port: number;
  readonly counts: NameServerCounts;
  readonly revoked: Set<string>;
  readonly changeTls: (options: TlsOptions) => void;
  resolve(
    name: string,
    client?: IssuedCertificate,
    question?: Partial<{ type: string; class: string }>,
  ): Promise<Packet>;
  connect(client?: IssuedCertificate): Promise<TLSSocket>;
}

const tlsOf = (certificate: IssuedCertificate, ca = authority.certificate): TlsOptions => ({
  ...{ cert: certificate.certificate, key: certificate.privateKey, ca },
  ...{ requestCert: true, rejectUnauthorized: false },
});

async function start(limits: Partial<NameServerLimits> = {}): Promise<Started> {
  const counts = new NameServerCounts();
  const revokedSerials = new Set<string>();
  let change: (options: TlsOptions) => void = () => {};
  const server = new NameServer({
    address: { host: '127.0.0.1', port: 0 },
    followTls: (listener) => {
      change = listener;
      listener(tlsOf(authority.issue(['127.0.0.1'])));
      return () => {};
    },
    namespaceOf: clientNamespaces({
      trustDomains: () => ['cluster.local'],
      acceptsOther: () => false,
      isRevoked: (serial) => revokedSerials.has(serial),
    }),
    names: new MeshNames({ context: () => mesh.context, domain: 'cluster.local', clusterId: 'Kubernetes' }),
    counts,
    onFailed: (error) => expect.fail(error.message),
    limits,
  });
  const port = Number((await server.open()).split(':').at(-1));
  onTestFinished(() => server.close());
  const dial = async (client?: IssuedCertificate): Promise<TLSSocket> => {
    const socket = connect({
      ...{ port, host: '127.0.0.1', ca: authority.certificate, ALPNProtocols: ['dot'] },
      ...(client && { cert: client.certificate, key: client.privateKey }),
    });
    socket.on('error', () => {});
    onTestFinished(() => {
      socket.destroy();
    });
    await once(socket, 'secureConnect');
    return socket;
  };
  return {
    ...{ port, counts, revoked: revokedSerials, connect: dial, changeTls: (options) => change(options) },
    resolve: async (name, client, { type = 'A', ...extraFields } = {}) => {
      const socket = await dial(client);
      socket.write(frameMessage(encode(query(name, type, extraFields))));
      const response = await oneMessage(socket);
      socket.destroy();
      return response;
    },
  };
}

function query(name: string, type = 'A', extraFields: object = {}): Packet {
  const question = { name, type: type as 'A', class: 'IN' as const, ...extraFields };
  return { type: 'query', id: 7, flags: RECURSION_DESIRED, questions: [question] };
}

async function oneMessage(socket: TLSSocket): Promise<Packet> {
  const reader = new TcpMessages();
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    const [message] = reader.push(chunk as Buffer);
    if (message !== undefined) return decode(message);
  }
  throw new Error('the connection was closed without a response');
}

const rcode = (packet: Packet): string => (packet as unknown as { rcode: string }).rcode;
const addresses = ({ answers = [] }: Packet): unknown[] => answers.flatMap((one) => ('data' in one ? [one.data] : []));

test('a client without identity resolves only names that are exported to all namespaces', async () => {
  const { resolve } = await start();
  expect(addresses(await resolve('cart.shop.svc.cluster.local'))).toEqual(['10.0.0.1']);
  expect(addresses(await resolve('cart.shop.test'))).toEqual(['10.0.0.1']);
  expect(rcode(await resolve('vault.shop.svc.cluster.local'))).toBe('NXDOMAIN');
  expect(rcode(await resolve('vault.shop.test'))).toBe('REFUSED');
  expect(rcode(await resolve('cart'))).toBe('REFUSED');
});

test('a client with an identity resolves the same names as sidecars of its namespace', async () => {
  const { resolve } = await start();
  const [shop, other] = [workload('shop'), workload('other')];
  expect(addresses(await resolve('vault.shop.svc.cluster.local', shop))).toEqual(['10.0.0.2']);
  expect(addresses(await resolve('vault.shop.test', shop))).toEqual(['10.0.0.2']);
  expect(addresses(await resolve('cart', shop))).toEqual(['10.0.0.1']);
  expect(addresses(await resolve('blog.other.svc.cluster.local', shop))).toEqual(['10.0.0.3']);
  expect(rcode(await resolve('vault.shop.svc.cluster.local', other))).toBe('NXDOMAIN');
  expect(rcode(await resolve('vault.shop.test', other))).toBe('REFUSED');
  expect(rcode(await resolve('cart', other))).toBe('REFUSED');
});

test('the DNS server refuses names outside the mesh, and does not offer recursion', async () => {
  const { resolve } = await start();
  for (const name of ['example.com', 'svc.cluster.local.example.com', 'localhost', '.']) {
    const response = await resolve(name);
    expect(rcode(response)).toBe('REFUSED');
    expect((response as { flag_ra?: boolean }).flag_ra).toBe(false);
  }
});

test('a known name has no records of other types, and the DNS server refuses zone transfers and other classes', async () => {
  const { resolve } = await start();
  for (const type of ['AAAA', 'TXT', 'ANY']) {
    const response = await resolve('cart.shop.svc.cluster.local', undefined, { type });
    expect([rcode(response), response.answers]).toEqual(['NOERROR', []]);
  }
  expect(rcode(await resolve('cart.shop.svc.cluster.local', undefined, { type: 'AXFR' }))).toBe('REFUSED');
  expect(rcode(await resolve('cart.shop.svc.cluster.local', undefined, { class: 'CH' }))).toBe('REFUSED');
});

test('a client whose certificate is revoked or has another root receives no response', async () => {
  const { resolve, revoked, counts } = await start();
  await expect(resolve('cart.shop.test', workload('shop', createAuthority('stranger')))).rejects.toThrow();
  await expect(resolve('cart.shop.test', authority.issue(['spiffe://elsewhere/ns/shop/sa/default']))).rejects.toThrow();
  const client = workload('shop');
  expect(addresses(await resolve('cart.shop.test', client))).toEqual(['10.0.0.1']);
  revoked.add(client.serialNumber);
  await expect(resolve('cart.shop.test', client)).rejects.toThrow();
  expect(counts.closuresByReason.get('certificate')).toBe(3);
});

test('a rotated certificate applies to new connections, and open connections continue unless the roots change', async () => {
  const { connect: dial, changeTls } = await start();
  const previous = await dial();
  const next = authority.issue(['127.0.0.1']);
  changeTls(tlsOf(next));
  expect((await dial()).getPeerCertificate().serialNumber).toBe(next.serialNumber);
  previous.write(frameMessage(encode(query('cart.shop.test'))));
  expect(addresses(await oneMessage(previous))).toEqual(['10.0.0.1']);
  const openSocket = await dial();
  changeTls(tlsOf(next, createAuthority('next').certificate));
  openSocket.resume();
  await eventually('the connection is closed', () => openSocket.destroyed);
});

test('a client with an unfinished handshake or one byte at a time is disconnected, while other clients are served', async () => {
  const { port, connect: dial, resolve, counts } = await start({ handshakeMs: 200, idleMs: 300 });
  const silentSocket = connectTcp(port, '127.0.0.1');
  silentSocket.on('error', () => {});
  silentSocket.resume();
  const slowSocket = await dial();
  slowSocket.resume();
  slowSocket.write(Buffer.of(0x0f, 0xa0));
  const bytes = setInterval(() => slowSocket.write(Buffer.of(0)), 20);
  onTestFinished(() => clearInterval(bytes));
  expect(addresses(await resolve('cart.shop.test'))).toEqual(['10.0.0.1']);
  await eventually('both are closed', () => silentSocket.destroyed && slowSocket.destroyed);
  expect(counts.closuresByReason.get('idle')).toBe(1);
  expect(counts.closuresByReason.get('TLS')).toBe(1);
});

test('a connection is closed if a query is too long or the address of the client exceeds the connection limit', async () => {
  const { connect: dial, counts } = await start({ maxConnectionsPerAddress: 2 });
  const largeSocket = await dial();
  largeSocket.resume();
  largeSocket.write(Buffer.of(0xff, 0xff));
  await eventually('it is closed', () => largeSocket.destroyed);
  const openSockets = [await dial(), await dial(), await dial()];
  for (const one of openSockets) one.resume();
  await eventually('the longest idle one is closed', () => openSockets[0]!.destroyed);
  expect(openSockets.slice(1).map(({ destroyed }) => destroyed)).toEqual([false, false]);
  expect(counts.closuresByReason.get('query too long')).toBe(1);
  await eventually('two are counted', () => counts.connections === 2);
});
