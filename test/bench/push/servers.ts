/** What is measured: pilot-discovery as people run it, and go-control-plane's linear cache with the same resources. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePorts } from '../../harness/free-ports.ts';
import { nowMs } from '../../sidecars/fleet.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import type { Programs } from '../programs.ts';
import { type BenchMesh, hostOf, type MeshChange } from './mesh-files.ts';

export interface PushServer {
  readonly pid: number;
  /** Where ADS is served on loopback. */
  readonly port: number;
  /** Just before its process was started, by `nowMs`. */
  readonly startedAtMs: number;
  /** Makes a change. @returns when the change began, by `nowMs` */
  change(change: MeshChange, mark: string): Promise<number>;
  /** A trigger of xdsload that makes the same change. */
  xdsloadTrigger(change: MeshChange): string;
  /** Why nothing more is to be expected of it. */
  hopeless(): string | undefined;
  stop(): Promise<void>;
}

/** Starts a server; it may not listen yet. */
export type StartServer = () => Promise<PushServer>;

export interface PilotOptions {
  /** As PILOT_DEBOUNCE_AFTER, e.g. `1ms`. */
  readonly debounce: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Instead of the one in `bin/`. */
  readonly executable?: string | undefined;
  /** Runs it on these cores only, as taskset writes them. */
  readonly cores?: string;
  /** More flags. */
  readonly args?: readonly string[];
  /** For gRPC, HTTP and monitoring; absent: free ones. */
  readonly ports?: readonly number[];
}

/** A directory that pilot-discovery serves, and what may change in it. */
export type ServedMesh = Pick<BenchMesh, 'configDirectory' | 'meshConfigFile'> &
  Partial<Pick<BenchMesh, 'change' | 'shellChange'>>;

export interface PilotServer extends PushServer {
  /** Where its trace is offered. */
  readonly httpPort: number;
}

export async function startPilot(programs: Programs, mesh: ServedMesh, options: PilotOptions): Promise<PilotServer> {
  const [grpc, http, monitoring] = options.ports ?? (await freePorts(3));
  const address = (port: number | undefined): string => `127.0.0.1:${port}`;
  const args = [
    options.executable ?? join(packageRoot(), 'bin/pilot-discovery'),
    ...['discovery', '--registries=', '--configDir', mesh.configDirectory, '--meshConfig', mesh.meshConfigFile],
    ...['--grpcAddr', address(grpc), '--httpAddr', address(http), '--monitoringAddr', address(monitoring)],
    ...(options.args ?? []),
  ];
  const command = options.cores === undefined ? args : ['taskset', '-c', options.cores, ...args];
  const startedAtMs = nowMs();
  const program = programs.start('pilot-discovery', command[0]!, command.slice(1), {
    PILOT_DEBOUNCE_AFTER: options.debounce,
    // All streams come at once: the control plane must not spread them over time.
    PILOT_MAX_REQUESTS_PER_SECOND: '100000',
    ...options.env,
  });
  return {
    pid: program.pid,
    port: grpc!,
    httpPort: http!,
    startedAtMs,
    hopeless: () => program.hopeless(),
    change: async (change, mark) => {
      const at = nowMs();
      mesh.change?.(change, mark);
      return at;
    },
    xdsloadTrigger: (change) => mesh.shellChange?.(change) ?? 'false',
    stop: async () => void (await program.stop({ deadlineMs: 15_000 })),
  };
}

const kindOfChange = { endpoint: 'EDS', route: 'RDS', rule: 'CDS' } as const;

export async function startGoControlPlane(
  programs: Programs,
  executable: string,
  resources: string,
): Promise<PushServer> {
  const [ads, http] = await freePorts(2);
  const startedAtMs = nowMs();
  const program = programs.start('go-control-plane', executable, [
    ...['-ads', `127.0.0.1:${ads}`, '-http', `127.0.0.1:${http}`, '-resources', resources, '-host', hostOf(0)],
  ]);
  await program.line(/^ready$/);
  const url = (change: MeshChange, mark: string): string =>
    `http://127.0.0.1:${http}/${kindOfChange[change]}?mark=${mark}`;
  return {
    pid: program.pid,
    port: ads!,
    startedAtMs,
    hopeless: () => program.hopeless(),
    change: async (change, mark) => {
      const at = nowMs();
      const answer = await fetch(url(change, mark));
      // Nobody would be sent what is then waited for: it has no destination rules.
      if (!answer.ok) throw new Error(`go-control-plane does not know ${change} as a change: ${answer.status}`);
      return at;
    },
    xdsloadTrigger: (change) => url(change, '{mark}'),
    stop: async () => void (await program.stop({ deadlineMs: 5_000 })),
  };
}

/**
 * Builds the server of test/bench/go-control-plane, of the versions that its go.mod names.
 *
 * @returns why it cannot be built, when it cannot
 */
export function buildGoControlPlane(programs: Programs): { executable: string } | { reason: string } {
  const executable = join(programs.root, 'go-control-plane');
  const cwd = join(packageRoot(), 'test/bench/go-control-plane');
  const { status, error, stderr } = spawnSync('go', ['build', '-mod=readonly', '-o', executable, '.'], {
    cwd,
    env: programs.env,
    encoding: 'utf8',
  });
  if (status === 0) return { executable };
  return { reason: error?.message ?? stderr.trim().split('\n').at(-1) ?? 'go build failed' };
}

/** Saves what pilot-discovery sends to a sidecar, for go-control-plane to send the same. @returns the folder */
export async function saveResources(programs: Programs, services: number, start: StartServer): Promise<string> {
  const folder = join(programs.root, `resources-${services}`);
  mkdirSync(folder);
  const server = await start();
  const fleet = new FleetProcess(programs.env);
  programs.onEnd(() => fleet.end());
  await waitForPort(server);
  await fleet.open({ port: server.port, protocol: 'sotw', sidecars: 1 });
  await fleet.save(folder);
  await fleet.end();
  await server.stop();
  return folder;
}

/** Until somebody listens. */
export async function waitForPort({ port, hopeless }: PushServer): Promise<void> {
  await eventually(
    `a server listens on port ${port}`,
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
        socket.once('connect', () => socket.destroy());
      }),
    { deadlineMs: 60_000, hopeless },
  );
}
