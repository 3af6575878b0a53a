/** gRPC servers whose listeners come from the control plane: mutual TLS and authorization without a proxy. */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority } from '../certs/authority.ts';
import { explainedCall } from '../grpc/explained.ts';
import { type Language, PeerClient, PeerServer, writeBootstrap } from '../grpc/peers.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';

const host = 'echo.shop.svc.cluster.local';
const target = `xds:///${host}:7070`;
/** The control plane finds the workload of a server by its endpoint address, so the server has its own address. */
const serverIp = '127.0.0.2';
const languages: readonly Language[] = ['go', 'node'];
const authority = createAuthority();

let plane: ControlPlane;
let port: number;
let server: PeerServer;
let clients: Readonly<Record<Language, PeerClient>>;

const identity = (account: string): string => `spiffe://cluster.local/ns/shop/sa/${account}`;

/** @returns the serial number */
function issue(account: string): string {
  const folder = join(plane.root, account);
  mkdirSync(folder, { recursive: true });
  const { certificate, privateKey, serialNumber } = authority.issue([identity(account)]);
  const files = { 'cert-chain.pem': certificate, 'key.pem': privateKey, 'root-cert.pem': authority.certificate };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(folder, `${name}.new`), text);
    renameSync(join(folder, `${name}.new`), join(folder, name));
  }
  return serialNumber;
}

const nodeId = (account: string, ip: string): string => `sidecar~${ip}~${account}.shop~shop.svc.cluster.local`;

function bootstrapOf(account: string, ip: string): string {
  const node = {
    id: nodeId(account, ip),
    metadata: { GENERATOR: 'grpc', NAMESPACE: 'shop', LABELS: { app: account }, WORKLOAD_CERTIFICATES: 'true' },
  };
  const serverUri = `127.0.0.1:${plane.port('ads.listening')}`;
  return writeBootstrap(plane.root, { serverUri, node, certificates: join(plane.root, account) });
}

function object(kind: string, group: string, spec: object): string {
  return JSON.stringify({
    apiVersion: `${group}.istio.io/v1`,
    kind,
    metadata: { name: 'echo', namespace: 'shop' },
    spec,
  });
}
const peers = (mode: string): void =>
  plane.write('peers.yaml', object('PeerAuthentication', 'security', { mtls: { mode } }));
const clientTls = (mode: string): void =>
  plane.write('rule.yaml', object('DestinationRule', 'networking', { host, trafficPolicy: { tls: { mode } } }));
const authorize = (spec: object | undefined): void =>
  plane.write('policy.yaml', spec === undefined ? '' : object('AuthorizationPolicy', 'security', spec));

/** The outcome of a call at the server, as `explain` decides it from the files. */
async function explainedAtServer(principal?: string) {
  const url = `xds:///${serverIp}:${port}/grpc.health.v1.Health/Check`;
  const args = ['--inbound', '--url', url, ...(principal === undefined ? [] : ['--principal', principal])];
  return (await explainedCall(plane.root, nodeId('echo', serverIp), ...args)).outcome;
}

beforeAll(async () => {
  plane = await ControlPlane.serving({}, {});
  [port = 0] = await freePorts(1);
  plane.write(
    'echo.yaml',
    object('ServiceEntry', 'networking', {
      ...{ hosts: [host], location: 'MESH_INTERNAL', resolution: 'STATIC', subjectAltNames: [identity('echo')] },
      ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
      endpoints: [{ address: serverIp, ports: { grpc: port } }],
    }),
  );
  for (const account of ['echo', ...languages]) issue(account);
  peers('STRICT');
  clientTls('ISTIO_MUTUAL');
  server = await PeerServer.start(`${serverIp}:${port}`, 'echo', bootstrapOf('echo', serverIp));
  const clientStarts = languages.map(
    async (language) => [language, await PeerClient.start(language, bootstrapOf(language, '127.0.0.1'))] as const,
  );
  clients = Object.fromEntries(await Promise.all(clientStarts)) as typeof clients;
  await server.serving();
}, 600_000);

afterAll(async () => {
  await Promise.all([server, ...Object.values(clients ?? {})].map((peer) => peer?.stop()));
  await stopControlPlanes();
});

