import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { telemetryProvidersOf } from './extension-providers.decode.ts';
import { readMeshConfig } from './mesh-config.decode.ts';

const said = ({ field, message }: { field?: string; message: string }): string => `${field}: ${message}`;

function errorsOf(yaml: string): string[] {
  const read = readMeshConfig('mesh.yaml', yaml);
  return E.isLeft(read) ? read.left.map(said) : [];
}

function told(yaml: string) {
  const read = readMeshConfig('mesh.yaml', yaml);
  if (E.isLeft(read)) throw new Error(read.left.map(said).join());
  return { mesh: read.right.mesh, warnings: read.right.warnings.map(said) };
}

describe('what telemetry is sent to', () => {
  it('is left out with a warning that says the field, when Envoy could not use it', () => {
    const { mesh, warnings } = told(`
extensionProviders:
- { name: text, envoyFileAccessLog: { path: /dev/stdout, logFormat: { text: "%FOO%" } } }
- { name: both, envoyFileAccessLog: { path: /dev/stdout, logFormat: { text: "x", labels: { a: b } } } }
- { name: spans, opentelemetry: { service: otel.test, port: 4318, http: { path: /v1/traces }, grpc: {} } }
- { name: good, envoyOtelAls: { service: otel.test, port: 4317, logFormat: { labels: { a: "%PROTOCOL%" } }, later: 1 } }
`);
    expect(warnings).toEqual([
      'extensionProviders[3].envoyOtelAls.later: is not a known field (it has no effect)',
      'extensionProviders[0].envoyFileAccessLog.logFormat.text: has %FOO%, which is no command of an access log: the provider is left out',
      'extensionProviders[1].envoyFileAccessLog.logFormat: must have one of text, labels: the provider is left out',
      'extensionProviders[2].opentelemetry: must have only one of http, grpc: the provider is left out',
    ]);
    expect(telemetryProvidersOf(mesh).get('good')).toEqual({
      name: 'good',
      type: 'envoyOtelAls',
      settings: { service: 'otel.test', port: 4317, logFormat: { labels: { a: '%PROTOCOL%' } } },
    });
    expect([...telemetryProvidersOf(mesh).keys()]).toEqual(['prometheus', 'envoy', 'good']);
  });

  it('is written in a format that Envoy takes, or the mesh configuration is refused', () => {
    expect(errorsOf('accessLogFormat: "%FOO%"')).toEqual([expect.stringContaining('accessLogFormat: has %FOO%')]);
    expect(errorsOf('{ accessLogEncoding: JSON, accessLogFormat: "[1]" }')).toEqual([
      expect.stringContaining('must be a JSON object'),
    ]);
    expect(errorsOf('{ accessLogEncoding: JSON, accessLogFormat: \'{"a": "%REQ%"}\' }')).toEqual([
      expect.stringContaining('accessLogFormat.a: has %REQ%'),
    ]);
  });

  it('is said by the proxies’ own configuration within bounds', () => {
    expect(
      errorsOf('defaultConfig: { tracing: { sampling: 101 }, gatewayTopology: { numTrustedProxies: -1 } }'),
    ).toEqual([
      expect.stringContaining('defaultConfig.tracing.sampling: must be from 0 to 100'),
      expect.stringContaining('defaultConfig.gatewayTopology.numTrustedProxies'),
    ]);
  });
});
