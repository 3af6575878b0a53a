/** Decodes resources from xDS sources, whose servers can send any bytes. */
import { create, type DescMessage, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { type Any, anyPack } from '@bufbuild/protobuf/wkt';
import { beforeAll, expect, test } from 'vitest';
import { mutatedBytes, randomBytes } from '../../../../test/fuzz/grammar/bytes.ts';
import { collectGarbage } from '../../../../test/harness/collect-garbage.ts';
import { sized } from '../../../../test/harness/size-of-run.ts';
import { Draw } from '../../../../test/random-config/draw.ts';
import { ResourceSchema } from '../../../gen/istio/mcp/v1alpha1/resource_pb.ts';
import { readConfigFile } from '../../../model/config/config-file.ts';
import type { KindName } from '../../../model/kinds/index.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { encodeObject } from '../../config-server/encoded-object.ts';
import { valueOf } from '../../xds/responses/encoding.ts';
import { configKinds, kindOfType, loadMessages, typesOf } from './config-types.ts';
import { decodeResource, maxObjectBytes } from './received-object.ts';
import { decodeResponse } from './source-messages.ts';
import { SourceObjects, type StagedResource } from './source-objects.ts';

let messages: ReadonlyMap<KindName, DescMessage>;
beforeAll(async () => {
  messages = await loadMessages();
});

const resource = (name: string, body: Any): Uint8Array =>
  toBinary(ResourceSchema, create(ResourceSchema, { metadata: { name }, body }));
const entry = (name: string, port = 80): Uint8Array =>
  resource(
    `shop/${name}`,
    bodyOf('ServiceEntry', { hosts: [`${name}.example.com`], ports: [{ number: port, name: 'http' }] }),
  );
const bodyOf = (kind: KindName, spec: JsonValue): Any => {
  const schema = messages.get(kind)!;
  return anyPack(schema, fromJson(schema, spec));
};
const decoded = (kind: KindName, bytes: Uint8Array) => decodeResource(kind, messages.get(kind)!, bytes);
const objects = (limits: { maxObjects?: number; maxBytes?: number } = {}): SourceObjects =>
  new SourceObjects({
    ...{ address: 'xds://config:15010', messages, revision: '', keepsBytes: false },
    ...{ maxObjects: 100_000, maxBytes: 2 ** 28, ...limits },
  });
const stagedResources = (...bytes: Uint8Array[]): StagedResource[] =>
  bytes.map((one) => ({ name: '', version: '', bytes: one }));

test('all Istio kinds that files can contain are requested, in the same versions as by Istio', () => {
  expect(configKinds).toEqual([...messages.keys()].sort());
  expect(configKinds.map((kind) => typesOf(kind)[0])).toEqual(
    expect.arrayContaining([
      'networking.istio.io/v1/VirtualService',
      'networking.istio.io/v1alpha3/EnvoyFilter',
      'networking.istio.io/v1beta1/ProxyConfig',
      'security.istio.io/v1/AuthorizationPolicy',
      'telemetry.istio.io/v1/Telemetry',
      'extensions.istio.io/v1alpha1/WasmPlugin',
    ]),
  );
  expect(typesOf('VirtualService', ['v1alpha3'])).toEqual(['networking.istio.io/v1alpha3/VirtualService']);
  expect(kindOfType('type.googleapis.com/networking.istio.io/v1alpha3/Gateway')).toBe('Gateway');
  expect(kindOfType('networking.istio.io/v2/Gateway')).toBeUndefined();
});

test('a received object equals the same object from a file, including durations and wrappers, and is served unchanged', () => {
  const text = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  hosts: [web.example.com]
  http:
    - match: [{uri: {prefix: /a}, headers: {x-user: {exact: me}}}]
      timeout: 1m30s
      retries: {attempts: 2, perTryTimeout: 250ms, retryIgnorePreviousHosts: true}
      fault: {delay: {percentage: {value: 0.5}, fixedDelay: 2s}}
      route: [{destination: {host: web, port: {number: 80}}, weight: 100}]
`;
  const [config] = readConfigFile('web.yaml', text, { creationTimestamp: 0 }).configs;
  const { firstChunk, start, tailChunks } = valueOf(encodeObject(config!, messages.get('VirtualService')!)!);
  const bytes = Buffer.concat([firstChunk.subarray(start), ...tailChunks]);
  const all = objects();
  all.apply(runToEnd(all.stage('VirtualService', stagedResources(bytes))), true);
  const { edits, problems } = all.takeChanges();
  expect(problems).toEqual([]);
  const receivedObject = edits.get('VirtualService/shop/web')!;
  expect(receivedObject.spec).toEqual(config!.spec);
  expect(receivedObject.labels).toEqual({ app: 'web' });
});

test('an unknown field in a received object is reported like in a file', () => {
  const rules = new BinaryWriter().tag(99, WireType.Varint).int32(1).finish();
  const body = { ...bodyOf('AuthorizationPolicy', { action: 'ALLOW' }) };
  const value = Buffer.concat([body.value, rules]);
  const { object } = decoded('AuthorizationPolicy', resource('shop/allow', { ...body, value } as Any));
  expect(object.spec).toMatchObject({ field99: true });
  const all = objects();
  const staged = runToEnd(
    all.stage('AuthorizationPolicy', stagedResources(resource('shop/allow', { ...body, value } as Any))),
  );
  expect(staged.rejectedCount + staged.errors.length).toBeGreaterThan(0);
});

test.each<[string, () => Uint8Array, RegExp]>([
  ['is not a valid message', () => Buffer.from('0a', 'hex'), /cannot be decoded/],
  [
    'has no body',
    () => toBinary(ResourceSchema, create(ResourceSchema, { metadata: { name: 'shop/a' } })),
    /has no body/,
  ],
  [
    'has the body of another kind',
    () => resource('shop/a', bodyOf('Gateway', {})),
    /must be of type istio.networking.v1alpha3.ServiceEntry/,
  ],
  [
    'is too large',
    () => resource('shop/a', { ...bodyOf('ServiceEntry', {}), value: Buffer.alloc(maxObjectBytes) } as Any),
    /must have at most 1572864 bytes/,
  ],
])('a resource that %s is rejected without affecting or deleting other objects', (_, bytes, reason) => {
  const all = objects();
  all.apply(runToEnd(all.stage('ServiceEntry', stagedResources(entry('a'), entry('b')))), true);
  const staged = runToEnd(all.stage('ServiceEntry', stagedResources(bytes(), entry('b', 81))));
  expect(staged.errors.map(({ message }) => message).join()).toMatch(reason);
  expect(staged.removedNames).toEqual([]);
  all.apply(staged, true);
  const { edits } = all.takeChanges();
  expect([edits.get('ServiceEntry/shop/a'), edits.get('ServiceEntry/shop/b')]).toEqual([
    expect.anything(),
    expect.anything(),
  ]);
});

test('an EnvoyFilter with 5,000 nested levels is rejected', () => {
  let value: Buffer = Buffer.alloc(0);
  const wrap = (field: number, bytes: Uint8Array): Buffer =>
    Buffer.from(new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish());
  // Creates nested lists: a Value whose list contains a Value, and so on.
  for (let level = 0; level < 5_000; level++) value = wrap(6, wrap(1, value));
  const patch = wrap(2, wrap(1, Buffer.concat([wrap(1, Buffer.from('x')), wrap(2, value)])));
  const body = { ...bodyOf('EnvoyFilter', {}), value: wrap(4, wrap(3, patch)) } as Any;
  const all = objects();
  const staged = runToEnd(all.stage('EnvoyFilter', stagedResources(resource('shop/deep', body))));
  expect(staged.rejectedCount).toBe(1);
});

test('the first of two resources with the same name applies, and the second causes an error', () => {
  const all = objects();
  const staged = runToEnd(all.stage('ServiceEntry', stagedResources(entry('a', 80), entry('a', 81))));
  expect(staged.errors.map(({ message }) => message)).toEqual(['is sent twice: the first one applies']);
});

test.each([
  [{ maxObjects: 2 }, /has more than 2 objects/],
  [{ maxBytes: 100 }, /has more than 100 bytes/],
])('a response above the limit %o is rejected completely', (limits, reason) => {
  const all = objects(limits);
  const staged = runToEnd(all.stage('ServiceEntry', stagedResources(entry('a'), entry('b'), entry('c'))));
  expect(staged.refusal).toMatch(reason);
});

test('only the changed resource is decoded again if one of 2,000 differs', () => {
  const all = objects();
  const previous = Array.from({ length: 2_000 }, (_, index) => entry(`e${index}`));
  all.apply(runToEnd(all.stage('ServiceEntry', stagedResources(...previous))), true);
  const { edits } = all.takeChanges();
  expect(edits.size).toBe(2_000);
  const staged = runToEnd(all.stage('ServiceEntry', stagedResources(...previous.with(7, entry('e7', 81)))));
  expect([...staged.changedObjects.keys()]).toEqual(['shop/e7']);
  all.apply(staged, true);
  expect([...all.takeChanges().edits.keys()]).toEqual(['ServiceEntry/shop/e7']);
});

test('arbitrary bytes are rejected as resource or response without an exception, in bounded memory', async () => {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const draw = new Draw(seed);
  const rounds = sized({ short: 1_000, full: 300_000 });
  const all = objects({ maxObjects: 500 });
  const bases = [entry('a'), resource('shop/b', bodyOf('VirtualService', { hosts: ['a'], http: [{ timeout: '5s' }] }))];
  await collectGarbage();
  const previous = process.memoryUsage().heapUsed;
  for (let round = 0; round < rounds; round++) {
    const bytes = draw.chance(0.3) ? randomBytes(draw, draw.int(0, 200)) : mutatedBytes(draw, draw.pick(bases));
    const kind = draw.pick(configKinds);
    expect(() => {
      const staged = runToEnd(all.stage(kind, stagedResources(bytes)));
      if (staged.refusal === undefined) all.apply(staged, draw.chance(0.9));
      if (draw.chance(0.1)) all.takeChanges();
      try {
        for (const _ of decodeResponse(bytes, draw.pick(['sotw', 'delta'] as const), 100).resources);
      } catch (error) {
        // An undecodable message ends the stream.
        expect(error).toBeInstanceOf(Error);
      }
    }, `SEED=${seed}, round ${round}`).not.toThrow();
  }
  all.takeChanges();
  await collectGarbage();
  expect(process.memoryUsage().heapUsed - previous).toBeLessThan(64 * 2 ** 20);
});
