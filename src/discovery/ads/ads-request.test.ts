import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { NodeSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { readDeltaRequest, readNode, readSotwRequest } from './ads-request.ts';

const sotw = (request: MessageInitShape<typeof DiscoveryRequestSchema>) =>
  readSotwRequest(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, request)));
const delta = (request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>) =>
  readDeltaRequest(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)));

describe('a request from the wire', () => {
  test('state of the world', () => {
    expect(sotw({ typeUrl: 't', versionInfo: 'v', responseNonce: 'n', resourceNames: ['a', '', 'ÿ'] }).request).toEqual(
      {
        protocol: 'sotw',
        typeUrl: 't',
        nonce: 'n',
        names: ['a', '', 'ÿ'],
        rejection: null,
      },
    );
  });

  test('delta', () => {
    const request = {
      typeUrl: 't',
      responseNonce: 'n',
      resourceNamesSubscribe: ['a', '*'],
      resourceNamesUnsubscribe: ['b'],
      initialResourceVersions: { c: '1', d: '' },
    };
    expect(delta(request).request).toEqual({
      protocol: 'delta',
      typeUrl: 't',
      nonce: 'n',
      subscribe: ['a', '*'],
      unsubscribe: ['b'],
      known: ['c', 'd'],
      rejection: null,
    });
  });

  test('a rejection without a message is a rejection', () => {
    expect(sotw({ errorDetail: { code: 3, message: 'bad' } }).request.rejection).toBe('bad');
    expect(delta({ errorDetail: { code: 3 } }).request.rejection).toBe('');
    expect(delta({}).request.rejection).toBeNull();
  });

  test('what is of no interest is skipped', () => {
    const request = { typeUrl: 't', resourceLocators: [{ name: 'x' }] };
    expect(sotw(request).request).toMatchObject({ typeUrl: 't', names: [] });
    // A field that we do not know, of each wire type.
    const unknown = Buffer.from([0xa0, 6, 1, 0xa1, 6, 1, 2, 3, 4, 5, 6, 7, 8, 0xa5, 6, 1, 2, 3, 4, 0x22, 1, 0x74]);
    expect(readSotwRequest(unknown).request.typeUrl).toBe('t');
  });

  test('bytes that are no request are refused', () => {
    expect(() => readSotwRequest(Buffer.from([0x22, 200, 1]))).toThrow();
    expect(() => readDeltaRequest(Buffer.from([0x12, 9, 1]))).toThrow();
    expect(() => readSotwRequest(Buffer.from([0]))).toThrow();
  });

  test('its node, when it has one', () => {
    expect(sotw({}).node).toBeUndefined();
    const node = { id: 'i', cluster: 'c', metadata: { NAMESPACE: 'n' }, locality: { region: 'r', zone: 'z' } };
    expect(readNode(delta({ node }).node!)).toEqual({
      ...node,
      locality: { region: 'r', zone: 'z', subZone: '' },
    });
    expect(readNode(toBinary(NodeSchema, create(NodeSchema)))).toEqual({ id: '', cluster: '', metadata: {} });
  });
});
