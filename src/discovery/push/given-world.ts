/** For tests: a mesh of decoded objects that change, and the nodes that are served from it. */
import { fromBinary } from '@bufbuild/protobuf';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { DeltaDiscoveryResponseSchema } from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { type Config, configKeyOf, configKeyText, parseConfigKey } from '../../model/config.ts';
import { defaultFeatures, type Features } from '../../model/features.ts';
import {
  type GatewayApiTranslation,
  translateGatewayApi,
  translationMayDiffer,
} from '../../model/gateway-api/translate.ts';
import { serviceKinds } from '../../model/service-registry.ts';
import type { EncodedResource, ResourceChange } from '../ads/resource-source.ts';
import { ConfigSnapshot } from '../config/config-snapshot.ts';
import { SettingsFiles } from '../config/settings-files.ts';
import { encodeMade } from './encode-made.ts';
import { EncodedCache } from './encoded-cache.ts';
import { type MeshNode, MeshResources } from './mesh-resources.ts';
import { MeshState } from './mesh-state.ts';

/** An object as a store has it. */
export function givenObject(kind: string, namespace: string, name: string, spec: object, age = 0): Config {
  const about = { apiVersion: 'networking.istio.io/v1', labels: {}, annotations: {} };
  // Stores give another version to another content.
  return { kind, namespace, name, spec, creationTimestamp: age, resourceVersion: JSON.stringify(spec), ...about };
}

export interface GivenNodeOptions {
  readonly namespace?: string;
  readonly labels?: object;
  readonly type?: 'sidecar' | 'router';
  /** `region/zone/subzone`. */
  readonly locality?: string;
  readonly metadata?: object;
  /** It may have the secrets of its namespace. */
  readonly secrets?: boolean;
}

/** Told through what they change in registries. */
const throughRegistry: ReadonlySet<string> = new Set(serviceKinds);

export class GivenWorld {
  /** How often something was encoded. */
  encodings = 0;
  readonly cache: EncodedCache;
  readonly directory: { snapshot: ConfigSnapshot };
  readonly state: MeshState;
  readonly resources: MeshResources;
  /** Without what is made of the Gateway API's objects. */
  #written: ConfigSnapshot;
  #gatewayApi: GatewayApiTranslation;

  /**
   * @param registries as `--registries` names them; absent: services are those of Kubernetes
   * @param features what the environment says beside the defaults
   */
  constructor(
    objects: readonly Config[],
    maxEntries = 60_000,
    registries?: readonly string[],
    features: Partial<Features> = {},
  ) {
    this.#written = new ConfigSnapshot(objects);
    this.#gatewayApi = translateGatewayApi(this.#written.set, 'cluster.local');
    this.directory = { snapshot: this.#written.edited(this.#gatewayApi.objects) };
    this.state = new MeshState({
      settings: new SettingsFiles(() => {}),
      directory: this.directory,
      domain: 'cluster.local',
      clusterId: 'Kubernetes',
      ...(registries && { registries }),
      features: { ...defaultFeatures, ...features },
    });
    this.cache = new EncodedCache({
      encode: (resource) => {
        this.encodings++;
        return encodeMade(resource);
      },
      maxEntries,
    });
    this.resources = new MeshResources({ context: () => this.state.context, cache: this.cache });
    this.state.onPublished((published) => this.resources.published(published));
    this.state.computeServices();
    this.state.publishContext({ forced: true, changed: [] });
  }

  /**
   * These objects are as given now (undefined: gone), and a context with them is published.
   *
   * @returns what a push says of it.
   */
  change(written: Readonly<Record<string, Config | undefined>>): ResourceChange {
    const edits = { ...written, ...this.#madeBy(written) };
    this.directory.snapshot = this.directory.snapshot.edited(new Map(Object.entries(edits)));
    const events = Object.entries(edits).map(([key, config]) => ({ key, event: config ? 'update' : 'delete' }));
    const { changedServices, changedEndpoints, forced = false } = this.state.computeServices(events as never);
    const own = Object.keys(edits).filter((key) => !throughRegistry.has(parseConfigKey(key).kind));
    const changed = [...own, ...changedServices, ...changedEndpoints];
    const { version } = this.state.publishContext({ forced, changed });
    return { version, forced, configs: new Set(changed) };
  }

  /** What of the objects that are made of others is another now. */
  #madeBy(written: Readonly<Record<string, Config | undefined>>): Record<string, Config | undefined> {
    const before = this.#gatewayApi;
    this.#written = this.#written.edited(new Map(Object.entries(written)));
    if (!translationMayDiffer(before, Object.keys(written))) return {};
    this.#gatewayApi = translateGatewayApi(this.#written.set, 'cluster.local', before);
    const { objects } = this.#gatewayApi;
    const keys = new Set([...before.objects.keys(), ...objects.keys()]);
    const differing = [...keys].filter((key) => objects.get(key) !== before.objects.get(key));
    return Object.fromEntries(differing.map((key) => [key, objects.get(key)]));
  }

  put(...objects: readonly Config[]): ResourceChange {
    return this.change(Object.fromEntries(objects.map((object) => [configKeyText(configKeyOf(object)), object])));
  }

  connect(ip: string, about: GivenNodeOptions = {}): MeshNode {
    const { namespace = 'a', labels = {}, type = 'sidecar', locality = '', metadata = {}, secrets = false } = about;
    const [region = '', zone = '', subZone = ''] = locality.split('/');
    const opened = this.resources.open({
      id: `${type}~${ip}~node-${ip}.${namespace}~${namespace}.svc.cluster.local`,
      cluster: `app.${namespace}`,
      metadata: { NAMESPACE: namespace, LABELS: labels, INSTANCE_IPS: ip, NAME: `node-${ip}`, ...metadata },
      locality: { region, zone, subZone },
      ...(secrets && { secretsUnverified: true }),
    });
    if ('error' in opened) throw new Error(opened.error);
    return opened.resources as MeshNode;
  }
}

/** How many endpoints an assignment has. */
export function endpointsIn(resource: EncodedResource | undefined): number {
  const [decoded] = fromBinary(DeltaDiscoveryResponseSchema, resource!.deltaFrame).resources;
  const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, decoded!.resource!.value);
  return endpoints.reduce((sum, { lbEndpoints }) => sum + lbEndpoints.length, 0);
}
