/** Asks the Envoy that serves whether it does: by its admin interface, or without one. */
import { get } from 'node:http';
import type { EnvoyProbe, EnvoyResponded } from '../../../machines/agent/status-protocol.ts';
import { refuseOtherProtocol } from '../../runtime/fences/other-protocol.ts';
import { type AdminClient, connectionProblem } from '../admin/admin-client.ts';
import { startTimeOf } from './base-ids/base-ids.ts';

export interface ServingPorts {
  readonly host: string;
  /** Port of a listener of Envoy's that forwards one path only; undefined: none is known. */
  readonly port: number | undefined;
}

export interface EnvoyRun {
  readonly epoch: number;
  readonly baseId: number;
}

/** The process of the Envoy that serves, as it was when it began to: its number may be another one's later. */
export class ServingProcess {
  readonly #pid: number;
  readonly #startTime: string | undefined;

  constructor(pid: number) {
    this.#pid = pid;
    this.#startTime = startTimeOf(pid);
  }

  /** The kernel knows of its end before the charts do. */
  get lives(): boolean {
    return this.#startTime !== undefined && startTimeOf(this.#pid) === this.#startTime;
  }
}

type Word = Pick<EnvoyResponded, 'by' | 'live' | 'detail'>;

const adminLimitMs = 3_000;
/** A child that SIGKILL does not end holds the admin port and answers nobody. */
const doubtfulAdminLimitMs = 1_000;
const portLimitMs = 1_000;

/** Asks where `at` says: the admin interface, a worker at its port, or both, of which the former counts if it answers. Never rejects. */
export async function askServingEnvoy(
  at: EnvoyProbe['at'],
  admin: AdminClient,
  process: Pick<ServingProcess, 'lives'> | undefined,
  ports: ServingPorts,
): Promise<Word> {
  if (at === 'port') return askPort(process, ports);
  if (at === 'admin') return { by: 'admin', ...(await admin.state(adminLimitMs)) };
  const [state, port] = await Promise.all([admin.state(doubtfulAdminLimitMs), askPort(process, ports)]);
  return state.responded ? { by: 'admin', ...state } : port;
}

/** A worker answers a path that it has no route for, whatever the main thread does. Without a port its process has to do. */
async function askPort(
  process: Pick<ServingProcess, 'lives'> | undefined,
  { host, port }: ServingPorts,
): Promise<Word> {
  if (process?.lives !== true) return { by: 'port', live: false, detail: 'process exited' };
  if (port === undefined) return { by: 'port', live: true, detail: 'process is running' };
  const problem = await whyNoAnswer(host, port);
  return { by: 'port', live: problem === undefined, detail: problem ?? `port ${port} responds` };
}

function whyNoAnswer(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const signal = AbortSignal.timeout(portLimitMs);
    const outgoing = get({ host, port, path: '/', agent: false, signal }, (response) => {
      response.on('error', () => {});
      response.resume();
      resolve(undefined);
    });
    const fail = (error: Error): void =>
      resolve(`port ${port}: ${signal.aborted ? `no response within ${portLimitMs} ms` : connectionProblem(error)}`);
    refuseOtherProtocol(outgoing, fail);
    outgoing.on('error', fail);
  });
}
