/**
 * A state-of-the-world client that acknowledges CDS like Envoy, after each cluster has its assignment. It records route configurations that name a
 * cluster that is not ready yet.
 */
import { hash } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { Cluster_DiscoveryType, ClusterSchema } from '../../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../src/gen/envoy/config/route/v3/route_pb.ts';
import type { DiscoveryResponse } from '../../../src/gen/envoy/service/discovery/v3/discovery_pb.ts';
import { type AdsTestClient, type SotwStream, typeUrls } from '../../ads-client.ts';

export class SimulatedProxy {
  /** Violations of make before break, as text. */
  readonly violations: string[] = [];
  /** Number of responses with route configurations. */
  routes = 0;
  readonly #stream: SotwStream;
  readonly #routeNames: readonly string[];
  /** Whether a cluster needs an assignment, by its name. */
  #clusters = new Map<string, boolean>();
  readonly #assignedClusters = new Set<string>();
  #isClosed = false;
  #pendingResponse: DiscoveryResponse | undefined;

  constructor(client: AdsTestClient, node: object, routeNames: readonly string[]) {
    this.#routeNames = routeNames;
    this.#stream = client.sotw();
    this.#stream.onResponse = (response) => this.#receive(response);
    this.#stream.send({ node, typeUrl: typeUrls.CDS });
    void this.#stream.ended.then(({ code, details }) => {
      if (!this.#isClosed) this.violations.push(`its stream has ended: ${code} ${details}`);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#stream.cancel();
  }

  #receive(response: DiscoveryResponse): void {
    switch (response.typeUrl) {
      case typeUrls.CDS:
        this.#receiveClusters(response);
        break;
      case typeUrls.EDS:
        for (const { value } of response.resources) {
          this.#assignedClusters.add(assignmentOf(value));
        }
        this.#acknowledge(response, this.#endpointNames());
        this.#acknowledgeClusters();
        break;
      case typeUrls.RDS:
        this.routes++;
        for (const { value } of response.resources) {
          for (const name of clustersNamedIn(value)) {
            if (!this.#isUsable(name)) this.violations.push(`a route to ${name}, which is not usable`);
          }
        }
        this.#acknowledge(response, this.#routeNames);
        break;
    }
  }

  #receiveClusters(response: DiscoveryResponse): void {
    const isFirst = this.#clusters.size === 0;
    this.#clusters = new Map(response.resources.map(({ value }) => clusterOf(value)));
    for (const name of this.#assignedClusters) if (!this.#clusters.has(name)) this.#assignedClusters.delete(name);
    this.#pendingResponse = response;
    this.#stream.send({ typeUrl: typeUrls.EDS, resourceNames: this.#endpointNames() });
    this.#acknowledgeClusters();
    if (isFirst) this.#stream.send({ typeUrl: typeUrls.RDS, resourceNames: [...this.#routeNames] });
  }

  #acknowledgeClusters(): void {
    if (this.#pendingResponse === undefined || this.#endpointNames().some((name) => !this.#assignedClusters.has(name)))
      return;
    this.#acknowledge(this.#pendingResponse, []);
    this.#pendingResponse = undefined;
  }

  #acknowledge({ typeUrl, versionInfo, nonce }: DiscoveryResponse, names: readonly string[]): void {
    this.#stream.send({ typeUrl, versionInfo, responseNonce: nonce, resourceNames: [...names] });
  }

  #endpointNames(): string[] {
    return [...this.#clusters].filter(([, needsAssignment]) => needsAssignment).map(([name]) => name);
  }

  #isUsable(name: string): boolean {
    const needsAssignment = this.#clusters.get(name);
    return needsAssignment !== undefined && (!needsAssignment || this.#assignedClusters.has(name));
  }
}

/** Many proxies receive the same resources, so each resource is decoded once. */
function decodedOnce<Value>(decode: (bytes: Uint8Array) => Value): (bytes: Uint8Array) => Value {
  const cachedValues = new Map<string, Value>();
  return (bytes) => {
    const key = hash('sha1', bytes, 'base64');
    let value = cachedValues.get(key);
    if (value === undefined) {
      value = decode(bytes);
      if (cachedValues.size >= maxDecoded) cachedValues.clear();
      cachedValues.set(key, value);
    }
    return value;
  };
}

const maxDecoded = 10_000;

const assignmentOf = decodedOnce((bytes) => fromBinary(ClusterLoadAssignmentSchema, bytes).clusterName);

const clustersNamedIn = decodedOnce((bytes) => clustersOf(fromBinary(RouteConfigurationSchema, bytes)));

/** Name of a cluster, and whether it needs an assignment. */
const clusterOf = decodedOnce((bytes): readonly [string, boolean] => {
  const { name, clusterDiscoveryType } = fromBinary(ClusterSchema, bytes);
  return [name, clusterDiscoveryType.value === Cluster_DiscoveryType.EDS];
});

/** Names of the clusters of a route configuration's routes, weighted routes and mirrors. */
function clustersOf({ virtualHosts }: RouteConfiguration): string[] {
  return virtualHosts
    .flatMap(({ routes }) => routes)
    .flatMap(({ action: { case: kind, value: action } }) => {
      if (kind !== 'route') return [];
      const { case: specifier, value } = action.clusterSpecifier;
      const mirrors = action.requestMirrorPolicies.map(({ cluster }) => cluster);
      if (specifier === 'cluster') return [value, ...mirrors];
      if (specifier === 'weightedClusters') return [...value.clusters.map(({ name }) => name), ...mirrors];
      return mirrors;
    });
}
