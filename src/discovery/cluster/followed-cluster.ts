import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { ApiServerInput } from '../../../machines/discovery/kubernetes/api-server.machine.ts';
import { injectorMapName } from '../../injection/settings.ts';
import { type KindName, kinds } from '../../model/kinds/index.ts';
import type { LabelSelector } from '../../model/kinds/label-selector.ts';
import { credentialsReferencedBy } from '../../networking/secrets/credential-references.ts';
import { grantedCredentials } from '../../networking/secrets/granted-credentials.ts';
import { faultLog } from '../../runtime/fences/uncaught.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { AuthoritySecrets } from '../ca/shared-authority.effects.ts';
import type { ConfigSource } from '../config/sources/config-source.ts';
import { clusterConfig, clusterServices } from '../config/sources/config-sources.ts';
import { hasRevision } from '../config/sources/object-revision.ts';
import { type DnsSecrets, dnsSecretType } from '../controllers/dns-certificates.ts';
import { rootConfigMapsOf } from '../controllers/root-certificates.ts';
import { webhookConfigurationsOf } from '../controllers/webhook-bundles.ts';
import type { ClusterAccess } from '../kubernetes/access/cluster-access.ts';
import { customResourceDefinitions, resourceOf } from '../kubernetes/api-resource.ts';
import { type FollowedKind, InformerEffects } from '../kubernetes/api-server.effects.ts';
import type { KubernetesObject } from '../kubernetes/api-server.ts';
import { OutageLog, outageWarningDelayMs } from '../kubernetes/outage-log.ts';
import { ClusterSettings, type SettingsNames } from '../kubernetes/readers/cluster-settings.ts';
import { ClusterSource, type ClusterSourceOptions } from '../kubernetes/readers/cluster-source.ts';
import { DiscoveredNamespaces } from '../kubernetes/readers/discovered-namespaces.ts';
import { ReferencedObjects } from '../kubernetes/readers/referenced-objects.ts';
import { StoredObjects } from '../kubernetes/readers/stored-objects.ts';
import { RejectedObjectLog } from '../kubernetes/store/refused-object-log.ts';
import { defaultSelection } from '../kubernetes/store/usual-selection.ts';
import { Http2ApiServer } from '../kubernetes/transport/http2-api-server.ts';
import type { Publication } from '../push/contexts/mesh-state.ts';
import { type GroupResult, readGroup } from '../registration/group-entry.ts';
import { WorkloadRegistrations } from '../registration/workload-registrations.ts';
import type { RemoteSecrets } from '../remote/remote-clusters.effects.ts';
import { SecretAccess } from '../secrets/secret-access.ts';
import type { InjectionCluster } from '../webhooks/injecting-configurations.ts';
import type { InjectorConfigMap } from '../webhooks/injector-settings.ts';
import { RepeatedLines } from '../xds/stream/repeated-lines.ts';

export interface FollowedClusterOptions {
  readonly access: ClusterAccess;
  readonly isRegistry: boolean;
  readonly settings: SettingsNames;
  /** Namespace of Secrets for remote clusters. Defaults to the namespace of the settings. */
  readonly clusterRegistriesNamespace?: string;
  readonly authoritySecret?: string;
  /** Includes the certificates in the mesh configuration. */
  readonly signsCertificates?: boolean;
  /** Sidecar injection requires the ConfigMap `istio-sidecar-injector`. */
  readonly injectsSidecars?: boolean;
  /** PILOT_CA_CERT_CONFIGMAP. This process writes these ConfigMaps if it signs certificates. */
  readonly rootConfigMap?: string;
  /** Defaults to the host name. */
  readonly podName?: string;
  readonly log: Logger;
}

/** Kinds that only the registry reads. Endpoints are not read, because Kubernetes mirrors them as EndpointSlices. */
const workloadKinds: readonly KindName[] = ['EndpointSlice', 'Pod', 'Node'];
const sharedKinds: readonly KindName[] = ['Service', 'Namespace'];
const registryKinds: readonly KindName[] = [...sharedKinds, ...workloadKinds];
const configKinds = (Object.keys(kinds) as KindName[]).filter(
  (kind) => kind !== 'Endpoints' && !registryKinds.includes(kind),
);

const maxListedKinds = 4;

