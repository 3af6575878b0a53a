/** Istio's standard metrics as data. The agent computes them, the control plane configures them, and docs/metrics.md is generated from this table. */

export type StandardMetricId =
  | 'REQUEST_COUNT'
  | 'REQUEST_DURATION'
  | 'REQUEST_SIZE'
  | 'RESPONSE_SIZE'
  | 'TCP_OPENED_CONNECTIONS'
  | 'TCP_CLOSED_CONNECTIONS'
  | 'TCP_SENT_BYTES'
  | 'TCP_RECEIVED_BYTES';

export interface StandardMetric {
  readonly name: string;
  readonly type: 'counter' | 'histogram';
  readonly protocol: 'http' | 'tcp';
  readonly meaning: string;
}

export const standardMetrics: Readonly<Record<StandardMetricId, StandardMetric>> = {
  REQUEST_COUNT: {
    name: 'istio_requests_total',
    type: 'counter',
    protocol: 'http',
    meaning: 'HTTP and gRPC requests, counted when they end.',
  },
  REQUEST_DURATION: {
    name: 'istio_request_duration_milliseconds',
    type: 'histogram',
    protocol: 'http',
    meaning: 'Milliseconds from the first byte of a request to the last byte of its response.',
  },
  REQUEST_SIZE: {
    name: 'istio_request_bytes',
    type: 'histogram',
    protocol: 'http',
    meaning: 'Bytes of a request on the connection from the client, with its headers.',
  },
  RESPONSE_SIZE: {
    name: 'istio_response_bytes',
    type: 'histogram',
    protocol: 'http',
    meaning: 'Bytes of a response on the connection to the client, with its headers.',
  },
  TCP_OPENED_CONNECTIONS: {
    name: 'istio_tcp_connections_opened_total',
    type: 'counter',
    protocol: 'tcp',
    meaning: 'TCP connections, counted when they are opened.',
  },
  TCP_CLOSED_CONNECTIONS: {
    name: 'istio_tcp_connections_closed_total',
    type: 'counter',
    protocol: 'tcp',
    meaning: 'TCP connections, counted when they are closed.',
  },
  TCP_SENT_BYTES: {
    name: 'istio_tcp_sent_bytes_total',
    type: 'counter',
    protocol: 'tcp',
    meaning: 'Bytes sent to clients of TCP connections, also while a connection is open.',
  },
  TCP_RECEIVED_BYTES: {
    name: 'istio_tcp_received_bytes_total',
    type: 'counter',
    protocol: 'tcp',
    meaning: 'Bytes received from clients of TCP connections, also while a connection is open.',
  },
};

export const standardMetricIds = Object.keys(standardMetrics) as StandardMetricId[];

/** Labels of every standard metric, in output order. Metrics of HTTP also have {@link requestLabels}. */
export const connectionLabels = [
  'reporter',
  'source_workload',
  'source_canonical_service',
  'source_canonical_revision',
  'source_workload_namespace',
  'source_principal',
  'source_app',
  'source_version',
  'source_cluster',
  'destination_workload',
  'destination_workload_namespace',
  'destination_principal',
  'destination_app',
  'destination_version',
  'destination_service',
  'destination_canonical_service',
  'destination_canonical_revision',
  'destination_service_name',
  'destination_service_namespace',
  'destination_cluster',
  'request_protocol',
  'response_flags',
  'connection_security_policy',
] as const;

export const requestLabels = ['response_code', 'grpc_response_status'] as const;

export type StandardLabel = (typeof connectionLabels)[number] | (typeof requestLabels)[number];

/** Envoy's default upper bounds, which Istio uses, in milliseconds or bytes, without `+Inf`. */
export const standardBuckets: readonly number[] = [
  ...[0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000],
  ...[300_000, 600_000, 1_800_000, 3_600_000],
];

export const unknownLabel = 'unknown';
