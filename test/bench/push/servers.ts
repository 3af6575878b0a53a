/** Measured servers: pilot-discovery as users run it, and go-control-plane's linear cache with the same resources. */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { packageRoot } from '../../../src/runtime/package-root.ts';
import { eventually } from '../../harness/eventually.ts';
import { freePorts } from '../../harness/free-ports.ts';
import type { Exit } from '../../harness/program.ts';
import { nowMs } from '../../sidecars/fleet.ts';
import { FleetProcess } from '../../sidecars/fleet-process.ts';
import type { Programs } from '../programs.ts';
import { type BenchMesh, hostOf, type MeshChange } from './mesh-files.ts';

export interface PushServer {
  readonly pid: number;
  /** ADS port on loopback. */
  readonly port: number;
  /** Time before the start of its process, by `nowMs`. */
  readonly startedAtMs: number;
  /** Applies a change. @returns its start time, by `nowMs` */
  change(change: MeshChange, mark: string): Promise<number>;
  /** Returns an xdsload trigger that makes the same change. */
  xdsloadTrigger(change: MeshChange): string;
  /** Returns why the server cannot become ready, if so. */
  hopeless(): string | undefined;
  stop(): Promise<unknown>;
}

/** Starts a server, which may not listen yet. */
export type StartServer = () => Promise<PushServer>;

export interface PilotOptions {
  /** PILOT_DEBOUNCE_AFTER, such as `1ms`. */
  readonly debounce: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Replaces the executable in `bin/`. */
  readonly executable?: string | undefined;
  /** CPU list for taskset. */
  readonly cores?: string;
  /** Additional flags. */
  readonly args?: readonly string[];
  /** gRPC, HTTP and monitoring ports; free ports if absent. */
  readonly ports?: readonly number[];
}

/** A directory that pilot-discovery serves, and its possible changes. */
export type ServedMesh = Pick<BenchMesh, 'configDirectory' | 'meshConfigFile'> &
  Partial<Pick<BenchMesh, 'change' | 'shellChange'>>;

export interface PilotServer extends PushServer {
  /** Port of the trace. */
  readonly httpPort: number;
  stop(): Promise<Exit>;
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
    stop: () => program.stop({ deadlineMs: 15_000 }),
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
      const response = await fetch(url(change, mark));
      // The cache has no DestinationRules, so sidecars would not receive the change.
      if (!response.ok) throw new Error(`go-control-plane does not know ${change} as a change: ${response.status}`);
      return at;
    },
    xdsloadTrigger: (change) => url(change, '{mark}'),
    stop: () => program.stop({ deadlineMs: 5_000 }),
  };
}

/**
 * Builds the server of test/bench/go-control-plane with the versions of its go.mod.
 *
 * @returns the reason if the build fails
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

/**
 * Saves the resources that pilot-discovery sends to a sidecar, so that go-control-plane serves the same ones. @returns
 * the folder
 */
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

/** Waits until the port accepts connections. */
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
