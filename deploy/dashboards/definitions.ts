/** Dashboards as data. `$…` are their variables; Grafana sets `$__rate_interval`. */

export type Unit = 'reqps' | 'percentunit' | 'ms' | 's' | 'Bps' | 'bytes' | 'short' | 'ops';

export interface Panel {
  readonly title: string;
  readonly unit: Unit;
  readonly queries: readonly { readonly expression: string; readonly legend: string }[];
  readonly description?: string;
}

export interface Variable {
  readonly name: string;
  /** Metric that provides the values: `label_values(METRIC, LABEL)`. */
  readonly metric: string;
  readonly label: string;
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly variables: readonly Variable[];
  readonly rows: readonly { readonly title: string; readonly panels: readonly Panel[] }[];
}

const over = '[$__rate_interval]';

function panel(title: string, unit: Unit, expression: string, legend = '{{instance}}', description?: string): Panel {
  return { title, unit, queries: [{ expression, legend }], ...(description && { description }) };
}

const sumOfRate = (selector: string, by: string): string => `sum by (${by}) (rate(${selector}${over}))`;

function requestRate(title: string, labels: string, by: string): Panel {
  return panel(title, 'reqps', sumOfRate(`istio_requests_total{${labels}}`, by), legendOf(by));
}

function errorRatio(title: string, labels: string, by: string): Panel {
  const failed = sumOfRate(`istio_requests_total{${labels}, response_code=~"5..|0"}`, by);
  const all = sumOfRate(`istio_requests_total{${labels}}`, by);
  // Before the first failure its series is absent; the product with 0 then yields a ratio of 0.
  return panel(title, 'percentunit', `(${failed} or ${all} * 0) / ${all}`, legendOf(by));
}

function quantiles(title: string, unit: Unit, metric: string, labels: string, by: string): Panel {
  const expression = (share: number): string =>
    `histogram_quantile(${share}, ${sumOfRate(`${metric}_bucket{${labels}}`, `le, ${by}`)})`;
  const queries = [0.5, 0.9, 0.99].map((share) => ({
    expression: expression(share),
    legend: `${legendOf(by)} p${share * 100}`,
  }));
  return { title, unit, queries };
}

function tcpBytes(title: string, labels: string, by: string): Panel {
  const queries = (['sent', 'received'] as const).map((direction) => ({
    expression: sumOfRate(`istio_tcp_${direction}_bytes_total{${labels}}`, by),
    legend: `${legendOf(by)} ${direction}`,
  }));
  return { title, unit: 'Bps', queries };
}

const legendOf = (by: string): string =>
  by
    .split(', ')
    .map((label) => `{{${label}}}`)
    .join(' ');

/** The rows that the dashboards of services, workloads and the mesh share. */
function trafficRow(title: string, labels: string, by: string) {
  return {
    title,
    panels: [
      requestRate('Requests', labels, by),
      errorRatio('Failed requests', labels, by),
      quantiles('Duration', 'ms', 'istio_request_duration_milliseconds', labels, by),
      requestRate('Requests by response', labels, 'response_code, response_flags'),
      quantiles('Response size', 'bytes', 'istio_response_bytes', labels, by),
      tcpBytes('TCP', labels, by),
    ],
  };
}

const mesh: Dashboard = {
  uid: 'chartpilot-mesh',
  title: 'Mesh',
  variables: [],
  rows: [
    trafficRow('Services, reported by their clients', 'reporter="source"', 'destination_service'),
    {
      title: 'Programs',
      panels: [
        panel('Versions', 'short', 'sum by (component, tag) (istio_build)', '{{component}} {{tag}}'),
        panel('Sidecars that serve', 'short', 'sum(istio_agent_envoy_serving)', 'serving'),
        panel(
          'Starts of Envoy',
          'ops',
          sumOfRate('istio_agent_envoy_restarts_total', 'reason, outcome'),
          '{{reason}} {{outcome}}',
        ),
        panel('Time until the next workload certificate expires', 's', 'min(istio_agent_cert_expiry_seconds)', 'next'),
        panel(
          'Folded observations',
          'ops',
          sumOfRate('istio_agent_metric_folded_total', 'metric'),
          '{{metric}}',
          'Counted without their labels, because a limit of label sets was reached.',
        ),
        panel(
          'Lost access log entries',
          'ops',
          `sum(rate(istio_agent_access_log_lost_total${over})) or vector(0)`,
          'lost',
          'Requests that no metric contains.',
        ),
      ],
    },
  ],
};

const service: Dashboard = {
  uid: 'chartpilot-service',
  title: 'Service',
  variables: [{ name: 'service', metric: 'istio_requests_total', label: 'destination_service' }],
  rows: [
    trafficRow(
      'Reported by clients',
      'reporter="source", destination_service=~"$service"',
      'source_workload_namespace, source_workload',
    ),
    trafficRow(
      'Reported by servers',
      'reporter="destination", destination_service=~"$service"',
      'destination_workload_namespace, destination_workload',
    ),
    {
      title: 'Security',
      panels: [
        requestRate(
          'Requests by security of the connection',
          'reporter="destination", destination_service=~"$service"',
          'connection_security_policy',
        ),
        requestRate(
          'Requests by identity of the client',
          'reporter="destination", destination_service=~"$service"',
          'source_principal',
        ),
      ],
    },
  ],
};

