import { create, fromBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ClusterSchema } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { encodeControlPlane, encodeHead, frameOf } from './ads-response.ts';
import { encodeResource, encodeValue } from './encoding.ts';

const typeUrl = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const clusterWith = (metadata: Record<string, Record<string, string>>) =>
  create(ClusterSchema, { name: 'outbound|80||a.b', metadata: { filterMetadata: metadata } });

describe('an encoded resource', () => {
  test('can be decoded from SotW and delta responses', () => {
    const message = clusterWith({ istio: { config: 'x' } });
    const resource = encodeResource(ClusterSchema, message, message.name);
    const [anyResource] = fromBinary(DiscoveryResponseSchema, resource.sotwFrame).resources;
    expect(anyResource!.typeUrl).toBe(typeUrl);
    expect(fromBinary(ClusterSchema, anyResource!.value)).toEqual(message);
    const [namedResource] = fromBinary(DeltaDiscoveryResponseSchema, resource.deltaFrame).resources;
    expect(namedResource).toMatchObject({ name: message.name, version: resource.version, resource: anyResource });
  });

  test('is stored once for both protocols', () => {
    const resource = encodeResource(ClusterSchema, clusterWith({}), 'a');
    expect(resource.sotwFrame.buffer).toBe(resource.deltaFrame.buffer);
    expect(resource.sotwFrame.at(-1)).toBe(resource.deltaFrame.at(-1));
  });

  test('has the same bytes regardless of the order of map keys', () => {
    const one = encodeResource(ClusterSchema, clusterWith({ a: { x: '1', y: '2' }, b: { z: '3' } }), 'a');
    const other = encodeResource(ClusterSchema, clusterWith({ b: { z: '3' }, a: { y: '2', x: '1' } }), 'a');
    expect(Buffer.compare(one.deltaFrame, other.deltaFrame)).toBe(0);
    expect(one.version).toBe(other.version);
  });

  test('does not modify its message', () => {
    const message = clusterWith({ b: { z: '3' }, a: { y: '2', x: '1' } });
    encodeResource(ClusterSchema, message, 'a');
    expect(Object.keys(message.metadata!.filterMetadata)).toEqual(['b', 'a']);
  });

  test('has a different version if its content differs', () => {
    const versions = ['1', '2'].map((x) => encodeResource(ClusterSchema, clusterWith({ a: { x } }), 'a').version);
    expect(versions[0]).not.toBe(versions[1]);
  });

  test('is framed correctly for every length', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat({ max: 40_000 }), (name, length) => {
        const resource = encodeValue(typeUrl, Buffer.alloc(length, 7), name);
        const [read] = fromBinary(DeltaDiscoveryResponseSchema, resource.deltaFrame).resources;
        expect([read!.name, read!.version, read!.resource!.value.length]).toEqual([name, resource.version, length]);
      }),
    );
  });

  test('can have shared chunks as the rest of its value, in both protocols', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 })), (chunks) => {
        const [value, version] = [Buffer.from('begin'), 'v'];
        const resource = encodeValue(typeUrl, value, 'a', { version, tailChunks: chunks });
        const wholeValue = Buffer.concat([value, ...chunks]);
        const [read] = fromBinary(DeltaDiscoveryResponseSchema, Buffer.concat(frameOf(resource, true))).resources;
        expect(read).toMatchObject({ name: 'a', version, resource: { typeUrl } });
        const [anyResource] = fromBinary(DiscoveryResponseSchema, Buffer.concat(frameOf(resource, false))).resources;
        for (const one of [read!.resource!, anyResource!]) expect(wholeValue.equals(one.value)).toBe(true);
        expect(resource.tailChunks).toBe(chunks);
      }),
    );
  });
});

describe('an encoded response', () => {
  test('consists of a head and the frames of its resources', () => {
    const [a, b] = ['a', 'b'].map((name) => encodeValue(typeUrl, Buffer.from(name), name));
    const head = { typeUrl, version: 'v1', nonce: 'v1/1-1' };
    const controlPlane = encodeControlPlane('pilot-0');
    const sotw = Buffer.concat([
      encodeHead({ ...head, removedNames: [], controlPlane: controlPlane.sotwField }),
      a!.sotwFrame,
      b!.sotwFrame,
    ]);
    expect(fromBinary(DiscoveryResponseSchema, sotw)).toMatchObject({
      typeUrl,
      versionInfo: 'v1',
      nonce: 'v1/1-1',
      controlPlane: { identifier: 'pilot-0' },
      resources: [{ value: Buffer.from('a') }, { value: Buffer.from('b') }],
    });
    const delta = Buffer.concat([
      encodeHead({ ...head, removedNames: ['x', 'ÿ'], controlPlane: controlPlane.deltaField }),
      a!.deltaFrame,
    ]);
    expect(fromBinary(DeltaDiscoveryResponseSchema, delta)).toMatchObject({
      typeUrl,
      systemVersionInfo: 'v1',
      nonce: 'v1/1-1',
      controlPlane: { identifier: 'pilot-0' },
      removedResources: ['x', 'ÿ'],
      resources: [{ name: 'a' }],
    });
  });
});
