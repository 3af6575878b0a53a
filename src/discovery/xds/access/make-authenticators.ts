import { join } from 'node:path';
import type { MeshConfig } from '../../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../../model/mesh/trust-domains.ts';
import type { Logger } from '../../../runtime/output/log.ts';
import type { ApiServer } from '../../kubernetes/api-server.ts';
import { RepeatedLines } from '../stream/repeated-lines.ts';
import type { Authenticator } from './authenticator.ts';
import { bearerToken, clockLeewaySeconds, type NotYetValidToken } from './bearer-token.ts';
import { clientCertificate } from './client-certificate.ts';
import { forwardedCertificate } from './forwarded-certificate.ts';
import { parseJwtRule } from './jwt-rule.ts';
import { defaultAudience, localTokenFile, localTokenKey, localTokenRule } from './local-tokens.ts';
import { type TokenReviewOptions, tokenReview } from './token-review.ts';
import { workloadsOfMesh } from './workloads-of-mesh.ts';

export interface AccessOptions {
  readonly authenticates: boolean;
  /** JWT_RULE. Empty if not set. */
  readonly jwtRule: string;
  readonly authority: { readonly stateDirectory: string } | undefined;
  readonly trustedGateways: Parameters<typeof forwardedCertificate>[0];
  readonly clusterId: string;
  readonly clusterAliases: Readonly<Record<string, string>>;
}

export interface AccessParts {
  readonly logger: Logger;
  readonly mesh: () => Pick<MeshConfig, 'trustDomain' | 'trustDomainAliases'>;
  readonly revocations:
    | { isCertificateRevoked(serial: string): boolean; isTokenRevoked(id: string): boolean }
    | undefined;
  readonly server?: ApiServer | undefined;
  readonly remoteServer?: NonNullable<TokenReviewOptions['remoteServer']>;
}

/** @throws ChartpilotError if configured tokens cannot be verified, which would reject all clients */
export async function makeAuthenticators(
  { authenticates, jwtRule, authority, trustedGateways, clusterId, clusterAliases }: AccessOptions,
  { logger, mesh, revocations, server, remoteServer = () => undefined }: AccessParts,
): Promise<Authenticator[]> {
  const trustDomain = (): string => mesh().trustDomain;
  if (!authenticates) return [];
  const authenticators = [clientCertificate((serial) => revocations?.isCertificateRevoked(serial) === true)];
  const isRevoked = (id: string): boolean => revocations?.isTokenRevoked(id) === true;
  const repeatedLines = new RepeatedLines(logger, () => performance.now());
  const reportNotYetValid = (report: NotYetValidToken): void =>
    repeatedLines.warn(report.authenticator, 'token.notYetValid', { ...report, leewaySeconds: clockLeewaySeconds });
  const tokens = { trustDomain, isRevoked, reportNotYetValid };
  if (jwtRule !== '') {
    authenticators.push(bearerToken({ name: 'JWT_RULE', rule: parseJwtRule(jwtRule), ...tokens }));
  }
  if (authority !== undefined && authority.stateDirectory !== '') {
    const key = localTokenKey(join(authority.stateDirectory, localTokenFile));
    const rule = await localTokenRule(key, [defaultAudience]);
    authenticators.push(bearerToken({ name: 'local token', rule, ...tokens }));
  }
  if (server !== undefined) {
    const aliases = Object.entries(clusterAliases).filter(([, cluster]) => cluster === clusterId);
    const clusters = [clusterId, ...aliases.map(([alias]) => alias)];
    const nameOf = (claimedCluster: string): string =>
      Object.hasOwn(clusterAliases, claimedCluster) ? clusterAliases[claimedCluster]! : claimedCluster;
    const reviewers = {
      server,
      clusters,
      remoteServer: (claimedCluster: string) => remoteServer(nameOf(claimedCluster)),
    };
    authenticators.push(tokenReview({ ...reviewers, audience: defaultAudience, trustDomain, isRevoked }));
  }
  if (trustedGateways.length > 0) authenticators.push(forwardedCertificate(trustedGateways, trustDomain));
  return authenticators.map((authenticator) => workloadsOfMesh(authenticator, () => trustDomainsOf(mesh())));
}
