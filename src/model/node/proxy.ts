/** An Envoy as the control plane knows it: who it is, and what it said of itself (spec/discovery.md §7.2). */
import type { EnvoyBuild } from './envoy-build.ts';

/** `sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local`. Waypoints and ztunnels are not served yet. */
export type NodeType = 'sidecar' | 'router';

export type InterceptionMode = 'REDIRECT' | 'TPROXY' | 'NONE';

export interface Proxy {
  /** The whole node id. */
  readonly id: string;
  readonly type: NodeType;
  readonly ipAddresses: readonly string[];
  /** Name and namespace of the workload, as in the node id's third part. */
  readonly name: string;
  /** Namespace whose configuration counts: metadata `NAMESPACE`, else the first label of the domain. */
  readonly configNamespace: string;
  readonly dnsDomain: string;
  readonly cluster: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly clusterId: string;
  readonly network: string;
  readonly serviceAccount: string;
  readonly interceptionMode: InterceptionMode;
  /** `region/zone/subzone`. */
  readonly locality: string;
  /** Absent if the node does not say which Envoy it is. */
  readonly envoy?: EnvoyBuild;
  /** A client or server of gRPC, without an Envoy: metadata `GENERATOR` is `grpc`. Absent: an Envoy. */
  readonly proxyless?: true;
  /** The client has shown that it is of its `configNamespace`, and may have credentials of this namespace. Absent: it has not. */
  readonly isOfNamespace?: true;
  /** Metadata as sent, for what no field above holds. */
  readonly metadata: Readonly<Record<string, unknown>>;
}
