/**
 * Roots that the mesh configuration names by an address: fetched, checked, in force under the address, and kept beside the authority
 * for the next start. The effects of the charts `trust-bundles` and `trust-bundle`.
 */
import { createHash } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BundleAnswer, TrustBundleInput } from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import type { Certificate } from '../../identity/certificate.ts';
import { readSpiffeBundle } from '../../identity/spiffe-bundle.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import { messageOf } from '../../runtime/errors.ts';
import { readBoundedText } from '../../runtime/files/bounded-file.ts';
import { makeFolder } from '../../runtime/files/make-folder.ts';
import { replaceFileSync } from '../../runtime/files/replace-file.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { endpointProblem, fetchBundle, mostBundleBytes } from './fetch-bundle.ts';
import { HeldBundles } from './held-bundles.ts';

export interface BundleEndpointsOptions {
  /** Of the mesh, now. */
  readonly mesh: () => Pick<MeshConfig, 'caCertificates' | 'trustDomain' | 'trustDomainAliases'>;
  /** Where bundles are kept; empty: nowhere, and after a restart they are fetched before they count. */
  readonly directory: string;
  readonly logger: Pick<Logger, 'warn'>;
  readonly now: () => Date;
  /** For all of a question. */
  readonly timeoutMs?: number;
  /** PEM, instead of the roots that Node knows; for tests. */
  readonly ca?: string;
}

interface Bundle {
  readonly version: string;
  readonly text: string;
  readonly roots: readonly Certificate[];
}

/** For the debug page. */
export interface BundleStatus {
  readonly endpoint: string;
  readonly trustDomains: readonly string[];
  readonly version: string;
  readonly roots: number;
}

const usualTimeoutMs = 10_000;
const keptFile = /^bundle-[0-9a-f]{16}\.json$/;

export class BundleEndpoints {
  readonly #options: BundleEndpointsOptions;
  readonly #urls = new Map<string, { readonly url: string; readonly trustDomains: readonly string[] }>();
  #held = new HeldBundles<Bundle>();

  constructor(options: BundleEndpointsOptions) {
    this.#options = options;
  }

  /** Of an address in the mesh configuration; none as long as nothing good has come from it. */
  rootsOf(url: string): readonly Certificate[] {
    return this.#held.inForce(nameOf(url))?.roots ?? [];
  }

  describe(): BundleStatus[] {
    return [...this.#urls].map(([endpoint, { trustDomains }]) => {
      const { version = '', roots = [] } = this.#held.inForce(endpoint) ?? {};
      return { endpoint, trustDomains, version, roots: roots.length };
    });
  }

  // ---- effects of the charts

  /** Endpoints that count for the mesh, each once. What others have said is forgotten, on the disk as well. */
  find(): TrustBundleInput[] {
    const { caCertificates, ...mesh } = this.#options.mesh();
    const ours = trustDomainsOf(mesh);
    const found = new Map<string, { url: string; trustDomains: string[] }>();
    for (const { spiffeBundleUrl: url, trustDomains } of caCertificates) {
      const known = (trustDomains.length === 0 ? ours.slice(0, 1) : trustDomains).filter((one) => ours.includes(one));
      if (url === undefined || known.length === 0 || endpointProblem(url) !== undefined) continue;
      const before = found.get(nameOf(url))?.trustDomains ?? [];
      found.set(nameOf(url), { url, trustDomains: [...new Set([...before, ...known])].sort() });
    }
    this.#urls.clear();
    for (const [name, endpoint] of found) this.#urls.set(name, endpoint);
    this.#held = this.#held.following(found.keys());
    this.#forgetFiles();
    return [...found].map(([endpoint, { trustDomains }]) => ({ endpoint, trustDomains }));
  }

  /**
   * What is in force, where the endpoint is to count for other trust domains; else what was kept by another life of this program. A disk that
   * was full has an older one.
   */
  async recall({ endpoint, trustDomains }: TrustBundleInput): Promise<BundleAnswer> {
    const { directory } = this.#options;
    const inForce = this.#held.inForce(endpoint)?.text;
    if (inForce === undefined && directory === '') return { outcome: 'failed', reason: 'no saved trust bundle' };
    try {
      const text = inForce ?? readBoundedText(this.#fileOf(endpoint), mostBundleBytes);
      return this.#taken(endpoint, trustDomains, text);
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  async fetch({ endpoint, trustDomains }: TrustBundleInput, signal: AbortSignal): Promise<BundleAnswer> {
    const { timeoutMs = usualTimeoutMs, ca } = this.#options;
    const known = this.#urls.get(endpoint);
    if (known === undefined) return { outcome: 'failed', reason: 'the mesh configuration no longer has this endpoint' };
    try {
      const text = await fetchBundle(known.url, { timeoutMs, signal, ...(ca !== undefined && { ca }) });
      return this.#taken(endpoint, trustDomains, text);
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  adopt(endpoint: string, version: string): void {
    const { directory, logger } = this.#options;
    const bundle = this.#held.candidate(endpoint);
    if (bundle?.version !== version) return;
    this.#held = this.#held.adopted(endpoint, version);
    if (directory === '') return;
    const file = this.#fileOf(endpoint);
    try {
      makeFolder(directory, 0o700);
      replaceFileSync(file, bundle.text, { flush: 'content' });
    } catch (error) {
      logger.warn('trust-bundle.notSaved', { endpoint, reason: messageOf(error) });
    }
  }

  #taken(endpoint: string, trustDomains: readonly string[], text: string): BundleAnswer {
    const { logger, now } = this.#options;
    const { roots, sequence, refreshHintSeconds, passedOver } = readSpiffeBundle(text, trustDomains, now());
    const version = hashOf(
      roots
        .map(({ sha256 }) => sha256)
        .sort()
        .join(),
    );
    if (this.#held.candidate(endpoint)?.version !== version) {
      for (const reason of passedOver) logger.warn('authority.rootIgnored', { endpoint, reason });
    }
    this.#held = this.#held.offered(endpoint, { version, text, roots });
    const refreshMs = refreshHintSeconds === undefined ? null : refreshHintSeconds * 1_000;
    return { outcome: 'fetched', version, sequence: sequence ?? null, refreshMs };
  }

  #fileOf(endpoint: string): string {
    return join(this.#options.directory, `bundle-${hashOf(endpoint)}.json`);
  }

  #forgetFiles(): void {
    const { directory } = this.#options;
    if (directory === '') return;
    const kept = new Set([...this.#urls.keys()].map((endpoint) => this.#fileOf(endpoint)));
    try {
      const files = readdirSync(directory).filter((name) => keptFile.test(name));
      for (const file of files.map((name) => join(directory, name))) if (!kept.has(file)) rmSync(file, { force: true });
    } catch {
      // There is no directory yet, so there is nothing in it.
    }
  }
}

/** What stands for an address in events, logs and names of files: without what may be secret in it, and yet one for each. */
function nameOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { origin, pathname, search } = new URL(url);
  return search === '' ? `${origin}${pathname}` : `${origin}${pathname} (${hashOf(url).slice(0, 8)})`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
