/** What happens before an epoch has a process: its bootstrap is written and, when asked for, checked by Envoy. */

import { rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fromPromise } from 'xstate';
import type { Prepared, PrepareOrder } from '../../../machines/agent/epoch.machine.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { makeFolder } from '../../runtime/make-folder.ts';
import type { AdminInterfaces } from '../admin/admin-interfaces.ts';
import { whyUnreachable } from '../admin/why-unreachable.ts';
import { digestDirectories } from '../certificates/certificate-files.ts';
import type { FileTurns } from '../certificates/file-turns.ts';
import { type EnvoyFlags, validationArguments } from '../envoy/envoy-args.ts';
import { validateWithEnvoy } from '../envoy/envoy-validation.ts';
import { type ScratchParent, unwritable } from '../envoy/scratch-folder.ts';

/** Which of the Envoys that may live at the same time. */
export interface EnvoyRun {
  readonly epoch: number;
  readonly baseId: number;
}

export interface PrepareEnvironment {
  readonly binary: string;
  readonly guard: readonly string[];
  readonly flags: EnvoyFlags;
  /** Directory of generated files. */
  readonly configPath: string;
  /** Where the pipe to a checking Envoy has a name for a moment. */
  readonly scratch: readonly ScratchParent[];
  readonly admins: AdminInterfaces;
  /** The content of a bootstrap, or a file of the user's that is used as it is. */
  readonly source:
    | { readonly bootstrap: (adminPort: number, run: EnvoyRun) => object }
    | { readonly customConfigFile: string };
  /** Asked where an order says so; undefined when the bootstrap is the user's own. */
  readonly discoveryAddress: string | undefined;
  /** The watched directories. */
  readonly certificates: readonly string[];
  /** In which their files are read. */
  readonly turns: FileTurns;
}

export function prepareEpoch(environment: PrepareEnvironment) {
  return fromPromise<Prepared, PrepareOrder>(async ({ input, signal }) => {
    const outdated = await whyOutdated(environment, input, signal);
    if (outdated !== undefined) return { outdated };
    try {
      const { configFile, node } = await writeBootstrap(environment, input);
      if (input.validate) await validateBootstrap(environment, configFile, signal);
      const unreachable = await whyNotStarted(environment, input);
      return unreachable === undefined ? { configFile, ...(node !== undefined && { node }) } : { unreachable };
    } catch (error) {
      if (error instanceof ChartpilotError && error.code === 'FILE_UNWRITABLE') return { unwritable: error.message };
      throw error;
    }
  });
}

/**
 * What was found good some time ago may have become something else since: the cert-watcher will tell what it is. Not asked of
 * an agent that could not read the files when it started.
 */
async function whyOutdated(
  environment: PrepareEnvironment,
  { certificates }: PrepareOrder,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { certificates: directories, turns } = environment;
  if (certificates === null || certificates === '' || directories.length === 0) return undefined;
  const { digest, problems } = await turns.ask(() => digestDirectories(directories, signal), signal);
  if (digest === certificates) return undefined;
  const what = problems.length === 0 ? 'they have not been looked at yet, or Envoy refused them' : problems.join('; ');
  return new ChartpilotError('CERTIFICATES_CHANGED', `${what}: Envoy is not restarted`).message;
}

/** Whole or not at all: another Envoy may read the file of the same name at this moment. */
async function writeBootstrap(
  { source, configPath, admins }: PrepareEnvironment,
  run: EnvoyRun,
): Promise<{ configFile: string; node?: string }> {
  if ('customConfigFile' in source) return { configFile: resolve(source.customConfigFile) };
  // Two epochs of one number may live at the same time: one of each base id.
  const file = resolve(join(configPath, `envoy-rev${run.epoch}${admins.isSpare(run.baseId) ? 'b' : ''}.json`));
  const made = source.bootstrap(await admins.portFor(run), run) as { readonly node?: { readonly id?: string } };
  const bootstrap = JSON.stringify(made, undefined, 2);
  try {
    makeFolder(resolve(configPath), 0o700);
    await writeFile(`${file}.new`, bootstrap, { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch (error) {
    // Half a file takes what little space there is.
    await rm(`${file}.new`, { force: true }).catch(() => {});
    throw unwritable(file, error, '--configPath');
  }
  const node = made.node?.id;
  return { configFile: file, ...(node !== undefined && { node }) };
}

async function validateBootstrap(
  { binary, guard, flags, scratch }: PrepareEnvironment,
  configFile: string,
  signal: AbortSignal,
): Promise<void> {
  // The bootstrap may name /dev/stdout or /dev/stderr, and Envoy opens what it names.
  const verdict = await validateWithEnvoy({ binary, guard }, validationArguments(flags, configFile), {
    signal,
    scratch,
  });
  if (verdict.is === 'taken') return;
  const what = verdict.is === 'refused' ? 'Envoy refuses' : 'Envoy could not check';
  throw new ChartpilotError('BOOTSTRAP_INVALID', `${what} ${configFile}: ${verdict.why}`);
}

async function whyNotStarted(
  { discoveryAddress }: PrepareEnvironment,
  { controlPlaneLimitMs }: PrepareOrder,
): Promise<string | undefined> {
  if (controlPlaneLimitMs === null || discoveryAddress === undefined) return undefined;
  const problem = await whyUnreachable(discoveryAddress, controlPlaneLimitMs);
  if (problem === undefined) return undefined;
  const detail = `${discoveryAddress} (${problem}): Envoy is not restarted`;
  return new ChartpilotError('CONTROL_PLANE_UNREACHABLE', detail).message;
}
