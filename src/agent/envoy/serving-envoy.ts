import { get } from 'node:http';
import type { EnvoyProbe, EnvoyResponded } from '../../../machines/agent/status-protocol.ts';
import { rejectUpgrade } from '../../runtime/fences/other-protocol.ts';
import { type AdminClient, type AdminState, connectionProblem } from '../admin/admin-client.ts';
import { startTimeOf } from './base-ids/base-ids.ts';

export interface ServingPorts {
  readonly host: string;
  /** Port of an Envoy listener that forwards one path only; `undefined` if none is known. */
  readonly port: number | undefined;
}

export interface EpochId {
  readonly epoch: number;
  readonly baseId: number;
}

export class ServingProcess {
  readonly #pid: number;
  readonly #startTime: string | undefined;

  constructor(pid: number) {
    this.#pid = pid;
    this.#startTime = startTimeOf(pid);
  }

  /** The kernel reports the exit before the charts receive it. */
  get isAlive(): boolean {
    return this.#startTime !== undefined && startTimeOf(this.#pid) === this.#startTime;
  }
}

export type ProbeResult = Pick<EnvoyResponded, 'by' | 'live' | 'detail'> &
  Partial<Pick<AdminState, 'responded' | 'timedOut'>>;

const adminLimitMs = 3_000;
/** A child that SIGKILL does not end keeps the admin port open without responding. */
const unverifiedAdminLimitMs = 1_000;
const portLimitMs = 1_000;

/** Probes the admin interface, a worker's port, or both as `at` selects; with both, the admin interface wins if it responds. Never rejects. */
export async function probeServingEnvoy(
  probeTarget: EnvoyProbe['at'],
  admin: AdminClient,
  process: Pick<ServingProcess, 'isAlive'> | undefined,
  ports: ServingPorts,
): Promise<ProbeResult> {
  if (probeTarget === 'port') return probePort(process, ports);
  if (probeTarget === 'admin') return { by: 'admin', ...(await admin.state(adminLimitMs)) };
  const [state, port] = await Promise.all([admin.state(unverifiedAdminLimitMs), probePort(process, ports)]);
  return state.responded ? { by: 'admin', ...state } : port;
}

/** A worker responds to a path without a route even if the main thread is blocked. Without a port, only checks the process. */
async function probePort(
  process: Pick<ServingProcess, 'isAlive'> | undefined,
  { host, port }: ServingPorts,
): Promise<ProbeResult> {
  if (process?.isAlive !== true) return { by: 'port', live: false, detail: 'process exited' };
  if (port === undefined) return { by: 'port', live: true, detail: 'process is running' };
  const problem = await whyNoResponse(host, port);
  return { by: 'port', live: problem === undefined, detail: problem ?? `port ${port} responds` };
}

function whyNoResponse(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(portLimitMs);
    const outgoing = get({ host, port, path: '/', agent: false, signal }, (response) => {
      response.on('error', () => {});
      response.resume();
      resolve(undefined);
    });
    const fail = (error: Error): void =>
      resolve(`port ${port}: ${signal.aborted ? `no response within ${portLimitMs} ms` : connectionProblem(error)}`);
    rejectUpgrade(outgoing, fail);
    outgoing.on('error', fail);
  });
}
