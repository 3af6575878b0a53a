/** BOOTSTRAP patches of EnvoyFilters, from a file of the control plane to the Envoy that runs (BOOTSTRAP_XDS_AGENT). */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAdminClient } from '../../src/agent/admin/admin-client.ts';
import { eventually } from '../harness/eventually.ts';
import { type AgentProgram, Mesh } from '../harness/mesh.ts';
import { conclude } from './conclude.ts';

let mesh: Mesh | undefined;
let agent: AgentProgram;

const filter = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: start, namespace: istio-system}
spec:
  configPatches:
  - applyTo: BOOTSTRAP
    match: {context: ANY}
    patch:
      operation: MERGE
      value:
        static_resources: {clusters: [{name: patched-in, connect_timeout: 3s}]}
        stats_flush_interval: 7s
`;

beforeAll(async () => {
  mesh = await Mesh.create({ env: { BOOTSTRAP_XDS_AGENT: 'true' } });
  mesh.directory.write('start.yaml', filter);
  agent = mesh.startSidecar();
});

afterAll(() => conclude(mesh));

/** Of the Envoy that serves, in its own words. */
async function inForce(): Promise<{ epoch: number; clusters: string[]; flush: string }> {
  const answer = await fetch(`http://127.0.0.1:${agent.adminPort}/config_dump`);
  type Bootstrap = { static_resources: { clusters: { name: string }[] }; stats_flush_interval: string };
  const { configs } = (await answer.json()) as { configs: { bootstrap?: Bootstrap }[] };
  const { static_resources: statics, stats_flush_interval: flush } = configs.find(({ bootstrap }) => bootstrap)!
    .bootstrap!;
  const { epoch } = await createAdminClient('127.0.0.1', agent.adminPort).serverInfo();
  return { epoch, clusters: statics.clusters.map(({ name }) => name), flush };
}

test('§8.9 BOOTSTRAP: the agent waits for the control plane, and Envoy runs with what it patches, also after a hot restart', async () => {
  await eventually('the agent asks', () => agent.program.output().includes('it is asked again'));
  await mesh!.startDiscovery();
  await mesh!.waitForAgent(agent, 60_000);
  const patched = { clusters: expect.arrayContaining(['xds-grpc', 'patched-in']), flush: '7s' };
  expect(await inForce()).toEqual({ epoch: 0, ...patched });
  process.kill(agent.program.pid, 'SIGHUP');
  await eventually('the next epoch serves', async () => (await inForce()).epoch === 1, { deadlineMs: 60_000 });
  expect(await inForce()).toEqual({ epoch: 1, ...patched });
});