export class FollowedCluster {
  /** Used for lists and watches. Other requests use separate connections. */
  readonly server: Http2ApiServer;
  readonly sources: ReadonlyMap<string, ClusterSource>;
  /** `undefined` if the cluster is not a registry. */
  readonly workloads?: StoredObjects;
  readonly settings: ClusterSettings;
  readonly secretAccess: SecretAccess;
  readonly registrations: WorkloadRegistrations;
  /** `undefined` if the cluster is not a registry. */
  readonly remoteSecrets?: RemoteSecrets;
  /** `undefined` if replicas share no CA. */
  readonly authoritySecrets?: AuthoritySecrets;
  readonly dnsSecrets?: DnsSecrets;
  /** `undefined` without injection. */
  readonly injectorSettings?: InjectorConfigMap;
  /** `undefined` without injection, or if the CA does not sign the webhooks' certificate. */
  readonly injection?: InjectionCluster;
  readonly discoveredNamespaces = new DiscoveredNamespaces(() => this.informers);
  readonly referencedObjects: ReferencedObjects;
  /** Readers must be added before the chart starts. */
  readonly informers: InformerEffects;
  /** Pod name with a random part, so that a restarted container has another identity. */
  readonly identity: string;
  /** Separate connection for Leases, so that other requests do not delay renewals. */
  readonly leaseServer: Http2ApiServer;
  readonly #isRegistry: boolean;
  readonly #settingsListeners = new Set<() => void>();
  readonly url: string;
  readonly #outage: OutageLog;
  readonly #unservedLog: RepeatedLines;

