import type { EnvoyBuild } from './envoy-build.ts';

/** Waypoints and ztunnels are not supported. */
export type NodeType = 'sidecar' | 'router';

export type ProxyInterceptionMode = 'REDIRECT' | 'TPROXY' | 'NONE';

export interface Proxy {
  readonly id: string;
  readonly type: NodeType;
  readonly ipAddresses: readonly string[];
  /** `NAME.NAMESPACE` of the workload, the third part of the node ID. */
  readonly name: string;
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
  readonly metadata: Readonly<Record<string, unknown>>;
}
