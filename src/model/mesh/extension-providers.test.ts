import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { codedField } from '../../../test/fixtures/coded-error.ts';
import { telemetryProvidersOf } from './extension-providers.decode.ts';
import { readMeshConfig } from './mesh-config.decode.ts';

function errorsOf(yaml: string): string[] {
  const read = readMeshConfig('mesh.yaml', yaml);
  return E.isLeft(read) ? read.left.map(codedField) : [];
}

function warningsOf(yaml: string) {
  const read = readMeshConfig('mesh.yaml', yaml);
  if (E.isLeft(read)) throw new Error(read.left.map(codedField).join());
  return { mesh: read.right.mesh, warnings: read.right.warnings.map(codedField) };
}

describe('a telemetry provider', () => {
  it('is ignored with a warning that names the field if Envoy could not use it', () => {
    const { mesh, warnings } = warningsOf(`
extensionProviders:
- { name: text, envoyFileAccessLog: { path: /dev/stdout, logFormat: { text: "%FOO%" } } }
- { name: both, envoyFileAccessLog: { path: /dev/stdout, logFormat: { text: "x", labels: { a: b } } } }
- { name: spans, opentelemetry: { service: otel.test, port: 4318, http: { path: /v1/traces }, grpc: {} } }
- { name: good, envoyOtelAls: { service: otel.test, port: 4317, logFormat: { labels: { a: "%PROTOCOL%" } }, later: 1 } }
`);
    expect(warnings).toEqual([
      'extensionProviders[3].envoyOtelAls.later: FIELD_UNKNOWN',
      'extensionProviders[0].envoyFileAccessLog.logFormat.text: FIELD_FORMAT_INVALID got "%FOO%"',
      'extensionProviders[1].envoyFileAccessLog.logFormat: FIELDS_EXCLUSIVE (exactly one of text and labels) got text and labels',
      'extensionProviders[2].opentelemetry: FIELDS_EXCLUSIVE (one of http and grpc)',
    ]);
    expect(telemetryProvidersOf(mesh).get('good')).toEqual({
      name: 'good',
      type: 'envoyOtelAls',
      settings: { service: 'otel.test', port: 4317, logFormat: { labels: { a: '%PROTOCOL%' } } },
    });
    expect([...telemetryProvidersOf(mesh).keys()]).toEqual(['prometheus', 'envoy', 'good']);
  });

  it('causes rejection of the mesh configuration if Envoy does not accept the log format', () => {
    expect(errorsOf('accessLogFormat: "%FOO%"')).toEqual(['accessLogFormat: FIELD_FORMAT_INVALID got "%FOO%"']);
    expect(errorsOf('{ accessLogEncoding: JSON, accessLogFormat: "[1]" }')).toEqual([
      'accessLogFormat: FIELD_FORMAT_INVALID got "[1]"',
    ]);
    expect(errorsOf('{ accessLogEncoding: JSON, accessLogFormat: \'{"a": "%REQ%"}\' }')).toEqual([
      'accessLogFormat.a: FIELD_FORMAT_INVALID got "%REQ%"',
    ]);
  });

  it('causes rejection of the mesh configuration if a limit in proxy settings is out of range', () => {
    expect(
      errorsOf('defaultConfig: { tracing: { sampling: 101 }, gatewayTopology: { numTrustedProxies: -1 } }'),
    ).toEqual([
      'defaultConfig.tracing.sampling: FIELD_OUT_OF_RANGE (from 0 to 100) got 101',
      expect.stringContaining('defaultConfig.gatewayTopology.numTrustedProxies'),
    ]);
  });
});
