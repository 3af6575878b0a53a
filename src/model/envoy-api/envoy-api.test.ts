import { createRegistry, type JsonValue, toJson } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { decodeLenient, envoyApi, withCompleteApi } from './envoy-api.ts';

const filters = 'type.googleapis.com/envoy.extensions.filters.http';

/** Treats ignored fields as errors. */
function read(typeUrl: string, json: JsonValue) {
  const decoded = decodeLenient(typeUrl, json, { keepsTypes: false });
  return E.isRight(decoded) && decoded.right.unknownTypes.length > 0
    ? E.left(decoded.right.unknownTypes.join())
    : decoded;
}

describe("a message of Envoy's API", () => {
  it.each<[string, JsonValue]>([
    ['lua.v3.Lua', { default_source_code: { inline_string: 'function envoy_on_request(handle) end' } }],
    [
      'ratelimit.v3.RateLimit',
      {
        domain: 'shop',
        timeout: '0.250s',
        rate_limit_service: {
          transport_api_version: 'V3',
          grpc_service: { envoy_grpc: { cluster_name: 'rate-limit' } },
        },
      },
    ],
    [
      'ext_proc.v3.ExternalProcessor',
      {
        grpc_service: { envoy_grpc: { cluster_name: 'ext-proc' } },
        processing_mode: { request_body_mode: 'BUFFERED' },
      },
    ],
    ['local_ratelimit.v3.LocalRateLimit', { stat_prefix: 'l', token_bucket: { max_tokens: 10, fill_interval: '60s' } }],
    ['wasm.v3.Wasm', { config: { name: 'w', vm_config: { runtime: 'envoy.wasm.runtime.v8' } } }],
    ['compressor.v3.Compressor', { compressor_library: { name: 'gzip' } }],
  ])('is decoded as written: %s', (name, json) => {
    const decoded = read(`${filters}.${name}`, json);
    if (E.isLeft(decoded)) throw new Error(decoded.left);
    const { schema, message } = decoded.right;
    expect(toJson(schema, message, { useProtoFieldName: true, registry: envoyApi() })).toEqual(json);
  });

  it('is decoded together with its packed messages', () => {
    const packedFilter = {
      name: 'outer',
      typed_config: { '@type': `${filters}.lua.v3.Lua`, default_source_code: { inline_string: '' } },
    };
    const cluster = { name: 'c', transport_socket: packedFilter };
    expect(E.isRight(read('envoy.config.cluster.v3.Cluster', cluster))).toBe(true);
    const emptyFilter = { ...packedFilter, typed_config: { ...packedFilter.typed_config, source: '' } };
    expect(read('envoy.config.cluster.v3.Cluster', { ...cluster, transport_socket: emptyFilter })).toMatchObject({
      left: expect.stringContaining('source'),
    });
  });

  it.each<[string, string, JsonValue, string]>([
    ['an unknown field', 'lua.v3.Lua', { source: '' }, 'source'],
    ['a value of another type', 'lua.v3.Lua', { inline_code: 5 }, 'inline_code'],
    ['an unknown enumeration value', 'ext_proc.v3.ProcessingMode', { request_body_mode: 'SOME' }, '"SOME"'],
    ['an unknown message type', 'lua.v9.Lua', {}, 'lua.v9.Lua is no message'],
  ])('is rejected with %s', (_case, name, json, errorText) => {
    expect(read(`${filters}.${name}`, json)).toMatchObject({ left: expect.stringContaining(errorText) });
  });

  it('is known for each type, including those without generated code', () => {
    const messages = [...envoyApi()].filter(({ kind }) => kind === 'message');
    expect(messages.length).toBeGreaterThan(1000);
    expect(envoyApi().getMessage('udpa.type.v1.TypedStruct')).toBeDefined();
  });
});

