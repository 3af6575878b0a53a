/** The commands of docs/changes-without-loss.md, run while routes of a gateway wait for a cluster whose certificate is missing. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { eventually } from '../harness/eventually.ts';
import { FeatureMesh } from './features/harness/feature-mesh.ts';
import { joinDocuments } from './features/harness/gateway-objects.ts';
import { destinationRule, gateway, serviceEntry, virtualService } from './features/harness/objects.ts';

const page = readFileSync(join(packageRoot(), 'docs/changes-without-loss.md'), 'utf8');
const host = 'cart.shop.test';
let mesh: FeatureMesh;
let env: NodeJS.ProcessEnv;

/**
 * Runs the commands of a block of the page.
 * @returns their output
 */
async function run(name: string): Promise<string> {
  const commands = new RegExp(`^\`\`\`sh ${name}\n(.*?)^\`\`\``, 'ms').exec(page)?.[1];
  if (commands === undefined) throw new Error(`docs/changes-without-loss.md has no block ${name}`);
  const { stdout } = await promisify(execFile)('/bin/sh', ['-c', commands], { env });
  return stdout;
}

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { edge: { type: 'router', labels: { istio: 'edge' } } },
    env: { PILOT_XDS_MAKE_BEFORE_BREAK_TIMEOUT: '300s' },
    explains: false,
  });
  const port = await mesh.port();
  const backend = await mesh.http('cart');
  const base = joinDocuments(
    serviceEntry(host, { port: 80, backends: [backend] }),
    gateway('front', { istio: 'edge' }, [{ port, protocol: 'HTTP', hosts: [host] }]),
  );
  const routesTo = (subset: string): string =>
    virtualService(host, { gateways: ['front'], http: [{ route: [{ destination: { host, subset } }] }] });
  const v1 = { name: 'v1', labels: { version: 'cart' } };
  await mesh.apply({
    'a.yaml': base,
    'b.yaml': joinDocuments(destinationRule(host, { subsets: [v1] }), routesTo('v1')),
  });
  const trafficPolicy = { tls: { mode: 'MUTUAL', credentialName: 'missing' } };
  const v2 = { name: 'v2', labels: { version: 'cart' }, trafficPolicy };
  mesh.write('b.yaml', joinDocuments(destinationRule(host, { subsets: [v2] }), routesTo('v2')));
  env = {
    ...process.env,
    PATH: `${join(packageRoot(), 'bin')}:${process.env.PATH}`,
    PILOT: mesh.address,
    NODE: mesh.envoy('edge').node.id,
    URL: `http://${host}:${port}/`,
  };
});

afterAll(() => mesh?.stop());

const waitingPattern = /clusters that are not warmed yet: outbound\|80\|v2\|cart\.shop\.test/;

test('proxyz, explain and metrics show the cluster that the routes of a proxy wait for', async () => {
  await eventually('proxyz shows what waits', async () => waitingPattern.test(await run('proxyz')));
  const warming = /^warming +outbound\|80\|v2\|cart\.shop\.test: usable when the proxy acknowledges/m;
  await eventually('the cluster is sent', async () => warming.test(await run('explain')));
  expect(await run('proxyz')).toContain('"awaits":["outbound|80|v2|cart.shop.test"]');
  expect(await run('explain')).toMatch(
    new RegExp(`^pending +route.v3.RouteConfiguration: waits for ${waitingPattern.source}$`, 'm'),
  );
  expect(await run('explain')).toMatch(
    /^kept +outbound\|80\|v1\|cart\.shop\.test: not configured, kept while route\.v3\.RouteConfiguration \S+ names it$/m,
  );
  expect(await run('proxyz')).toContain('"kind":"held"');
  expect((await run('metrics')).split('\n')).toContain('pilot_xds_kept_clusters{reason="named"} 1');
  expect((await run('metrics')).split('\n')).toContain('pilot_xds_waiting_for_clusters 1');
});
