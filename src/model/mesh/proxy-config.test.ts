import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, test } from 'vitest';
import { codedError } from '../../../test/fixtures/coded-error.ts';
import {
  decodeProxyConfig,
  defaultProxyConfig,
  mergeProxyConfig,
  type ProxyConfig,
  parseHostAndPort,
  proxyConfigToJson,
} from './proxy-config.ts';
import { proxyMessageErrors } from './proxy-messages.ts';

function decoded(value: unknown): Partial<ProxyConfig> {
  const result = decodeProxyConfig(value, '');
  if (E.isLeft(result)) throw new Error(JSON.stringify(result.left));
  return result.right;
}

function errorsOf(value: unknown, path = ''): string[] {
  const result = decodeProxyConfig(value, path);
  return E.isLeft(result) ? result.left.map(codedError) : [];
}

describe('decodeProxyConfig', () => {
  test('reads Go durations as milliseconds', () => {
    expect(decoded({ drainDuration: '1m30s', terminationDrainDuration: '0s' })).toEqual({
      drainDurationMs: 90_000,
      terminationDrainDurationMs: 0,
    });
  });

  test('accepts an empty document', () => {
    expect(decoded(null)).toEqual({});
    expect(decoded({})).toEqual({});
  });

  test('reports every error of a document with its path', () => {
    const foundErrors = errorsOf(
      { drainDuration: 45, discoveryAddress: 'istiod', proxyMetadata: { A: 1 }, statusPrt: 1 },
      'defaultConfig',
    );
    expect(foundErrors).toEqual([
      'defaultConfig.statusPrt: FIELD_UNKNOWN near statusPort',
      'defaultConfig.drainDuration: FIELD_FORMAT_INVALID got 45',
      'defaultConfig.discoveryAddress: FIELD_FORMAT_INVALID got "istiod"',
      'defaultConfig.proxyMetadata.A: FIELD_TYPE_INVALID got 1',
    ]);
  });

  test('rejects a drain time below 1 s, because Envoy uses integer seconds', () => {
    expect(errorsOf({ drainDuration: '500ms' })).toEqual([
      'drainDuration: FIELD_OUT_OF_RANGE (at least 1000ms) got "500ms"',
    ]);
  });

  test("accepts quoted integers, as in the API's JSON format", () => {
    const quotedConfig = (limit: string) => ({
      connectionSettings: { globalDownstreamConnectionLimit: limit },
      tracing: { sampling: '1.5', maxPathTagLength: '1e2' },
    });
    expect(proxyMessageErrors(quotedConfig('77'), 'defaultConfig')).toEqual([]);
    expect(proxyMessageErrors(quotedConfig('0x10'), 'defaultConfig').map(({ path }) => path)).toEqual([
      'defaultConfig.connectionSettings.globalDownstreamConnectionLimit',
    ]);
    expect(decoded({ statusPort: '7', concurrency: '2' })).toEqual({ statusPort: 7, concurrency: 2 });
    expect(errorsOf({ concurrency: '-1', statusPort: 'x', proxyAdminPort: ' 1' })).toEqual([
      'proxyAdminPort: FIELD_TYPE_INVALID got " 1"',
      'statusPort: FIELD_TYPE_INVALID got "x"',
      'concurrency: FIELD_OUT_OF_RANGE (from 0 to 1024) got -1',
    ]);
  });

  test('rejects serviceCluster together with tracingServiceName', () => {
    const exclusiveFields = { serviceCluster: 'a', tracingServiceName: 'CANONICAL_NAME_ONLY' };
    expect(errorsOf(exclusiveFields)).toEqual(['tracingServiceName: FIELDS_EXCLUSIVE']);
  });

  test('reads an address as host:port, with IPv6 hosts in brackets', () => {
    expect(parseHostAndPort('istiod.istio-system.svc:15012')).toEqual({ host: 'istiod.istio-system.svc', port: 15012 });
    expect(parseHostAndPort('[::1]:15010')).toEqual({ host: '::1', port: 15010 });
    for (const wrongAddress of ['istiod', '::1:15010', 'a:0', 'a:70000', ':1', 'http://a:1']) {
      expect(parseHostAndPort(wrongAddress)).toBeUndefined();
    }
  });
});

describe('mergeProxyConfig', () => {
  const commonFields = {
    discoveryAddress: 'foo:123',
    proxyMetadata: { SOME: 'setting' },
    drainDuration: '1s',
    controlPlaneAuthPolicy: 'NONE',
  };

  test('changes nothing for an empty source', () => {
    expect(mergeProxyConfig(defaultProxyConfig, {})).toEqual(defaultProxyConfig);
  });

  test('overrides the defaults with one source', () => {
    expect(mergeProxyConfig(defaultProxyConfig, decoded(commonFields))).toEqual({
      ...defaultProxyConfig,
      discoveryAddress: 'foo:123',
      proxyMetadata: { SOME: 'setting' },
      drainDurationMs: 1_000,
      controlPlaneAuthPolicy: 'NONE',
    });
  });

  test('gives annotations precedence over environment and file, merges metadata, and replaces lists', () => {
    const file = decoded({
      ...commonFields,
      extraStatTags: ['a'],
      proxyStatsMatcher: { inclusionPrefixes: ['a'], inclusionSuffixes: ['b'], inclusionRegexps: ['c'] },
    });
    const environment = decoded({
      discoveryAddress: 'environment:123',
      proxyMetadata: { ENVIRONMENT: 'x' },
      extraStatTags: ['b'],
      proxyStatsMatcher: { inclusionSuffixes: ['e'] },
    });
    const annotation = decoded({
      discoveryAddress: 'annotation:123',
      proxyMetadata: { SOME: 'other', ANNOTATION: 'y' },
      drainDuration: '5s',
      proxyStatsMatcher: { inclusionRegexps: ['f'] },
    });
    const mergedConfig = [file, environment, annotation].reduce(mergeProxyConfig, defaultProxyConfig);
    expect(mergedConfig).toEqual({
      ...defaultProxyConfig,
      discoveryAddress: 'annotation:123',
      proxyMetadata: { SOME: 'other', ENVIRONMENT: 'x', ANNOTATION: 'y' },
      drainDurationMs: 5_000,
      controlPlaneAuthPolicy: 'NONE',
      extraStatTags: ['b'],
      proxyStatsMatcher: { inclusionPrefixes: ['a'], inclusionSuffixes: ['e'], inclusionRegexps: ['f'] },
    });
  });

  test('keeps only the later of two tracers, but other fields of the message', () => {
    const file = decoded({ tracing: { sampling: 10, zipkin: { address: 'zipkin:9411' } } });
    const annotation = decoded({ tracing: { datadog: { address: 'agent:8126' } } });
    expect(mergeProxyConfig(file, annotation).tracing).toEqual({ sampling: 10, datadog: { address: 'agent:8126' } });
  });

  test('replaces a list of runtime values completely', () => {
    const mergedConfig = mergeProxyConfig(
      decoded({ runtimeValues: { a: '1' } }),
      decoded({ runtimeValues: { b: '2' } }),
    );
    expect(mergedConfig.runtimeValues).toEqual({ b: '2' });
  });
});

test('a merged proxy configuration can be decoded again from its JSON form', () => {
  const json = proxyConfigToJson(defaultProxyConfig);
  expect(json).toMatchObject({ drainDuration: '45s', statusPort: 15020 });
  expect(mergeProxyConfig(defaultProxyConfig, decoded(json))).toEqual(defaultProxyConfig);
});
