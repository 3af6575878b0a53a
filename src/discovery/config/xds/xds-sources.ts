/** Used by `/ready`, `/debug/configsourcez` and metrics. */
import { hostname } from 'node:os';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { Recorder } from '../../../runtime/trace/recorder.ts';
import type { ControlPlaneIdentity } from './source-credentials.ts';
import { XdsSource, type XdsSourceStatus } from './xds-source.ts';
import type { XdsSourceLimits } from './xds-source-limits.ts';

export interface XdsSourcesOptions {
  readonly limits: XdsSourceLimits;
  /** The node in requests contains this namespace. */
  readonly namespace: string;
  readonly domain: string;
  readonly revision: string;
  readonly clusterId: string;
  readonly mesh: () => Pick<MeshConfig, 'configSources'>;
  readonly ownIdentity: () => ControlPlaneIdentity | undefined;
  readonly recorder: Recorder;
  readonly log: Logger;
}

export class XdsSources {
  readonly #options: XdsSourcesOptions;
  readonly #sources = new Set<XdsSource>();
  #count = 0;

  constructor(options: XdsSourcesOptions) {
    this.#options = options;
  }

  readonly open = (address: string): XdsSource => {
    const { limits, namespace, domain, revision, clusterId, mesh, ownIdentity, recorder, log } = this.#options;
    const source: XdsSource = new XdsSource(address, {
      ...{ limits, revision, recorder, log, number: ++this.#count },
      node: {
        id: `sidecar~127.0.0.1~${hostname()}.${namespace}~${namespace}.svc.${domain}`,
        metadata: {
          GENERATOR: 'api',
          ISTIO_REVISION: revision || 'default',
          NAMESPACE: namespace,
          CLUSTER_ID: clusterId,
        },
      },
      credentials: () => ({
        tls: mesh().configSources.find((configSource) => configSource.address === address)?.tlsSettings,
        tokenFile: limits.tokenFile,
        ownIdentity,
      }),
      onClosed: () => this.#sources.delete(source),
    });
    this.#sources.add(source);
    return source;
  };

  get statuses(): readonly XdsSourceStatus[] {
    return [...this.#sources].map(({ status }) => status);
  }

  get conditions(): readonly string[] {
    return [...this.#sources].flatMap(({ conditions }) => conditions);
  }

  /** @returns whether a source with this address exists */
  confirmDeletions(address: string): boolean {
    const namedSources = [...this.#sources].filter((source) => source.address === address);
    for (const source of namedSources) source.confirmDeletions();
    return namedSources.length > 0;
  }
}
