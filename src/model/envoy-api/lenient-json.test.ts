import { type JsonValue, toJson } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { decodeLenient, envoyApi } from './envoy-api.ts';

const cluster = 'envoy.config.cluster.v3.Cluster';
const fault = 'envoy.extensions.filters.http.fault.v3.HTTPFault';

function read(type: string, json: JsonValue): JsonValue {
  const decoded = decodeLenient(type, json, { keepsTypes: false });
  if (E.isLeft(decoded)) throw new Error(decoded.left);
  expect(decoded.right.unknownTypes).toEqual([]);
  const { schema, message } = decoded.right;
  return toJson(schema, message, { useProtoFieldName: true, registry: envoyApi() });
}

describe('an EnvoyFilter value that is decoded as in Istio', () => {
  it.each([
    ['500ms', '0.500s'],
    ['1m', '60s'],
    ['1h30m', '5400s'],
    ['1.5h', '5400s'],
    ['100us', '0.000100s'],
    ['1µs', '0.000001s'],
    ['100ns', '0.000000100s'],
    ['0.0000000001s', '0s'],
    ['+5s', '5s'],
    ['-500ms', '-0.500s'],
    ['0', '0s'],
    ['.5s', '0.500s'],
    ['0.250s', '0.250s'],
    ['300000h', '1080000000s'],
  ])('converts the duration %s to %s at any depth', (written, canonical) => {
    expect(read(cluster, { connect_timeout: written })).toEqual({ connect_timeout: canonical });
    expect(read(cluster, { dnsRefreshRate: written })).toEqual({ dns_refresh_rate: canonical });
    const packedFault = { '@type': `type.googleapis.com/${fault}`, delay: { fixed_delay: written } };
    const socket = (typed_config: JsonValue) => ({ transport_socket: { name: 'x', typed_config } });
    expect(read(cluster, socket(packedFault))).toEqual(socket({ ...packedFault, delay: { fixed_delay: canonical } }));
    const duration = { '@type': 'type.googleapis.com/google.protobuf.Duration', value: written };
    expect(read(cluster, socket(duration))).toEqual(socket({ ...duration, value: canonical }));
  });

  it.each([
    ['77', 77],
    [' 77 ', 77],
    ['1e3', 1000],
    ['1000.0', 1000],
    ['10e-1', 1],
  ])("converts the integer string '%s' to %s", (input, expected) => {
    expect(read(cluster, { per_connection_buffer_limit_bytes: input })).toEqual({
      per_connection_buffer_limit_bytes: expected,
    });
  });

  it.each(['0x10', '0b1', '+7', '007', '1_000', '1.', '7.5', '', 'NaN'])(
    "does not convert the string '%s' to an integer",
    (input) => {
      expect(() => read(cluster, { per_connection_buffer_limit_bytes: input })).toThrow();
    },
  );

  it.each(['0x10', '+1', '.5'])("does not convert the string '%s' to a fraction", (input) => {
    const json = { common_lb_config: { healthy_panic_threshold: { value: input } } };
    const decoded = decodeLenient(cluster, json, { keepsTypes: false });
    expect(E.isLeft(decoded) && decoded.left).toContain(`${input} (not a JSON number)`);
  });

  it.each<[string, string, JsonValue, JsonValue]>([
    [
      'a number in a string',
      cluster,
      { per_connection_buffer_limit_bytes: ' 5' },
      { per_connection_buffer_limit_bytes: 5 },
    ],
    [
      'null in a list, the zero value',
      'envoy.config.route.v3.VirtualHost',
      { domains: ['a', null], routes: [null] },
      { domains: ['a', ''], routes: [{}] },
    ],
    [
      'null in a map, the zero value',
      cluster,
      { metadata: { filter_metadata: { a: null } } },
      { metadata: { filter_metadata: { a: {} } } },
    ],
    [
      'null in free-form JSON, which stays null',
      cluster,
      { metadata: { filter_metadata: { a: { b: null, c: '500ms' } } } },
      { metadata: { filter_metadata: { a: { b: null, c: '500ms' } } } },
    ],
  ])('can contain %s', (_, type, input, canonical) => {
    expect(read(type, input)).toEqual(canonical);
  });

  it.each<[string, JsonValue]>([
    ['a duration without a unit', { connect_timeout: '5' }],
    ['a duration in days', { connect_timeout: '1d' }],
    ['a duration as a number', { connect_timeout: 5 }],
    ['one field in two spellings', { connect_timeout: '1s', connectTimeout: '2s' }],
  ])('cannot contain %s', (_, json) => {
    expect(E.isLeft(decodeLenient(cluster, json, { keepsTypes: false }))).toBe(true);
  });
});
