/** What one replica of many has to do in a cluster: all duties, each of which has a Lease of its own, but those that read what another finds. A new one is a line here. */
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
import type { ReplicaWords } from './status/replica-words.ts';
import { type StatusSources, statusDuties } from './status/status-duties.ts';
import { WebhookBundles, type WebhookBundlesOptions } from './webhook-bundles.ts';

/** What duties are about. */
export interface DutySources {
  /** What is known of the cluster. They are not started yet: readers may be added. */
  readonly informers: InformerEffects;
  /** What has become of objects in proxies. */
  readonly distribution: ObjectDistribution;
  /** Absent: nothing is signed here. */
  readonly signing?: Signing;
  /** The authority that replicas share, and its settings; absent: they share none. */
  readonly shared?: Pick<RootRotationOptions, 'authority' | 'namespace' | 'name' | 'gracePercent' | 'longestLeafMs'>;
  /** Secrets with certificates that the mesh configuration names; absent: none is signed here. */
  readonly dnsSecrets?: DnsSecrets;
  /** Signs those instead of the authority. */
  readonly registrar?: Registrar;
  readonly mesh: () => Pick<MeshConfig, 'certificates' | 'discoverySelectors'>;
  /** @param changed the mesh configuration may be another */
  readonly onMesh: (changed: () => void) => void;
  /** REVISION; empty: the default one. */
  readonly revision: string;
  /** What replicas say that Envoy rejects. */
  readonly words: ReplicaWords;
  /** The name of the Lease of this replica's presence. */
  readonly presence: string;
  /** What replicas that have died have left. */
  readonly orphans: Duty;
  /** Events about rejected objects. */
  readonly events: Duty;
  /** Whether this replica may write for a duty now. */
  readonly leads: (lease: string) => boolean;
  /** Where webhooks are called; absent: their certificate is not of the authority, or none are served. */
  readonly webhooks?: Pick<WebhookBundlesOptions, 'namespace' | 'hosts'>;
  /** Name of the ConfigMaps with the root of the mesh. */
  readonly rootConfigMap: string;
  /** PILOT_ENABLE_GATEWAY_API_GATEWAYCLASS_CONTROLLER. */
  readonly ofGatewayClass: boolean;
  /** Gateways are deployed with what the injector builds; absent: they are not. */
  readonly injection?: Pick<GatewayDeploymentsOptions, 'injector' | 'onInjector'>;
  /** Of this replica. */
  readonly identity: string;
  /** What becomes of objects. */
  readonly status: Omit<StatusSources, 'informers' | 'revision'>;
}

export function dutiesOf(sources: DutySources): Duty[] {
  const { informers, signing, rootConfigMap, status, shared, orphans, events } = sources;
  const { distribution, words, presence, leads, ofGatewayClass } = sources;
  return [
    ...(shared === undefined ? [] : [new RootRotation({ ...shared, now: () => new Date() })]),
    ...dnsDuties(sources),
    ...(signing === undefined
      ? []
      : [
          new RootCertificates({
            ...{ informers, configMap: rootConfigMap, lease: 'istio-namespace-controller-election' },
            roots: () => signing.trusted?.own.pem,
            onRoots: (changed) => signing.onRoots(changed),
            ...{ selectors: () => sources.mesh().discoverySelectors, onSelectors: sources.onMesh },
            now: () => performance.now(),
          }),
        ]),
    ...webhookDuties(sources),
    ...statusDutiesOf({ ...status, informers, distribution, words, presence, leads }),
    ...gatewayDuties(sources),
    ...(ofGatewayClass ? [new GatewayClassDuty({ informers, lease: 'chartpilot-gateway-class' })] : []),
    orphans,
    events,
  ];
}

/** One replica deploys Gateways and writes their status, which reports what could not be deployed. */
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
    inForce: () => signing.authority.inForce,
    ...(registrar && { registrar }),
    roots: () => signing.trusted?.own.roots ?? [],
    now: () => new Date(),
  });
  onMesh(() => duty.look());
  signing.onRoots(() => duty.look());
  return [duty];
}

function webhookDuties({ informers, signing, webhooks, revision, status }: DutySources): Duty[] {
  if (signing === undefined || webhooks === undefined) return [];
  return [
    new WebhookBundles({
      ...{ ...webhooks, informers, revision, lease: leaseOfRevision('chartpilot-webhook-bundles', revision) },
      server: status.server,
      roots: () => signing.trusted?.own.pem,
      onRoots: (changed) => signing.onRoots(changed),
      now: () => performance.now(),
    }),
  ];
}

/**
 * Of a duty that each revision has for its own objects: as Istio names the lock of such an election. One that is about the whole cluster
 * has the same name for all revisions.
 */
export function leaseOfRevision(name: string, revision: string): string {
  return revision === '' ? name : `${name}-${revision}`;
}