const workload: Dashboard = {
  uid: 'chartpilot-workload',
  title: 'Workload',
  variables: [
    { name: 'namespace', metric: 'istio_requests_total', label: 'destination_workload_namespace' },
    { name: 'workload', metric: 'istio_requests_total', label: 'destination_workload' },
    { name: 'client', metric: 'istio_requests_total', label: 'source_workload' },
  ],
  rows: [
    trafficRow(
      'Incoming',
      'reporter="destination", destination_workload_namespace=~"$namespace", destination_workload=~"$workload"',
      'source_workload_namespace, source_workload',
    ),
    trafficRow(
      'Outgoing',
      'reporter="source", source_workload_namespace=~"$namespace", source_workload=~"$client"',
      'destination_service',
    ),
  ],
};

const controlPlane: Dashboard = {
  uid: 'chartpilot-control-plane',
  title: 'Control plane',
  variables: [],
  rows: [
    {
      title: 'Proxies and pushes',
      panels: [
        panel('Connected proxies', 'short', 'sum by (instance, version) (pilot_xds)', '{{instance}} {{version}}'),
        panel('Responses', 'ops', sumOfRate('pilot_xds_pushes', 'type'), '{{type}}'),
        panel('Push requests', 'ops', sumOfRate('pilot_push_triggers', 'type'), '{{type}}'),
        quantiles('Time until a change is at a proxy', 's', 'pilot_proxy_convergence_time', 'job=~".+"', 'instance'),
        quantiles('Time to build a response', 's', 'pilot_xds_push_time', 'job=~".+"', 'type'),
        panel(
          'Rejected responses',
          'ops',
          `sum(rate(pilot_total_xds_rejects${over})) or vector(0)`,
          'rejected',
          '/debug/proxyz shows the proxy and the message of Envoy.',
        ),
        panel(
          'Refused connections',
          'ops',
          `sum by (reason) (rate(pilot_xds_refused_connections_total${over})) or vector(0)`,
          '{{reason}}',
        ),
        panel('Proxies that wait for clusters', 'short', 'sum(pilot_xds_waiting_for_clusters)', 'waiting'),
      ],
    },
    {
      title: 'Configuration',
      panels: [
        panel('Services', 'short', 'max by (instance) (pilot_services)'),
        panel('VirtualServices', 'short', 'max by (instance) (pilot_virt_services)'),
        panel(
          'Changes',
          'ops',
          `sum by (type) (rate(pilot_k8s_cfg_events${over})) or sum by (type) (rate(pilot_k8s_reg_events${over}))`,
          '{{type}}',
        ),
        panel('Rejected objects', 'ops', `sum(rate(pilot_total_rejected_configs${over})) or vector(0)`, 'rejected'),
        panel('Objects with warnings', 'short', 'max by (instance) (pilot_config_warnings)'),
        panel('Kubernetes clusters', 'short', 'max by (cluster_type) (istiod_managed_clusters)', '{{cluster_type}}'),
      ],
    },
    {
      title: 'Certificates and webhooks',
      panels: [
        panel('Time until the root expires', 's', 'min by (instance) (citadel_server_root_cert_expiry_seconds)'),
        panel('Issued certificates', 'ops', sumOfRate('citadel_server_success_cert_issuance_count', 'instance')),
        panel(
          'Unauthenticated requests for certificates',
          'ops',
          sumOfRate('citadel_server_authentication_failure_count', 'instance'),
        ),
        panel('Failed injections', 'ops', `sum(rate(sidecar_injection_failure_total${over})) or vector(0)`, 'failed'),
        panel(
          'Rejected by validation',
          'ops',
          `sum by (resource) (rate(galley_validation_failed${over})) or vector(0)`,
          '{{resource}}',
        ),
      ],
    },
    {
      title: 'Process',
      panels: [
        panel('Memory', 'bytes', 'process_resident_memory_bytes{job="chartpilot-control-plane"}'),
        panel('CPU', 'percentunit', `rate(process_cpu_seconds_total{job="chartpilot-control-plane"}${over})`),
        panel('Event loop delay, p99', 's', 'nodejs_eventloop_lag_p99_seconds{job="chartpilot-control-plane"}'),
        panel('Cached resources', 'bytes', 'max by (instance) (xds_cache_bytes)'),
        panel('Uncaught errors', 'ops', `sum(rate(pilot_uncaught_errors_total${over})) or vector(0)`, 'errors'),
      ],
    },
  ],
};

export const dashboards: Readonly<Record<string, Dashboard>> = {
  mesh,
  service,
  workload,
  'control-plane': controlPlane,
};

