/** Delay of the control plane's event loop in a large mesh, which delays every client. */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { eventually } from '../../harness/eventually.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import { print } from '../bench-run.ts';
import type { Programs } from '../programs.ts';
import { noVariety } from './mesh-files.ts';
import { type Figure, figure } from './push-figures.ts';
import { changeOnce, settleMs } from './push-run.ts';
import { type PushServer, waitForPort } from './servers.ts';
import type { AllMeasuredServers } from './subjects.ts';

const meter = pathToFileURL(join(import.meta.dirname, 'loop-meter.mjs')).href;
/** Number of namespaces that the goal names. */
const namespaces = 300;
const services = 5_000;
const sidecars = 300;
const changes = 20;
/** Limit of the 0.999 quantile of the delay while changes are pushed. */
const goalMs = 50;

interface Delays {
  readonly count: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** Delays while sidecars connect, and while changes of one service are pushed to all of them. */
export async function measureLoopDelays(programs: Programs, subjects: AllMeasuredServers): Promise<Figure[]> {
  const { startPilot } = await subjects.serversFor(services, { ...noVariety, namespaces });
  const file = join(programs.root, 'loop-delays.json');
  const server = await startPilot({
    debounce: '1ms',
    env: { NODE_OPTIONS: `--import=${meter}`, LOOP_METER_FILE: file },
  });
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await waitForPort(server);
  await fleet.ready();
  await sleep(settleMs);
  const figures: Figure[] = [];
  await delaysOf(server, file);
  await fleet.open({ port: server.port, protocol: 'delta', sidecars, namespaces });
  figures.push(...printDelays(`${sidecars} sidecars come`, await delaysOf(server, file)));
  for (const change of ['endpoint', 'route'] as const) {
    await changeOnce(server, fleet, change);
    await delaysOf(server, file);
    for (let count = 0; count < changes; count++) await changeOnce(server, fleet, change);
    figures.push(...printDelays(`${changes} ${change} changes`, await delaysOf(server, file), goalMs));
  }
  await fleet.end();
  await server.stop();
  return figures;
}

async function delaysOf(server: PushServer, file: string): Promise<Delays> {
  rmSync(file, { force: true });
  process.kill(server.pid, 'SIGUSR2');
  await eventually('the server has written its delays', () => existsSync(file));
  return JSON.parse(readFileSync(file, 'utf8')) as Delays;
}

function printDelays(phase: string, { count, p99, p999, max }: Delays, goal?: number): Figure[] {
  const formatMs = (ms: number): string => ms.toFixed(1);
  print(
    `  ${phase}: ${count} looks, late by ${formatMs(p99)} (99 %), ${formatMs(p999)} (99.9 %), ${formatMs(max)} ms (longest)`,
  );
  const name = `${services} services × ${namespaces} namespaces, ${phase}`;
  return [
    figure({ name: `${name}: event loop late, 99.9 %`, unit: 'ms', ours: [p999], goal }),
    figure({ name: `${name}: event loop late, longest`, unit: 'ms', ours: [max] }),
  ];
}
