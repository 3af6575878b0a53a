import { spawn } from 'node:child_process';
import { get } from 'node:http';
import type { ProbeTimes } from '../../../machines/agent/xds/workload-health.machine.ts';
import { choiceViolation, outOfRange, wrongType } from '../../model/fields/violation.ts';
import { messageOf } from '../../runtime/errors.ts';
import { rejectUpgrade } from '../../runtime/fences/other-protocol.ts';
import { killGroup } from '../../runtime/process-group.ts';
import { probeApplication } from '../status/application-prober.ts';
import { type ApplicationProbe, applicationProbeOf } from '../status/application-probes.ts';
import {
  catchVariableError,
  type InvalidVariable,
  type JsonFields,
  objectField,
  stringField,
  VariableError,
} from '../status/json-variable.ts';

type ProbeAction =
  | { readonly kind: 'application'; readonly probe: ApplicationProbe; readonly host: string }
  | { readonly kind: 'exec'; readonly command: readonly [string, ...string[]] };

export interface WorkloadProbe {
  readonly times: ProbeTimes;
  readonly action: ProbeAction;
}

export interface ProbedHost {
  /** The probe may name another address. */
  readonly destination: string;
  readonly source: string | undefined;
  /** The readiness of Envoy is probed at this port; 0 if it is not probed. */
  readonly statusPort: number;
  readonly localhost: string;
}

/** One day; Node's timers accept at most 24.8 days. */
const maxSeconds = 86_400;
const readinessMs = 5_500;
const userAgent = 'istio-probe/1.0';

const methods = ['httpGet', 'tcpSocket', 'grpc', 'exec'] as const;

export function parseWorkloadProbe(message: object): { readonly probe: WorkloadProbe | undefined } | InvalidVariable {
  const fields = message as JsonFields;
  const hasNoMethod = methods.every((method) => fields[method] === undefined || fields[method] === null);
  return catchVariableError(() => ({ probe: hasNoMethod ? undefined : probeOf(fields) }));
}

function probeOf(fields: JsonFields): WorkloadProbe {
  const timeoutSeconds = countOf(fields, 'timeoutSeconds') || 1;
  return {
    times: {
      initialDelayMs: countOf(fields, 'initialDelaySeconds') * 1_000,
      periodMs: (countOf(fields, 'periodSeconds') || 10) * 1_000,
      timeoutMs: timeoutSeconds * 1_000,
      successThreshold: countOf(fields, 'successThreshold') || 1,
      failureThreshold: countOf(fields, 'failureThreshold') || 1,
    },
    action: actionOf(fields, timeoutSeconds),
  };
}

function actionOf(fields: JsonFields, timeoutSeconds: number): ProbeAction {
  const { exec, httpGet, tcpSocket, grpc } = fields;
  if (exec === undefined || exec === null) {
    const probe = applicationProbeOf({ httpGet, tcpSocket, grpc, timeoutSeconds }, '', []);
    const kind = (httpGet ?? undefined) === undefined ? 'tcpSocket' : 'httpGet';
    const { host } = objectField(fields[kind] ?? {}, kind);
    return { kind: 'application', probe, host: stringField(host, `${kind}.host`) };
  }
  if ([httpGet, tcpSocket, grpc].some((other) => other !== undefined && other !== null)) {
    const setMethods = methods.filter((method) => (fields[method] ?? undefined) !== undefined);
    throw new VariableError('', choiceViolation(methods, setMethods));
  }
  const { command } = objectField(exec, 'exec');
  if (!Array.isArray(command) || command.length === 0 || command.some((argument) => typeof argument !== 'string')) {
    throw new VariableError('exec.command', wrongType('a list of strings', command));
  }
  return { kind: 'exec', command: command as [string, ...string[]] };
}

function countOf(fields: JsonFields, name: string): number {
  const value = fields[name] ?? 0;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxSeconds) return value;
  throw new VariableError(name, outOfRange(`an integer from 0 to ${maxSeconds}`, value));
}

/** @returns the reason if Envoy is not ready or the workload is unhealthy; otherwise empty */
export async function probeWorkload(
  { action, times }: WorkloadProbe,
  host: ProbedHost,
  stopSignal: AbortSignal,
): Promise<string> {
  try {
    if (host.statusPort !== 0 && !(await isApplicationReady(host, stopSignal))) return 'Envoy is not ready';
  } catch (error) {
    return `Envoy is not ready: ${messageOf(error)}`;
  }
  const limit = AbortSignal.timeout(times.timeoutMs);
  try {
    return await runProbe(action, host, AbortSignal.any([limit, stopSignal]));
  } catch (error) {
    return limit.aborted ? `no response within ${times.timeoutMs} ms` : messageOf(error);
  }
}

function isApplicationReady({ localhost, statusPort: port }: ProbedHost, stopSignal: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([AbortSignal.timeout(readinessMs), stopSignal]);
  return new Promise((resolve, reject) => {
    const outgoing = get({ host: localhost, port, path: '/healthz/ready', agent: false, signal }, (response) => {
      response.on('error', () => {}).resume();
      resolve(response.statusCode === 200);
    });
    rejectUpgrade(outgoing, reject);
    outgoing.on('error', reject);
  });
}

async function runProbe(action: ProbeAction, host: ProbedHost, signal: AbortSignal): Promise<string> {
  if (action.kind === 'exec') return runCommand(action.command, signal);
  const { probe, host: probeHost } = action;
  const transport = {
    destination: probeHost || host.destination,
    source: probeHost === '' ? host.source : undefined,
    http2: true,
  };
  const status = await probeApplication(probe, { rawHeaders: ['user-agent', userAgent], userAgent }, transport, signal);
  return status >= 200 && status < 400 ? '' : `response status ${status}`;
}

/** After its timeout, the command is killed with all processes that it started. */
function runCommand([program, ...args]: readonly [string, ...string[]], signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'ignore', detached: true });
    const killProcessGroup = (): void => {
      reject(new Error('probe stopped'));
      if (child.pid !== undefined) killGroup(child.pid);
    };
    if (signal.aborted) killProcessGroup();
    else signal.addEventListener('abort', killProcessGroup, { once: true });
    child.once('error', reject);
    child.once('exit', (code, exitSignal) => {
      signal.removeEventListener('abort', killProcessGroup);
      resolve(code === 0 ? '' : `command ended with ${exitSignal ?? `exit code ${code}`}`);
    });
  });
}
