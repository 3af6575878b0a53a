/** `explain` for a gRPC client without a proxy agrees with real clients that use the same files (issue 39). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { grpcStatusNames } from '../../src/model/fields/grpc-status.ts';
import { explainedCall } from '../grpc/explained.ts';
import { HealthServer } from '../grpc/health-server.ts';
import { type CallOutcome, type Language, PeerClient, writeBootstrap } from '../grpc/peers.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { sized } from '../harness/size-of-run.ts';

interface Case {
  readonly name: string;
  readonly http?: (to: (subset: string, weight?: number) => object) => readonly object[];
  readonly policy?: object;
  readonly headers?: Readonly<Record<string, string>>;
  /** Defaults to the endpoints of both versions. */
  readonly endpoints?: readonly string[];
  /** Status of the call. */
  readonly code: string;
  /** Servers that respond. */
  readonly backends?: readonly string[];
  /** Whether gRPC reports the status only after 15 s. */
  readonly isSlow?: true;
}

const everyone = ['v1', 'v2'];
const match = (one: object): object => ({ match: [one] });
const cases: readonly Case[] = [
  { name: 'plain', code: 'OK', backends: everyone },
  { name: 'subset', http: (to) => [{ route: [to('v2')] }], code: 'OK', backends: ['v2'] },
  { name: 'weights', http: (to) => [{ route: [to('v1', 0), to('v2', 100)] }], code: 'OK', backends: ['v2'] },
  { name: 'shares', http: (to) => [{ route: [to('v1', 50), to('v2', 50)] }], code: 'OK', backends: everyone },
  {
    ...{ name: 'header', headers: { 'x-user': 'ann' }, code: 'OK', backends: ['v2'] },
    http: (to) => [{ ...match({ headers: { 'x-user': { exact: 'ann' } } }), route: [to('v2')] }, { route: [to('v1')] }],
  },
  {
    ...{ name: 'method', code: 'OK', backends: ['v1'] },
    http: (to) => [{ ...match({ method: { exact: 'GET' } }), route: [to('v2')] }, { route: [to('v1')] }],
  },
  {
    ...{ name: 'exact', code: 'OK', backends: ['v2'] },
    http: (to) => [
      { ...match({ uri: { exact: '/grpc.health.v1.Health/Check' } }), route: [to('v2')] },
      { route: [to('v1')] },
    ],
  },
  {
    ...{ name: 'unmatched', code: 'Unavailable' },
    http: (to) => [{ ...match({ uri: { prefix: '/other.' } }), route: [to('v1')] }],
  },
  { name: 'redirect', http: () => [{ redirect: { uri: '/new' } }], code: 'Unavailable' },
  { name: 'response', http: () => [{ directResponse: { status: 200 } }], code: 'Unavailable' },
  ...[
    ['abort-grpc', { grpcStatus: 'RESOURCE_EXHAUSTED' }, 'ResourceExhausted'] as const,
    ['abort-400', { httpStatus: 400 }, 'Internal'] as const,
    ['abort-404', { httpStatus: 404 }, 'Unimplemented'] as const,
    ['abort-429', { httpStatus: 429 }, 'Unavailable'] as const,
    ['abort-500', { httpStatus: 500 }, 'Unknown'] as const,
  ].map(
    ([name, abort, code]): Case => ({
      ...{ name, code },
      http: (to) => [{ fault: { abort: { ...abort, percentage: { value: 100 } } }, route: [to('v1')] }],
    }),
  ),
  {
    ...{ name: 'mirror', code: 'OK', backends: ['v1'] },
    http: (to) => [{ mirror: to('v2'), rewrite: { authority: 'other' }, route: [to('v1')] }].map(asWritten),
  },
  { name: 'random', policy: { loadBalancer: { simple: 'RANDOM' } }, code: 'OK', backends: everyone },
  { name: 'no-endpoints', endpoints: [], code: 'Unavailable' },
  { name: 'no-such-subset', http: (to) => [{ route: [to('v3')] }], code: 'Unavailable', isSlow: true },
  { name: 'simple-tls', policy: { tls: { mode: 'SIMPLE' } }, code: 'Unavailable', isSlow: true },
];
const checkedCases = cases.filter(({ isSlow }) => isSlow === undefined || sized({ short: false, full: true }));

/** `mirror` is a destination and has no weight. */
function asWritten({ mirror, ...rule }: { readonly mirror: object }): object {
  return { ...rule, mirror: (mirror as { destination: object }).destination };
}

