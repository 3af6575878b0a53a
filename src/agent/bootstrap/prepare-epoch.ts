/** Writes the bootstrap of an epoch and, if requested, validates it with Envoy. */

import { rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fromPromise } from 'xstate';
import type { PreparedEpoch, PrepareOrder } from '../../../machines/agent/envoy/epoch.machine.ts';
import { ChartpilotError, explainInOneLine } from '../../runtime/errors.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { replaceFile } from '../../runtime/files/replace-file.ts';
import { freeAdminPort } from '../admin/free-admin-port.ts';
import { whyUnreachable } from '../admin/why-unreachable.ts';
import { type EnvoyFlags, validationArguments } from '../envoy/envoy-args.ts';
import type { BinaryPaths } from '../envoy/envoy-binaries.ts';
import { type ValidationResult, validateWithEnvoy } from '../envoy/envoy-validation.ts';
import { type ScratchParent, unwritableError } from '../envoy/scratch-folder.ts';
import type { EpochId } from '../envoy/serving-envoy.ts';
import { digestDirectories } from '../files/certificate-files.ts';
import type { UserFiles } from './user-files.ts';

export interface PrepareEnvironment {
  readonly binaries: BinaryPaths;
  readonly guard: readonly string[];
  readonly flags: EnvoyFlags;
  readonly configPath: string;
  readonly scratch: readonly ScratchParent[];
  /** `port` is for the first base ID. */
  readonly admin: { readonly host: string; readonly port: number };
  readonly source:
    | { readonly bootstrap: (adminPort: number, run: EpochId) => object }
    | { readonly customConfigFile: string };
  readonly userFiles?: UserFiles;
  readonly discoveryAddress: string | undefined;
  readonly certificates: readonly string[];
  readonly turns: FileTurns;
}

export interface PriorValidation {
  /** `false` if the input must be validated now. */
  isAcceptedFor(run: Pick<PrepareOrder, 'epoch' | 'adminPort' | 'binary'>): Promise<boolean>;
}

export function prepareEpoch(environment: PrepareEnvironment, priorValidation?: PriorValidation) {
  return fromPromise<PreparedEpoch, PrepareOrder>(async ({ input, signal }) => {
    if (input.adopted !== undefined) return { configFile: input.adopted.configFile, adminPort: input.adminPort };
    const outdatedReason = await whyOutdated(environment, input, signal);
    if (outdatedReason !== undefined) return { outdated: outdatedReason };
    try {
      const writtenBootstrap = await writeBootstrap(environment, input);
      const { configFile } = writtenBootstrap;
      const isAlreadyValidated = input.validate && ((await priorValidation?.isAcceptedFor(input)) ?? false);
      if (input.validate && !isAlreadyValidated) await validateBootstrap(environment, input.binary, configFile, signal);
      const unreachableReason = await whyNotStarted(environment, input);
      return unreachableReason === undefined ? writtenBootstrap : { unreachable: unreachableReason };
    } catch (error) {
      if (error instanceof ChartpilotError && error.code === 'FILE_UNWRITABLE')
        return { unwritable: explainInOneLine(error) };
      throw error;
    }
  });
}

/** Certificates that could not be read at startup are not checked. */
async function whyOutdated(
  environment: PrepareEnvironment,
  { certificates }: PrepareOrder,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { certificates: directories, turns } = environment;
  if (certificates === null || certificates === '' || directories.length === 0) return undefined;
  const { digest, problems } = await turns.run(() => digestDirectories(directories, signal), signal);
  if (digest === certificates) return undefined;
  const reason = problems.length === 0 ? 'not validated yet, or rejected by Envoy' : problems.join('; ');
  return explainInOneLine(new ChartpilotError('CERTIFICATES_CHANGED', `${reason}; Envoy is not restarted`));
}

/** Replaces the file atomically, because another Envoy may be reading it. */
async function writeBootstrap(
  { source, configPath, admin }: PrepareEnvironment,
  { adminPort: requestedPort, ...run }: PrepareOrder,
): Promise<{ configFile: string; adminPort: number; node?: string }> {
  if ('customConfigFile' in source) return { configFile: resolve(source.customConfigFile), adminPort: requestedPort };
  const adminPort = requestedPort === 0 ? await freeAdminPort(admin.host, admin.port) : requestedPort;
  // Epochs of both base IDs may have the same number.
  const file = resolve(join(configPath, `envoy-rev${run.epoch}${adminPort === admin.port ? '' : 'b'}.json`));
  const generatedBootstrap = source.bootstrap(adminPort, run) as { readonly node?: { readonly id?: string } };
  try {
    ensureDirectory(resolve(configPath), 0o700);
    await replaceFile(file, bootstrapText(generatedBootstrap));
  } catch (error) {
    throw unwritableError(file, error, '--configPath');
  }
  const node = generatedBootstrap.node?.id;
  return { configFile: file, adminPort, ...(node !== undefined && { node }) };
}

export async function validateBootstrapWith(
  environment: PrepareEnvironment,
  binary: string,
  signal: AbortSignal,
): Promise<ValidationResult> {
  const { source, configPath, admin } = environment;
  if ('customConfigFile' in source) return validate(environment, binary, resolve(source.customConfigFile), signal);
  const run = { epoch: 0, baseId: 0 };
  const file = resolve(join(configPath, 'envoy-judged.json'));
  try {
    ensureDirectory(resolve(configPath), 0o700);
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
): Promise<ValidationResult> {
  // The bootstrap may name /dev/stdout or /dev/stderr, which Envoy opens.
  return validateWithEnvoy({ binary, guard }, validationArguments(flags, configFile), { signal, scratch });
}

async function validateBootstrap(
  environment: PrepareEnvironment,
  binary: string,
  configFile: string,
  signal: AbortSignal,
): Promise<void> {
  const result = await validate(environment, environment.binaries.pathOf(binary), configFile, signal);
  if (result.is === 'taken') return;
  const failureText = result.is === 'refused' ? 'Envoy rejects' : 'Envoy could not validate';
  const override = environment.userFiles?.override;
  const file = override === undefined ? configFile : `${configFile} with ${override.setting} ${override.path}`;
  throw new ChartpilotError('BOOTSTRAP_INVALID', `${failureText} ${file}: ${result.why}`);
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

export function bootstrapText(bootstrap: object): string {
  return `${JSON.stringify(bootstrap, undefined, 2)}\n`;
}
