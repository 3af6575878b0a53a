/** Lists known certificates with their expiry for `/debug/certificates`. Private keys are not read. */
import { X509Certificate } from 'node:crypto';
import type { Certificate } from '../../../identity/certificate.ts';
import { displayNameOf } from '../../../identity/certificate-path.ts';
import { pemBlocks } from '../../../identity/pem.ts';
import type { Config } from '../../../model/config/config.ts';
import { type Secret, secretBytes } from '../../../model/kinds/kubernetes/secret.ts';
import type { Turns } from '../../../runtime/turns.ts';
import type { ActiveAuthority } from '../../ca/authority.ts';
import type { WorkloadEnds } from '../../ca/ledger/workload-ledger.ts';

export interface CertificateSources {
  /** `undefined` until this process signs certificates. */
  readonly authority?: ActiveAuthority | undefined;
  /** Roots of the mesh configuration and of trust domain aliases, in addition to the root of the authority. */
  readonly trustedRoots: readonly Certificate[];
  readonly server?: { readonly notAfter: Date; readonly from: 'files' | 'authority' } | undefined;
  /** Earliest expiry first. */
  readonly workloads: WorkloadEnds;
  readonly secrets: Iterable<Config<Secret>>;
}

export interface KnownCertificate {
  readonly kind: 'workload' | 'authority' | 'trusted root' | 'server' | 'secret';
  /** SPIFFE ID, subject, or `namespace/name` and entry of a Secret. */
  readonly name: string;
  /** ISO 8601. */
  readonly expires: string;
  readonly renewal: string;
  /** Whether the workload reports to this replica that it uses this certificate. If not, it may use a later one. */
  readonly isConfirmed?: boolean;
}

export interface CertificatesView {
  /** ISO 8601. */
  readonly now: string;
  /** Includes unlisted certificates. */
  readonly counts: Readonly<Record<string, number>>;
  /** Earliest expiry first. */
  readonly certificates: readonly KnownCertificate[];
  /** Secrets that exceed the limit or contain no valid certificate. */
  readonly unread: readonly string[];
  /** Number of workloads whose certificate another replica signed, so that its expiry is unknown here. */
  readonly signedElsewhere: number;
}

const maxSecrets = 5_000;
const maxUnreadSecrets = 20;
const certificateEntries = ['tls.crt', 'cert', 'ca.crt', 'cacert'] as const;

export async function certificatesView(
  sources: CertificateSources,
  { now, max: maxCertificates, turns }: { readonly now: Date; readonly max: number; readonly turns: Turns },
): Promise<CertificatesView> {
  const certificates: KnownCertificate[] = [
    ...certificatesOfAuthority(sources),
    ...certificatesOfServer(sources),
    ...certificatesOfWorkloads(sources),
  ];
  const unreadSecrets: string[] = [];
  let secrets = 0;
  for (const secret of sources.secrets) {
    if (++secrets > maxSecrets) continue;
    const secretCertificates = certificatesOfSecret(secret);
    if (typeof secretCertificates !== 'string') certificates.push(...secretCertificates);
    else if (unreadSecrets.length < maxUnreadSecrets) unreadSecrets.push(secretCertificates);
    await turns.waitIfTurnEnded();
  }
  if (secrets > maxSecrets) unreadSecrets.unshift(`${secrets - maxSecrets} Secrets beyond the first ${maxSecrets}`);
  certificates.sort((one, other) => (one.expires < other.expires ? -1 : one.expires > other.expires ? 1 : 0));
  const counts = new Map<string, number>();
  for (const { kind } of certificates) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  if (sources.workloads.count > 0) counts.set('workload', sources.workloads.count);
  return {
    now: now.toISOString(),
    counts: Object.fromEntries(counts),
    certificates: certificates.slice(0, maxCertificates),
    unread: unreadSecrets,
    signedElsewhere: sources.workloads.signedElsewhere,
  };
}

function* certificatesOfAuthority({ authority, trustedRoots }: CertificateSources): Iterable<KnownCertificate> {
  const listedNames = new Set<string>();
  const renewal = 'root rotation, see docs/identity.md';
  for (const { path } of authority?.authorities ?? []) {
    for (const certificate of path) {
      if (listedNames.has(certificate.sha256)) continue;
      listedNames.add(certificate.sha256);
      yield {
        kind: 'authority',
        name: displayNameOf(certificate),
        expires: certificate.notAfter.toISOString(),
        renewal,
      };
    }
  }
  for (const certificate of trustedRoots) {
    if (listedNames.has(certificate.sha256)) continue;
    listedNames.add(certificate.sha256);
    const bundleRenewer = 'the owner of the mesh configuration or of the bundle endpoint';
    yield {
      kind: 'trusted root',
      name: displayNameOf(certificate),
      expires: certificate.notAfter.toISOString(),
      renewal: bundleRenewer,
    };
  }
}

function* certificatesOfServer({ server }: CertificateSources): Iterable<KnownCertificate> {
  if (server === undefined) return;
  const renewal = server.from === 'files' ? 'the owner of --tlsCertFile' : 'the control plane';
  yield { kind: 'server', name: 'secure xDS port and webhooks', expires: server.notAfter.toISOString(), renewal };
}

function* certificatesOfWorkloads({ workloads }: CertificateSources): Iterable<KnownCertificate> {
  for (const { identity, node, endsAt, isConfirmed } of workloads.first) {
    const name = node === '' ? identity : `${identity} (${node})`;
    yield { kind: 'workload', name, expires: new Date(endsAt).toISOString(), renewal: 'its agent', isConfirmed };
  }
}

const readSecrets = new WeakMap<object, readonly KnownCertificate[] | string>();

/** Parsing is slow, so the result is cached by Secret version. @returns an explanation if there is no valid certificate */
function certificatesOfSecret(secret: Config<Secret>): readonly KnownCertificate[] | string {
  let cachedReading = readSecrets.get(secret);
  if (cachedReading === undefined) {
    cachedReading = certificatesOf(secret);
    readSecrets.set(secret, cachedReading);
  }
  return cachedReading;
}

function certificatesOf({ namespace, name, spec }: Config<Secret>): readonly KnownCertificate[] | string {
  const certificates: KnownCertificate[] = [];
  for (const entry of certificateEntries) {
    const bytes = secretBytes(spec, entry);
    if (bytes === undefined) continue;
    try {
      const expiryTimes = pemBlocks(Buffer.from(bytes).toString('latin1'))
        .filter(({ label }) => label === 'CERTIFICATE')
        .map(({ der }) => new X509Certificate(der).validToDate.getTime());
      if (expiryTimes.length === 0) return `Secret ${namespace}/${name}: ${entry} has no certificate`;
      const expiryText = new Date(Math.min(...expiryTimes)).toISOString();
      certificates.push({
        kind: 'secret',
        name: `${namespace}/${name} ${entry}`,
        expires: expiryText,
        renewal: 'the owner of the Secret',
      });
    } catch {
      // The original error may contain Secret data.
      return `Secret ${namespace}/${name}: ${entry} is not a certificate in PEM`;
    }
  }
  return certificates;
}
