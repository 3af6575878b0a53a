import { describe, expect, it } from 'vitest';
import { errorWith } from '../../../test/fixtures/error-details.ts';
import type { ErrorFields } from '../../runtime/errors.ts';
import { OptionErrors } from '../../runtime/option-errors.ts';
import { type TelemetryFacts, telemetryServices } from './bootstrap-telemetry.ts';

function services(config: TelemetryFacts['config'], changes: Partial<TelemetryFacts> = {}) {
  const errors = new OptionErrors();
  const facts = { config, node: { metadata: {} }, serviceName: 'web.shop', dnsLookupFamily: 'V4_ONLY', hostIp: '' };
  const generatedServices = telemetryServices({ ...facts, hasSecrets: false, errors, ...changes });
  errors.throwIfAny();
  return generatedServices;
}

describe('bootstrap clusters of telemetry services', () => {
  it('are absent if the proxy configuration has no telemetry services', () => {
    expect(services({})).toEqual({ clusters: [], statsSinks: [] });
    expect(services({ tracing: { sampling: 10 }, envoyAccessLogService: {} })).toEqual({
      clusters: [],
      statsSinks: [],
    });
  });

  it('exist for metrics and access logs under the names that listeners use', () => {
    const { clusters, statsSinks } = services({
      envoyAccessLogService: { address: 'logs.test:9000' },
      envoyMetricsServiceAddress: '10.0.0.1:9001',
    });
    expect(clusters).toMatchObject([
      { name: 'envoy_metrics_service', type: 'STRICT_DNS' },
      { name: 'envoy_accesslog_service', type: 'STRICT_DNS', dns_lookup_family: 'V4_ONLY' },
    ]);
    expect(statsSinks).toHaveLength(1);
  });

  it('exist for Zipkin with its old option, and for Datadog with the service name of the node', () => {
    expect(services({ zipkinAddress: 'zipkin:9411' }).clusters).toMatchObject([{ name: 'zipkin' }]);
    const { tracing } = services({ tracing: { datadog: { address: '$(HOST_IP):8126' } } }, { hostIp: '10.9.9.9' });
    expect(tracing).toMatchObject({ http: { typed_config: { service_name: 'web.shop' } } });
  });

  it('use TLS with certificates of the SDS server or files', () => {
    const tlsSettings = {
      mode: 'MUTUAL',
      caCertificates: '/ca',
      clientCertificate: '/crt',
      privateKey: '/key',
      subjectAltNames: ['spiffe://td/logs', 'logs.test', '10.0.0.1'],
    };
    const [cluster] = services({ envoyAccessLogService: { address: 'logs.test:9000', tlsSettings } }).clusters;
    expect(cluster!.transport_socket).toMatchObject({
      typed_config: {
        common_tls_context: {
          alpn_protocols: ['h2'],
          tls_certificate_sds_secret_configs: [{ name: 'file-cert:/crt~/key' }],
          combined_validation_context: {
            default_validation_context: {
              match_typed_subject_alt_names: [{ san_type: 'URI' }, { san_type: 'DNS' }, { san_type: 'IP_ADDRESS' }],
            },
            validation_context_sds_secret_config: { name: 'file-root:/ca' },
          },
        },
      },
    });
  });

  it('are rejected if they have a server name that Envoy would reject (agent §5.2)', () => {
    const withName = (sni: string) => () =>
      services({
        envoyMetricsService: { address: 'a:1', tlsSettings: { mode: 'SIMPLE', caCertificates: '/ca', sni } },
      });
    expect(withName('x'.repeat(255))).not.toThrow();
    expect(withName('é'.repeat(128))).toThrow(
      errorWith({
        code: 'FIELD_TOO_LARGE',
        path: 'envoyMetricsService.tlsSettings.sni',
        expected: 'at most 255 bytes',
      }),
    );
  });

  it.each<[string, TelemetryFacts['config'], ErrorFields]>([
    [
      'no address',
      { envoyAccessLogService: { address: 'logs' } },
      { path: 'envoyAccessLogService.address', expected: 'host:port', got: '"logs"' },
    ],
    [
      'no host',
      { tracing: { zipkin: { address: '$(HOST_IP):9411' } } },
      { code: 'FIELD_REFERENCE_UNKNOWN', path: 'tracing.zipkin.address', got: '"$(HOST_IP):9411"' },
    ],
    [
      'certificates that nobody has',
      { envoyMetricsService: { address: 'm:1', tlsSettings: { mode: 'ISTIO_MUTUAL' } } },
      { code: 'FIELD_NOT_ALLOWED', path: 'envoyMetricsService.tlsSettings.mode', got: '"ISTIO_MUTUAL"' },
    ],
    [
      'nobody to trust',
      { envoyMetricsService: { address: 'm:1', tlsSettings: { mode: 'SIMPLE' } } },
      { code: 'FIELD_REQUIRED', path: 'envoyMetricsService.tlsSettings.caCertificates' },
    ],
  ])('are rejected if an address is invalid (%s), with the name of the option', (_description, config, fields) => {
    expect(() => services(config)).toThrow(errorWith(fields));
  });
});
