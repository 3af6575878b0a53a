/** A connected proxy: its identity and reported properties. */
import type { EnvoyBuild } from './envoy-build.ts';

/** First part of the node ID, such as `sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local`. Waypoints and ztunnels are not supported. */
export type NodeType = 'sidecar' | 'router';

export type ProxyInterceptionMode = 'REDIRECT' | 'TPROXY' | 'NONE';

export interface Proxy {
  readonly id: string;
  readonly type: NodeType;
  readonly ipAddresses: readonly string[];
  /** `NAME.NAMESPACE` of the workload, the third part of the node ID. */
  readonly name: string;
  /** Namespace of its configuration: metadata `NAMESPACE`, else the first label of the DNS domain. */
  readonly configNamespace: string;
  readonly dnsDomain: string;
  readonly cluster: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly clusterId: string;
  readonly network: string;
  readonly serviceAccount: string;
  readonly interceptionMode: ProxyInterceptionMode;
  /** `region/zone/subzone`. */
  readonly locality: string;
  /** Absent if the node does not report an Envoy build. */
  readonly envoy?: EnvoyBuild;
  /** A gRPC client or server without Envoy, whose metadata `GENERATOR` is `grpc`. */
  readonly proxyless?: true;
  /** The client is authenticated for its `configNamespace` and may receive its credentials. */
  readonly isOfNamespace?: true;
  /** The received metadata, including keys without a field above. */
  readonly metadata: Readonly<Record<string, unknown>>;
}
