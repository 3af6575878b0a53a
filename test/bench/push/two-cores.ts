/**
 * Estimates the gain of serving connections on several threads by three placements: the server on both cores next to the client, the server on a
 * separate core, and both programs on one core. The server's JavaScript uses one thread; a second core runs the garbage collector and the kernel's
 * network code.
 */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import { cpuTimeMs } from '../cpu-time.ts';
import type { Programs } from '../programs.ts';
import { type Figure, figure } from './push-figures.ts';
import { changeOnce, settleMs } from './push-run.ts';
import { waitForPort } from './servers.ts';
import type { MeasuredServers, StartPilot } from './subjects.ts';

interface CoresSample {
  readonly initialMs: number;
  readonly serverCpuMs: number;
  readonly clientCpuMs: number;
  readonly routeMs: number;
}

/** Cores of server and client. */
const placements = [
  { name: 'both on two cores', server: '0,1', client: '0,1' },
  { name: 'a core each', server: '0', client: '1' },
  { name: 'both on one core', server: '0', client: '0' },
] as const;

export async function compareCores(
  programs: Programs,
  { startPilot }: MeasuredServers,
  { sidecars, rounds }: { readonly sidecars: number; readonly rounds: number },
): Promise<Figure[]> {
  const samples = new Map(placements.map(({ name }) => [name as string, [] as CoresSample[]]));
  for (let round = 0; round < rounds; round++) {
    for (const { name, server, client } of placements) {
      samples.get(name)!.push(await measure(programs, startPilot, { sidecars, server, client }));
    }
  }
  return [...samples].flatMap(([name, serverSamples]) => [
    figure({ name: `${name}: initial wall`, unit: 's', ours: serverSamples.map(({ initialMs }) => initialMs / 1_000) }),
    figure({
      name: `${name}: initial, server CPU`,
      unit: 's',
      ours: serverSamples.map(({ serverCpuMs }) => serverCpuMs / 1_000),
    }),
    figure({
      name: `${name}: initial, client CPU`,
      unit: 's',
      ours: serverSamples.map(({ clientCpuMs }) => clientCpuMs / 1_000),
    }),
    figure({ name: `${name}: route → last ACK`, unit: 'ms', ours: serverSamples.map(({ routeMs }) => routeMs) }),
  ]);
}

async function measure(
  programs: Programs,
  startPilot: StartPilot,
  { sidecars, server: cores, client }: { readonly sidecars: number; readonly server: string; readonly client: string },
): Promise<CoresSample> {
  const server = await startPilot({ debounce: '1ms', cores });
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await waitForPort(server);
  await fleet.ready();
  const { status, stderr } = spawnSync('taskset', ['-a', '-c', '-p', client, String(fleet.pid)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`taskset: ${stderr}`);
  await sleep(settleMs);
  const initialCpuMs = cpuTimeMs(server.pid);
  const { openedAtMs, fullAtMs } = await fleet.open({ port: server.port, protocol: 'delta', sidecars });
  await sleep(settleMs);
  const serverCpuMs = cpuTimeMs(server.pid) - initialCpuMs;
  const clientCpuMs = (await fleet.counts()).cpuMs;
  await changeOnce(server, fleet, 'route');
  const { ackMs: routeMs } = await changeOnce(server, fleet, 'route');
  await fleet.end();
  await server.stop();
  return { initialMs: fullAtMs - openedAtMs, serverCpuMs, clientCpuMs, routeMs };
}
