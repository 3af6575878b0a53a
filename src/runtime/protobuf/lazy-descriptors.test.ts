import { create, type DescFile, type DescMessage, fromJson, toBinary, toJson } from '@bufbuild/protobuf';
import { embedFileDesc, fileDesc } from '@bufbuild/protobuf/codegenv2';
import { nestedTypes } from '@bufbuild/protobuf/reflect';
import { expect, test } from 'vitest';
import { outlineOf } from '../../../proto/outline.ts';
import { file_envoy_config_cluster_v3_cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { file_envoy_config_listener_v3_listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import {
  RouteMatchSchema,
  RouteSchema,
  VirtualHostSchema,
} from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { file_envoy_service_discovery_v3_ads } from '../../gen/envoy/service/discovery/v3/ads_pb.ts';
import { file_envoy_service_status_v3_csds } from '../../gen/envoy/service/status/v3/csds_pb.ts';
import { lazyFileDesc } from './lazy-descriptors.ts';

const roots = [
  file_envoy_config_cluster_v3_cluster,
  file_envoy_config_listener_v3_listener,
  file_envoy_service_discovery_v3_ads,
  // Its service has message types of the same file.
  file_envoy_service_status_v3_csds,
];

/** All files that the roots import, built twice from the same descriptors: by protobuf-es, and lazily. */
function buildTwice(): { theirs: Map<string, DescFile>; lazy: Map<string, DescFile> } {
  const theirs = new Map<string, DescFile>();
  const lazy = new Map<string, DescFile>();
  const visit = (file: DescFile): void => {
    if (theirs.has(file.proto.name)) return;
    for (const each of file.dependencies) visit(each);
    const imports = (built: Map<string, DescFile>): DescFile[] =>
      file.dependencies.map((each) => built.get(each.proto.name)!);
    const known = file.proto.name.startsWith('google/protobuf/');
    const descriptor = known ? '' : embedFileDesc(file.proto).base64();
    theirs.set(file.proto.name, known ? file : fileDesc(descriptor, imports(theirs)));
    lazy.set(file.proto.name, known ? file : lazyFileDesc(outlineOf(file.proto), descriptor, imports(lazy)));
  };
  for (const root of roots) visit(root);
  return { theirs, lazy };
}

/** All properties of a type and of its members; other types by name. */
function described(of: unknown, depth = 0): unknown {
  if (typeof of !== 'object' || of === null) return typeof of === 'function' ? 'a function' : of;
  const { kind, typeName, name } = of as { kind?: string; typeName?: string; name?: string };
  if (depth > 0 && typeName !== undefined) return `${kind} ${typeName}`;
  if (depth > 0 && kind === 'file') return `file ${name}`;
  if (depth > 3) return `${kind} ${name}`;
  if (Array.isArray(of)) return of.map((each) => described(each, depth + 1));
  const names = new Set<string>();
  for (let each: object = of; each !== Object.prototype && each !== null; each = Object.getPrototypeOf(each)) {
    for (const property of Object.getOwnPropertyNames(each)) names.add(property);
  }
  const shown = [...names]
    .filter((each) => !['constructor', 'pair', 'take', 'proto', 'toString'].includes(each))
    .sort();
  return Object.fromEntries(shown.map((each) => [each, described((of as Record<string, unknown>)[each], depth + 1)]));
}

test('lazy descriptors describe every type as protobuf-es does', () => {
  const { theirs, lazy } = buildTwice();
  let types = 0;
  for (const [name, file] of theirs) {
    const mutable = lazy.get(name)!;
    const expected = [...nestedTypes(file)];
    const actual = [...nestedTypes(mutable)];
    expect(actual.map(String)).toEqual(expected.map(String));
    for (const [index, type] of expected.entries()) {
      expect(described(actual[index])).toEqual(described(type));
      expect(actual[index]!.proto).toEqual(type.proto);
      types++;
    }
    expect(mutable.services.map((service) => described(service))).toEqual(
      file.services.map((service) => described(service)),
    );
    expect({
      name: mutable.name,
      edition: mutable.edition,
      proto: mutable.proto,
      deprecated: mutable.deprecated,
    }).toEqual({
      name: file.name,
      edition: file.edition,
      proto: file.proto,
      deprecated: file.deprecated,
    });
  }
  expect(types).toBeGreaterThan(350);
});

test('lazy descriptors have one object per type regardless of the access path', () => {
  const { lazy } = buildTwice();
  const types = new Map<string, unknown>();
  for (const file of lazy.values()) for (const type of nestedTypes(file)) types.set(type.typeName, type);
  const foreign: string[] = [];
  const same = (type: { typeName: string } | undefined, where: string): void => {
    if (type !== undefined && types.get(type.typeName) !== type) foreign.push(`${type.typeName} in ${where}`);
  };
  for (const type of types.values() as Iterable<DescMessage>) {
    if (type.kind !== 'message') continue;
    same(type.parent, String(type));
    for (const field of type.fields) {
      same(field.message, String(field));
      same(field.enum, String(field));
      same(field.parent, String(field));
      same(field.oneof?.parent, String(field));
    }
  }
  for (const file of lazy.values()) {
    for (const { methods } of file.services)
      for (const method of methods) {
        same(method.input, String(method));
        same(method.output, String(method));
      }
  }
  expect(foreign).toEqual([]);
  expect(RouteSchema.field.match.message).toBe(RouteMatchSchema);
});

test('lazy descriptors are not read before a type of their file is inspected', () => {
  const outline = {
    name: 'a.proto',
    package: 'p',
    messages: [['M', [['N']], ['E']]],
    enums: ['F'],
    more: false,
  } as const;
  const file: DescFile = lazyFileDesc(outline, 'no descriptor at all', []);
  const [message] = file.messages;
  expect([...nestedTypes(file)].map(String)).toEqual(['message p.M', 'message p.M.N', 'enum p.M.E', 'enum p.F']);
  expect([message!.typeName, message!.nestedMessages[0]!.parent, message!.file]).toEqual(['p.M', message, file]);
  expect(() => message!.fields).toThrow();
});

test('messages with lazy descriptors are encoded, and read from JSON, as with those of protobuf-es', () => {
  const json = {
    name: 'v',
    domains: ['*'],
    routes: [{ match: { prefix: '/' }, route: { cluster: 'c', timeout: '1s' } }],
  };
  const host = fromJson(VirtualHostSchema, json);
  expect(toJson(VirtualHostSchema, host)).toEqual(json);
  expect(Buffer.from(toBinary(VirtualHostSchema, host)).toString('hex')).toBe(
    '0a017612012a1a0e0a030a012f12070a016342020801',
  );
  expect(create(RouteSchema).action.case).toBeUndefined();
});
