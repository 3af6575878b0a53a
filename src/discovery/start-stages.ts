import type { PreparedStage } from '../../machines/discovery/protocol.ts';
import type { MeshConfig } from '../model/mesh/mesh-config.ts';
import type { Logger } from '../runtime/output/log.ts';
import type { Ca } from './ca/make-ca.ts';
import type { FollowedCluster } from './cluster/followed-cluster.ts';
import type { DiscoveryOptions } from './options/discovery-options.ts';
import { supportedRegistries } from './registry/registry-names.ts';
import type { RemoteClusters } from './remote/remote-clusters.effects.ts';
import type { Authenticator } from './xds/access/authenticator.ts';
import { makeAuthenticators } from './xds/access/make-authenticators.ts';
/** The error of a task is the reason why startup fails. */
export type StartStages = Readonly<Record<PreparedStage, () => void | Promise<void>>>;

export interface StageParts {
  readonly options: DiscoveryOptions;
  readonly cluster: FollowedCluster | undefined;
  /** Why the cluster is unusable; `undefined` if it is usable or not configured. */
  readonly problem: unknown;
  readonly config: { readonly checkSources: () => void };
  readonly ca: Ca;
  readonly remotes: Pick<RemoteClusters, 'serverOf'>;
  readonly mesh: () => MeshConfig;
  /** The last stage adds the authenticators. */
  readonly authenticators: Authenticator[];
  readonly log: Logger;
}

export function makeStages(sources: StageParts): StartStages {
  const { options, cluster, problem, config, ca, remotes, mesh, authenticators, log } = sources;
  return {
    environment: () => {
      if (problem !== undefined) throw problem;
      ca.check();
      prepareEnvironment(options, cluster?.url, log);
    },
    'config-sources': config.checkSources,
    registries: () => void supportedRegistries(options.registries),
    'server-certificates': () => {
      const { serialNumber, notAfter } = ca.portCertificate!.load();
      log.info('certificate.loaded', { serialNumber, notAfter: notAfter.toISOString() });
    },
    authenticators: async () => {
      const remoteServer = (id: string) => remotes.serverOf(id);
      const access = { logger: log, mesh, revocations: ca.signing?.revokedFile, server: cluster?.server, remoteServer };
      authenticators.push(...(await makeAuthenticators(options, access)));
    },
  };
}

/** @param cluster address of the cluster's API server */
function prepareEnvironment(options: DiscoveryOptions, cluster: string | undefined, log: Logger): void {
  const { registries, configDir, namespace, clusterId, domain } = options;
  log.info('discovery.identity', { cluster: clusterId, namespace, domain });
  if (cluster !== undefined) log.info('kubernetes.following', { server: cluster });
  else if (registries.includes('Kubernetes') && configDir !== '') {
    log.info('kubernetes.absent', { configDir });
  }
  if (registries.includes('MCP')) {
    const reason = 'MCP is not supported; use ServiceEntries';
    log.warn('option.withoutEffect', { settings: '--registries MCP', reason });
  }
}
