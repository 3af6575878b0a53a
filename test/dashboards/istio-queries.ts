/**
 * Queries of the panels and variables of Istio's mesh, service and workload dashboards. The dashboards are
 * Istio's and not in this repository; their queries follow one pattern, so they are generated. `$…` are Grafana's variables.
 */

export interface DashboardQuery {
  readonly dashboard: 'mesh' | 'service' | 'workload';
  readonly panel: string;
  readonly query: string;
}

const rate = '$__rate_interval';

export function istioQueries(): DashboardQuery[] {
  return [...meshQueries(), ...serviceQueries(), ...workloadQueries()];
}

function meshQueries(): DashboardQuery[] {
  const reporter = 'reporter=~"source|waypoint"';
  const of = 'destination_workload, destination_workload_namespace';
  const requests = (code = '', grouping = ''): string =>
    `sum(rate(istio_requests_total{${reporter}${code}}[${rate}]))${grouping === '' ? '' : ` by (${grouping})`}`;
  const withWorkloadLabel = (query: string): string =>
    `label_join(${query}, "destination_workload_var", ".", "destination_workload", "destination_workload_namespace")`;
  const quantile = (share: number): string =>
    withWorkloadLabel(
      `histogram_quantile(${share}, sum(rate(istio_request_duration_milliseconds_bucket{${reporter}}[${rate}])) by (le, ${of}))`,
    );
  const bytes = (metric: string): string =>
    withWorkloadLabel(
      `sum(rate(istio_tcp_${metric}_bytes_total{${reporter}}[${rate}])) by (${of}, destination_service)`,
    );
  const notFailed = ', response_code!~"5.*"';
  const panels: readonly [string, string][] = [
    ['Traffic Volume', `round(${requests()}, 0.01)`],
    ['Success Rate', `${requests(notFailed)} / ${requests()}`],
    ['4xxs', `round(${requests(', response_code=~"4.*"')}, 0.01) or vector(0)`],
    ['5xxs', `round(${requests(', response_code=~"5.*"')}, 0.01) or vector(0)`],
    ['Workloads: requests', withWorkloadLabel(requests(', response_code="200"', `${of}, destination_service`))],
    ...[0.5, 0.9, 0.99].map((share): [string, string] => [`Workloads: P${share * 100}`, quantile(share)]),
    ['Workloads: success', withWorkloadLabel(`${requests(notFailed, of)} / ${requests('', of)}`)],
    ['TCP: bytes received', bytes('received')],
    ['TCP: bytes sent', bytes('sent')],
    ['Istio Component Versions', 'sum(istio_build) by (component, tag)'],
  ];
  return panels.map(([panel, query]) => ({ dashboard: 'mesh', panel, query }));
}

/** Both kinds of connections of a panel: with mutual TLS, and without. */
const policies = [
  ['mTLS', 'connection_security_policy="mutual_tls"'],
  ['plaintext', 'connection_security_policy!="mutual_tls"'],
] as const;

/** A row of panels that group by a peer: 32 queries. */
function rowOf(row: string, labels: string, grouping: string): readonly [string, string][] {
  return policies.flatMap(([policy, matcher]): [string, string][] => {
    const selectors = `${matcher}, ${labels}`;
    const requests = (code: string, extraGrouping = ''): string =>
      `sum(irate(istio_requests_total{${selectors}${code}}[${rate}])) by (${grouping}${extraGrouping})`;
    const quantiles = (metric: string): [string, string][] =>
      [0.5, 0.9, 0.95, 0.99].map((share) => [
        `${row}: ${metric} P${share * 100} (${policy})`,
        `histogram_quantile(${share}, sum(irate(istio_${metric}_bucket{${selectors}}[${rate}])) by (${grouping}, le))`,
      ]);
    const bytes = (direction: string): [string, string] => [
      `${row}: TCP ${direction} (${policy})`,
      `round(sum(irate(istio_tcp_${direction}_bytes_total{${selectors}}[${rate}])) by (${grouping}), 0.001)`,
    ];
    return [
      [`${row}: requests by response code (${policy})`, `round(${requests('', ', response_code')}, 0.001)`],
      [`${row}: success (${policy})`, `${requests(', response_code!~"5.*"')} / ${requests('')}`],
      ...quantiles('request_duration_milliseconds'),
      ...quantiles('request_bytes'),
      ...quantiles('response_bytes'),
      bytes('received'),
      bytes('sent'),
    ];
  });
}

