import { create, type DescField, type DescMessage, type Message, ScalarType, toBinary } from '@bufbuild/protobuf';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { file_google_protobuf_struct, isWrapperDesc, StructSchema } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ClusterSchema, file_envoy_config_cluster_v3_cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { NodeSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import { EndpointSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_components_pb.ts';
import { file_envoy_config_listener_v3_listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { file_envoy_config_route_v3_route } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { file_envoy_extensions_filters_network_http_connection_manager_v3_http_connection_manager } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts';
import { file_envoy_extensions_transport_sockets_tls_v3_tls } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts';
import { encodeBackwards } from './message-writer.ts';
import { encodeDeterministically, orderedBinary } from './wire-form.ts';

type Values = Record<string, unknown>;

const types = [
  file_envoy_config_cluster_v3_cluster,
  file_envoy_config_listener_v3_listener,
  file_envoy_config_route_v3_route,
  file_envoy_extensions_filters_network_http_connection_manager_v3_http_connection_manager,
  file_envoy_extensions_transport_sockets_tls_v3_tls,
  file_google_protobuf_struct,
]
  .flatMap((file) => [file, ...file.dependencies])
  .flatMap((file) => [...nestedTypes(file)])
  .filter((type): type is DescMessage => type.kind === 'message');

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.string({ minLength: 50, maxLength: 300 }),
  fc.constantFrom('', '0', '10', '9', '01', '__proto__x', '\ud800', 'é'.repeat(40)),
);

/** @param isUsual whether only values are generated that the writer encodes itself */
function scalar(type: ScalarType, isUsual: boolean): fc.Arbitrary<unknown> {
  const nat = fc.oneof(fc.nat({ max: 200 }), fc.nat({ max: 0x7fff_ffff }));
  switch (type) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 300 });
    case ScalarType.DOUBLE:
      return fc.double();
    case ScalarType.FLOAT:
      return isUsual ? fc.constant(0) : fc.float();
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return fc.oneof(nat, fc.integer({ min: 0, max: 0xffff_ffff }));
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return fc.bigInt({ min: 0n, max: isUsual ? BigInt(Number.MAX_SAFE_INTEGER) : 2n ** 64n - 1n });
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return isUsual ? fc.nat().map(BigInt) : fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    default:
      return isUsual ? nat : fc.oneof(nat, fc.integer());
  }
}

const struct = fc.dictionary(text, fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>, { maxKeys: 4 });

function single(field: DescField, depth: number, isUsual: boolean): fc.Arbitrary<unknown> {
  if (field.enum !== undefined) return fc.constantFrom(...field.enum.values.map(({ number }) => number));
  if (field.message === undefined) return scalar(field.scalar!, isUsual);
  if (field.message === StructSchema && field.parent.typeName !== 'google.protobuf.Value') return struct;
  if (field.fieldKind === 'message' && field.oneof === undefined && isWrapperDesc(field.message)) {
    return scalar(field.message.fields[0]!.scalar!, isUsual);
  }
  return messageOf(field.message, depth - 1, isUsual);
}

function valueOf(field: DescField, depth: number, isUsual: boolean): fc.Arbitrary<unknown> {
  if (field.fieldKind === 'list') return fc.array(single(field, depth, isUsual), { maxLength: 3 });
  if (field.fieldKind !== 'map') return single(field, depth, isUsual);
  const key = field.mapKey === ScalarType.STRING ? text : fc.nat({ max: 20 }).map(String);
  const mapField = fc.dictionary(key, single(field, depth, isUsual), { maxKeys: 4 });
  return isUsual && field.mapKey !== ScalarType.STRING ? fc.constant({}) : mapField;
}

/** Sets few fields, to keep messages small. */
function messageOf(schema: DescMessage, depth: number, isUsual: boolean): fc.Arbitrary<Message> {
  const settable = schema.fields.filter((field) => depth > 0 || field.message === undefined);
  if (settable.length === 0) return fc.constant(null).map(() => create(schema));
  return fc
    .subarray(settable, { maxLength: Math.min(6, settable.length) })
    .chain((chosenFields) =>
      fc.tuple(...chosenFields.map((field) => valueOf(field, depth, isUsual).map((value) => ({ field, value })))),
    )
    .map((fieldValues) => {
      const writtenMessage = create(schema);
      for (const { field, value } of fieldValues) {
        const { oneof, localName } = field;
        const set = oneof === undefined ? { [localName]: value } : { [oneof.localName]: { case: localName, value } };
        Object.assign(writtenMessage, set);
      }
      return writtenMessage;
    });
}

