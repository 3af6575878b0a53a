/** The name table over ADS, as an agent with a DNS proxy requests it. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { NameTableSchema } from '../../../src/gen/istio/networking/nds/v1/nds_pb.ts';
import { AdsTestClient } from '../../ads-client.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { Program } from '../../harness/program.ts';
import { pilotDiscovery } from '../../harness/program-files.ts';
import { serviceEntry } from './harness/objects.ts';

const typeUrl = 'type.googleapis.com/istio.networking.nds.v1.NameTable';
const id = 'sidecar~10.0.0.9~web.shop~shop.svc.cluster.local';
const node = { id, metadata: { NAMESPACE: 'shop' } };

const folder = mkdtempSync(join(tmpdir(), 'chartpilot-names-'));
let pilot: Program;
let http: number;
let client: AdsTestClient;

// There is no Envoy: only a control plane and a client that replaces the agent.
beforeAll(async () => {
  const [xds, page] = (await freePorts(2)) as [number, number];
  http = page;
  const { executable, args } = pilotDiscovery();
  const ports = ['--grpcAddr', `127.0.0.1:${xds}`, '--httpAddr', `127.0.0.1:${http}`];
  const closedPorts = ['--monitoringAddr=', '--secureGRPCAddr=', '--httpsAddr='];
  pilot = Program.run('pilot-discovery', executable, {
    args: [...args, 'discovery', '--registries=', '--configDir', folder, '--meshConfig', '', ...ports, ...closedPorts],
    env: { ...process.env, PILOT_DEBOUNCE_AFTER: '10ms' },
    cwd: folder,
  });
  await eventually('the control plane is ready', async () => (await fetch(`http://127.0.0.1:${http}/ready`)).ok, {
    hopeless: () => pilot.hopeless(),
  });
  client = new AdsTestClient(xds);
});

afterAll(async () => {
  client?.close();
  await pilot?.stop({ signal: 'SIGKILL' });
  rmSync(folder, { recursive: true, force: true });
});

/** Replaces all services by services with these addresses. */
function apply(addresses: Readonly<Record<string, string>>): void {
  const endpoints = [{ address: '10.1.0.1' }];
  const entries = Object.entries(addresses).map(([host, address]) =>
    serviceEntry(host, { port: 80, spec: { addresses: [address], endpoints } }),
  );
  writeFileSync(join(folder, '.saving'), entries.join('\n---\n'));
  renameSync(join(folder, '.saving'), join(folder, 'services.yaml'));
}

/** Names and addresses of the received table. */
function namesOf(resources: readonly Any[]): Record<string, readonly string[]> {
  expect(resources).toHaveLength(1);
  const { table } = anyUnpack(resources[0]!, NameTableSchema)!;
  return Object.fromEntries(Object.entries(table).map(([name, { ips }]) => [name, ips]));
}

test('the control plane sends the name table on request, and when a name is added or removed', async () => {
  apply({ 'a.test': '10.5.0.1' });
  const stream = client.sotw();
  stream.onResponse = ({ versionInfo, nonce }) => stream.send({ typeUrl, versionInfo, responseNonce: nonce });
  stream.send({ node, typeUrl });
  const latest = () => namesOf(stream.responses.at(-1)!.resources);
  await expect.poll(latest).toEqual({ 'a.test': ['10.5.0.1'] });
  apply({ 'a.test': '10.5.0.1', 'b.test': '10.5.0.2' });
  await expect.poll(latest).toEqual({ 'a.test': ['10.5.0.1'], 'b.test': ['10.5.0.2'] });
  apply({ 'b.test': '10.5.0.3' });
  await expect.poll(latest).toEqual({ 'b.test': ['10.5.0.3'] });
  const page = await fetch(`http://127.0.0.1:${http}/debug/ndsz?proxyID=${id}`);
  expect(await page.json()).toEqual({ table: { 'b.test': { ips: ['10.5.0.3'], registry: 'External' } } });
  stream.cancel();
});

test('the name table is one resource in the delta protocol and is sent when it changes', async () => {
  apply({ 'a.test': '10.5.0.1' });
  const stream = client.delta();
  stream.onResponse = ({ nonce }) => stream.send({ typeUrl, responseNonce: nonce });
  stream.send({ node, typeUrl });
  const latest = () => namesOf(stream.responses.at(-1)!.resources.map(({ resource }) => resource!));
  await expect.poll(latest).toEqual({ 'a.test': ['10.5.0.1'] });
  apply({ 'c.test': '10.5.0.3' });
  await expect.poll(latest).toEqual({ 'c.test': ['10.5.0.3'] });
  expect(stream.responses.flatMap(({ removedResources }) => removedResources)).toEqual([]);
  stream.cancel();
});
