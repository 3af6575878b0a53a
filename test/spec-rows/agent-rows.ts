/**
 * Requirements of the agent by section and level, one word each (a flag, a variable, the number of a scenario). Titles of tests name the
 * section (`§N`). Rows of a section without levels are MUST.
 */

export type Level = 'MUST' | 'SHOULD' | 'LATER';

/** Words are separated by spaces. */
export const agentRows: Readonly<Record<string, Readonly<Partial<Record<Level, string>>>>> = {
  '1.1': {
    MUST: 'proxy request wait version',
    SHOULD:
      'istio-iptables istio-clean-iptables completion --log_output_level --log_as_json --log_target --log_caller --log_stacktrace_level',
  },
  '1.2': {
    MUST: `--domain --meshConfig --serviceCluster --proxyLogLevel --proxyComponentLogLevel --concurrency --templateFile --binaryPath
      --drainDuration --parentShutdownDuration --discoveryAddress --statusPort --proxyAdminPort --controlPlaneAuthPolicy`,
    SHOULD: `--outlierLogPath --profiling --id --ip --serviceregistry --trust-domain --configPath --customConfigFile --connectTimeout
      --applicationPorts --statsdUdpAddress --envoyMetricsServiceAddress --zipkinAddress --lightstepAddress --lightstepAccessToken
      --lightstepSecure --lightstepCacertPath`,
    LATER:
      '--stsPort --tokenManagerPlugin --controlPlaneBootstrap --disableInternalTelemetry --pilotIdentity --mixerIdentity',
  },
  '1.3': {
    MUST: `POD_NAME POD_NAMESPACE INSTANCE_IP SERVICE_ACCOUNT PROXY_CONFIG ISTIO_META_ ISTIO_METAJSON_ ISTIO_META_CLUSTER_ID
      ISTIO_META_DNS_CAPTURE ISTIO_BOOTSTRAP ISTIO_BOOTSTRAP_OVERRIDE ISTIO_KUBE_APP_PROBERS ISTIO_PROMETHEUS_ANNOTATIONS
      TERMINATION_DRAIN_DURATION_SECONDS MINIMUM_DRAIN_DURATION EXIT_ON_ZERO_ACTIVE_CONNECTIONS ENVOY_STATUS_PORT
      ENVOY_PROMETHEUS_PORT XDS_ROOT_CA CA_ROOT_CA PILOT_CERT_PROVIDER CA_PROVIDER CA_ADDR TRUST_DOMAIN JWT_POLICY SECRET_TTL
      SECRET_GRACE_PERIOD_RATIO SECRET_GRACE_PERIOD_RATIO_JITTER WORKLOAD_RSA_KEY_SIZE FILE_MOUNTED_CERTS`,
    SHOULD: `HOST_IP ISTIO_META_CERT_SIGNER DNS_PROXY_ADDR DNS_FORWARD_PARALLEL DNS_FORWARD_TIMEOUT ISTIO_ENABLE_HTTP2_PROBING
      REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION ENABLE_PROBE_KEEPALIVE_CONNECTIONS DISABLE_ENVOY PROXY_XDS_DEBUG_VIA_AGENT
      PROXY_XDS_DEBUG_VIA_AGENT_PORT XDS_HEADER_ ISTIOD_SAN PKCS8_KEY ECC_SIGNATURE_ALGORITHM ECC_CURVE PROV_CERT OUTPUT_CERTS
      FILE_DEBOUNCE_DURATION CREDENTIAL_FETCHER_TYPE CREDENTIAL_IDENTITY_PROVIDER CLOUD_PLATFORM ISTIO_CPU_LIMIT
      ENVOY_SKIP_DEPRECATED_LOGS ISTIO_ENVOY_ENABLE_CORE_DUMP`,
    LATER: `ISTIO_META_ENABLE_DNS_SERVER ENVOY_SECURE_METRICS_PORT ENVOY_SECURE_MERGED_METRICS_PORT GRPC_XDS_BOOTSTRAP
      BOOTSTRAP_XDS_AGENT PROXY_CONFIG_XDS_AGENT XDS_AUTH_PROVIDER WORKLOAD_IDENTITY_SOCKET_FILE WASM_INSECURE_REGISTRIES
      WASM_MODULE_EXPIRY WASM_PURGE_INTERVAL WASM_HTTP_REQUEST_TIMEOUT WASM_HTTP_REQUEST_MAX_RETRIES`,
  },
  '2.6': { MUST: 'F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13' },
  '2.8': {
    MUST: 'S1 S2 S3 S4 S5 S6 S7 S8 S9 S10 S11 S12 S13 S14 S15 S16 S17 S18 S19 S20 S21 S22 S23 S24 S25 S26',
  },
  '5.2': {
    MUST: `layered_runtime bootstrap_extensions overload_manager stats_config admin dynamic_resources prometheus_stats agent sds-grpc
      xds-grpc 15090 15021 stats_sinks event_log_path`,
    SHOULD: `application_log_config flush eviction histogram LRS local_cluster`,
  },
  '5.4': { MUST: 'zipkin datadog lightstep', LATER: 'OpenCensus Stackdriver' },
  '6.2': {
    MUST: '/healthz/ready /stats/prometheus /metrics /app-health/ /app-lifecycle/ /quitquitquit /drain /debug/ndsz',
    LATER: '/debug/pprof',
  },
  '6.5': {
    MUST: `startup_duration_seconds scrapes_total scrape_failures_total xds_proxy_requests xds_proxy_responses
      istiod_connection_failures istiod_connection_terminations envoy_connection_terminations outgoing_latency num_outgoing_requests
      num_failed_outgoing_requests num_outgoing_retries num_file_watcher_failures_total num_file_secret_failures_total
      cert_expiry_seconds dns_requests_total dns_upstream_requests_total dns_upstream_failures_total
      dns_upstream_request_duration_seconds`,
    LATER: 'wasm_',
  },
  '10.1': {
    MUST: `--envoy-port --inbound-capture-port --inbound-tunnel-port --proxy-uid --proxy-gid --istio-inbound-interception-mode
      --istio-inbound-ports --istio-local-exclude-ports --istio-exclude-interfaces --istio-service-cidr --istio-service-exclude-cidr
      --istio-outbound-ports --istio-local-outbound-ports-exclude --kube-virt-interfaces --istio-inbound-tproxy-mark
      --istio-inbound-tproxy-route-table --dry-run --iptables-trace-logging --skip-rule-apply --run-validation --restore-format
      --redirect-dns --capture-all-dns --drop-invalid --iptables-probe-port --probe-timeout --output-paths --network-namespace
      --cni-mode --host-nsenter-exec ISTIO_OUTBOUND_OWNER_GROUPS ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE`,
    LATER: '--dual-stack --reconcile --cleanup-only --force-apply --native-nftables --force-iptables-binary',
  },
  '10.2': { MUST: "1 2 3 4 5 6 7 7' 8 9 10 11 12 13 14 15 16 17 18 18' 19 20" },
  '11': { MUST: 'wait request' },
};

/** Sections whose rows are sentences. A test title contains each of their numbers. */
export const agentSections = [
  ...[
    '1.4',
    '1.5',
    '1.6',
    '2.1',
    '2.2',
    '2.3',
    '2.4',
    '2.5',
    '3.1',
    '3.2',
    '3.3',
    '3.4',
    '3.5',
    '4.1',
    '4.2',
    '4.4',
    '5.1',
    '5.3',
  ],
  ...['6.1', '6.3', '6.4', '6.6', '9', '10.3', '10.4', '10.5', '10.6'],
];
