/** Certificate authority: what signs certificates, and the certificate of the secure port. */
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { trustBundlesWithEffects } from '../bundles/trust-bundles.effects.ts';
import type { SecurePort } from '../xds/secure-port/secure-port.ts';
import type { AuthoritySettings } from './authority-settings.ts';
import { type ClusterSigningOptions, clusterSigning, orderedBy, refuseWithoutCluster } from './cluster-signing.ts';
import { PortCertificate } from './server-certificate/port-certificate.ts';
import { serverCertificateWithEffects } from './server-certificate.effects.ts';
import { Signing, type SigningOptions } from './signing.ts';

export interface CaParts
  extends Pick<ClusterSigningOptions, 'cluster' | 'recorder'>,
    Pick<SigningOptions, 'authenticators' | 'rootsChanged'> {
  /** `undefined` if this program signs no certificates. */
  readonly settings: AuthoritySettings | undefined;
  /** `undefined` if xDS is not served over TLS. */
  readonly securePort: SecurePort | undefined;
  /** Names of this program in a certificate that the authority signs. */
  readonly names: readonly string[];
  readonly mesh: () => MeshConfig;
  /** PEM: roots of bundle endpoints instead of those of Node; for tests. */
  readonly bundleAuthorities: string | undefined;
  readonly log: Logger;
}

export function makeCa({ settings, securePort, names, mesh, bundleAuthorities, log, ...parts }: CaParts) {
  const { cluster, recorder, authenticators, rootsChanged } = parts;
  const logger = log.scope('authority');
  const ofCluster = clusterSigning({
    ...{ settings, cluster, recorder, log: logger },
    trustDomain: () => mesh().trustDomain,
    roots: () => signing?.rootsBeside ?? [],
  });
  const { shared, signer } = ofCluster;
  const signing =
    settings &&
    new Signing({
      ...{ settings, mesh, authenticators, rootsChanged, logger },
      trustDomains: () => trustDomainsOf(mesh()),
      ...(shared && { shared }),
      ...(settings.registers && signer && { registrar: signer }),
      ...(bundleAuthorities !== undefined && { bundleAuthorities }),
    });
  const portCertificate =
    securePort &&
    new PortCertificate({
      ...{ port: securePort, names },
      inForce: () => signing?.authority.inForce,
      trusted: () => signing?.trusted,
    });
  const portFollows = (): void => portCertificate?.authorityChanged();
  // In the same turn: a client that receives other roots finds the port with them.
  signing?.authority.onChanged(portFollows);
  return {
    signing,
    ofCluster,
    portCertificate,
    /** Certificates that are known here. */
    known: {
      certificateSources: (max: number) => ({
        authority: signing?.authority.inForce,
        trusted: [...(signing?.trusted?.own.roots ?? []), ...(signing?.trusted?.rootsOfAliases ?? [])],
        server: portCertificate?.current,
        workloads: signing?.ledger.ends(max) ?? { count: 0, first: [] },
      }),
    },
    /** How operators rotate a root that replicas share. */
    ordered: orderedBy(cluster),
    /** The mesh configuration may name other roots. */
    meshChanged: (): void => {
      if (signing?.meshChanged() === true) portFollows();
    },
    /** @throws ChartpilotError FLAG_INVALID if the settings need a cluster and there is none */
    check: (): void => {
      if (settings !== undefined) refuseWithoutCluster(settings, ofCluster);
    },
    actors: () => {
      const authority = signing?.machine();
      return {
        ...(authority && { authority }),
        ...(shared && { sharedAuthority: shared.machine() }),
        ...(portCertificate && {
          serverCertificate: serverCertificateWithEffects(portCertificate, log.scope('server-certificate')),
        }),
        trustBundles: trustBundlesWithEffects(signing?.bundles, () => {
          signing?.bundlesChanged();
          portFollows();
        }),
      };
    },
  };
}

export type Ca = ReturnType<typeof makeCa>;
