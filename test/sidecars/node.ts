/** Identity that a sidecar reports. */
import { create, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { NodeSchema } from '../../src/gen/envoy/config/core/v3/base_pb.ts';

export interface SidecarIdentity {
  /** Determines its name and its address; from 0 to a million. */
  readonly number: number;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Istio version; default `1.28.0`. */
  readonly version?: string;
  readonly type?: 'sidecar' | 'router';
  /** Drain time that the node reports; default: not reported. */
  readonly drainMs?: number;
}

export const addressOf = (number: number): string =>
  `10.${128 + Math.floor(number / 62_500)}.${Math.floor(number / 250) % 250}.${(number % 250) + 1}`;

/** Loopback address of a sidecar by its number, for servers that distinguish hosts. */
export const loopbackOf = (number: number): string => addressOf(number).replace(/^10\./, '127.');

/** Encodes a Node like an istio-proxy of 1.28. */
export function encodeNode({
  number,
  namespace = 'default',
  labels = { app: 'app' },
  version = '1.28.0',
  type = 'sidecar',
  drainMs,
}: SidecarIdentity): Buffer {
  const address = addressOf(number);
  const name = `app-${number}`;
  const metadata: JsonObject = {
    NAMESPACE: namespace,
    CLUSTER_ID: 'Kubernetes',
    ISTIO_VERSION: version,
    INTERCEPTION_MODE: 'REDIRECT',
    MESH_ID: 'cluster.local',
    WORKLOAD_NAME: 'app',
    SERVICE_ACCOUNT: 'default',
    INSTANCE_IPS: address,
    ...(drainMs !== undefined && { PROXY_CONFIG: { drainDuration: `${drainMs / 1_000}s` } }),
    NAME: name,
    LABELS: { ...labels, 'service.istio.io/canonical-name': 'app' },
  };
  const node = create(NodeSchema, {
    id: `${type}~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
    cluster: `app.${namespace}`,
    metadata,
    userAgentName: 'envoy',
    locality: {},
  });
  return Buffer.from(toBinary(NodeSchema, node));
}
