/** The leader writes and renews a Secret for each DNS certificate of the mesh configuration. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { type Certificate, readCertificate, readCertificates } from '../../identity/certificate.ts';
import { createRequestFor } from '../../identity/certificate-request.ts';
import { backdatingMs, issueLeaf } from '../../identity/issue.ts';
import type { DnsCertificate } from '../../model/mesh/mesh-config.ts';
import { watchClockSteps } from '../../runtime/clock-steps.ts';
import { reasonError } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { ActiveAuthority } from '../ca/authority.ts';
import type { Registrar } from '../ca/issuing/registrar.ts';
import type { Duty, DutyReport, DutyRun } from '../election/duty.ts';
import type { WriteGate } from '../election/write-gate.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import type { ObjectStore } from '../kubernetes/store/object-store.ts';
import { DueKeys } from './due-keys.ts';

export interface DnsSecrets {
  readonly namespace: string;
  readonly store: Pick<ObjectStore, 'get'>;
  readonly whenSynced: Promise<unknown>;
  onChanged(onChanged: () => void): void;
}

export interface DnsCertificatesOptions {
  /** Revisions have separate Leases, because their mesh configurations differ. */
  readonly lease: string;
  readonly secrets: DnsSecrets;
  readonly certificates: () => readonly DnsCertificate[];
  readonly activeAuthority: () => ActiveAuthority | undefined;
  readonly registrar?: Registrar;
  /** Certificates that chain to other roots are reissued. */
  readonly roots: () => readonly Certificate[];
  readonly now: () => Date;
}

export const dnsSecretType = 'istio.io/dns-key-and-cert';
const keys = { chain: 'cert-chain.pem', key: 'key.pem', root: 'root-cert.pem' } as const;
const lifetimeMs = 90 * 24 * 3_600_000;
/** A certificate is renewed when this share of its lifetime remains. */
const graceRatio = 0.5;
const minGraceMs = 10 * 60_000;
const checkIntervalMs = 60_000;
/**
 * The limit per Secret and period prevents endless writes if each new certificate is due immediately (expiring authority, short lifetime) or another
 * writer overwrites it.
 */
const maxWrites = 4;
const writePeriodMs = 60_000;

export class DnsCertificates implements Duty {
  readonly lease: string;
  readonly #options: DnsCertificatesOptions;
  readonly #dueKeys = new DueKeys();
  readonly #recentWrites = new Map<string, { readonly since: number; count: number }>();
  #isSynced = false;

  constructor(options: DnsCertificatesOptions) {
    this.#options = options;
    this.lease = options.lease;
    options.secrets.onChanged(() => this.check());
    void options.secrets.whenSynced.then(() => {
      this.#isSynced = true;
      this.check();
    });
  }

  watch(onDue: () => void): () => void {
    const stop = this.#dueKeys.watch(onDue);
    const timer = setInterval(() => this.check(), checkIntervalMs);
    timer.unref();
    const stopClock = watchClockSteps(() => this.check());
    return () => {
      clearInterval(timer);
      stopClock();
      stop();
    };
  }

  get isDue(): boolean {
    return this.#dueKeys.isDue;
  }

  /** Must be called when the mesh configuration, the authority or the time changed. */
  check(): void {
    if (!this.#isSynced) return;
    for (const certificate of this.#options.certificates()) {
      if (this.#isWriteLimitReached(certificate) || this.#problemOf(certificate) === undefined) continue;
      this.#dueKeys.add(certificate.secretName);
    }
  }

  writeDue(run: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    const certificates = this.#options.certificates();
    return this.#dueKeys.write(
      run,
      () => (this.#isSynced ? certificates.map(({ secretName }) => secretName) : []),
      (name) =>
        this.#write(
          certificates.find(({ secretName }) => secretName === name),
          writeGate,
        ),
    );
  }

  async #write(certificate: DnsCertificate | undefined, writeGate: WriteGate): Promise<boolean> {
    if (
      certificate === undefined ||
      this.#isWriteLimitReached(certificate) ||
      this.#problemOf(certificate) === undefined
    )
      return false;
    const { namespace } = this.#options.secrets;
    const current = this.#secretOf(certificate);
    const data = await this.#createData(certificate);
    const secretRef = { resource: resourceOf('Secret'), namespace, name: certificate.secretName };
    if (current === undefined)
      await writeGate.write({ ...secretRef, verb: 'create', object: { type: dnsSecretType, data } });
    else {
      const version = current.metadata.resourceVersion ?? '';
      await writeGate.write({ ...secretRef, verb: 'patch', version, fields: { data } });
    }
    this.#recordWrite(certificate);
    return true;
  }

