/** What happens before an epoch has a process: its bootstrap is written and, when asked for, checked by Envoy. */
import { mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { execa } from 'execa';
import { fromPromise } from 'xstate';
import type { Prepared } from '../../machines/agent/epoch.machine.ts';
import { parseHostAndPort } from '../model/proxy-config.ts';
import { ChartpilotError, messageOf } from '../runtime/errors.ts';
import { silentLogger } from '../runtime/log.ts';
import { connectionProblem } from './admin-client.ts';
import type { AdminInterfaces } from './admin-interfaces.ts';
import { type EnvoyFlags, validationArguments } from './envoy-args.ts';
import { EnvoyOutput } from './envoy-log.ts';
import type { FileDescriptor } from './output-channels.ts';

export interface PrepareEnvironment {
  readonly binary: string;
  readonly guard: readonly string[];
  readonly flags: EnvoyFlags;
  /** Directory of generated files. */
  readonly configPath: string;
  readonly admins: AdminInterfaces;
  /** The content of a bootstrap, or a file of the user's that is used as it is. */
  readonly source: { readonly bootstrap: (adminPort: number) => object } | { readonly customConfigFile: string };
  /** Asked for before a child starts beside a serving epoch; undefined when the bootstrap is the user's own. */
  readonly discoveryAddress: string | undefined;
}

const validationLimitMs = 30_000;
const connectLimitMs = 2_000;

export function prepareEpoch(environment: PrepareEnvironment) {
  return fromPromise<Prepared, { epoch: number; baseId: number; validate: boolean }>(async ({ input, signal }) => {
    const configFile = await writeBootstrap(environment, input);
    if (input.validate) await validateBootstrap(environment, configFile, signal);
    // A child that waits for the control plane never takes over, and ending it harms its parent
    // (spec/envoy-hot-restart.md fact 1): better not to start it.
    const unreachable = input.epoch > 0 ? await whyNotStarted(environment) : undefined;
    return unreachable === undefined ? { configFile } : { unreachable };
  });
}

/** Whole or not at all: another Envoy may read the file of the same name at this moment. */
async function writeBootstrap(
  { source, configPath, admins }: PrepareEnvironment,
  run: { readonly epoch: number; readonly baseId: number },
): Promise<string> {
  if ('customConfigFile' in source) return resolve(source.customConfigFile);
  // Two epochs of one number may live at the same time: one of each base id.
  const file = resolve(join(configPath, `envoy-rev${run.epoch}${admins.isSpare(run.baseId) ? 'b' : ''}.json`));
  try {
    await mkdir(configPath, { recursive: true, mode: 0o700 });
    const bootstrap = source.bootstrap(await admins.portFor(run));
    await writeFile(`${file}.new`, JSON.stringify(bootstrap, undefined, 2), { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch (error) {
    if (error instanceof ChartpilotError) throw error;
    throw new ChartpilotError('BOOTSTRAP_INVALID', `${file}: ${messageOf(error)}`, { cause: error });
  }
  return file;
}

async function validateBootstrap(
  { binary, guard, flags }: PrepareEnvironment,
  configFile: string,
  cancelSignal: AbortSignal,
): Promise<void> {
  const [file, ...args] = [...guard, binary, ...validationArguments(flags, configFile)];
  // Files, not pipes: the bootstrap may name /dev/stdout or /dev/stderr, and Envoy opens what it names.
  const folder = await mkdtemp(join(tmpdir(), 'chartpilot-validate-'));
  const errors = await open(join(folder, 'stderr'), 'w+');
  try {
    const result = await execa(file!, args, {
      reject: false,
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: errors.fd as FileDescriptor,
      timeout: validationLimitMs,
      cancelSignal,
    });
    if (!result.failed) return;
    const said = result.timedOut
      ? `no result in ${validationLimitMs} ms`
      : lastWordsIn(await readFile(join(folder, 'stderr')));
    const why = said || result.shortMessage || `exit code ${result.exitCode}`;
    throw new ChartpilotError('BOOTSTRAP_INVALID', `Envoy refuses ${configFile}: ${why}`);
  } finally {
    await errors.close();
    await rm(folder, { recursive: true, force: true });
  }
}

function lastWordsIn(content: Buffer): string {
  const output = new EnvoyOutput(silentLogger);
  for (const line of content.toString('utf8').split('\n')) output.line(line);
  return output.lastWords();
}

async function whyNotStarted({ discoveryAddress }: PrepareEnvironment): Promise<string | undefined> {
  if (discoveryAddress === undefined) return undefined;
  const problem = await whyUnreachable(discoveryAddress);
  if (problem === undefined) return undefined;
  const detail = `${discoveryAddress} (${problem}): Envoy is not restarted`;
  return new ChartpilotError('CONTROL_PLANE_UNREACHABLE', detail).message;
}

/** Undefined when somebody accepts connections there. */
export function whyUnreachable(address: string): Promise<string | undefined> {
  const target = parseHostAndPort(address);
  if (target === undefined) return Promise.resolve('not an address');
  return new Promise((resolve) => {
    const socket = connect({ ...target, timeout: connectLimitMs });
    const settle = (problem: string | undefined): void => {
      socket.destroy();
      resolve(problem);
    };
    socket.once('connect', () => settle(undefined));
    socket.once('timeout', () => settle('no answer'));
    socket.once('error', (error) => settle(connectionProblem(error)));
  });
}
