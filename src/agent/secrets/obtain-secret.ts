import { fromPromise } from 'xstate';
import { identityName, rootsName } from '../../../machines/agent/secrets/held-secrets.ts';
import type { ObtainOrder, ObtainResult } from '../../../machines/agent/secrets/secret.machine.ts';
import { codeOf, messageOf } from '../../runtime/errors.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { systemRootFile } from '../identity/control-plane-roots.ts';
import { unionOf } from '../identity/root-set.ts';
import type { MountedFiles } from '../options/identity-options.ts';
import type { RevocationWarning } from './revocation-files.ts';
import { type RevocationFiles, readRootsWithLists } from './revocation-files.ts';
import type { SecretCounts } from './secret-counts.ts';
import { readPair, readRoots } from './secret-files.ts';
import type { SecretVault } from './secret-vault.ts';

export interface VerifiedSecret {
  readonly version: string;
  /** Hash of all roots that the authority sent. */
  readonly authorities?: string;
  /** Hash of the root that the certificate leads to. */
  readonly root?: string;
  readonly serialNumber?: string;
  readonly endsAtMs?: number;
}

export class ObtainError extends Error {
  override readonly name = 'NotObtained';
  /** Whether the authority rejected the credential, or could not verify it. */
  readonly unknown: boolean;
  readonly pushbackMs: number;

  constructor(
    reason: string,
    { unknown = false, pushbackMs = 0, cause }: { unknown?: boolean; pushbackMs?: number; cause?: unknown } = {},
  ) {
    super(reason, cause === undefined ? undefined : { cause });
    this.unknown = unknown;
    this.pushbackMs = pushbackMs;
  }
}

export interface ObtainEnvironment {
  readonly vault: SecretVault;
  readonly turns: FileTurns;
  readonly mounted: MountedFiles | undefined;
  readonly issue: (order: ObtainOrder, signal: AbortSignal) => Promise<VerifiedSecret>;
  readonly now: () => number;
  readonly random: () => number;
  /** Receives problems of files that are used nevertheless. */
  readonly warn?: (warning: RevocationWarning) => void;
  readonly counts?: SecretCounts;
}

export function obtainSecret(environment: ObtainEnvironment) {
  return fromPromise<ObtainResult, ObtainOrder>(async ({ input, signal }) => {
    const { now, random } = environment;
    try {
      const obtainedSecret = await countResult(environment, input, signal);
      const { version, authorities = '', root = '', serialNumber = '', endsAtMs = null } = obtainedSecret;
      const renewalDraw = { atMs: now(), draw: random() };
      return { outcome: 'obtained', version, authorities, root, serialNumber, endsAtMs, ...renewalDraw };
    } catch (error) {
      const { unknown, pushbackMs } = error instanceof ObtainError ? error : new ObtainError('');
      const code = codeOf(error) ?? (error instanceof ObtainError ? 'CERTIFICATE_NOT_ISSUED' : undefined);
      const refusal = { reason: messageOf(error), ...(code !== undefined && { code }), unknown, pushbackMs };
      return { outcome: 'refused', ...refusal, atMs: now(), draw: random() };
    }
  });
}

async function countResult(
  environment: ObtainEnvironment,
  order: ObtainOrder,
  signal: AbortSignal,
): Promise<VerifiedSecret> {
  const { counts } = environment;
  const startedAt = performance.now();
  try {
    const secret = await readSecret(environment, order, signal);
    if (order.source === 'authority') counts?.countCall(performance.now() - startedAt, true);
    return secret;
  } catch (error) {
    if (!signal.aborted && order.source === 'authority') counts?.countCall(performance.now() - startedAt, false);
    if (!signal.aborted && order.source === 'files') counts?.countFileFailure();
    if (!signal.aborted && order.name === identityName) counts?.identityFailed(messageOf(error));
    throw error;
  }
}

async function readSecret(
  environment: ObtainEnvironment,
  order: ObtainOrder,
  signal: AbortSignal,
): Promise<VerifiedSecret> {
  const { vault } = environment;
  const { name, source, parts } = order;
  if (source === 'authority') return environment.issue(order, signal);
  if (source === 'roots') {
    const { authorities, bundle } = parts;
    const roots = unionOf(vault.set('authorities', authorities), vault.set('bundle', bundle));
    return { version: vault.keepRoots(name, roots) };
  }
  const files = filesNamed(name, environment.mounted);
  if ('crl' in files) {
    const previousLists = vault.newestLists(name);
    const rootsWithLists = await environment.turns.run(
      () => readRootsWithLists(files, previousLists, environment.now()),
      signal,
    );
    signal.throwIfAborted();
    for (const warning of rootsWithLists.warnings) environment.warn?.(warning);
    const version = vault.keepRoots(name, unionOf(rootsWithLists.roots), rootsWithLists.lists);
    return { version, authorities: '', ...(rootsWithLists.endsAtMs !== null && { endsAtMs: rootsWithLists.endsAtMs }) };
  }
  // A read that hung may complete later: discard its result.
  if ('roots' in files) {
    const roots = await environment.turns.run(() => readRoots(files.roots), signal);
    signal.throwIfAborted();
    return { version: vault.keepRoots(name, unionOf(roots, vault.set('bundle', parts.bundle))), authorities: '' };
  }
  const pair = await environment.turns.run(() => readPair(files), signal);
  signal.throwIfAborted();
  return { version: vault.keepCertificate(name, pair) };
}

function filesNamed(
  name: string,
  mountedSecrets: MountedFiles | undefined,
): { certificate: string; key: string } | { roots: string } | RevocationFiles {
  if (mountedSecrets !== undefined && name === identityName)
    return { certificate: mountedSecrets.certificate, key: mountedSecrets.key };
  if (mountedSecrets !== undefined && name === rootsName) return { roots: mountedSecrets.roots };
  const [kind, ...nameParts] = name.split(':');
  const path = nameParts.join(':');
  const rootsAt = (file: string): string => (file === 'system' ? systemRootFile() : file);
  if (kind === 'file-root') return { roots: rootsAt(path) };
  const [firstPath = '', secondPath = ''] = path.split('~');
  return kind === 'file-root-crl'
    ? { roots: rootsAt(firstPath), crl: secondPath }
    : { certificate: firstPath, key: secondPath };
}
