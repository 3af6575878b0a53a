import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { anyPack } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { listenerType, proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import {
  internalRequest,
  readInternal,
  readRequest,
  rootsIn,
  typeInRequestStart,
  typeInResponseStart,
  typeOfResponse,
} from './discovery-wire.ts';

const node = { id: 'sidecar~1.2.3.4~a.b~c', metadata: { A: 'b' } };
const requests = {
  sotw: toBinary(
    DiscoveryRequestSchema,
    create(DiscoveryRequestSchema, { node, typeUrl: listenerType, versionInfo: '1', responseNonce: 'n' }),
  ),
  delta: toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, {
      node,
      typeUrl: listenerType,
      initialResourceVersions: Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`0.0.0.0_${i}`, `${i}`])),
    }),
  ),
};
const cluster = anyPack(ClusterSchema, create(ClusterSchema, { name: 'x'.repeat(40_000) }));
cluster.typeUrl = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const responses = {
  sotw: toBinary(
    DiscoveryResponseSchema,
    create(DiscoveryResponseSchema, {
      typeUrl: cluster.typeUrl,
      resources: [cluster, cluster],
      nonce: 'n',
      versionInfo: 'v',
    }),
  ),
  delta: toBinary(
    DeltaDiscoveryResponseSchema,
    create(DeltaDiscoveryResponseSchema, {
      typeUrl: cluster.typeUrl,
      resources: [{ name: 'a', version: 'v', resource: cluster }],
      nonce: 'n',
      removedResources: ['b'],
    }),
  ),
};

test.each(['sotw', 'delta'] as const)(
  'reads the type from a complete message and from its first bytes (%s)',
  (protocol) => {
    expect(readRequest(requests[protocol], protocol).typeUrl).toBe(listenerType);
    expect(typeOfResponse(responses[protocol])).toBe(cluster.typeUrl);
    expect(typeInResponseStart(responses[protocol].subarray(0, 500), protocol)).toBe(cluster.typeUrl);
  },
);

test.each([
  ['sotw', DiscoveryRequestSchema],
  ['delta', DeltaDiscoveryRequestSchema],
] as const)('reads the nonce and at most 1,000 characters of the reason of a rejection (%s)', (protocol, schema) => {
  const read = (fields: object) =>
    readRequest(
      toBinary(schema, create(schema, { node, typeUrl: listenerType, responseNonce: 'n', ...fields })),
      protocol,
    );
  expect(read({})).toEqual({ typeUrl: listenerType, nonce: 'n', rejection: undefined });
  expect(read({ errorDetail: { code: 13, message: 'm'.repeat(2_000) } }).rejection).toBe('m'.repeat(1_000));
  // A rejection without a message.
  expect(read({ errorDetail: {} }).rejection).toBe('');
});

test('reads the type of a long delta request from its first bytes, or returns undefined', () => {
  expect(typeInRequestStart(requests.delta.subarray(0, 1_000), 'delta')).toBe(listenerType);
  expect(typeInRequestStart(requests.delta.subarray(0, 10), 'delta')).toBeUndefined();
  expect(typeInResponseStart(new Uint8Array(), 'sotw')).toBeUndefined();
});

test('throws for a complete but invalid message, but not for its first bytes', () => {
  expect(() => readRequest(Buffer.from([0xff, 0xff, 0xff]), 'sotw')).toThrow();
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.constantFrom('sotw' as const, 'delta' as const),
      (bytes, protocol) => {
        typeInResponseStart(bytes, protocol);
        typeInRequestStart(bytes, protocol);
      },
    ),
    { numRuns: 2_000 },
  );
});

test.each(['sotw', 'delta'] as const)(
  'reads roots, and acknowledges or rejects them with the nonce (%s)',
  (protocol) => {
    const resource = anyPack(ProxyConfigSchema, create(ProxyConfigSchema, { caCertificatesPem: ['one', 'two'] }));
    const message =
      protocol === 'sotw'
        ? toBinary(
            DiscoveryResponseSchema,
            create(DiscoveryResponseSchema, {
              typeUrl: proxyConfigType,
              versionInfo: '7',
              nonce: 'n',
              resources: [resource],
            }),
          )
        : toBinary(
            DeltaDiscoveryResponseSchema,
            create(DeltaDiscoveryResponseSchema, {
              typeUrl: proxyConfigType,
              nonce: 'n',
              resources: [{ name: 'x', resource }],
            }),
          );
    const read = readInternal(message, protocol);
    expect(rootsIn(read.value!)).toEqual(['one', 'two']);
    const { version, nonce } = read;
    const acknowledgement = internalRequest({ typeUrl: proxyConfigType, version, nonce }, protocol);
    const rejection = internalRequest({ typeUrl: proxyConfigType, version, nonce, refusal: 'no' }, protocol);
    const decode = (bytes: Uint8Array) =>
      protocol === 'sotw' ? fromBinary(DiscoveryRequestSchema, bytes) : fromBinary(DeltaDiscoveryRequestSchema, bytes);
    expect(decode(acknowledgement)).toMatchObject({ typeUrl: proxyConfigType, responseNonce: 'n' });
    expect(decode(acknowledgement).errorDetail).toBeUndefined();
    expect(decode(rejection)).toMatchObject({ responseNonce: 'n', errorDetail: { code: 13, message: 'no' } });
    if (protocol === 'sotw') expect(decode(acknowledgement)).toMatchObject({ versionInfo: '7' });
  },
);

test.each([
  ['sotw', DiscoveryRequestSchema],
  ['delta', DeltaDiscoveryRequestSchema],
] as const)('adds node metadata to a request if the agent has any (%s)', (protocol, schema) => {
  const request = { typeUrl: proxyConfigType, nonce: 'n' };
  const nodeMetadata = { CERTIFICATE_SERIAL_NUMBER: '4A', other: 'é' };
  const read = (fields: object) => fromBinary(schema, internalRequest({ ...request, ...fields }, protocol));
  expect(read({})).toMatchObject({ typeUrl: proxyConfigType, responseNonce: 'n' });
  expect(read({}).node).toBeUndefined();
  expect(read({ nodeMetadata })).toMatchObject({ typeUrl: proxyConfigType, responseNonce: 'n' });
  expect(read({ nodeMetadata }).node).toMatchObject({ id: '', metadata: nodeMetadata });
});
