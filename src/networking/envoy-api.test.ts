import { type JsonValue, toJson } from '@bufbuild/protobuf';
import * as E from 'fp-ts/lib/Either.js';
import { describe, expect, it } from 'vitest';
import { decodeStrict, envoyApi } from './envoy-api.ts';

const filters = 'type.googleapis.com/envoy.extensions.filters.http';

describe("any message of Envoy's API", () => {
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
  ])('is read as it is written: %s', (name, json) => {
    const decoded = decodeStrict(`${filters}.${name}`, json);
    if (E.isLeft(decoded)) throw new Error(decoded.left);
    const { schema, message } = decoded.right;
    expect(toJson(schema, message, { useProtoFieldName: true, registry: envoyApi() })).toEqual(json);
  });

  it('is read with the messages that are packed in it', () => {
    const packed = {
      name: 'outer',
      typed_config: { '@type': `${filters}.lua.v3.Lua`, default_source_code: { inline_string: '' } },
    };
    const cluster = { name: 'c', transport_socket: packed };
    expect(E.isRight(decodeStrict('envoy.config.cluster.v3.Cluster', cluster))).toBe(true);
    const wrong = { ...packed, typed_config: { ...packed.typed_config, source: '' } };
    expect(decodeStrict('envoy.config.cluster.v3.Cluster', { ...cluster, transport_socket: wrong })).toMatchObject({
      left: expect.stringContaining('source'),
    });
  });

  it.each<[string, string, JsonValue, string]>([
    ['a field that it does not have', 'lua.v3.Lua', { source: '' }, 'source'],
    ['a value of another type', 'lua.v3.Lua', { inline_code: 5 }, 'inline_code'],
    ['a value that is none of an enumeration', 'ext_proc.v3.ProcessingMode', { request_body_mode: 'SOME' }, '"SOME"'],
    ['a message that it is not', 'lua.v9.Lua', {}, 'lua.v9.Lua is no message'],
  ])('is refused with %s', (_what, name, json, words) => {
    expect(decodeStrict(`${filters}.${name}`, json)).toMatchObject({ left: expect.stringContaining(words) });
  });

  it('is there: hundreds of messages, and those that only generated code knows', () => {
    const messages = [...envoyApi()].filter(({ kind }) => kind === 'message');
    expect(messages.length).toBeGreaterThan(1000);
    expect(envoyApi().getMessage('udpa.type.v1.TypedStruct')).toBeDefined();
  });
});
