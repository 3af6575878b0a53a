import { messageOf } from '../runtime/errors.ts';
import { isObject } from '../runtime/json-object.ts';
import { type Certificate, readCertificate } from './certificate.ts';
import { displayNameOf, issuerProblem, timeProblem } from './certificate-path.ts';
import { CertificateError, type CertificateProblem, problemOf } from './certificate-problem.ts';
import { parseSpiffeId } from './spiffe-id.ts';

export interface SpiffeBundle {
  /** Currently valid authorities; at least one. */
  readonly roots: readonly Certificate[];
  /** Increases with each change; `undefined` if the publisher sends none. */
  readonly sequence: number | undefined;
  readonly refreshHintSeconds: number | undefined;
  readonly ignoredEntries: readonly string[];
}

export class BundleError extends CertificateError {
  override readonly name = 'BundleError';

  constructor(message: string, { cause, path }: { readonly cause?: unknown; readonly path?: string } = {}) {
    super(problemOf('TRUST_BUNDLE_INVALID', message, path === undefined ? {} : { path }), { cause });
  }
}

/** Exceeds the roots of any trust domain, including rotations. */
const maxEntries = 100;

/**
 * Ignores entries for other purposes, but rejects a bundle with an invalid certificate.
 *
 * @param trustDomains domains for whose workloads the roots may sign; roots that name other domains are ignored
 * @throws BundleError if the bundle is invalid, or contains no currently valid authority
 */
export function readSpiffeBundle(text: string, trustDomains: readonly string[], time: Date): SpiffeBundle {
  const { keys, spiffe_sequence, spiffe_refresh_hint } = parseBundle(text);
  const roots = new Map<string, Certificate>();
  const ignoredEntries: string[] = [];
  keys.forEach((key, i) => {
    const root = certificateIn(key, i);
    if (root === undefined) return;
    const problem = issuerProblem(root) ?? timeProblem(root, time) ?? ownerProblem(root, trustDomains);
    if (problem === undefined) roots.set(root.sha256, root);
    else ignoredEntries.push(`keys[${i}]: ${displayNameOf(root)} ${problem.message}`);
  });
  if (roots.size === 0) {
    const reasonText = ignoredEntries.length === 0 ? 'no key with use x509-svid' : ignoredEntries.join('; ');
    throw new BundleError(`bundle has no usable root: ${reasonText}`);
  }
  return {
    roots: [...roots.values()],
    sequence: nonNegativeInteger('spiffe_sequence', spiffe_sequence),
    refreshHintSeconds: nonNegativeInteger('spiffe_refresh_hint', spiffe_refresh_hint),
    ignoredEntries: ignoredEntries,
  };
}

interface JwkSet {
  readonly keys: readonly unknown[];
  readonly spiffe_sequence?: unknown;
  readonly spiffe_refresh_hint?: unknown;
}

function parseBundle(text: string): JwkSet {
  let set: unknown;
  try {
    set = JSON.parse(text);
  } catch {
    throw new BundleError('response is not JSON');
  }
  if (!isObject(set) || !Array.isArray(set.keys)) throw new BundleError('response is not a JSON Web Key Set');
  if (set.keys.length > maxEntries)
    throw new BundleError(`keys must have at most ${maxEntries} entries, got ${set.keys.length}`, { path: 'keys' });
  return { ...set, keys: set.keys };
}

/** Returns `undefined` if the entry has another purpose or no certificate (X509-SVID.md §6.2). */
function certificateIn(key: unknown, i: number): Certificate | undefined {
  if (!isObject(key) || typeof key.kty !== 'string' || key.use !== 'x509-svid' || !Array.isArray(key.x5c))
    return undefined;
  const [first] = key.x5c as unknown[];
  if (first === undefined) return undefined;
  try {
    if (typeof first !== 'string' || !/^[A-Za-z0-9+/]+={0,2}$/.test(first)) throw new BundleError('is not base64');
    return readCertificate(new Uint8Array(Buffer.from(first, 'base64')));
  } catch (error) {
    throw new BundleError(`keys[${i}].x5c[0] ${messageOf(error)}`, { cause: error, path: `keys[${i}].x5c[0]` });
  }
}

/** A root may name its trust domain (X509-SVID.md §3.2); otherwise the configuration decides. */
export function ownerProblem(
  { alternativeNames }: Certificate,
  trustDomains: readonly string[],
): CertificateProblem | undefined {
  for (const uri of alternativeNames?.uris ?? []) {
    const id = parseSpiffeId(uri);
    if ('problem' in id) return otherOwner(`has the invalid SPIFFE ID ${JSON.stringify(uri)}: ${id.problem}`);
    if (id.path !== '') return otherOwner(`belongs to the workload ${uri}, not to a trust domain`);
    if (!trustDomains.includes(id.trustDomain)) {
      return otherOwner(`belongs to trust domain ${id.trustDomain}, expected ${trustDomains.join(' or ')}`);
    }
  }
  return undefined;
}

function otherOwner(message: string): CertificateProblem {
  return problemOf('TRUST_BUNDLE_INVALID', message);
}

function nonNegativeInteger(name: string, value: unknown): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  throw new BundleError(`${name} must be an integer >= 0, got ${JSON.stringify(value)}`, { path: name });
}