const node = (language: Language): string => `sidecar~127.0.0.1~${language}.shop~shop.svc.cluster.local`;
const hostOf = (name: string): string => `${name}.shop.svc.cluster.local`;
let backends: readonly HealthServer[];
let plane: ControlPlane;
let clients: Readonly<Record<Language, PeerClient>>;

function objectsOf({ name, http, policy, endpoints = everyone }: Case): string {
  const host = hostOf(name);
  const object = (kind: string, spec: object): string =>
    `${JSON.stringify({ apiVersion: 'networking.istio.io/v1', kind, metadata: { name, namespace: 'shop' }, spec })}\n---\n`;
  const to = (subset: string, weight?: number) => ({
    destination: { host, subset },
    ...(weight !== undefined && { weight }),
  });
  const usedBackends = backends.filter((one) => endpoints.includes(one.name));
  return [
    object('ServiceEntry', {
      ...{ hosts: [host], location: 'MESH_INTERNAL', resolution: 'STATIC' },
      ports: [{ number: 7070, name: 'grpc', protocol: 'GRPC' }],
      endpoints: usedBackends.map((one) => ({
        ...{ address: '127.0.0.1', ports: { grpc: one.port }, labels: { version: one.name } },
      })),
    }),
    object('DestinationRule', {
      ...{ host, subsets: everyone.map((version) => ({ name: version, labels: { version } })) },
      ...(policy && { trafficPolicy: policy }),
    }),
    ...(http ? [object('VirtualService', { hosts: [host], http: http(to) })] : []),
  ].join('');
}

beforeAll(async () => {
  backends = await Promise.all(everyone.map((name) => HealthServer.start(name)));
  plane = await ControlPlane.serving({}, { 'all.yaml': checkedCases.map(objectsOf).join('') });
  const serverUri = `127.0.0.1:${plane.port('ads.listening')}`;
  const metadata = { GENERATOR: 'grpc', NAMESPACE: 'shop' };
  const clientStarts = (['go', 'node'] as const).map(async (language) => {
    const bootstrap = writeBootstrap(plane.root, { serverUri, node: { id: node(language), metadata } });
    return [language, await PeerClient.start(language, bootstrap)] as const;
  });
  clients = Object.fromEntries(await Promise.all(clientStarts)) as typeof clients;
}, 600_000);

afterAll(async () => {
  await Promise.all(Object.values(clients ?? {}).map((client) => client.stop()));
  await stopControlPlanes();
  for (const backend of backends ?? []) backend.stop();
});

/** Codes as each language writes them: `OK`, `Ok`. */
const plainCode = (code: string): string => code.replaceAll('_', '').toUpperCase();

describe.each(sized<('go' | 'node')[]>({ short: ['go'], full: ['go', 'node'] }))(
  'explain and a gRPC client in %s',
  (language) => {
    it.each(checkedCases)(
      'agree in the case $name: $code',
      async ({ name, headers = {}, code, backends: expected = [] }) => {
        const target = `xds:///${hostOf(name)}:7070`;
        const flags = Object.entries(headers).flatMap(([header, value]) => ['--header', `${header}=${value}`]);
        const url = `${target}/grpc.health.v1.Health/Check`;
        const { outcome, steps } = await explainedCall(plane.root, node(language), '--url', url, ...flags);
        const explained = 'grpcStatus' in outcome ? grpcStatusNames[outcome.grpcStatus!]! : 'OK';
        expect(plainCode(explained)).toBe(plainCode(code));
        const clusters = steps.filter(({ what }) => what === 'cluster').map(({ note = '' }) => note);
        const reachedBackends = backends.filter(({ port }) => clusters.some((note) => note.includes(`:${port}`)));
        if (expected.length > 0) expect(reachedBackends.map((one) => one.name)).toEqual(expected);

        const outcomes: CallOutcome[] = [];
        for (let call = 0; call < (expected.length > 1 ? 40 : 4); call++) {
          outcomes.push(await clients[language].call({ target, headers, timeoutMs: 30_000 }));
        }
        expect(new Set(outcomes.map((one) => plainCode(one.code)))).toEqual(new Set([plainCode(code)]));
        const responding = outcomes.flatMap(({ backend }) => backend ?? []);
        expect([...new Set(responding)].sort()).toEqual([...expected].sort());
      },
    );
  },
);
