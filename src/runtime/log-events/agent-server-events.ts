import { type LogEventTable, noAction } from './log-event.ts';

/** Events of pilot-agent about certificates and secrets, the xDS proxy, DNS, and the status port. */
export const agentServerEvents = {
  'secret.obtained': {
    level: 'info',
    message: 'certificate obtained',
    meaning: 'Envoy gets a new version of this secret: at start and at each rotation.',
    action: noAction,
  },
  'secret.lacking': {
    level: 'warn',
    message: 'certificate not available, will retry',
    meaning:
      'The certificate authority or the file did not deliver the secret. A certificate that Envoy has stays in use.',
    action:
      'Act if it repeats: see `reason` (`code`: docs/errors.md). The current certificate stays in use until it expires.',
  },
  'secret.ended': {
    level: 'error',
    message: 'certificate expired, no new one is available',
    meaning: 'Peers reject connections of this workload.',
    action: 'Restore the certificate authority (see the `certificate not available` lines), and check the clock.',
  },
  'secrets.failed': {
    level: 'warn',
    message: 'secret server not available',
    meaning: 'The socket for SDS cannot be opened: the agent ends.',
    action: 'See `reason`; check the directory of the socket.',
  },
  'sds.failed': {
    level: 'warn',
    message: 'SDS server failed',
    meaning: 'The socket for SDS could not be opened, or its server failed; it is opened again.',
    action: 'See `reason`.',
  },
  'sds.rejected': {
    level: 'warn',
    message: 'Envoy rejected a secret, keeping its last version',
    meaning: 'Envoy cannot use this version of the certificate.',
    action: 'See `reason`, which is from Envoy.',
  },
  'output.failed': {
    level: 'warn',
    message: 'certificate files not written, will retry',
    meaning:
      'The certificates could not be written to `OUTPUT_CERTS`. The next attempt is after 0.5 s, then after longer pauses up to 30 s.',
    action: 'Check the directory and the disk: see `reason`.',
  },
  'grpc-bootstrap.failed': {
    level: 'warn',
    message: 'gRPC bootstrap file not written, will retry',
    meaning: 'gRPC programs without a proxy cannot start; the pod is not ready.',
    action: 'Check the directory of `GRPC_XDS_BOOTSTRAP` and the disk: see `reason`.',
  },
  'revocationList.invalid': {
    level: 'warn',
    message: 'certificate revocation list has a problem',
    meaning: 'A list or a part of it is not used, or it expires soon.',
    action: 'Replace `file`: see `reason` (`code`: docs/errors.md).',
  },
  'bundle.rejected': {
    level: 'warn',
    message: 'root certificates of the control plane rejected',
    meaning: 'The control plane sent trusted roots that are not valid; the last ones apply.',
    action: 'See `reason`; check the authority of the control plane.',
  },
  'module.failed': {
    level: 'warn',
    message: 'fetch of a Wasm module failed, will retry',
    meaning: 'Three attempts failed. The previous plugin applies, or its failure policy; the agent goes on trying.',
    action: 'See `reason`; check the URL and checksum of the WasmPlugin whose status is `Rejected`.',
  },
  'upstream.opened': {
    level: 'info',
    message: 'connected to the control plane',
    meaning:
      "The control plane responded on an xDS stream for one Envoy; `credentials` is what proved the agent's identity.",
    action: noAction,
  },
  'upstream.failed': {
    level: 'warn',
    message: 'control plane not available, will retry',
    meaning:
      'The xDS stream ended or could not be opened. Envoy keeps its configuration. Of equal failures in a row the first is logged, the second, the fourth, the eighth, and so on.',
    action: 'See `reason`; check the control plane and the network.',
  },
  'resources.rejected': {
    level: 'warn',
    message: 'Envoy rejected xDS resources, keeping the last accepted ones',
    meaning: 'Envoy found an error in what the control plane sent.',
    action: 'See `reason`, which is from Envoy; correct the object that it names.',
  },
  'message.unclaimed': {
    level: 'error',
    message: 'no subscriber for a message of the control plane',
    meaning: 'The control plane sent a type to which no stream is subscribed; it is dropped.',
    action: 'Report a bug with the trace (`--trace`).',
  },
  'socket.failed': {
    level: 'warn',
    message: 'xDS socket failed',
    meaning: 'The socket for Envoy could not be opened; it is tried again.',
    action: 'See `reason`.',
  },
  'xds.failed': {
    level: 'warn',
    message: 'xDS socket not available',
    meaning: 'The socket for Envoy cannot be opened: the agent ends.',
    action: 'See `reason`; check the directory of the socket.',
  },
  'dns-port.failed': {
    level: 'warn',
    message: 'DNS port failed',
    meaning: 'The port could not be opened, or an open socket failed; it is opened again.',
    action: 'Check whether another process uses the port.',
  },
  'dns.failed': {
    level: 'warn',
    message: 'DNS port not available',
    meaning: 'The DNS server cannot be opened: the agent ends.',
    action: 'Check whether another process uses the port.',
  },
  'status.failed': {
    level: 'warn',
    message: 'status port not available',
    meaning: 'The status port cannot be opened: the agent ends.',
    action: 'Check whether another process uses the port.',
  },
  'envoy.unresponsive': {
    level: 'warn',
    message: 'Envoy does not respond',
    meaning:
      'The process of the serving Envoy runs, but its admin interface does not respond: it is stopped or hangs. `istio_agent_envoy_serving` is 0 until it responds.',
    action: "Check the state and CPU time of Envoy's process.",
  },
  'envoy.responsive': {
    level: 'info',
    message: 'Envoy responds again',
    meaning: 'The admin interface of the serving Envoy responds after `envoy.unresponsive`.',
    action: noAction,
  },
  'readiness.ready': {
    level: 'info',
    message: 'ready',
    meaning: 'The readiness probe succeeds from now on.',
    action: noAction,
  },
  'readiness.pending': {
    level: 'info',
    message: 'not ready yet',
    meaning: 'The readiness probe fails because the agent has just started.',
    action: noAction,
  },
  'readiness.stopping': {
    level: 'info',
    message: 'not ready, stopping',
    meaning: 'The readiness probe fails because the agent stops.',
    action: noAction,
  },
  'readiness.lost': {
    level: 'warn',
    message: 'not ready',
    meaning: 'The readiness probe fails: the pod gets no traffic from Services.',
    action: 'See `reason`.',
  },
  'admin.moved': {
    level: 'info',
    message: 'Envoy admin interface moved',
    meaning: 'Another epoch serves, whose admin interface has another port.',
    action: noAction,
  },
  'drain.ordered': {
    level: 'info',
    message: 'draining Envoy, requested with POST /drain',
    meaning: 'Envoy closes its listeners gracefully; the agent keeps running.',
    action: noAction,
  },
  'drain.ordered.failed': {
    level: 'warn',
    message: 'drain request failed',
    meaning: "Envoy's admin interface did not accept the drain request.",
    action: 'See `reason`.',
  },
  'replacement.ordered': {
    level: 'info',
    message: 'starting a newer agent, requested on the status port',
    meaning: 'The launcher starts a newer agent, which takes over from this one.',
    action: noAction,
  },
  'metrics.labelSetsExhausted': {
    level: 'warn',
    message: 'metric has too many label sets, counting new ones together',
    meaning:
      'A standard metric reached its limit of label sets, or the page of metrics its size. Further label sets are counted in one series per reporter and protocol, with `unknown` labels. Reported once per metric.',
    action:
      'Find the label with many values (docs/metrics.md) and remove it with a Telemetry object, or raise `STANDARD_METRICS_MAX_LABEL_SETS`.',
  },
  'access-logs.failed': {
    level: 'warn',
    message: 'access log service not available, will retry',
    meaning: 'The socket for access logs cannot be opened. Requests are served, and are not in the standard metrics.',
    action: 'See `reason`; check the directory of the socket (`--configPath`).',
  },
  'metrics.linesDropped': {
    level: 'warn',
    message: 'invalid metric lines dropped',
    meaning: 'The output of `part` has lines that are no metrics.',
    action: "Check the application's metrics endpoint.",
  },
  'metrics.scrapeFailed': {
    level: 'warn',
    message: 'metrics scrape failed',
    meaning: 'The merged metrics lack those of `part`.',
    action: 'See `reason`.',
  },
  'metrics.timeoutInvalid': {
    level: 'warn',
    message: 'invalid scrape timeout header, using the default',
    meaning: 'X-Prometheus-Scrape-Timeout-Seconds is not a number of seconds.',
    action: 'Correct the scraper.',
  },
  'probe.applicationFailed': {
    level: 'warn',
    message: 'application probe failed',
    meaning: 'The application did not respond to a probe that the kubelet sends through the agent.',
    action: 'Check the application.',
  },
} as const satisfies LogEventTable;