/** The general panels: six queries. */
function generalOf(reporterSide: string, labels: string, tcp: string): readonly [string, string][] {
  const requests = (code = ''): string => `sum(irate(istio_requests_total{${labels}${code}}[${rate}]))`;
  return [
    [`${reporterSide}: volume`, `round(${requests()}, 0.001)`],
    [`${reporterSide}: success`, `${requests(', response_code!~"5.*"')} / ${requests()}`],
    ...[0.5, 0.9, 0.99].map((share): [string, string] => [
      `${reporterSide}: duration P${share * 100}`,
      `histogram_quantile(${share}, sum(irate(istio_request_duration_milliseconds_bucket{${labels}}[${rate}])) by (le)) / 1000`,
    ]),
    [`${reporterSide}: TCP ${tcp}`, `sum(irate(istio_tcp_${tcp}_bytes_total{${labels}}[${rate}]))`],
  ];
}

function variable(label: string, selectors = ''): [string, string] {
  const of = (metric: string): string => `sum(${metric}{${selectors}}) by (${label})`;
  return [`variable ${label}`, `${of('istio_requests_total')} or ${of('istio_tcp_sent_bytes_total')}`];
}

function serviceQueries(): DashboardQuery[] {
  const service = 'destination_service=~"$service"';
  const source = 'source_workload=~"$srcwl", source_workload_namespace=~"$srcns"';
  const destination = 'destination_workload=~"$dstwl", destination_workload_namespace=~"$dstns"';
  const reporter = 'reporter=~"$qrep"';
  const all: readonly [string, string][] = [
    ...generalOf('Client', `${reporter}, ${service}`, 'received'),
    ...generalOf('Server', `reporter="destination", ${service}`, 'sent'),
    ...rowOf('Client Workloads', `${service}, ${reporter}, ${source}`, 'source_workload, source_workload_namespace'),
    ...rowOf(
      'Service Workloads',
      `${service}, reporter="destination", ${destination}`,
      'destination_workload, destination_workload_namespace',
    ),
    variable('destination_service'),
    ...['source_cluster', 'source_workload_namespace', 'source_workload'].map((label) =>
      variable(label, `${reporter}, ${service}`),
    ),
    ...['destination_cluster', 'destination_workload_namespace', 'destination_workload'].map((label) =>
      variable(label, `reporter="destination", ${service}`),
    ),
  ];
  return all.map(([panel, query]) => ({ dashboard: 'service', panel, query }));
}

function workloadQueries(): DashboardQuery[] {
  const reporter = 'reporter=~"$qrep"';
  const inbound = `${reporter}, destination_workload_namespace=~"$namespace", destination_workload=~"$workload"`;
  const outbound = `reporter="source", source_workload_namespace=~"$namespace", source_workload=~"$caller"`;
  const all: readonly [string, string][] = [
    ...generalOf('Incoming', inbound, 'received'),
    ['Incoming: TCP sent', `round(sum(irate(istio_tcp_sent_bytes_total{${inbound}}[${rate}])), 0.001)`],
    ...rowOf(
      'Inbound Workloads',
      `${inbound}, source_workload=~"$srcwl", source_workload_namespace=~"$srcns"`,
      'source_workload, source_workload_namespace',
    ),
    ...rowOf('Outbound Services', `${outbound}, destination_service=~"$service"`, 'destination_service'),
    ...['destination_workload_namespace', 'destination_workload', 'source_workload_namespace', 'source_workload'].map(
      (label) => variable(label, reporter),
    ),
    variable('destination_service', 'reporter="source"'),
  ];
  return all.map(([panel, query]) => ({ dashboard: 'workload', panel, query }));
}
