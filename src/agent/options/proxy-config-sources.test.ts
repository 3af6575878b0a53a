import { describe, expect, test } from 'vitest';
import { generateBootstrap, optionsOf } from '../../../test/fixtures/generated-bootstrap.ts';

describe('unknown fields of a newer API (agent §1.5)', () => {
  test('are ignored at every level, with a warning that contains source, line and name', () => {
    const { options, bootstrap } = generateBootstrap({
      env: { PROXY_CONFIG: 'statsCompression: true\nconcurrency: 3\ntracing: {zipkin: {address: "z:1", novelty: 1}}' },
      files: {
        'etc/istio/config/mesh': 'defaultConfig:\n  discoveryRefreshDelay: 10s\n  statusPort: 7\n',
        'etc/istio/pod/annotations': 'proxy.istio.io/config="statusPrt: 9"\n',
      },
    });
    expect(options.config).toMatchObject({ concurrency: 3, statusPort: 7 });
    expect(bootstrap.node.metadata.PROXY_CONFIG).not.toHaveProperty('statsCompression');
    const ignoredField = { event: 'option.fieldIgnored', reason: expect.stringMatching(/^unknown field/) };
    expect(options.warnings).toEqual([
      {
        ...ignoredField,
        source: expect.stringMatching(/mesh$/),
        line: 2,
        field: 'defaultConfig.discoveryRefreshDelay',
      },
      { ...ignoredField, source: 'PROXY_CONFIG', line: 1, field: 'statsCompression' },
      { ...ignoredField, source: 'PROXY_CONFIG', line: 3, field: 'tracing.zipkin.novelty' },
      {
        ...{ ...ignoredField, source: 'annotation proxy.istio.io/config', line: 1, field: 'statusPrt' },
        reason: expect.stringMatching(/did you mean statusPort\?/),
      },
    ]);
  });

  test('do not affect the other fields of their source, whatever their values', () => {
    for (const novelty of [
      'proxy_stats_matcher: {new_field: [x]}',
      'new_field: 1',
      'proxyStatsMatcher: {newField: 1}',
    ]) {
      const { config, warnings } = optionsOf({ env: { PROXY_CONFIG: `${novelty}\nconcurrency: 3` } });
      expect(config.concurrency, novelty).toBe(3);
      expect(warnings, novelty).toEqual([
        {
          ...{ event: 'option.fieldIgnored', source: 'PROXY_CONFIG', line: 1 },
          ...{ field: expect.stringMatching(/new_?field$/i), reason: expect.stringMatching(/^unknown field/) },
        },
      ]);
    }
  });

  test('are rejected in TLS settings, where a misspelled name would disable verification', () => {
    const PROXY_CONFIG =
      'envoyAccessLogService: {address: "a:1", tlsSettings: {mode: SIMPLE, caCertificates: /ca, subjectAltName: [x]}}';
    const path = 'PROXY_CONFIG: envoyAccessLogService.tlsSettings.subjectAltName';
    const fields = expect.objectContaining({ code: 'FIELD_UNKNOWN', path });
    expect(() => optionsOf({ env: { PROXY_CONFIG } })).toThrow(expect.objectContaining({ fields }));
  });
});
