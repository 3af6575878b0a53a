/** Each duty has its own Lease, unless it reads results of another duty. */
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { Registrar } from '../ca/issuing/registrar.ts';
import type { CertificateSigning } from '../ca/signing.ts';
import type { ObjectDistribution } from '../distribution/distribution.ts';
import type { Duty } from '../election/duty.ts';
import type { InformerEffects } from '../kubernetes/api-server.effects.ts';
import { DnsCertificates, type DnsSecrets } from './dns-certificates.ts';
import { GatewayClassDuty } from './gateway-class.ts';
import { DeploymentFailures } from './gateways/deployment-failures.ts';
import { GatewayDeployments, type GatewayDeploymentsOptions } from './gateways/gateway-deployments.ts';
import { CombinedDuty } from './joint-duty.ts';
import { RootCertificates } from './root-certificates.ts';
import { RootRotation, type RootRotationOptions } from './root-rotation.ts';
import { statusDutiesOf } from './status/distribution-status.ts';
import type { RejectionReports } from './status/rejection-reports.ts';
import { type StatusDutySources, statusDuties } from './status/status-duties.ts';
import { WebhookBundles, type WebhookBundlesOptions } from './webhook-bundles.ts';

export interface DutySources {
  /** Must not be started yet, so that readers can be added. */
  readonly informers: InformerEffects;
  readonly distribution: ObjectDistribution;
  readonly signing?: CertificateSigning;
  readonly sharedAuthority?: Pick<
    RootRotationOptions,
    'authority' | 'namespace' | 'name' | 'gracePercent' | 'maxLeafMs'
  >;
  readonly dnsSecrets?: DnsSecrets;
  readonly registrar?: Registrar;
  readonly mesh: () => Pick<MeshConfig, 'certificates' | 'discoverySelectors'>;
  readonly onMesh: (onChanged: () => void) => void;
  /** REVISION. Empty for the default revision. */
  readonly revision: string;
  readonly reports: RejectionReports;
  readonly presence: string;
  readonly orphans: Duty;
  readonly events: Duty;
  readonly isLeaderOf: (lease: string) => boolean;
  /** `undefined` if no webhooks are served, or if the authority does not sign their certificate. */
  readonly webhooks?: Pick<WebhookBundlesOptions, 'namespace' | 'hosts'>;
  /** PILOT_CA_CERT_CONFIGMAP */
  readonly rootConfigMap: string;
  readonly managesGatewayClass: boolean;
  /** `undefined` if Gateways are not deployed. */
  readonly injection?: Pick<GatewayDeploymentsOptions, 'injector' | 'onInjector'>;
  readonly identity: string;
  readonly status: Omit<StatusDutySources, 'informers' | 'revision'>;
}

export function dutiesOf(sources: DutySources): Duty[] {
  const { informers, signing, rootConfigMap, status, sharedAuthority, orphans, events } = sources;
  const { distribution, reports, presence, isLeaderOf, managesGatewayClass } = sources;
  return [
    ...(sharedAuthority === undefined ? [] : [new RootRotation({ ...sharedAuthority, now: () => new Date() })]),
    ...dnsDuties(sources),
    ...(signing === undefined
      ? []
      : [
          new RootCertificates({
            ...{ informers, configMap: rootConfigMap, lease: 'istio-namespace-controller-election' },
            roots: () => signing.trustedRoots?.meshBundle.pem,
            onRoots: (onChanged) => signing.onRoots(onChanged),
            ...{ selectors: () => sources.mesh().discoverySelectors, onSelectors: sources.onMesh },
            now: () => performance.now(),
          }),
        ]),
    ...webhookDuties(sources),
    ...statusDutiesOf({ ...status, informers, distribution, reports, presence, isLeaderOf }),
    ...gatewayDuties(sources),
    ...(managesGatewayClass ? [new GatewayClassDuty({ informers, lease: 'chartpilot-gateway-class' })] : []),
    orphans,
    events,
  ];
}

/** One replica both deploys Gateways and writes their status, because the status contains deployment failures. */
function gatewayDuties({ informers, injection, revision, status, identity }: DutySources): Duty[] {
  const failures = new DeploymentFailures();
  const lease = leaseOfRevision('istio-gateway-status-leader', revision);
  const duties = statusDuties({ ...status, informers, revision }, lease, failures);
  if (injection === undefined) return duties;
  const deployments = new GatewayDeployments({
    ...{ ...injection, informers, revision, failures, server: status.server, identity },
    lease,
  });
  const leaseDuties = duties.filter((duty) => duty.lease === lease);
  return [...duties.filter((duty) => duty.lease !== lease), new CombinedDuty(deployments, ...leaseDuties)];
}

function dnsDuties({ signing, dnsSecrets, registrar, mesh, onMesh, revision }: DutySources): Duty[] {
  if (signing === undefined || dnsSecrets === undefined) return [];
  const duty = new DnsCertificates({
    lease: leaseOfRevision('chartpilot-dns-certificates', revision),
    secrets: dnsSecrets,
    certificates: () => mesh().certificates,
    activeAuthority: () => signing.authority.active,
    ...(registrar && { registrar }),
    roots: () => signing.trustedRoots?.meshBundle.roots ?? [],
    now: () => new Date(),
  });
  onMesh(() => duty.check());
  signing.onRoots(() => duty.check());
  return [duty];
}

function webhookDuties({ informers, signing, webhooks, revision, status }: DutySources): Duty[] {
  if (signing === undefined || webhooks === undefined) return [];
  return [
    new WebhookBundles({
      ...{ ...webhooks, informers, revision, lease: leaseOfRevision('chartpilot-webhook-bundles', revision) },
      server: status.server,
      roots: () => signing.trustedRoots?.meshBundle.pem,
      onRoots: (onChanged) => signing.onRoots(onChanged),
      now: () => performance.now(),
    }),
  ];
}

/**
 * Each revision performs the duty for its own objects. The name is that of Istio's election lock. A cluster-wide duty has one name for all revisions.
 */
export function leaseOfRevision(name: string, revision: string): string {
  return revision === '' ? name : `${name}-${revision}`;
}