  /** If the limit is reached, the next check retries. */
  #isWriteLimitReached({ secretName }: DnsCertificate): boolean {
    const { since, count } = this.#recentWrites.get(secretName) ?? { since: 0, count: 0 };
    const elapsedMs = this.#options.now().getTime() - since;
    return count >= maxWrites && elapsedMs >= 0 && elapsedMs < writePeriodMs;
  }

  #recordWrite({ secretName }: DnsCertificate): void {
    const nowMs = this.#options.now().getTime();
    const configuredNames = new Set(this.#options.certificates().map((dnsCertificate) => dnsCertificate.secretName));
    for (const name of this.#recentWrites.keys()) if (!configuredNames.has(name)) this.#recentWrites.delete(name);
    const recentWrite = this.#recentWrites.get(secretName);
    const elapsedMs = nowMs - (recentWrite?.since ?? Number.NaN);
    if (recentWrite !== undefined && elapsedMs >= 0 && elapsedMs < writePeriodMs) recentWrite.count++;
    else this.#recentWrites.set(secretName, { since: nowMs, count: 1 });
  }

  #secretOf({ secretName }: DnsCertificate): KubernetesObject | undefined {
    const { namespace, store } = this.#options.secrets;
    return store.get(`${namespace}/${secretName}`);
  }

  /** `undefined` if the certificate is valid. */
  #problemOf(certificate: DnsCertificate): string | undefined {
    const { roots, now } = this.#options;
    const secret = this.#secretOf(certificate);
    if (secret === undefined) return 'the Secret does not exist';
    try {
      const [leaf] = readCertificates(textOf(secret, keys.chain));
      const key = createPrivateKey(textOf(secret, keys.key));
      const root = readCertificates(textOf(secret, keys.root))[0];
      if (!leaf!.x509.checkPrivateKey(key)) return 'the key does not match the certificate';
      if (!hasNames(leaf!, certificate.dnsNames)) return 'the certificate has other DNS names';
      if (!roots().some(({ sha256 }) => sha256 === root!.sha256)) return 'the root is no longer trusted';
      return isRenewalDue(leaf!, now()) ? 'the certificate expires soon' : undefined;
    } catch {
      return 'the Secret has no valid certificate and key';
    }
  }

  async #createData({ dnsNames }: DnsCertificate): Promise<Record<string, string>> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { chain, root } = await this.#signCertificate(privateKey, dnsNames);
    const texts = {
      [keys.chain]: chain.map(({ pem }) => pem).join(''),
      [keys.key]: privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
      [keys.root]: root.pem,
    };
    return Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));
  }

  async #signCertificate(
    privateKey: KeyObject,
    dnsNames: readonly string[],
  ): Promise<{ chain: readonly Certificate[]; root: Certificate }> {
    const { registrar, activeAuthority, now } = this.#options;
    const names = { uris: [], dns: dnsNames, ips: [] };
    const key = createPublicKey(privateKey);
    if (registrar !== undefined) {
      const certificateOrder = {
        request: createRequestFor(privateKey, names),
        key,
        names,
        isForClients: false,
        lifetimeMs,
      };
      const result = await registrar.sign(certificateOrder, { endsAt: 0, client: this.lease });
      if ('tryAgainAfterMs' in result)
        throw reasonError('CERTIFICATE_REQUESTS_EXHAUSTED', 'too many certificate requests');
      if (!('issued' in result))
        throw reasonError('SIGNER_FAILED', 'refused' in result ? result.refused : result.failed);
      const { leaf, intermediates, root } = result.issued;
      return { chain: [leaf, ...intermediates], root };
    }
    const material = activeAuthority()?.serverAuthority;
    if (material === undefined) throw reasonError('AUTHORITY_UNAVAILABLE', 'the certificate authority is not ready');
    const expiryMs = Math.min(now().getTime() + lifetimeMs, material.notAfter.getTime());
    if (expiryMs <= now().getTime())
      throw reasonError('AUTHORITY_EXPIRED', `the certificate authority expired on ${material.notAfter.toISOString()}`);
    const lifetime = { notBefore: new Date(now().getTime() - backdatingMs), notAfter: new Date(expiryMs) };
    const leaf = readCertificate(issueLeaf(material.issuer, key, names, lifetime));
    return { chain: [leaf, ...material.path.slice(0, -1)], root: material.root };
  }
}

function textOf({ data }: KubernetesObject, key: string): string {
  const value = isObject(data) ? data[key] : undefined;
  return Buffer.from(typeof value === 'string' ? value : '', 'base64').toString();
}

function hasNames({ alternativeNames }: Certificate, dnsNames: readonly string[]): boolean {
  const { dns = [], uris = [], ips = [], otherNames = 0 } = alternativeNames ?? {};
  return (
    uris.length + ips.length + otherNames === 0 &&
    new Set(dns).size === new Set([...dns, ...dnsNames]).size &&
    dns.length >= new Set(dnsNames).size
  );
}

function isRenewalDue({ notBefore, notAfter }: Certificate, now: Date): boolean {
  const lifetimeMs = notAfter.getTime() - notBefore.getTime();
  return notAfter.getTime() - now.getTime() < Math.max(lifetimeMs * graceRatio, minGraceMs);
}
