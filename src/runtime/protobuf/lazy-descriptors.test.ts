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
  // The file's service uses message types of the same file.
  file_envoy_service_status_v3_csds,
];

/** All files that the roots import, built twice from the same descriptors: by protobuf-es, and lazily. */
function buildTwice(): { theirs: Map<string, DescFile>; lazy: Map<string, DescFile> } {
  const theirs = new Map<string, DescFile>();
  const lazy = new Map<string, DescFile>();
  const visit = (file: DescFile): void => {
    if (theirs.has(file.proto.name)) return;
    for (const dependency of file.dependencies) visit(dependency);
    const imports = (built: Map<string, DescFile>): DescFile[] =>
      file.dependencies.map((dependency) => built.get(dependency.proto.name)!);
    const isGoogleType = file.proto.name.startsWith('google/protobuf/');
    const descriptor = isGoogleType ? '' : embedFileDesc(file.proto).base64();
    theirs.set(file.proto.name, isGoogleType ? file : fileDesc(descriptor, imports(theirs)));
    lazy.set(file.proto.name, isGoogleType ? file : lazyFileDesc(outlineOf(file.proto), descriptor, imports(lazy)));
  };
  for (const root of roots) visit(root);
  return { theirs, lazy };
}

/** All properties of a type and of its members; other types by name. */
function describeMembers(of: unknown, depth = 0): unknown {
  if (typeof of !== 'object' || of === null) return typeof of === 'function' ? 'a function' : of;
  const { kind, typeName, name } = of as { kind?: string; typeName?: string; name?: string };
  if (depth > 0 && typeName !== undefined) return `${kind} ${typeName}`;
  if (depth > 0 && kind === 'file') return `file ${name}`;
  if (depth > 3) return `${kind} ${name}`;
  if (Array.isArray(of)) return of.map((item) => describeMembers(item, depth + 1));
  const names = new Set<string>();
  for (
    let prototype: object = of;
    prototype !== Object.prototype && prototype !== null;
    prototype = Object.getPrototypeOf(prototype)
  ) {
    for (const property of Object.getOwnPropertyNames(prototype)) names.add(property);
  }
  const shownNames = [...names]
    .filter((memberName) => !['constructor', 'pairTypes', 'adoptBuilt', 'proto', 'toString'].includes(memberName))
    .sort();
  return Object.fromEntries(
    shownNames.map((memberName) => [
      memberName,
      describeMembers((of as Record<string, unknown>)[memberName], depth + 1),
    ]),
  );
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
      expect(describeMembers(actual[index])).toEqual(describeMembers(type));
      expect(actual[index]!.proto).toEqual(type.proto);
      types++;
    }
    expect(mutable.services.map((service) => describeMembers(service))).toEqual(
      file.services.map((service) => describeMembers(service)),
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
  const foreignTypes: string[] = [];
  const checkSame = (type: { typeName: string } | undefined, location: string): void => {
    if (type !== undefined && types.get(type.typeName) !== type) foreignTypes.push(`${type.typeName} in ${location}`);
  };
  for (const type of types.values() as Iterable<DescMessage>) {
    if (type.kind !== 'message') continue;
    checkSame(type.parent, String(type));
    for (const field of type.fields) {
      checkSame(field.message, String(field));
      checkSame(field.enum, String(field));
      checkSame(field.parent, String(field));
      checkSame(field.oneof?.parent, String(field));
    }
  }
  for (const file of lazy.values()) {
    for (const { methods } of file.services)
      for (const method of methods) {
        checkSame(method.input, String(method));
        checkSame(method.output, String(method));
      }
  }
  expect(foreignTypes).toEqual([]);
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