const someType = fc.constantFrom(...types);

test('messages have the same bytes as from protobuf-es, for any content', () => {
  fc.assert(
    fc.property(
      someType.chain((schema) => fc.record({ schema: fc.constant(schema), message: messageOf(schema, 3, false) })),
      ({ schema, message }) => {
        const previous = structuredClone(message);
        expect(Buffer.from(encodeDeterministically(schema, message)).equals(orderedBinary(schema, message))).toBe(true);
        expect(structuredClone(message)).toEqual(previous);
      },
    ),
    { numRuns: 2_000 },
  );
});

test('a map with the key "__proto__" is sorted completely', () => {
  const metadata = JSON.parse('{"b": 1, "__proto__": {"c": 2, "a": 3}}') as Record<string, never>;
  const parsedJson = JSON.parse('{"__proto__": {"a": 3, "c": 2}, "b": 1}') as Record<string, never>;
  const bytesOf = (value: Record<string, never>) => orderedBinary(NodeSchema, create(NodeSchema, { metadata: value }));
  expect(bytesOf(metadata)).toEqual(toBinary(NodeSchema, create(NodeSchema, { metadata: parsedJson })));
});

test('common messages are encoded without protobuf-es', () => {
  fc.assert(
    fc.property(
      someType.chain((schema) => fc.record({ schema: fc.constant(schema), message: messageOf(schema, 3, true) })),
      ({ schema, message }) => {
        expect(encodeBackwards(schema, message)).toEqual(orderedBinary(schema, message));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('encoded bytes have their own buffer, and a message can be larger than all previous ones', () => {
  const clusterNamed = (name: string) => create(ClusterSchema, { name });
  const one = encodeDeterministically(ClusterSchema, clusterNamed('one'));
  expect(one.buffer.byteLength).toBe(one.length);
  const copy = Buffer.from(one);
  for (const length of [70_000, 3_000_000, 5]) {
    const largeCluster = clusterNamed('x'.repeat(length));
    expect(
      Buffer.from(encodeDeterministically(ClusterSchema, largeCluster)).equals(
        orderedBinary(ClusterSchema, largeCluster),
      ),
    ).toBe(true);
  }
  expect(copy.equals(one)).toBe(true);
});

test.each([
  ['a message of another type', create(EndpointSchema)],
  ['a number that is too large', { ...create(ClusterSchema), perConnectionBufferLimitBytes: 2 ** 40 } as Values],
  ['a text instead of a message', { ...create(ClusterSchema), loadAssignment: 'text' } as Values],
  ['a text instead of bytes', { ...create(ClusterSchema), clusterDiscoveryType: { case: 'type', value: 'x' } }],
])('an error of protobuf-es is reported for %s, and the next message is encoded correctly', (_, message) => {
  const failure = (write: typeof encodeDeterministically): unknown => {
    try {
      return write(ClusterSchema, message as unknown as Message);
    } catch (error) {
      return (error as Error).message;
    }
  };
  expect(failure(encodeDeterministically)).toEqual(failure(orderedBinary));
  expect(typeof failure(encodeDeterministically)).toBe('string');
  const next = create(ClusterSchema, { name: 'next' });
  expect(encodeDeterministically(ClusterSchema, next)).toEqual(orderedBinary(ClusterSchema, next));
});

test('maps are sorted for every key type', () => {
  const keys = ['b', 'a', '10', '9', '01', '-1', '4294967295', 'é'];
  const metadata = (order: readonly string[]) =>
    create(ClusterSchema, {
      metadata: { filterMetadata: Object.fromEntries(order.map((key) => [key, { [key]: 1 }])) },
    });
  const [one, other] = [metadata(keys), metadata(keys.toReversed())].map((cluster) =>
    encodeDeterministically(ClusterSchema, cluster),
  );
  expect(one).toEqual(other);
  expect(one).toEqual(orderedBinary(ClusterSchema, metadata(keys)));
});
