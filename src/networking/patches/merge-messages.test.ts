import { create, fromJson, type JsonValue, toJson } from '@bufbuild/protobuf';
import { anyPack, StringValueSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { type ListMerge, mergedPacked, mergeMessages, PatchFailure } from './merge-messages.ts';

const registry = envoyApi();
const socket = (fields: object, name = 'tls'): JsonValue => ({
  name,
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext',
    ...fields,
  },
});

function mergeJson(target: JsonValue, value: JsonValue, lists: ListMerge = 'append'): JsonValue {
  const [decoded, patch] = [
    fromJson(ClusterSchema, target, { registry }),
    fromJson(ClusterSchema, value, { registry }),
  ];
  const mergedMessage = mergeMessages(ClusterSchema, decoded, patch, lists);
  expect(toJson(ClusterSchema, decoded, { registry, useProtoFieldName: true })).toEqual(target);
  return toJson(ClusterSchema, mergedMessage, { registry, useProtoFieldName: true });
}

describe('merge of a value into a message', () => {
  it.each<[string, JsonValue, JsonValue, JsonValue]>([
    ['scalars override', { name: 'a', alt_stat_name: 'x' }, { alt_stat_name: 'y' }, { name: 'a', alt_stat_name: 'y' }],
    [
      'durations override as a whole',
      { connect_timeout: '15s' },
      { connect_timeout: '0.500s' },
      { connect_timeout: '0.500s' },
    ],
    [
      'wrapped numbers override, including 0',
      { per_connection_buffer_limit_bytes: 5 },
      { per_connection_buffer_limit_bytes: 0 },
      { per_connection_buffer_limit_bytes: 0 },
    ],
    [
      'messages merge',
      { outlier_detection: { consecutive_5xx: 3, base_ejection_time: '9s' } },
      { outlier_detection: { consecutive_5xx: 4 } },
      { outlier_detection: { consecutive_5xx: 4, base_ejection_time: '9s' } },
    ],
    [
      'the other field of a oneof replaces the current one',
      { type: 'EDS' },
      { cluster_type: { name: 'c' } },
      { cluster_type: { name: 'c' } },
    ],
    [
      'metadata merge by key',
      { metadata: { filter_metadata: { istio: { a: 1 }, other: { b: 2 } } } },
      { metadata: { filter_metadata: { istio: { c: 3 } } } },
      { metadata: { filter_metadata: { istio: { c: 3 }, other: { b: 2 } } } },
    ],
    [
      'packed messages merge like unpacked ones',
      { transport_socket: socket({ sni: 'a', allow_renegotiation: true }) },
      { transport_socket: socket({ sni: 'b' }) },
      { transport_socket: socket({ sni: 'b', allow_renegotiation: true }) },
    ],
    [
      'an extension with another name replaces the current one',
      { transport_socket: socket({ sni: 'a' }) },
      { transport_socket: socket({ allow_renegotiation: true }, 'other') },
      { transport_socket: socket({ allow_renegotiation: true }, 'other') },
    ],
  ])('values are merged as expected: %s', (_description, target, value, expected) => {
    expect(mergeJson(target, value)).toEqual(expected);
  });

  it('packed messages in maps are merged by key', () => {
    const key = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
    const options = (fields: object) => ({
      typed_extension_protocol_options: { [key]: { '@type': `type.googleapis.com/${key}`, ...fields } },
    });
    const target = options({ explicit_http_config: { http2_protocol_options: { max_concurrent_streams: 5 } } });
    const value = options({ common_http_protocol_options: { idle_timeout: '3s' } });
    expect(mergeJson(target, value)).toEqual(
      options({
        explicit_http_config: { http2_protocol_options: { max_concurrent_streams: 5 } },
        common_http_protocol_options: { idle_timeout: '3s' },
      }),
    );
  });

  it('lists are appended or replaced, including those in packed messages', () => {
    const target = { transport_socket: socket({ common_tls_context: { alpn_protocols: ['a'] } }) };
    const value = { transport_socket: socket({ common_tls_context: { alpn_protocols: ['b'] } }) };
    const alpn = (lists: ListMerge) =>
      JSON.stringify(mergeJson(target, value, lists)).match(/"alpn_protocols":\[[^\]]*\]/)?.[0];
    expect(alpn('append')).toBe('"alpn_protocols":["a","b"]');
    expect(alpn('replace')).toBe('"alpn_protocols":["b"]');
  });

  it('packed messages of different types are not merged', () => {
    const text = anyPack(StringValueSchema, create(StringValueSchema, { value: 'a' }));
    const cluster = anyPack(ClusterSchema, create(ClusterSchema, { name: 'a' }));
    expect(() => mergedPacked(text, cluster, 'append')).toThrow(PatchFailure);
    expect(() => mergedPacked(text, cluster, 'append')).toThrow(
      'envoy.config.cluster.v3.Cluster cannot be merged into google.protobuf.StringValue',
    );
  });
});
