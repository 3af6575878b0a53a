import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import type { XdsProtocol } from '../../sidecars/xds-types.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import type { Programs } from '../programs.ts';
import { noVariety } from './mesh-files.ts';
import { type Figure, figure, goalSize, pushFigures } from './push-figures.ts';
import { changeOnce, type PushSample, printSample, runPushes, settleMs } from './push-run.ts';
import type { AllMeasuredServers } from './subjects.ts';

const changesARound = 3;
/** Number of sidecars in istiod's published figures for a file. */
const fileSidecars = 100;
const scaled = { services: [100, 1_000, 5_000], sidecars: [100, 500, 1_000] } as const;

export interface Rounds {
  readonly services: number;
  readonly rounds: number;
}

/** Alternates between both servers for each protocol. */
export async function measurePushes(
  programs: Programs,
  subjects: AllMeasuredServers,
  size: { readonly services: number; readonly sidecars: number; readonly rounds: number },
  protocols: readonly XdsProtocol[],
  prefix: (protocol: XdsProtocol) => string,
): Promise<Figure[]> {
  const { startPilot, startGo } = await subjects.serversFor(size.services);
  const samples = new Map(protocols.map((protocol) => [protocol, { ours: [], reference: [] } as Samples]));
  for (let round = 1; round <= size.rounds; round++) {
    for (const protocol of protocols) {
      const plan = { protocol, sidecars: size.sidecars, changes: changesARound };
      const { ours, reference } = samples.get(protocol)!;
      ours.push(await runPushes(programs, () => startPilot({ debounce: '1ms' }), plan));
      printSample(`${prefix(protocol)}, round ${round}/${size.rounds}: ours            `, ours.at(-1)!);
      if (startGo === undefined) continue;
      reference.push(await runPushes(programs, startGo, plan));
      printSample(`${prefix(protocol)}, round ${round}/${size.rounds}: go-control-plane`, reference.at(-1)!);
    }
  }
  const withGoals = size.services === goalSize.services && size.sidecars === goalSize.sidecars;
  return protocols.flatMap((protocol) => pushFigures(prefix(protocol), protocol, samples.get(protocol)!, withGoals));
}

interface Samples {
  ours: PushSample[];
  reference: PushSample[];
}

/** Measures changes of one file, with the default debounce and fewer sidecars. */
export async function measureFile(
  programs: Programs,
  subjects: AllMeasuredServers,
  { services, rounds }: Rounds,
): Promise<Figure[]> {
  const { startPilot } = await subjects.serversFor(services);
  const times: Record<'endpoint' | 'route', number[]> = { endpoint: [], route: [] };
  const server = await startPilot({ debounce: '100ms' });
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await fleet.open({ port: server.port, protocol: 'delta', sidecars: fileSidecars });
  await sleep(settleMs);
  for (let round = 0; round <= rounds; round++) {
    for (const change of ['endpoint', 'route'] as const) {
      const { ackMs } = await changeOnce(server, fleet, change);
      if (round > 0) times[change].push(ackMs);
    }
  }
  await fleet.end();
  await server.stop();
  const goal = services === goalSize.services ? 250 : undefined;
  return (['endpoint', 'route'] as const).map((change) =>
    figure({
      name: `file: ${change} → last of ${fileSidecars} ACKs, debounce 100 ms`,
      unit: 'ms',
      ours: times[change],
      goal,
    }),
  );
}

/**
 * Measures the time from the start of the process to the first response to a waiting sidecar, and the CPU time of the server's process until then:
 * only the former is affected by other load on the machine.
 */
export async function measureColdStart(
  programs: Programs,
  subjects: AllMeasuredServers,
  { services, rounds }: Rounds,
): Promise<Figure[]> {
  const isGoalSize = services === goalSize.services;
  const sizes = [
    { services, goal: isGoalSize ? 1 : undefined },
    // 10,000 files.
    ...(isGoalSize ? [{ services: 3_334, goal: 3 }] : []),
  ];
  const figures: Figure[] = [];
  for (const size of sizes) {
    // No other measurement uses this mesh.
    const { startPilot, mesh } = await subjects.serversFor(size.services, { ...noVariety });
    const times: number[] = [];
    const cpuTimes: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const fleet = new FleetProcess(programs.env);
      programs.onEnd(() => fleet.end());
      await fleet.ready();
      const server = await startPilot({ debounce: '100ms' });
      const { firstAtMs } = await fleet.open({ port: server.port, protocol: 'delta', sidecars: 1 });
      cpuTimes.push(cpuTimeMs(server.pid) / 1_000);
      times.push((firstAtMs - server.startedAtMs) / 1_000);
      await fleet.end();
      await server.stop();
    }
    const files = readdirSync(mesh.configDirectory).length;
    const name = `cold start → first answer, ${files} files`;
    figures.push(figure({ name, unit: 's', ours: times, goal: size.goal }));
    figures.push(figure({ name: `${name}: CPU until the sidecar has everything`, unit: 's', ours: cpuTimes }));
  }
  return figures;
}

export async function measureScaling(
  programs: Programs,
  subjects: AllMeasuredServers,
  rounds: number,
): Promise<Figure[]> {
  const sizes = new Map<string, { services: number; sidecars: number }>();
  for (const services of scaled.services) sizes.set(`${services}×500`, { services, sidecars: 500 });
  for (const sidecars of scaled.sidecars) sizes.set(`1000×${sidecars}`, { services: 1_000, sidecars });
  const figures: Figure[] = [];
  for (const { services, sidecars } of sizes.values()) {
    const prefix = (): string => `${services} services, ${sidecars} sidecars`;
    figures.push(...(await measurePushes(programs, subjects, { services, sidecars, rounds }, ['delta'], prefix)));
  }
  return figures;
}
