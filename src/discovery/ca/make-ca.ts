import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { trustBundlesWithEffects } from '../bundles/trust-bundles.effects.ts';
import type { SecurePort } from '../xds/secure-port/secure-port.ts';
import type { AuthoritySettings } from './authority-settings.ts';
import { type ClusterSigningOptions, clusterSigning, orderedBy, requireCluster } from './cluster-signing.ts';
import { PortCertificate } from './server-certificate/port-certificate.ts';
import { serverCertificateWithEffects } from './server-certificate.effects.ts';
import { CertificateSigning, type SigningOptions } from './signing.ts';

export interface CaParts
  extends Pick<ClusterSigningOptions, 'cluster' | 'recorder'>,
    Pick<SigningOptions, 'authenticators' | 'rootsChanged'> {
  readonly settings: AuthoritySettings | undefined;
  /** `undefined` if xDS is not served over TLS. */
  readonly securePort: SecurePort | undefined;
  readonly names: readonly string[];
  readonly mesh: () => MeshConfig;
  readonly bundleAuthorities: string | undefined;
  readonly log: Logger;
}

export function makeCa({ settings, securePort, names, mesh, bundleAuthorities, log, ...caParts }: CaParts) {
  const { cluster, recorder, authenticators, rootsChanged } = caParts;
  const logger = log.scope('authority');
  const clusterAuthority = clusterSigning({
    ...{ settings, cluster, recorder, log: logger },
    trustDomain: () => mesh().trustDomain,
    roots: () => signing?.additionalRoots ?? [],
  });
  const { shared, signer } = clusterAuthority;
  const signing =
    settings &&
    new CertificateSigning({
      ...{ settings, mesh, authenticators, rootsChanged, logger },
      trustDomains: () => trustDomainsOf(mesh()),
      ...(shared && { shared }),
      ...(settings.usesExternalCa && signer && { registrar: signer }),
      ...(bundleAuthorities !== undefined && { bundleAuthorities }),
    });
  const portCertificate =
    securePort &&
    new PortCertificate({
      ...{ port: securePort, names },
      activeAuthority: () => signing?.authority.active,
      trustedRoots: () => signing?.trustedRoots,
    });
  const updatePortCertificate = (): void => portCertificate?.authorityChanged();
  // A client with the new roots may connect immediately, so the port is notified synchronously.
  signing?.authority.onChanged(updatePortCertificate);
  return {
    signing,
    ofCluster: clusterAuthority,
    portCertificate,
    known: {
      certificateSources: (maxCount: number) => ({
        authority: signing?.authority.active,
        trustedRoots: [
          ...(signing?.trustedRoots?.meshBundle.roots ?? []),
          ...(signing?.trustedRoots?.rootsOfAliases ?? []),
        ],
        server: portCertificate?.current,
        workloads: signing?.ledger.upcomingExpiries(maxCount) ?? { count: 0, first: [], signedElsewhere: 0 },
      }),
    },
    ordered: orderedBy(cluster),
    meshChanged: (): void => {
      if (signing?.onMeshChanged() === true) updatePortCertificate();
    },
    /** @throws ChartpilotError FLAG_INVALID if the settings need a missing cluster */
    check: (): void => {
      if (settings !== undefined) requireCluster(settings, clusterAuthority);
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
          signing?.onBundlesChanged();
          updatePortCertificate();
        }),
      };
    },
  };
}

export type Ca = ReturnType<typeof makeCa>;