describe.each(languages)('a gRPC client in %s', (language) => {
  const call = () => clients[language].call({ target, secure: true });
  const isOk = async (): Promise<boolean> => (await call()).code.toUpperCase() === 'OK';

  it('calls a server by mutual TLS with its identity', async () => {
    await eventually('a call succeeds', isOk);
    const { backend, caller, peer } = await call();
    expect({ backend, caller }).toEqual({ backend: 'echo', caller: identity(language) });
    if (language === 'go') expect(peer).toBe(identity('echo'));
    // A client without TLS.
    expect((await clients[language].call({ target: `${serverIp}:${port}`, timeoutMs: 2_000 })).code).not.toBe('OK');
    expect(await explainedAtServer()).toMatchObject({ kind: 'closed' });
  });

  it('rejects a server whose certificate has an identity other than the one in the rule', async () => {
    plane.write(
      'rule.yaml',
      object('DestinationRule', 'networking', {
        host,
        trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL', subjectAltNames: [identity('other')] } },
      }),
    );
    // Open connections stay open, so the test uses a new client.
    await eventually('calls of a new client fail', async () => {
      const freshClient = await PeerClient.start(language, bootstrapOf(language, '127.0.0.1'));
      const { code } = await freshClient.call({ target, secure: true, timeoutMs: 4_000 });
      await freshClient.stop();
      return code.toUpperCase() !== 'OK';
    });
    clientTls('ISTIO_MUTUAL');
    await eventually('calls succeed', isOk);
  });

  it('is accepted or rejected by an AuthorizationPolicy', async () => {
    const source = [{ source: { principals: [identity(language).slice('spiffe://'.length)] } }];
    authorize({ action: 'DENY', rules: [{ from: source }] });
    await eventually('calls are denied', async () => (await call()).code === 'PermissionDenied');
    expect(await explainedAtServer(identity(language))).toMatchObject({ kind: 'denied', grpcStatus: 7 });
    authorize({ action: 'ALLOW', rules: [{ from: source }] });
    await eventually('calls are allowed', isOk);
    expect(await explainedAtServer(identity(language))).toEqual({ kind: 'accepted' });
    authorize({ action: 'ALLOW', rules: [{ from: [{ source: { principals: ['cluster.local/ns/shop/sa/other'] } }] }] });
    await eventually('calls of others are denied', async () => (await call()).code === 'PermissionDenied');
    expect(await explainedAtServer(identity(language))).toMatchObject({ kind: 'denied', grpcStatus: 7 });
    authorize(undefined);
    await eventually('calls are allowed again', isOk);
    expect(await explainedAtServer(identity(language))).toEqual({ kind: 'accepted' });
  });
});

it('a gRPC client completes all calls while certificates are rotated', async () => {
  const call = () => clients.go.call({ target, secure: true });
  await eventually('a call succeeds', async () => (await call()).code === 'OK');
  let [failedCalls, callCount, isOver] = [0, 0, false];
  const calling = (async () => {
    for (; !isOver; callCount++) if ((await call()).code !== 'OK') failedCalls++;
  })();
  const serial = issue('echo').toLowerCase().replace(/^0+/, '');
  issue('go');
  // gRPC uses a new certificate for new connections, so the test uses a new client.
  await eventually('the server shows its new certificate', async () => {
    const freshClient = await PeerClient.start('go', bootstrapOf('go', '127.0.0.1'));
    const { serial: shownSerial, code } = await freshClient.call({ target, secure: true });
    await freshClient.stop();
    if (code !== 'OK') throw new Error(code);
    return shownSerial === serial;
  });
  isOver = true;
  await calling;
  expect(failedCalls).toBe(0);
  expect(callCount).toBeGreaterThan(10);
});

