/** The effect of the start's stages that prepare something and end (machines/discovery/discovery.machine.ts). */
import { join } from 'node:path';
import { fromPromise } from 'xstate';
import type { Preparation } from '../../machines/discovery/discovery.machine.ts';
import type { PreparedStage } from '../../machines/discovery/protocol.ts';
import type { MeshConfig } from '../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../model/mesh/trust-domains.ts';
import { explainInOneLine } from '../runtime/errors.ts';
import type { Logger } from '../runtime/output/log.ts';
import type { Authenticator } from './ads/authentication.ts';
import { bearerToken } from './authentication/bearer-token.ts';
import { clientCertificate } from './authentication/client-certificate.ts';
import { forwardedCertificate } from './authentication/forwarded-certificate.ts';
import { parseJwtRule } from './authentication/jwt-rule.ts';
import { defaultAudience, localTokenFile, localTokenKey, localTokenRule } from './authentication/local-tokens.ts';
import { type TokenReviewOptions, tokenReview } from './authentication/token-review.ts';
import { workloadsOfMesh } from './authentication/workloads-of-mesh.ts';
import type { RevokedFile } from './authority/revoked-file.ts';
import type { DiscoveryOptions } from './discovery-options.ts';

import type { ApiServer } from './kubernetes/api-server.ts';
/** What each stage does; what it throws is the reason for which the start fails. */
export type StartStages = Readonly<Record<PreparedStage, () => void | Promise<void>>>;

export function prepareEffect(stages: StartStages) {
  return fromPromise<Preparation, { stage: PreparedStage }>(async ({ input: { stage } }) => {
    try {
      await stages[stage]();
      return {};
    } catch (error) {
      return { failure: explainInOneLine(error) };
    }
  });
}

/**
 * The first stage: who this control plane is.
 *
 * @param cluster the address of the API server of the one that is followed
 */
export function prepareEnvironment(options: DiscoveryOptions, cluster: string | undefined, log: Logger): void {
  const { registries, configDir, namespace, clusterId, domain } = options;
  log.info('discovery.identity', { cluster: clusterId, namespace, domain });
  if (cluster !== undefined) log.info('kubernetes.following', { server: cluster });
  else if (registries.includes('Kubernetes') && configDir !== '') {
    log.info('kubernetes.absent', { configDir });
  }
  if (registries.includes('MCP')) {
    const reason = 'services are read from ServiceEntries, not over MCP';
    log.warn('option.withoutEffect', { settings: '--registries MCP', reason });
  }
}

/**
 * Who says who a client of the port with TLS is, in the order in which they are asked (spec/discovery.md §2.1 G4 step 18).
 *
 * @param server of the cluster that is followed: it knows its tokens
 * @param remoteServer of another cluster, by its id: it knows its own
 * @throws ChartpilotError: a control plane that should take tokens and does not would turn everyone away
 */
export async function authenticatorsOf(
  { authenticates, jwtRule, authority, trustedGateways, clusterId, clusterAliases }: DiscoveryOptions,
  mesh: () => Pick<MeshConfig, 'trustDomain' | 'trustDomainAliases'>,
  revoked: RevokedFile | undefined,
  server?: ApiServer,
  remoteServer: NonNullable<TokenReviewOptions['remoteServer']> = () => undefined,
): Promise<Authenticator[]> {
  const trustDomain = (): string => mesh().trustDomain;
  if (!authenticates) return [];
  const authenticators = [clientCertificate((serial) => revoked?.isCertificateRevoked(serial) === true)];
  const isRevoked = (id: string): boolean => revoked?.isTokenRevoked(id) === true;
  if (jwtRule !== '') {
    authenticators.push(bearerToken({ name: 'JWT_RULE', rule: parseJwtRule(jwtRule), trustDomain, isRevoked }));
  }
  if (authority !== undefined && authority.stateDirectory !== '') {
    const key = localTokenKey(join(authority.stateDirectory, localTokenFile));
    const rule = await localTokenRule(key, [defaultAudience]);
    authenticators.push(bearerToken({ name: 'local token', rule, trustDomain, isRevoked }));
  }
  if (server !== undefined) {
    const aliases = Object.entries(clusterAliases).filter(([, cluster]) => cluster === clusterId);
    const clusters = [clusterId, ...aliases.map(([alias]) => alias)];
    const nameOf = (said: string): string => (Object.hasOwn(clusterAliases, said) ? clusterAliases[said]! : said);
    const reviewers = { server, clusters, remoteServer: (said: string) => remoteServer(nameOf(said)) };
    authenticators.push(tokenReview({ ...reviewers, audience: defaultAudience, trustDomain, isRevoked }));
  }
  if (trustedGateways.length > 0) authenticators.push(forwardedCertificate(trustedGateways, trustDomain));
  return authenticators.map((one) => workloadsOfMesh(one, () => trustDomainsOf(mesh())));
}
