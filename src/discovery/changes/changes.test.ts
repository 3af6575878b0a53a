/** Reads the history of a running control plane with the page and the command. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type SotwStream, typeUrls } from '../../../test/ads-client.ts';
import { ControlPlane, serviceEntry, sidecar, stopControlPlanes } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { changesCommand } from '../../cli/commands/remote/changes.ts';
import { changePages } from '../monitor/debug/change-pages.ts';
import { pageRejectionOf, permissionOfNamespace } from '../monitor/debug/debug-access.ts';
import type { ChangesView, PushView } from './change-view.ts';

const rule = (timeout: string): string => `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec: {host: cart.example.com, trafficPolicy: {connectionPool: {tcp: {connectTimeout: ${timeout}}}}}
`;

let plane: ControlPlane;

beforeEach(async () => {
  plane = await ControlPlane.serving();
});

afterEach(stopControlPlanes);

async function changes(query = ''): Promise<ChangesView> {
  return (await plane.get(`/debug/changes?${query}`)).json();
}

/** Waits for a push that matches `expected`. */
async function lastPush(expected: (push: PushView) => boolean): Promise<PushView> {
  let last: PushView | undefined;
  await eventually('the push is in the history', async () => {
    last = (await changes('endpoints')).pushes.at(-1);
    return last !== undefined && expected(last);
  });
  return last!;
}

async function command(...args: string[]): Promise<string> {
  let text = '';
  const from = `127.0.0.1:${plane.port('http.listening')}`;
  await changesCommand((chunk) => {
    text += chunk;
  }).parseAsync([...args, '--from', from], { from: 'user' });
  return text;
}

function respond(stream: SotwStream, typeUrl: string, rejection?: string): void {
  const { versionInfo, nonce } = stream.responses.findLast((response) => response.typeUrl === typeUrl)!;
  stream.send({
    typeUrl,
    responseNonce: nonce,
    ...(rejection === undefined ? { versionInfo } : { errorDetail: { code: 3, message: rejection } }),
  });
}

it('pilot-discovery changes lists the file and line of each changed object, and the proxy that acknowledged the push', async () => {
  const { stream } = await plane.subscribe();
  respond(stream, typeUrls.CDS);
  plane.write('rule.yaml', rule('1s'));
  await stream.next();
  const pending = await lastPush(({ proxies }) => proxies.pending === 1);
  expect(pending.pendingAt).toEqual({ items: [sidecar.id] });
  expect(pending.answeredMs).toBeUndefined();
  stream.onResponse = ({ typeUrl }) => respond(stream, typeUrl);
  respond(stream, typeUrls.CDS);
  const push = await lastPush(({ proxies }) => proxies.acknowledged === 1);
  const file = join(plane.root, 'config/rule.yaml');
  expect(push.objects.items).toEqual([
    { kind: 'DestinationRule', namespace: 'shop', name: 'cart', change: 'added', source: `${file}:1` },
  ]);
  expect(push).toMatchObject({
    full: false,
    proxies: { pushed: 1, acknowledged: 1, rejected: 0, pending: 0, unanswered: 0 },
    pushedTo: { items: [sidecar.id] },
    pendingAt: { items: [] },
    rejections: { items: [] },
    answeredMs: expect.any(Number),
    waitedMs: expect.any(Number),
  });
});

it('pilot-discovery changes lists the proxy, resource type and reason of a rejected push, like the page', async () => {
  const { stream } = await plane.subscribe();
  respond(stream, typeUrls.CDS);
  plane.write('rule.yaml', rule('1s'));
  await stream.next();
  respond(stream, typeUrls.CDS, 'connect_timeout is too short');
  const { proxies, rejections } = await lastPush((push) => push.rejections.items.length === 1);
  expect(proxies).toEqual({ pushed: 1, acknowledged: 0, rejected: 1, pending: 0, unanswered: 0 });
  expect(rejections.items).toMatchObject([
    { proxy: sidecar.id, type: 'cluster.v3.Cluster', reason: 'connect_timeout is too short' },
  ]);
  plane.write('rule.yaml', rule('2s'));
  await stream.next();
  respond(stream, typeUrls.CDS);
  await lastPush((push) => push.proxies.acknowledged === 1 && push.objects.items[0]?.change === 'changed');
  const text = await command('--rejected');
  expect(text).toContain('1 pushes match');
  expect(text).toContain(`added DestinationRule shop/cart  ${join(plane.root, 'config/rule.yaml')}:1`);
  expect(text).toContain('1 proxy: 0 acknowledged, 1 rejected');
  expect(text).toMatch(/rejected by sidecar~\S+web-0\S+ at \S+Z: cluster\.v3\.Cluster: connect_timeout is too short/);
});

