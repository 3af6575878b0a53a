/** What happens before an epoch has a process: its bootstrap is written and, when asked for, checked by Envoy. */

import { rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fromPromise } from 'xstate';
import type { PreparedEpoch, PrepareOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import { ChartpilotError, explainInOneLine } from '../../runtime/errors.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { replaceFile } from '../../runtime/files/replace-file.ts';
import { freeAdminPort } from '../admin/free-admin-port.ts';
import { whyUnreachable } from '../admin/why-unreachable.ts';
import { type EnvoyFlags, validationArguments } from '../envoy/envoy-args.ts';
import type { BinaryPaths } from '../envoy/envoy-binaries.ts';
import { type Verdict, validateWithEnvoy } from '../envoy/envoy-validation.ts';
import { type ScratchParent, unwritable } from '../envoy/scratch-folder.ts';
import type { EnvoyRun } from '../envoy/serving-envoy.ts';
import { digestDirectories } from '../files/certificate-files.ts';
import type { UserFiles } from './user-files.ts';

export interface PrepareEnvironment {
  readonly binaries: BinaryPaths;
  readonly guard: readonly string[];
  readonly flags: EnvoyFlags;
  /** Directory of generated files. */
  readonly configPath: string;
  /** Where the pipe to a checking Envoy has a name for a moment. */
  readonly scratch: readonly ScratchParent[];
  /** Where admin interfaces are. `port`: that of every Envoy under the first base id. */
  readonly admin: { readonly host: string; readonly port: number };
  /** The content of a bootstrap, or a file of the user's that is used as it is. */
  readonly source:
    | { readonly bootstrap: (adminPort: number, run: EnvoyRun) => object }
    | { readonly customConfigFile: string };
  /** Files of the user that the bootstrap or the command line contains. */
  readonly userFiles?: UserFiles;
  /** Asked where an order says so; undefined when the bootstrap is the user's own. */
  readonly discoveryAddress: string | undefined;
  /** The watched directories. */
  readonly certificates: readonly string[];
  /** The turns in which the certificates' files are read. */
  readonly turns: FileTurns;
}

/** What was judged before an order to prepare it came. */
export interface EarlierVerdict {
  /** Whether Envoy has taken what this run would be started with; false: it has to be asked. */
  holdsFor(run: Pick<PrepareOrder, 'epoch' | 'adminPort' | 'binary'>): Promise<boolean>;
}

export function prepareEpoch(environment: PrepareEnvironment, earlier?: EarlierVerdict) {
  return fromPromise<PreparedEpoch, PrepareOrder>(async ({ input, signal }) => {
    // The epoch was adopted: its Envoy runs already.
    if (input.adopted !== undefined) return { configFile: input.adopted.configFile, adminPort: input.adminPort };
    const outdated = await whyOutdated(environment, input, signal);
    if (outdated !== undefined) return { outdated };
    try {
      const written = await writeBootstrap(environment, input);
      const { configFile } = written;
      const isTaken = input.validate && ((await earlier?.holdsFor(input)) ?? false);
      if (input.validate && !isTaken) await validateBootstrap(environment, input.binary, configFile, signal);
      const unreachable = await whyNotStarted(environment, input);
      return unreachable === undefined ? written : { unreachable };
    } catch (error) {
      if (error instanceof ChartpilotError && error.code === 'FILE_UNWRITABLE')
        return { unwritable: explainInOneLine(error) };
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
  const { digest, problems } = await turns.run(() => digestDirectories(directories, signal), signal);
  if (digest === certificates) return undefined;
  const what = problems.length === 0 ? 'not validated yet, or rejected by Envoy' : problems.join('; ');
  return explainInOneLine(new ChartpilotError('CERTIFICATES_CHANGED', `${what}; Envoy is not restarted`));
}

/** Whole or not at all: another Envoy may read the file of the same name at this moment. */
async function writeBootstrap(
  { source, configPath, admin }: PrepareEnvironment,
  { adminPort: wanted, ...run }: PrepareOrder,
): Promise<{ configFile: string; adminPort: number; node?: string }> {
  if ('customConfigFile' in source) return { configFile: resolve(source.customConfigFile), adminPort: wanted };
  const adminPort = wanted === 0 ? await freeAdminPort(admin.host, admin.port) : wanted;
  // Two epochs of one number may live at the same time: one of each base id.
  const file = resolve(join(configPath, `envoy-rev${run.epoch}${adminPort === admin.port ? '' : 'b'}.json`));
  const made = source.bootstrap(adminPort, run) as { readonly node?: { readonly id?: string } };
  try {
    makeFolder(resolve(configPath), 0o700);
    await replaceFile(file, bootstrapText(made));
  } catch (error) {
    throw unwritable(file, error, '--configPath');
  }
  const node = made.node?.id;
  return { configFile: file, adminPort, ...(node !== undefined && { node }) };
}

/**
 * What another Envoy says of the bootstrap that it would be started with.
 *
 * @param binary path of it
 */
export async function judgeBootstrap(
  environment: PrepareEnvironment,
  binary: string,
  signal: AbortSignal,
): Promise<Verdict> {
  const { source, configPath, admin } = environment;
  if ('customConfigFile' in source) return validate(environment, binary, resolve(source.customConfigFile), signal);
  const run = { epoch: 0, baseId: 0 };
  const file = resolve(join(configPath, 'envoy-judged.json'));
  try {
    makeFolder(resolve(configPath), 0o700);
    await writeFile(file, JSON.stringify(source.bootstrap(admin.port, run)), { mode: 0o600 });
    return await validate(environment, binary, file, signal);
  } finally {
    await rm(file, { force: true }).catch(() => {});
  }
}

function validate(
  { guard, flags, scratch }: PrepareEnvironment,
  binary: string,
  configFile: string,
  signal: AbortSignal,
): Promise<Verdict> {
  // The bootstrap may name /dev/stdout or /dev/stderr, and Envoy opens what it names.
  return validateWithEnvoy({ binary, guard }, validationArguments(flags, configFile), { signal, scratch });
}

async function validateBootstrap(
  environment: PrepareEnvironment,
  binary: string,
  configFile: string,
  signal: AbortSignal,
): Promise<void> {
  const verdict = await validate(environment, environment.binaries.pathOf(binary), configFile, signal);
  if (verdict.is === 'taken') return;
  const what = verdict.is === 'refused' ? 'Envoy rejects' : 'Envoy could not validate';
  const override = environment.userFiles?.override;
  const file = override === undefined ? configFile : `${configFile} with ${override.setting} ${override.path}`;
  throw new ChartpilotError('BOOTSTRAP_INVALID', `${what} ${file}: ${verdict.why}`);
}

async function whyNotStarted(
  { discoveryAddress }: PrepareEnvironment,
  { controlPlaneLimitMs }: PrepareOrder,
): Promise<string | undefined> {
  if (controlPlaneLimitMs === null || discoveryAddress === undefined) return undefined;
  const problem = await whyUnreachable(discoveryAddress, controlPlaneLimitMs);
  if (problem === undefined) return undefined;
  const detail = `${discoveryAddress} (${problem}); Envoy is not restarted`;
  return explainInOneLine(new ChartpilotError('CONTROL_PLANE_UNREACHABLE', detail));
}

/** What is in the file. */
export function bootstrapText(bootstrap: object): string {
  return `${JSON.stringify(bootstrap, undefined, 2)}\n`;
}
