/**
 * All duties that one replica of several performs in a cluster. Each has its own Lease, except duties that read another's results. To add a
 * duty, add a line here.
 */
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { Registrar } from '../ca/issuing/registrar.ts';
import type { Signing } from '../ca/signing.ts';
import type { ObjectDistribution } from '../distribution/distribution.ts';
import type { Duty } from '../election/duty.ts';
import type { InformerEffects } from '../kubernetes/api-server.effects.ts';
import { DnsCertificates, type DnsSecrets } from './dns-certificates.ts';
import { GatewayClassDuty } from './gateway-class.ts';
import { DeploymentFailures } from './gateways/deployment-failures.ts';
import { GatewayDeployments, type GatewayDeploymentsOptions } from './gateways/gateway-deployments.ts';
import { JointDuty } from './joint-duty.ts';
import { RootCertificates } from './root-certificates.ts';
import { RootRotation, type RootRotationOptions } from './root-rotation.ts';
import { statusDutiesOf } from './status/distribution-status.ts';
import type { RejectionReports } from './status/rejection-reports.ts';
import { type StatusDutySources, statusDuties } from './status/status-duties.ts';
import { WebhookBundles, type WebhookBundlesOptions } from './webhook-bundles.ts';

/** Inputs of the duties. */
export interface DutySources {
  /** Informers of the cluster, not started yet, so that readers can be added. */
  readonly informers: InformerEffects;
  /** Application of objects by proxies. */
  readonly distribution: ObjectDistribution;
  /** `undefined` if this program signs no certificates. */
  readonly signing?: Signing;
  /** The shared authority and its settings; `undefined` if replicas share none. */
  readonly shared?: Pick<RootRotationOptions, 'authority' | 'namespace' | 'name' | 'gracePercent' | 'longestLeafMs'>;
  /** Secrets for certificates in the mesh configuration; `undefined` if this program signs none. */
  readonly dnsSecrets?: DnsSecrets;
  /** Signs them instead of the authority. */
  readonly registrar?: Registrar;
  readonly mesh: () => Pick<MeshConfig, 'certificates' | 'discoverySelectors'>;
  /** @param changed called when the mesh configuration may have changed */
  readonly onMesh: (changed: () => void) => void;
  /** REVISION; empty for the default one. */
  readonly revision: string;
  /** Rejections that replicas report. */
  readonly reports: RejectionReports;
  /** Lease of this replica's presence. */
  readonly presence: string;
  /** Removes entries of replicas that have exited. */
  readonly orphans: Duty;
  /** Events about rejected objects. */
  readonly events: Duty;
  /** Whether this replica may currently write for a duty. */
  readonly leads: (lease: string) => boolean;
  /** Address of the webhooks; `undefined` if none are served, or if the authority does not sign their certificate. */
  readonly webhooks?: Pick<WebhookBundlesOptions, 'namespace' | 'hosts'>;
  /** Name of the ConfigMaps that contain the mesh root. */
  readonly rootConfigMap: string;
  readonly ofGatewayClass: boolean;
  /** Deploys Gateways with the injector's output; `undefined` if they are not deployed. */
  readonly injection?: Pick<GatewayDeploymentsOptions, 'injector' | 'onInjector'>;
  readonly identity: string;
  readonly status: Omit<StatusDutySources, 'informers' | 'revision'>;
}

export function dutiesOf(sources: DutySources): Duty[] {
  const { informers, signing, rootConfigMap, status, shared, orphans, events } = sources;
  const { distribution, reports, presence, leads, ofGatewayClass } = sources;
  return [
    ...(shared === undefined ? [] : [new RootRotation({ ...shared, now: () => new Date() })]),
    ...dnsDuties(sources),
    ...(signing === undefined
      ? []
      : [
          new RootCertificates({
            ...{ informers, configMap: rootConfigMap, lease: 'istio-namespace-controller-election' },
            roots: () => signing.trustedRoots?.own.pem,
            onRoots: (changed) => signing.onRoots(changed),
            ...{ selectors: () => sources.mesh().discoverySelectors, onSelectors: sources.onMesh },
            now: () => performance.now(),
          }),
        ]),
    ...webhookDuties(sources),
    ...statusDutiesOf({ ...status, informers, distribution, reports, presence, leads }),
    ...gatewayDuties(sources),
    ...(ofGatewayClass ? [new GatewayClassDuty({ informers, lease: 'chartpilot-gateway-class' })] : []),
    orphans,
    events,
  ];
}

/** One replica deploys Gateways and writes their status, which reports deployment failures. */
function gatewayDuties({ informers, injection, revision, status, identity }: DutySources): Duty[] {
  const failures = new DeploymentFailures();
  const lease = leaseOfRevision('istio-gateway-status-leader', revision);
  const duties = statusDuties({ ...status, informers, revision }, lease, failures);
  if (injection === undefined) return duties;
  const deployments = new GatewayDeployments({
    ...{ ...injection, informers, revision, failures, server: status.server, identity },
    lease,
  });
  const ofGateways = duties.filter((duty) => duty.lease === lease);
  return [...duties.filter((duty) => duty.lease !== lease), new JointDuty(deployments, ...ofGateways)];
}

function dnsDuties({ signing, dnsSecrets, registrar, mesh, onMesh, revision }: DutySources): Duty[] {
  if (signing === undefined || dnsSecrets === undefined) return [];
  const duty = new DnsCertificates({
    lease: leaseOfRevision('chartpilot-dns-certificates', revision),
    secrets: dnsSecrets,
    certificates: () => mesh().certificates,
    activeAuthority: () => signing.authority.active,
    ...(registrar && { registrar }),
    roots: () => signing.trustedRoots?.own.roots ?? [],
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
      roots: () => signing.trustedRoots?.own.pem,
      onRoots: (changed) => signing.onRoots(changed),
      now: () => performance.now(),
    }),
  ];
}

/**
 * Lease of a duty that each revision performs for its own objects, named as Istio names its election lock. A duty for the complete cluster
 * uses the same name for all revisions.
 */
export function leaseOfRevision(name: string, revision: string): string {
  return revision === '' ? name : `${name}-${revision}`;
}