it('pilot-discovery changes attributes a rejection of the first configuration of a connection to no push', async () => {
  plane.write('rule.yaml', rule('1s'));
  await lastPush(({ objects }) => objects.items[0]?.kind === 'DestinationRule');
  const { stream } = await plane.subscribe();
  respond(stream, typeUrls.CDS, 'script load error');
  await eventually(
    'the rejection is listed',
    async () => (await changes('rejected=1')).unpushedRejections.length === 1,
  );
  expect((await changes('rejected=1')).pushes).toEqual([]);
  const text = await command('--rejected');
  expect(text).not.toContain('DestinationRule');
  expect(text).toMatch(
    /web-0\S+ rejected the configuration that it received when it connected: cluster\.v3\.Cluster: script load error\n$/,
  );
  expect((await changes('proxy=other')).unpushedRejections).toEqual([]);
});

it('pilot-discovery changes lists a removed object with the last file that contained it', async () => {
  plane.write('rule.yaml', rule('1s'));
  await lastPush(({ objects }) => objects.items[0]?.change === 'added');
  rmSync(join(plane.root, 'config/rule.yaml'));
  const { objects } = await lastPush((push) => push.objects.items[0]?.change === 'removed');
  expect(objects.items).toMatchObject([
    { kind: 'DestinationRule', name: 'cart', source: join(plane.root, 'config/rule.yaml:1') },
  ]);
});

it('pilot-discovery changes lists pushes of endpoints only with --endpoints, and for a service filter', async () => {
  const workload = (address: string): string =>
    `apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: w, namespace: shop}\nspec: {address: ${address}, labels: {app: pay}}\n`;
  const service = serviceEntry()
    .replaceAll('cart', 'pay')
    .replace(/ {2}endpoints:.*/s, '  workloadSelector: {labels: {app: pay}}\n');
  const payments = (address: string): string => `${service}---\n${workload(address)}`;
  plane.write('pay.yaml', payments('10.1.1.9'));
  await lastPush(({ services }) => services.items.includes('shop/pay.example.com'));
  plane.write('pay.yaml', payments('10.1.1.8'));
  const { push, objects, services } = await lastPush(({ endpoints }) => endpoints.items.length === 1);
  expect([objects.items.map(({ kind }) => kind), services.items]).toEqual([['WorkloadEntry'], []]);
  const numbers = async (query: string): Promise<number[]> => (await changes(query)).pushes.map((one) => one.push);
  expect(await numbers('')).not.toContain(push);
  expect(await numbers('object=pay.example.com')).toContain(push);
  expect(await command('--endpoints')).toContain('  endpoints shop/pay.example.com\n');
});

it('pilot-discovery changes selects pushes by time, object and proxy', async () => {
  plane.write('rule.yaml', rule('1s'));
  const { time } = await lastPush(({ objects }) => objects.items[0]?.kind === 'DestinationRule');
  const numbers = async (query: string): Promise<number> => (await changes(query)).pushes.length;
  expect(await numbers(`since=${time}`)).toBe(1);
  expect(await numbers('until=2020-01-01T00:00:00Z')).toBe(0);
  expect(await numbers('object=DestinationRule/shop')).toBe(1);
  expect(await numbers('object=DestinationRule/other')).toBe(0);
  expect(await numbers('proxy=web-0')).toBe(0);
  const invalidResponse = await plane.get('/debug/changes?since=yesterday');
  expect(invalidResponse).toMatchObject({
    status: 400,
    text: 'since: must be 14:05 (UTC), 15m, 2h or 2026-11-29T14:05:00Z\n',
  });
  await expect(command('--since', 'yesterday')).rejects.toMatchObject({ code: 'FLAG_INVALID' });
});

it('pilot-discovery changes lists a full push if mesh settings change', async () => {
  writeFileSync(join(plane.root, 'mesh'), 'outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n');
  const push = await lastPush(({ full, first }) => full && first !== true);
  expect(push.objects.items).toEqual([{ kind: 'MeshConfig', namespace: '', name: 'mesh', change: 'changed' }]);
});

it('pilot-discovery changes shows no history to callers of other namespaces', () => {
  const permission = permissionOfNamespace(
    { checksNamespace: true, rootNamespace: () => 'istio-system', allowedNamespaces: [] } as never,
    'shop',
  );
  expect(pageRejectionOf(changePages[0]!, permission)).toMatchObject({ status: 403 });
});