describe('types and fields of a newer Envoy version', () => {
  const cluster = 'envoy.config.cluster.v3.Cluster';
  const typed = (type: string, fields: object): JsonValue => ({
    transport_socket: { name: 's', typed_config: { '@type': `type.googleapis.com/${type}`, ...fields } },
  });
  const struct = (type: string, value: object) =>
    typed('xds.type.v3.TypedStruct', { type_url: `type.googleapis.com/${type}`, value });
  const decodeOf = (json: JsonValue, keepsTypes = false) => {
    const decoded = decodeLenient(cluster, json, { keepsTypes });
    if (E.isLeft(decoded)) throw new Error(decoded.left);
    const { schema, message, unknownTypes } = decoded.right;
    return { unknown: unknownTypes, json: toJson(schema, message, { useProtoFieldName: true, registry: envoyApi() }) };
  };
  const lua = 'envoy.extensions.filters.http.lua.v3.Lua';
  const matching = 'envoy.extensions.common.matching.v3.ExtensionWithMatcher';

  it('are packed as written, for a whole type or for a field in a packed message', () => {
    const newer = typed('envoy.newer.v3.Socket', { size: 5, inner: { '@type': 'x/y.Z' } });
    expect(decodeOf(newer)).toEqual({
      unknown: ["y.Z is no message of Envoy's API", "envoy.newer.v3.Socket is no message of Envoy's API"],
      json: struct('envoy.newer.v3.Socket', { size: 5, inner: { '@type': 'x/y.Z' } }),
    });
    const field = decodeOf(typed(lua, { inline_code: 'a', newer: true }));
    expect(field.json).toEqual(struct(lua, { inline_code: 'a', newer: true }));
    expect(field.unknown).toEqual([expect.stringContaining('newer')]);
  });

  it('affect only the packed message, while the outer message keeps its type', () => {
    const inner = { name: 'e', typed_config: { '@type': 'type.googleapis.com/envoy.newer.v3.Filter', a: 1 } };
    const { json } = decodeOf(typed(matching, { extension_config: inner }));
    const value = { type_url: 'type.googleapis.com/envoy.newer.v3.Filter', value: { a: 1 } };
    const typed_config = { '@type': 'type.googleapis.com/xds.type.v3.TypedStruct', ...value };
    expect(json).toEqual(typed(matching, { extension_config: { name: 'e', typed_config } }));
  });

  it('are dropped in messages that are not packed or that will be merged', () => {
    expect(decodeOf({ name: 'a', newer: 1 })).toEqual({
      json: { name: 'a' },
      unknown: [expect.stringContaining('newer')],
    });
    expect(decodeOf(typed(lua, { inline_code: 'a', newer: true }), true)).toEqual({
      json: typed(lua, { inline_code: 'a' }),
      unknown: [expect.stringContaining('newer')],
    });
  });

  it('do not hide invalid values at any depth', () => {
    for (const json of [{ name: 5 }, { newer: 1, name: 5 }, typed(lua, { newer: 1, inline_code: 5 })]) {
      expect(E.isLeft(decodeLenient(cluster, json as JsonValue, { keepsTypes: false }))).toBe(true);
      expect(E.isLeft(decodeLenient(cluster, json as JsonValue, { keepsTypes: true }))).toBe(true);
    }
  });

  it.each(['500ms', '1m', '.5s', '+1s', '5', '1h30m', 5])(
    'are rejected in a TypedStruct with a duration of %j at any depth, because Envoy parses and rejects the duration',
    (fixed_delay) => {
      const fault = 'envoy.extensions.filters.http.fault.v3.HTTPFault';
      const inner = (duration: unknown) => ({
        '@type': 'type.googleapis.com/udpa.type.v1.TypedStruct',
        type_url: `type.googleapis.com/${fault}`,
        value: { delay: { fixed_delay: duration } },
      });
      const manager = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
      const filters = (duration: unknown) => [{ name: 'fault', typed_config: inner(duration) }];
      const socket = { transport_socket: { name: 's', typed_config: inner(fixed_delay) } };
      for (const json of [socket, struct(manager, { http_filters: filters(fixed_delay) })]) {
        const decoded = decodeLenient(cluster, json as JsonValue, { keepsTypes: false });
        expect(E.isLeft(decoded) && decoded.left).toMatch(/TypedStruct of .*fixed_delay must be a duration in seconds/);
      }
      const correct = struct(manager, {
        http_filters: filters('0.5s'),
        request_timeout: '5s',
        common_http_protocol_options: null,
      });
      expect(decodeOf(correct).unknown).toEqual([]);
    },
  );

  it('are unchanged in a TypedStruct that a user wrote', () => {
    const nestedStruct = struct(lua, { anything: { '@type': 'a/b' } });
    expect(decodeOf(nestedStruct)).toEqual({ json: nestedStruct, unknown: [] });
  });
});

it('a message type is looked up in the given registry first, then in the complete API', () => {
  const registry = withCompleteApi(createRegistry());
  expect(registry.getMessage('envoy.extensions.filters.http.lua.v3.Lua')?.name).toBe('Lua');
  expect(registry.getMessage('nothing.v1.Nothing')).toBeUndefined();
  expect([...registry]).toEqual([]);
});
