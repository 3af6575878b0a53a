/** Compares our load client with xdsload on the same servers: both must get the same results. */
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { XdsProtocol } from '../../sidecars/xds-types.ts';
import { print } from '../bench-run.ts';
import type { Programs } from '../programs.ts';
import { medianOf } from '../statistics.ts';
import { runPushes, settleMs } from './push-run.ts';
import { type StartServer, waitForPort } from './servers.ts';
import type { MeasuredServers } from './subjects.ts';

/** Figures of one client for one server. */
export interface ClientView {
  readonly initialMs: number;
  /** Bytes of all messages until every sidecar has all resources. */
  readonly initialBytes: number;
  readonly endpointMs: number;
  readonly routeMs: number;
  readonly endpointBytes: number;
  readonly routeBytes: number;
}

/**
 * Maximum difference between the clients. Times vary more, because the client is part of the measurement and the
 * machine is never idle.
 */
export const tolerance = { bytesShare: 0.01, timeShare: 0.35, timeMs: 60 } as const;

/** One sentence per figure that differs by more than the tolerance, even if our client is faster. */
export function disagreements(label: string, ours: ClientView, xdsloadFigures: ClientView): string[] {
  return (Object.keys(ours) as (keyof ClientView)[]).flatMap((key) => {
    const difference = Math.abs(ours[key] - xdsloadFigures[key]);
    const { bytesShare, timeShare, timeMs } = tolerance;
    const allowed = key.endsWith('Bytes')
      ? xdsloadFigures[key] * bytesShare
      : Math.max(timeMs, xdsloadFigures[key] * timeShare);
    return difference <= allowed
      ? []
      : [
          `${label}: ${key} is ${Math.round(ours[key])} with our client, ${Math.round(xdsloadFigures[key])} with the other`,
        ];
  });
}

export interface ComparePlan {
  readonly xdsload: string;
  readonly sidecars: number;
  readonly rounds: number;
}

/** Runs both clients alternately against new servers. @returns differences beyond the tolerance */
export async function compareWithXdsload(
  programs: Programs,
  { startPilot, startGo }: MeasuredServers,
  { xdsload, sidecars, rounds }: ComparePlan,
): Promise<string[]> {
  const problems: string[] = [];
  const servers: Record<string, StartServer> = {
    'pilot-discovery': () => startPilot({ debounce: '1ms' }),
    ...(startGo !== undefined && { 'go-control-plane': startGo }),
  };
  for (const [name, start] of Object.entries(servers)) {
    for (const protocol of ['delta', 'sotw'] as const) {
      const ourViews: ClientView[] = [];
      const xdsloadViews: ClientView[] = [];
      for (let round = 0; round < rounds; round++) {
        ourViews.push(await ourView(programs, start, protocol, sidecars));
        xdsloadViews.push(await xdsloadView(programs, start, protocol, sidecars, xdsload));
      }
      const [a, b] = [medians(ourViews), medians(xdsloadViews)];
      const label = `${name}, ${protocol}`;
      print(`${label}: ours ${formatView(a)}`);
      print(`${' '.repeat(label.length)}  xdsload ${formatView(b)}`);
      problems.push(...disagreements(label, a, b));
    }
  }
  print(problems.length === 0 ? 'both clients see the same' : `${problems.length} disagreements`);
  return problems;
}

async function ourView(
  programs: Programs,
  start: StartServer,
  protocol: XdsProtocol,
  sidecars: number,
): Promise<ClientView> {
  const { initialMs, initialBytes, endpoint, route } = await runPushes(programs, start, {
    protocol,
    sidecars,
    changes: 3,
  });
  return {
    initialMs,
    initialBytes,
    endpointMs: medianOf(endpoint.map(({ ackMs }) => ackMs)),
    routeMs: medianOf(route.map(({ ackMs }) => ackMs)),
    endpointBytes: medianOf(endpoint.map(({ messageBytes }) => messageBytes)),
    routeBytes: medianOf(route.map(({ messageBytes }) => messageBytes)),
  };
}

interface XdsloadReport {
  readonly initial: { readonly all_streams_full_ms: number; readonly received: { readonly wire_bytes: number } };
  readonly triggers: readonly { readonly median_of_max_ms: number; readonly median_wire_bytes: number }[];
}

async function xdsloadView(
  programs: Programs,
  start: StartServer,
  protocol: XdsProtocol,
  sidecars: number,
  xdsload: string,
): Promise<ClientView> {
  const server = await start();
  await waitForPort(server);
  await sleep(settleMs);
  const args = [
    ...['-target', `127.0.0.1:${server.port}`, '-streams', String(sidecars), '-pid', String(server.pid)],
    ...['-repeat', '3', '-settle', `${settleMs}ms`, ...(protocol === 'delta' ? ['-delta'] : [])],
    ...['-trigger', `endpoint:eds=${server.xdsloadTrigger('endpoint')}`],
    ...['-trigger', `route:rds=${server.xdsloadTrigger('route')}`],
  ];
  const { stdout } = await promisify(execFile)(xdsload, args, { env: programs.env, maxBuffer: 64 * 1024 ** 2 });
  await server.stop();
  const { initial, triggers } = JSON.parse(stdout) as XdsloadReport;
  return {
    initialMs: initial.all_streams_full_ms,
    initialBytes: initial.received.wire_bytes,
    endpointMs: triggers[0]!.median_of_max_ms,
    routeMs: triggers[1]!.median_of_max_ms,
    endpointBytes: triggers[0]!.median_wire_bytes,
    routeBytes: triggers[1]!.median_wire_bytes,
  };
}

function medians(views: readonly ClientView[]): ClientView {
  const of = (key: keyof ClientView): number => medianOf(views.map((view) => view[key]));
  return {
    initialMs: of('initialMs'),
    initialBytes: of('initialBytes'),
    endpointMs: of('endpointMs'),
    routeMs: of('routeMs'),
    endpointBytes: of('endpointBytes'),
    routeBytes: of('routeBytes'),
  };
}

function formatView({ initialMs, initialBytes, endpointMs, endpointBytes, routeMs, routeBytes }: ClientView): string {
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(2);
  return (
    `initial ${Math.round(initialMs)} ms, ${megabytes(initialBytes)} MB; endpoint ${Math.round(endpointMs)} ms, ` +
    `${megabytes(endpointBytes)} MB; route ${Math.round(routeMs)} ms, ${megabytes(routeBytes)} MB`
  );
}
