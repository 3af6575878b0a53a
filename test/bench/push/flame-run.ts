/** Profiles pilot-discovery while endpoints and routes change, through Node's inspector, without its start. */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../harness/free-ports.ts';
import { Inspector } from '../../harness/inspector.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import { print } from '../bench-run.ts';
import type { Programs } from '../programs.ts';
import { type CpuProfile, callTree, sourceNames } from './cpu-profile.ts';
import { drawFlameGraph } from './flame-graph.ts';
import { changeOnce, settleMs } from './push-run.ts';
import type { MeasuredServers } from './subjects.ts';

const changesOfEachKind = 15;

/** @param file path of the SVG; the profile is written to the folder of the run */
export async function drawPushes(
  programs: Programs,
  { mesh, startPilot }: MeasuredServers,
  sidecars: number,
  file: string,
): Promise<void> {
  const [inspectorPort] = await freePorts(1);
  const env = { NODE_OPTIONS: `--inspect=127.0.0.1:${inspectorPort}` };
  const server = await startPilot({ debounce: '1ms', env });
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await fleet.open({ port: server.port, protocol: 'delta', sidecars });
  for (const change of ['endpoint', 'route'] as const) await changeOnce(server, fleet, change);
  await sleep(settleMs);
  const inspector = await Inspector.attach(inspectorPort!);
  await inspector.call('Profiler.enable');
  await inspector.call('Profiler.setSamplingInterval', { interval: 250 });
  await inspector.call('Profiler.start');
  for (let i = 0; i < changesOfEachKind; i++) {
    for (const change of ['endpoint', 'route'] as const) await changeOnce(server, fleet, change);
  }
  const { profile } = (await inspector.call('Profiler.stop')) as { profile: CpuProfile };
  inspector.close();
  await fleet.end();
  await server.stop();
  const tree = callTree(profile, sourceNames());
  const title =
    `Where a push goes: ${changesOfEachKind} endpoint and ${changesOfEachKind} route changes, ${mesh.size.services} services, ` +
    `${sidecars} sidecars, delta: ${(tree.totalUs / 1e6).toFixed(2)} s of CPU (sampled)`;
  writeFileSync(file, drawFlameGraph(tree, { title }));
  print(`${file}: ${title}`);
}
