/** Single faults of VirtualServices. */
import { edgeNamespace, type MeshObject } from './consistent-mesh.ts';
import {
  addTo,
  ancestorPath,
  change,
  changedAt,
  type Mutation,
  misspelt,
  nameOf,
  otherNamespace,
  placesOf,
  replaceObject,
  routesOf,
  vs,
} from './mutate.ts';

export const routeMutations: readonly Mutation[] = [
  { name: 'a destination is misspelt', apply: change([vs, 'http.route.destination.host'], 'HOST_NOT_FOUND', misspelt) },
  {
    name: 'a TCP destination is misspelt',
    apply: change([vs, 'tcp.route.destination.host'], 'HOST_NOT_FOUND', misspelt),
  },
  { name: 'a mirror is misspelt', apply: change([vs, 'mirror.host'], 'HOST_NOT_FOUND', misspelt) },
  {
    name: 'a port of a destination is shifted',
    apply: change([vs, 'http.route.destination.port.number'], 'PORT_NOT_FOUND', (port: number) => port + 1),
  },
  {
    name: 'a port of a mirror is shifted',
    apply: change([vs, 'mirror.port.number'], 'PORT_NOT_FOUND', (port: number) => port + 1),
  },
  { name: 'a subset is misspelt', apply: change([vs, 'destination.subset'], 'SUBSET_NOT_FOUND', misspelt) },
  {
    name: 'a delegate is misspelt',
    apply: change([vs, 'delegate.name'], 'DELEGATE_NOT_FOUND', misspelt, ancestorPath(1)),
  },
  {
    name: 'a delegate is in another namespace',
    apply: (mesh, draw) => {
      const [{ value } = { value: '' }] = placesOf(mesh, vs, 'delegate.namespace');
      const other = otherNamespace(String(value));
      if (!mesh.some(({ kind, metadata }) => kind === vs && metadata.namespace === other)) return undefined;
      return change([vs, 'delegate.namespace'], 'DELEGATE_NOT_FOUND', () => other, ancestorPath(1))(mesh, draw);
    },
  },
  {
    name: 'a Gateway is misspelt',
    apply: (mesh, draw) => {
      const object = draw.pick(mesh.filter((one) => one.kind === vs && 'gateways' in (one.spec as object)));
      const changedObject = changedAt(object, ['spec', 'gateways'], [`${edgeNamespace}/frontt`]) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`GATEWAY_NOT_FOUND ${nameOf(object)} spec.gateways[0]`],
      };
    },
  },
  {
    name: 'a Gateway is taken to be in the namespace of the route',
    apply: (mesh, draw) => {
      const object = draw.pick(mesh.filter((one) => one.kind === vs && 'gateways' in (one.spec as object)));
      const changedObject = changedAt(object, ['spec', 'gateways'], ['front']) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`GATEWAY_NOT_FOUND ${nameOf(object)} spec.gateways[0]`],
      };
    },
  },
  {
    name: 'a host of routes is not one of the Gateway',
    apply: (mesh, draw) => {
      const object = draw.pick(mesh.filter((one) => one.kind === vs && one.metadata.name === 'front'));
      const changedObject = changedAt(
        object,
        ['spec', 'hosts'],
        [draw.pick(['www.example.com', 'example.org'])],
      ) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`HOST_NOT_IN_GATEWAY ${nameOf(object)} spec.hosts[0]`],
      };
    },
  },
  {
    name: 'a route is written twice',
    apply: (mesh, draw) => {
      const object = draw.pick(mesh.filter((one) => one.kind === vs && (routesOf(one).http?.length ?? 0) > 2));
      if (object === undefined) return undefined;
      const { http } = routesOf(object);
      const withMatch = [...http.keys()].filter((index) => http[index]!.match?.length === 1);
      const index = draw.pick(withMatch);
      const changedObject = changedAt(
        object,
        ['spec', 'http'],
        http.toSpliced(index + 1, 0, http[index]!),
      ) as MeshObject;
      const expected = [`MATCH_SHADOWED ${nameOf(object)} spec.http[${index + 1}].match[0]`];
      return { mesh: replaceObject(mesh, object, changedObject), expected };
    },
  },
  {
    name: 'a route without a match is first',
    apply: (mesh, draw) => {
      const object = draw.pick(mesh.filter((one) => one.kind === vs && (routesOf(one).http?.length ?? 0) > 2));
      if (object === undefined) return undefined;
      const { http } = routesOf(object);
      const changedObject = changedAt(object, ['spec', 'http'], [http.at(-1)!, ...http.slice(0, -1)]) as MeshObject;
      const expected = http.slice(0, -1).map((_, index) => `MATCH_SHADOWED ${nameOf(object)} spec.http[${index + 1}]`);
      return { mesh: replaceObject(mesh, object, changedObject), expected };
    },
  },
  {
    name: 'a match of a delegate is outside that of its root',
    apply: (mesh) => {
      const object = mesh.find((one) => one.kind === vs && one.metadata.name === 'deep')!;
      const changedObject = changedAt(object, ['spec', 'http', 0, 'match', 0, 'uri'], {
        prefix: '/elsewhere/',
      }) as MeshObject;
      return {
        mesh: replaceObject(mesh, object, changedObject),
        expected: [`DELEGATE_CONFLICT ${nameOf(object)} spec.http[0].match`],
      };
    },
  },
  {
    name: 'two VirtualServices have one host',
    apply: addTo(vs, (object) => {
      const { hosts } = routesOf(object);
      if (hosts === undefined || 'gateways' in (object.spec as object)) return undefined;
      const addedObject = { ...object, metadata: { ...object.metadata, name: `${object.metadata.name}-z` } };
      return { added: addedObject, expected: [`HOST_CONFLICT ${nameOf(addedObject)} spec.hosts[0]`] };
    }),
  },
];
