/** Fetched bundles are saved in files, so that they apply at the next start. */
import { createHash } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BundleResponse, TrustBundleInput } from '../../../machines/discovery/bundles/trust-bundle.machine.ts';
import type { Certificate } from '../../identity/certificate.ts';
import { readSpiffeBundle } from '../../identity/spiffe-bundle.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import { messageOf } from '../../runtime/errors.ts';
import { readBoundedText } from '../../runtime/files/bounded-file.ts';
import { ensureDirectory } from '../../runtime/files/make-folder.ts';
import { replaceFileSync } from '../../runtime/files/replace-file.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { endpointProblem, fetchBundle, maxBundleBytes } from './fetch-bundle.ts';
import { HeldBundles } from './held-bundles.ts';

export interface BundleEndpointsOptions {
  readonly mesh: () => Pick<MeshConfig, 'caCertificates' | 'trustDomain' | 'trustDomainAliases'>;
  /** Directory of saved bundles. If empty, no bundle applies after a restart until it is fetched. */
  readonly directory: string;
  readonly logger: Pick<Logger, 'warn'>;
  readonly now: () => Date;
  readonly timeoutMs?: number;
  readonly ca?: string;
}

interface Bundle {
  readonly version: string;
  readonly text: string;
  readonly roots: readonly Certificate[];
}

export interface BundleStatus {
  readonly endpoint: string;
  readonly trustDomains: readonly string[];
  readonly version: string;
  readonly roots: number;
}

const defaultTimeoutMs = 10_000;
const savedFilePattern = /^bundle-[0-9a-f]{16}\.json$/;

export class BundleEndpoints {
  readonly #options: BundleEndpointsOptions;
  readonly #urls = new Map<string, { readonly url: string; readonly trustDomains: readonly string[] }>();
  #bundles = new HeldBundles<Bundle>();

  constructor(options: BundleEndpointsOptions) {
    this.#options = options;
  }

  rootsOf(url: string): readonly Certificate[] {
    return this.#bundles.activeBundle(nameOf(url))?.roots ?? [];
  }

  describe(): BundleStatus[] {
    return [...this.#urls].map(([endpoint, { trustDomains }]) => {
      const { version = '', roots = [] } = this.#bundles.activeBundle(endpoint) ?? {};
      return { endpoint, trustDomains, version, roots: roots.length };
    });
  }

  /** Also deletes the bundles and files of endpoints that are not in the current mesh configuration. */
  find(): TrustBundleInput[] {
    const { caCertificates, ...mesh } = this.#options.mesh();
    const meshTrustDomains = trustDomainsOf(mesh);
    const endpointsByUrl = new Map<string, { url: string; trustDomains: string[] }>();
    for (const { spiffeBundleUrl: url, trustDomains } of caCertificates) {
      const endpointDomains = (trustDomains.length === 0 ? meshTrustDomains.slice(0, 1) : trustDomains).filter(
        (trustDomain) => meshTrustDomains.includes(trustDomain),
      );
      if (url === undefined || endpointDomains.length === 0 || endpointProblem(url) !== undefined) continue;
      const previous = endpointsByUrl.get(nameOf(url))?.trustDomains ?? [];
      endpointsByUrl.set(nameOf(url), { url, trustDomains: [...new Set([...previous, ...endpointDomains])].sort() });
    }
    this.#urls.clear();
    for (const [name, endpoint] of endpointsByUrl) this.#urls.set(name, endpoint);
    this.#bundles = this.#bundles.withEndpoints(endpointsByUrl.keys());
    this.#forgetFiles();
    return [...endpointsByUrl].map(([endpoint, { trustDomains }]) => ({ endpoint, trustDomains }));
  }

  /**
   * Validates the active bundle again, because trust domains may have changed. Without one, loads the saved bundle, which is outdated if the disk was
   * full.
   */
  async restoreSavedBundle({ endpoint, trustDomains }: TrustBundleInput): Promise<BundleResponse> {
    const { directory } = this.#options;
    const activeText = this.#bundles.activeBundle(endpoint)?.text;
    if (activeText === undefined && directory === '') return { outcome: 'failed', reason: 'no saved trust bundle' };
    try {
      const text = activeText ?? readBoundedText(this.#fileOf(endpoint), maxBundleBytes);
      return this.#parseAndStoreBundle(endpoint, trustDomains, text);
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  async fetch({ endpoint, trustDomains }: TrustBundleInput, signal: AbortSignal): Promise<BundleResponse> {
    const { timeoutMs = defaultTimeoutMs, ca } = this.#options;
    const endpointUrl = this.#urls.get(endpoint);
    if (endpointUrl === undefined)
      return { outcome: 'failed', reason: 'the mesh configuration no longer has this endpoint' };
    try {
      const text = await fetchBundle(endpointUrl.url, { timeoutMs, signal, ...(ca !== undefined && { ca }) });
      return this.#parseAndStoreBundle(endpoint, trustDomains, text);
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  setActive(endpoint: string, version: string): void {
    const { directory, logger } = this.#options;
    const bundle = this.#bundles.candidateBundle(endpoint);
    if (bundle?.version !== version) return;
    this.#bundles = this.#bundles.withAdopted(endpoint, version);
    if (directory === '') return;
    const file = this.#fileOf(endpoint);
    try {
      ensureDirectory(directory, 0o700);
      replaceFileSync(file, bundle.text, { flush: 'content' });
    } catch (error) {
      logger.warn('trust-bundle.notSaved', { endpoint, reason: messageOf(error) });
    }
  }

  #parseAndStoreBundle(endpoint: string, trustDomains: readonly string[], text: string): BundleResponse {
    const { logger, now } = this.#options;
    const { roots, sequence, refreshHintSeconds, ignoredEntries } = readSpiffeBundle(text, trustDomains, now());
    const version = hashOf(
      roots
        .map(({ sha256 }) => sha256)
        .sort()
        .join(),
    );
    if (this.#bundles.candidateBundle(endpoint)?.version !== version) {
      for (const reason of ignoredEntries) logger.warn('authority.rootIgnored', { endpoint, reason });
    }
    this.#bundles = this.#bundles.withOffered(endpoint, { version, text, roots });
    const refreshMs = refreshHintSeconds === undefined ? null : refreshHintSeconds * 1_000;
    return { outcome: 'fetched', version, sequence: sequence ?? null, refreshMs };
  }

  #fileOf(endpoint: string): string {
    return join(this.#options.directory, `bundle-${hashOf(endpoint)}.json`);
  }

  #forgetFiles(): void {
    const { directory } = this.#options;
    if (directory === '') return;
    const filesToKeep = new Set([...this.#urls.keys()].map((endpoint) => this.#fileOf(endpoint)));
    try {
      const files = readdirSync(directory).filter((name) => savedFilePattern.test(name));
      for (const file of files.map((name) => join(directory, name)))
        if (!filesToKeep.has(file)) rmSync(file, { force: true });
    } catch {
      // The directory does not exist yet.
    }
  }
}

/** The name contains no secret parts of the URL, because it appears in events, logs and file names. */
function nameOf(url: string): string {
  if (!URL.canParse(url)) return url;
  const { origin, pathname, search } = new URL(url);
  return search === '' ? `${origin}${pathname}` : `${origin}${pathname} (${hashOf(url).slice(0, 8)})`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