describe('a gRPC server in Node', () => {
  const nodeHost = 'njs.shop.svc.cluster.local';
  const rbac = { GRPC_XDS_EXPERIMENTAL_RBAC: 'true' };
  const servers: PeerServer[] = [];
  let ports: readonly number[];
  const start = (at: number, env: NodeJS.ProcessEnv): PeerServer => {
    const bootstrap = bootstrapOf('echo', serverIp);
    const startedServer = PeerServer.startOnNode(`${serverIp}:${ports[at]}`, `njs-${at}`, bootstrap, env);
    servers.push(startedServer);
    return startedServer;
  };
  const call = (language: Language, portNumber = 7070) =>
    clients[language].call({ target: `xds:///${nodeHost}:${portNumber}`, secure: true });
  const isOk = async (language: Language): Promise<boolean> => (await call(language)).code.toUpperCase() === 'OK';
  const isDenied = async (): Promise<boolean> => {
    const codes = await Promise.all(languages.map(async (language) => (await call(language)).code));
    return codes.every((code) => code === 'PermissionDenied');
  };

  beforeAll(async () => {
    ports = await freePorts(2);
    plane.write(
      'njs.yaml',
      [
        object('ServiceEntry', 'networking', {
          ...{
            hosts: [nodeHost],
            location: 'MESH_INTERNAL',
            resolution: 'STATIC',
            subjectAltNames: [identity('echo')],
          },
          ports: ports.map((_, index) => ({ number: 7070 + index, name: `grpc-${index}`, protocol: 'GRPC' })),
          endpoints: [{ address: serverIp, ports: { 'grpc-0': ports[0], 'grpc-1': ports[1] } }],
        }),
        object('DestinationRule', 'networking', {
          ...{ host: nodeHost, trafficPolicy: { tls: { mode: 'ISTIO_MUTUAL' } } },
        }),
      ]
        .map((text) => text.replace('"name":"echo"', '"name":"njs"'))
        .join('\n---\n'),
    );
    await start(0, rbac).serving();
  }, 600_000);

  afterAll(async () => {
    await Promise.all(servers.map((one) => one.stop()));
    authorize(undefined);
  });

  it.each(languages)(
    'accepts a client in %s that uses mutual TLS, and rejects clients without TLS',
    async (language) => {
      await eventually('a call succeeds', () => isOk(language));
      const { backend, caller, peer } = await call(language);
      expect({ backend, caller }).toEqual({ backend: 'njs-0', caller: identity(language) });
      if (language === 'go') expect(peer).toBe(identity('echo'));
      const plain = await clients[language].call({ target: `${serverIp}:${ports[0]}`, timeoutMs: 2_000 });
      expect(plain.code.toUpperCase()).not.toBe('OK');
    },
  );

  it('applies AuthorizationPolicies', async () => {
    const from = (account: string) => [{ source: { principals: [identity(account).slice('spiffe://'.length)] } }];
    authorize({ action: 'DENY', rules: [{ from: [...from('go'), ...from('node')] }] });
    await eventually('calls are denied', isDenied);
    authorize({ action: 'ALLOW', rules: [{ from: from('go') }] });
    await eventually('calls of one client are allowed', () => isOk('go'));
    expect((await call('node')).code).toBe('PermissionDenied');
    authorize({ action: 'ALLOW', rules: [{ from: from('other') }] });
    await eventually('calls are denied', isDenied);
    authorize({ action: 'ALLOW', rules: [{ to: [{ operation: { paths: ['/grpc.health.v1.Health/Check'] } }] }] });
    await eventually('calls of the method are allowed', () => isOk('node'));
  });

  it('rejects listeners with AuthorizationPolicies and keeps the last listener if its RBAC support is disabled', async () => {
    authorize(undefined);
    const server = start(1, {});
    await server.serving();
    await eventually('a call succeeds', async () => (await call('go', 7071)).code === 'OK');
    const deny = { action: 'DENY', rules: [{}] };
    const isRejected = (since: number): boolean =>
      plane.lines.slice(since).some((line) => /rejected/.test(line) && /rbac|filter/i.test(line));
    let lineCount = plane.lines.length;
    authorize(deny);
    await eventually('the control plane logs the rejection', () => isRejected(lineCount));
    await eventually('the other server denies calls', isDenied);
    // The last listener still serves: a limit of the client library, described in docs/proxyless-grpc.md.
    expect((await call('go', 7071)).code).toBe('OK');

    await server.stop();
    lineCount = plane.lines.length;
    const restarted = start(1, {});
    await eventually('the control plane logs the rejection', () => isRejected(lineCount));
    expect(restarted.mode?.mode).not.toBe('SERVING');
  });
});

it('a gRPC server accepts plaintext if mutual TLS is not required and clients are allowed to send it', async () => {
  peers('DISABLE');
  clientTls('DISABLE');
  await eventually('calls succeed in plaintext', async () => {
    const { code, peer } = await clients.go.call({ target, secure: true });
    return code === 'OK' && peer === undefined;
  });
  expect(await explainedAtServer()).toEqual({ kind: 'accepted' });
  expect(await explainedAtServer(identity('go'))).toMatchObject({ kind: 'closed' });
});