export interface Alert {
  readonly name: string;
  /** Left side of the comparison; has data even while there is no problem. */
  readonly value: string;
  readonly condition: string;
  readonly for: string;
  readonly severity: 'critical' | 'warning';
  readonly summary: string;
  /** Page of `docs/` with instructions. */
  readonly page: string;
}

const recently = '[5m]';

export const alerts: readonly Alert[] = [
  {
    name: 'ChartpilotNoEnvoyServes',
    value: 'istio_agent_envoy_serving',
    condition: '== 0',
    for: '1m',
    severity: 'critical',
    summary: '{{ $labels.instance }}: no Envoy serves',
    page: 'debugging-a-restart.md',
  },
  {
    name: 'ChartpilotEnvoyRestartsFail',
    value: `sum by (instance) (increase(istio_agent_envoy_restarts_total{outcome!="live"}${recently})) or vector(0)`,
    condition: '> 2',
    for: '0s',
    severity: 'warning',
    summary: '{{ $labels.instance }}: starts of Envoy fail',
    page: 'debugging-a-restart.md',
  },
  {
    name: 'ChartpilotWorkloadCertificateExpires',
    value: 'min by (instance) (istio_agent_cert_expiry_seconds)',
    condition: '< 1800',
    for: '5m',
    severity: 'critical',
    summary: '{{ $labels.instance }}: the certificate expires in {{ $value }} s and is not renewed',
    page: 'identity.md',
  },
  {
    name: 'ChartpilotControlPlaneUnreachable',
    value: `sum by (instance) (increase(istio_agent_istiod_connection_failures${recently}))`,
    condition: '> 5',
    for: '5m',
    severity: 'warning',
    summary: '{{ $labels.instance }}: the agent cannot reach the control plane',
    page: 'operations.md',
  },
  {
    name: 'ChartpilotRootExpires',
    value: 'min(citadel_server_root_cert_expiry_seconds)',
    condition: '< 30 * 86400',
    for: '1h',
    severity: 'critical',
    summary: 'The root certificate expires in {{ $value | humanizeDuration }}',
    page: 'identity.md',
  },
  {
    name: 'ChartpilotCertificatesFail',
    value: `sum(increase(citadel_server_csr_sign_err_count${recently})) or vector(0)`,
    condition: '> 5',
    for: '5m',
    severity: 'warning',
    summary: 'Requests for certificates fail',
    page: 'identity.md',
  },
  {
    name: 'ChartpilotResponsesRejected',
    value: `sum by (type) (increase(pilot_total_xds_rejects${recently})) or vector(0)`,
    condition: '> 0',
    for: '0s',
    severity: 'critical',
    summary: 'Envoys reject {{ $labels.type }}; they keep their last configuration',
    page: 'operations.md',
  },
  {
    name: 'ChartpilotConfigRejected',
    value: `sum(increase(pilot_total_rejected_configs${recently})) or vector(0)`,
    condition: '> 0',
    for: '0s',
    severity: 'warning',
    summary: 'Objects or files are rejected; their last valid version applies',
    page: 'operations.md',
  },
  {
    name: 'ChartpilotSlowPushes',
    value: `histogram_quantile(0.99, sum by (le) (rate(pilot_proxy_convergence_time_bucket${recently})))`,
    condition: '> 10',
    for: '10m',
    severity: 'warning',
    summary: 'Changes take {{ $value }} s to reach proxies',
    page: 'scaling.md',
  },
  {
    name: 'ChartpilotConnectionsRefused',
    value: `sum by (reason) (rate(pilot_xds_refused_connections_total${recently})) or vector(0)`,
    condition: '> 1',
    for: '10m',
    severity: 'warning',
    summary: 'Connections to the control plane are refused: {{ $labels.reason }}',
    page: 'operations.md',
  },
  {
    name: 'ChartpilotInjectionFails',
    value: `sum(increase(sidecar_injection_failure_total${recently})) or vector(0)`,
    condition: '> 0',
    for: '5m',
    severity: 'critical',
    summary: 'Pods cannot be created because the injection fails',
    page: 'kubernetes.md',
  },
  {
    name: 'ChartpilotMetricsFolded',
    value: `sum by (instance, metric) (increase(istio_agent_metric_folded_total${recently}))`,
    condition: '> 0',
    for: '15m',
    severity: 'warning',
    summary: '{{ $labels.instance }}: {{ $labels.metric }} has more label sets than its limit',
    page: 'metrics.md',
  },
  {
    name: 'ChartpilotUncaughtError',
    value: `(sum(increase(pilot_uncaught_errors_total${recently})) or vector(0)) + (sum(increase(istio_agent_uncaught_errors_total${recently})) or vector(0))`,
    condition: '> 0',
    for: '0s',
    severity: 'warning',
    summary: 'A program continued after an uncaught error, which is a bug',
    page: 'operations.md',
  },
];