  constructor(options: FollowedClusterOptions) {
    const { access, isRegistry, settings, authoritySecret, signsCertificates = false, podName, log } = options;
    const remoteSecrets = remoteSecretsIn(options.clusterRegistriesNamespace ?? settings.namespace);
    this.#isRegistry = isRegistry;
    this.identity = `${podName || hostname()}_${randomUUID()}`;
    // A server URL can contain a password, but this URL appears in logs and traces.
    this.url = `${access.server.origin}${access.server.pathname}`;
    // Delays the warning, because a new CRD is not served immediately.
    this.#unservedLog = new RepeatedLines(log, () => performance.now(), outageWarningDelayMs);
    this.#outage = new OutageLog(log, { server: this.url });
    this.server = new Http2ApiServer(access);
    this.leaseServer = new Http2ApiServer(access);
    this.secretAccess = new SecretAccess({ server: this.server, log });
    const ownOptions = isRegistry ? configKinds : [...configKinds, 'Namespace' as const];
    const rejectedObjectLog = new RejectedObjectLog((fields) => log.warn('object.limitExceeded', fields));
    const reportRejection = (kind: string, key: string, reason: string): void =>
      rejectedObjectLog.report(kind, key, reason);
    this.referencedObjects = new ReferencedObjects({
      ...{ server: this.server, informers: () => this.informers, fault: faultOf(log), onRejected: reportRejection },
    });
    const rootConfigMaps = signsCertificates && options.rootConfigMap ? [rootConfigMapsOf(options.rootConfigMap)] : [];
    const injectorMap = options.injectsSidecars === true ? [injectorMapOf(settings)] : [];
    this.settings = new ClusterSettings(settings, () => this.informers);
    this.informers = new InformerEffects({
      server: this.server,
      kinds: [
        ...this.settings.kinds,
        ...injectorMap,
        ...(isRegistry ? [remoteSecrets] : []),
        ...(signsCertificates ? [dnsSecretsIn(settings.namespace)] : []),
        ...(authoritySecret === undefined
          ? []
          : [authoritySecret, pluggedInSecret].map((name) => followedSecret(settings.namespace, name))),
        { resource: customResourceDefinitions, selection: defaultSelection(customResourceDefinitions) },
        ...rootConfigMaps,
        ...(options.injectsSidecars === true && signsCertificates ? webhookConfigurationsOf(settings.revision) : []),
        ...[...ownOptions, ...(isRegistry ? registryKinds : [])].map((kind) =>
          followedKind(kind, this.referencedObjects, this.discoveredNamespaces),
        ),
      ],
      onRejected: reportRejection,
      random: Math.random,
      now: () => performance.now(),
      onLost: (reason) => this.#outage.report(reason),
      onUnserved: (resource, versions) => {
        this.#unservedLog.warn(resource, 'kind.unserved', { resource, versions: versions.join(', ') });
      },
      fault: faultOf(log),
    });
    this.referencedObjects.followKinds(['Secret', 'ConfigMap']);
    if (isRegistry) this.discoveredNamespaces.watchLabels();
    this.registrations = new WorkloadRegistrations({
      server: this.server,
      groupOf: (...name) => this.#groupOf(settings.revision, ...name),
      onEntries: (onChanged) => this.informers.addReader(resourceOf('WorkloadEntry'), onChanged),
      controller: this.identity,
    });
    this.settings.onChanged(() => {
      for (const onChanged of this.#settingsListeners) onChanged();
    });
    for (const { name, place } of injectorMap) {
      this.injectorSettings = {
        location: place,
        readData: () => this.informers.storeOf(name).get(place)?.data,
        firstList: this.informers.waitForFirstSet(name),
        onChanged: (onChanged) => this.informers.addReader(name, () => onChanged()),
      };
    }
    if (options.injectsSidecars === true && signsCertificates) this.injection = this.#injection(settings.revision);
    if (isRegistry) {
      this.remoteSecrets = {
        store: this.informers.storeOf(remoteSecrets.name),
        onChanged: (onChanged) => this.informers.addReader(remoteSecrets.name, () => onChanged()),
      };
    }
    if (signsCertificates) {
      const { name } = dnsSecretsIn(settings.namespace);
      this.dnsSecrets = {
        ...{
          namespace: settings.namespace,
          store: this.informers.storeOf(name),
          whenSynced: this.informers.waitForFirstSet(name),
        },
        onChanged: (onChanged) => this.informers.addReader(name, () => onChanged()),
      };
    }
    if (authoritySecret !== undefined)
      this.authoritySecrets = this.#authoritySecrets(settings.namespace, authoritySecret);
    const referenced = { objects: this.referencedObjects, referencesOf: credentialsReferencedBy };
    const { informers } = this;
    const sourceOptions = { informers, revision: settings.revision, referenced };
    this.sources = new Map([
      [clusterConfig, new ClusterSource({ ...sourceOptions, address: clusterConfig, kinds: ownOptions })],
      ...(isRegistry ? [this.#services(sourceOptions)] : []),
    ]);
    if (isRegistry) this.workloads = new StoredObjects({ address: clusterServices, informers, kinds: workloadKinds });
  }

  readonly open = (address: string): ConfigSource => {
    const source = this.sources.get(address);
    if (source === undefined) throw new Error(`the cluster has no configuration source ${address}`);
    return source;
  };

  #injection(revision: string): InjectionCluster {
    const { name } = webhookConfigurationsOf(revision)[0];
    return {
      configurations: () => this.informers.storeOf(name).values(),
      namespace: (namespaceName) => this.informers.storeOf(resourceOf('Namespace')).get(`/${namespaceName}`)?.metadata,
      kubelets: () => (this.#isRegistry ? kubeletVersions(this.informers.storeOf(resourceOf('Node')).values()) : []),
      onChanged: (onChanged) => this.informers.addReader(name, () => onChanged()),
    };
  }

  setSelectors(selectors: readonly LabelSelector[]): void {
    if (this.#isRegistry) this.discoveredNamespaces.setSelectors(selectors);
  }

  /** Reads Secrets in other namespaces that ReferenceGrants allow Gateways to use, because the status of those Gateways depends on them. */
  readGranted({ configs: { set }, context, forced, changedKeys }: Publication): void {
    const isAffected = (key: string): boolean => /^(?:KubernetesGateway|ReferenceGrant)\//.test(key);
    if (!forced && ![...changedKeys].some(isAffected)) return;
    this.referencedObjects.setReferences(
      'granted Secrets',
      grantedCredentials(set.KubernetesGateway, context.referenceGrants),
    );
  }

  watchSettings(onChanged: () => void): () => void {
    this.#settingsListeners.add(onChanged);
    return () => void this.#settingsListeners.delete(onChanged);
  }

  get input(): ApiServerInput {
    return { server: this.url, resources: this.informers.resources, firstInformer: 1 };
  }

  machine() {
    return this.informers.machine();
  }

  /** Describes for users what startup waits for. Empty if all initial lists are complete. */
  get awaitedText(): string {
    const { reason } = this.#outage;
    if (reason !== undefined) return `the API server ${this.url} does not respond: ${reason}`;
    const awaitedKinds = this.informers.unsyncedKinds;
    const sortedKinds = awaitedKinds.toSorted(
      (a, b) => Number(b.reason !== undefined) - Number(a.reason !== undefined),
    );
    const texts = sortedKinds
      .slice(0, maxListedKinds)
      .map(({ name, reason }) => (reason === undefined ? name : `${name} (${reason})`));
    const omittedCount = awaitedKinds.length - texts.length;
    return [...texts, ...(omittedCount > 0 ? [`${omittedCount} other kinds`] : [])].join(', ');
  }

  /** Startup waits for this source, because services are built from it. */
  #services(sourceOptions: Omit<ClusterSourceOptions, 'address' | 'kinds' | 'awaitedKinds'>): [string, ClusterSource] {
    return [
      clusterServices,
      new ClusterSource({
        ...sourceOptions,
        address: clusterServices,
        kinds: sharedKinds,
        awaitedKinds: workloadKinds,
      }),
    ];
  }

  #groupOf(revision: string, namespace: string, name: string): GroupResult | undefined {
    const object = this.informers.storeOf(resourceOf('WorkloadGroup')).get(`${namespace}/${name}`);
    return object === undefined || !hasRevision(object, revision) ? undefined : readGroup(object);
  }

  get unreachableReason(): string | undefined {
    return this.#outage.reason;
  }

  close(): void {
    this.#outage.close();
    this.referencedObjects.close();
    this.server.close();
    this.leaseServer.close();
  }

  #authoritySecrets(namespace: string, name: string): AuthoritySecrets {
    const kindOf = (secret: string): string => followedSecret(namespace, secret).name;
    const objectOf = (secret: string) => this.informers.storeOf(kindOf(secret)).get(`${namespace}/${secret}`);
    const listeners = new Set<() => void>();
    for (const secret of [name, pluggedInSecret]) {
      this.informers.addReader(kindOf(secret), () => {
        for (const onChanged of listeners) onChanged();
      });
    }
    return {
      ...{ namespace, name },
      sharedSecret: () => objectOf(name),
      pluggedInSecret: () => objectOf(pluggedInSecret),
      whenSynced: Promise.all([name, pluggedInSecret].map((secret) => this.informers.waitForFirstSet(kindOf(secret)))),
      watch: (onChanged) => {
        listeners.add(onChanged);
        return () => void listeners.delete(onChanged);
      },
    };
  }
}

function dnsSecretsIn(namespace: string): FollowedKind & { readonly name: string } {
  const selection = { namespace, fieldSelector: `type=${dnsSecretType}`, keepsData: true };
  return { resource: resourceOf('Secret'), name: `v1/secrets/${namespace}/${dnsSecretType}`, selection };
}

function injectorMapOf({
  namespace,
  revision,
}: SettingsNames): FollowedKind & { readonly name: string; readonly place: string } {
  const map = injectorMapName(revision);
  const selection = { namespace, fieldSelector: `metadata.name=${map}`, keepsData: true };
  const name = `v1/configmaps/${namespace}/${map}`;
  return { resource: resourceOf('ConfigMap'), name, place: `${namespace}/${map}`, selection };
}

/** Istio's Secret for a plugged-in CA. */
const pluggedInSecret = 'cacerts';

function followedSecret(namespace: string, name: string): FollowedKind & { readonly name: string } {
  const selection = { namespace, fieldSelector: `metadata.name=${name}`, keepsData: true };
  return { resource: resourceOf('Secret'), name: `v1/secrets/${namespace}/${name}`, selection };
}

function remoteSecretsIn(namespace: string): FollowedKind & { readonly name: string } {
  const selection = { namespace, labelSelector: 'istio/multiCluster=true', keepsData: true };
  return { resource: resourceOf('Secret'), name: `v1/secrets/${namespace}/istio/multiCluster`, selection };
}

function followedKind(
  kind: KindName,
  referencedObjects: ReferencedObjects,
  discoveredNamespaces: DiscoveredNamespaces,
): FollowedKind {
  const resource = resourceOf(kind);
  const defaultKind = { resource, selection: defaultSelection(resource), otherVersions: kinds[kind].versions.slice(1) };
  if (discoveredNamespaces.isMemberKind(kind)) return { ...defaultKind, shouldKeep: discoveredNamespaces.shouldKeep };
  if (kind !== 'Secret' && kind !== 'ConfigMap') return defaultKind;
  return {
    ...defaultKind,
    selection: { ...defaultKind.selection, metadataOnly: true },
    shouldKeep: (key) => referencedObjects.shouldKeep(kind, key),
    isOnDemand: true,
  };
}

function faultOf(log: Logger): (error: unknown) => void {
  const report = faultLog(log, 'kubernetes.changeFailed');
  return (error) => report(error);
}

function* kubeletVersions(nodes: Iterable<KubernetesObject>): Iterable<readonly [node: string, version: string]> {
  for (const { metadata, status } of nodes) {
    const info = isObject(status) ? status.nodeInfo : undefined;
    if (isObject(info) && typeof info.kubeletVersion === 'string') yield [metadata.name, info.kubeletVersion];
  }
}
