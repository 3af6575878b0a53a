/** EnvoyFilter patches of the context BOOTSTRAP, from a file of the control plane to a running Envoy (BOOTSTRAP_XDS_AGENT). */

import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createAdminClient } from '../../src/agent/admin/admin-client.ts';
import { eventually } from '../harness/eventually.ts';
import { linesOf } from '../harness/logged-line.ts';
import { type AgentProgram, Mesh } from '../harness/mesh.ts';
import { isFull } from '../harness/size-of-run.ts';
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

/** Epoch, clusters and flush interval that the serving Envoy reports. */
async function inForce({ adminPort } = agent): Promise<{ epoch: number; clusters: string[]; flush: string }> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/config_dump`);
  type Bootstrap = { static_resources: { clusters: { name: string }[] }; stats_flush_interval: string };
  const { configs } = (await response.json()) as { configs: { bootstrap?: Bootstrap }[] };
  const { static_resources: statics, stats_flush_interval: flush } = configs.find(({ bootstrap }) => bootstrap)!
    .bootstrap!;
  const { epoch } = await createAdminClient('127.0.0.1', adminPort).serverInfo();
  return { epoch, clusters: statics.clusters.map(({ name }) => name), flush };
}

test('the agent waits for the control plane, then starts and hot restarts Envoy with the patched bootstrap (agent §8.9 BOOTSTRAP)', async () => {
  await eventually('the agent asks', () => linesOf(agent.program.lines, 'patches.unavailable').length > 0);
  await mesh!.startDiscovery();
  await mesh!.waitForAgent(agent);
  const patchedConfig = { clusters: expect.arrayContaining(['xds-grpc', 'patched-in']), flush: '7s' };
  expect(await inForce()).toEqual({ epoch: 0, ...patchedConfig });
  process.kill(agent.program.pid, 'SIGHUP');
  await eventually('the next epoch serves', async () => (await inForce()).epoch === 1);
  expect(await inForce()).toEqual({ epoch: 1, ...patchedConfig });
});

test.runIf(isFull)(
  'an agent that replaces another one starts Envoy with the same patches even if the control plane does not respond',
  async () => {
    const other = await Mesh.create({ env: { BOOTSTRAP_XDS_AGENT: 'true' } });
    onTestFinished(() => conclude(other));
    other.directory.write('start.yaml', filter);
    await other.startDiscovery();
    const sidecar = await other.startContainedSidecar({ LIVE_RESTORE: 'true' });
    const { container } = sidecar;
    const replaceAgent = async (trigger: () => void): Promise<void> => {
      const [previousAgent] = container.agents();
      trigger();
      await eventually(
        'another agent is alone',
        () => container.agents().length === 1 && container.agents()[0] !== previousAgent,
      );
      await other.waitForAgent(sidecar);
    };
    await other.waitForAgent(sidecar);
    const envoys = other.envoysOf(sidecar).map(({ pid }) => pid);
    expect(envoys).toHaveLength(1);
    const { program } = other.discovery!;
    process.kill(program.pid, 'SIGSTOP');
    await replaceAgent(() => container.signal('SIGUSR2'));
    await replaceAgent(() => process.kill(container.agents()[0]!, 'SIGKILL'));
    expect(other.envoysOf(sidecar).map(({ pid }) => pid)).toEqual(envoys);
    process.kill(program.pid, 'SIGCONT');
    container.signal('SIGHUP');
    await eventually('the next epoch serves', async () => (await inForce(sidecar)).epoch === 1);
    expect(await inForce(sidecar)).toMatchObject({ clusters: expect.arrayContaining(['patched-in']), flush: '7s' });
    container.signal('SIGTERM');
    expect(await container.ended()).toEqual({ code: 0, signal: null });
  },
);
