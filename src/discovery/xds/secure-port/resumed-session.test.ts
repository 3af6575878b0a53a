/** TLS session resumption on the secure port. */
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, expect, test, vi } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { ScriptedSource } from '../../../../test/simulation/scripted-source.ts';
import { silentLogger } from '../../../runtime/output/log.ts';
import { type AdsServer, createAdsServer } from '../ads-server.ts';
import { SecurePortCredentials } from './server-certificates.ts';

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';
const dayMs = 86_400_000;

let server: AdsServer | undefined;
let socket: TLSSocket | undefined;

afterEach(() => {
  vi.useRealTimers();
  socket?.destroy();
  server?.close();
});

async function listen() {
  const authority = createAuthority();
  const serverCertificate = authority.issue(['localhost']);
  const { certificate: cert, privateKey: key } = authority.issue(['spiffe://cluster.local/ns/shop/sa/default']);
  const certificate = {
    ...{
      ca: Buffer.from(authority.certificate),
      chain: Buffer.from(serverCertificate.certificate),
      key: Buffer.from(serverCertificate.privateKey),
    },
    ...{ serialNumber: serverCertificate.serialNumber, notAfter: new Date() },
  };
  const credentials = new SecurePortCredentials({ cipherSuites: [], minVersion: 'TLSv1.2' }, certificate);
  server = createAdsServer({ source: new ScriptedSource(), logger: silentLogger });
  const { port } = await server.listen('127.0.0.1:0', credentials);
  return { port, client: { ca: authority.certificate, cert, key } };
}

/** @returns whether HTTP/2 started, whether the TLS session was resumed, and the session for the next connection */
function visit(port: number, client: object, session?: Buffer) {
  return new Promise<{ isServed: boolean; isResumed: boolean; session: Buffer | undefined }>((resolve) => {
    let next: Buffer | undefined;
    const connection = connect({
      ...{ ...client, port, host: '127.0.0.1', servername: 'localhost', ALPNProtocols: ['h2'] },
      ...(session !== undefined && { session }),
    });
    socket = connection;
    const end = (isServed: boolean): void =>
      resolve({ isServed, isResumed: connection.isSessionReused(), session: next });
    connection.on('session', (ticket) => {
      next = ticket;
    });
    connection.on('secureConnect', () => connection.write(preface));
    connection.on('data', () => end(true));
    connection.on('error', () => end(false));
    connection.on('close', () => end(false));
  });
}

test.for(['TLSv1.2', 'TLSv1.3'] as const)(
  "the secure port rejects a resumed %s session if the client's certificate has expired",
  async (version) => {
    const { port, client } = await listen();
    const choices = { ...client, minVersion: version, maxVersion: version };
    const first = await visit(port, choices);
    expect(first).toMatchObject({ isServed: true, isResumed: false });
    const secondVisit = await visit(port, choices, first.session);
    expect(secondVisit).toMatchObject({ isServed: true, isResumed: true });
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 366 * dayMs });
    expect(await visit(port, choices, secondVisit.session ?? first.session)).toMatchObject({ isServed: false });
  },
);
