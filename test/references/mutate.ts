/** Changes a mesh in one place. */
import type { Draw } from '../random-config/draw.ts';
import type { MeshObject } from './consistent-mesh.ts';

export interface Mutation {
  readonly name: string;
  /** `undefined` if the mesh has no suitable place. */
  readonly apply: (mesh: readonly MeshObject[], draw: Draw) => Mutated | undefined;
  /**
   * `validate`: an error of one object, or one that only files show. `push_status`: files may lack the referenced
   * object.
   */
  readonly only?: 'validate' | 'push_status';
}

export interface Mutated {
  readonly mesh: readonly MeshObject[];
  /** Reports as `CODE Kind namespace/name field`. */
  readonly expected: readonly string[];
  /** `Kind namespace/name` of a rejected object, which may have additional reports. */
  readonly rejected?: string;
  /** Changed mesh configuration, if any. */
  readonly meshSettings?: object;
}

export type Path = readonly (string | number)[];
interface ValuePlace {
  readonly object: MeshObject;
  readonly path: Path;
  readonly value: unknown;
}

export const text = (path: Path): string =>
  path.reduce<string>(
    (all, key) => (typeof key === 'number' ? `${all}[${key}]` : all === '' ? key : `${all}.${key}`),
    '',
  );
export const nameOf = ({ kind, metadata }: MeshObject): string => `${kind} ${metadata.namespace}/${metadata.name}`;

/** Places whose path without indexes ends with `ending`, e.g. `route.destination.host`. */
export function placesOf(mesh: readonly MeshObject[], kind: string, ending: string, apiGroup = ''): ValuePlace[] {
  const matchingPlaces: ValuePlace[] = [];
  const walk = (object: MeshObject, value: unknown, path: Path): void => {
    const plain = path.filter((key) => typeof key === 'string').join('.');
    if (path.length > 0 && `.${plain}`.endsWith(`.${ending}`) && (typeof value !== 'object' || !Array.isArray(value)))
      matchingPlaces.push({ object, path, value });
    if (typeof value !== 'object' || value === null) return;
    if (Array.isArray(value)) for (const [index, item] of value.entries()) walk(object, item, [...path, index]);
    else for (const [key, item] of Object.entries(value)) walk(object, item, [...path, key]);
  };
  for (const object of mesh) {
    if (object.kind === kind && object.apiVersion.startsWith(apiGroup)) walk(object, object.spec, ['spec']);
  }
  return matchingPlaces;
}

export function changedAt(value: unknown, [key, ...rest]: Path, to: unknown): unknown {
  if (key === undefined) return to;
  if (Array.isArray(value)) return value.map((item, index) => (index === key ? changedAt(item, rest, to) : item));
  return { ...(value as object), [key]: changedAt((value as Record<string, unknown>)[key], rest, to) };
}

export const replaceObject = (
  mesh: readonly MeshObject[],
  object: MeshObject,
  replacement: MeshObject,
): readonly MeshObject[] => mesh.map((one) => (one === object ? replacement : one));

/** Replaces one value. The report is at the value or at a field that contains it. */
export function change(
  [kind, ending, apiGroup]: readonly [kind: string, ending: string, apiGroup?: string],
  code: string,
  to: (value: never, draw: Draw) => unknown,
  fieldOf: (path: Path) => Path = (path) => path,
): Mutation['apply'] {
  return (mesh, draw) => {
    const places = placesOf(mesh, kind, ending, apiGroup);
    if (places.length === 0) return undefined;
    const { object, path, value } = draw.pick(places);
    const changedObject = changedAt(object, path, to(value as never, draw)) as MeshObject;
    return {
      mesh: replaceObject(mesh, object, changedObject),
      expected: [`${code} ${nameOf(object)} ${text(fieldOf(path))}`],
    };
  };
}

export function addTo(
  kind: string,
  createObject: (object: MeshObject, draw: Draw) => (Omit<Mutated, 'mesh'> & { added: MeshObject }) | undefined,
): Mutation['apply'] {
  return (mesh, draw) => {
    for (const object of draw.some(
      mesh.filter((one) => one.kind === kind),
      100,
      100,
    )) {
      const mutation = createObject(object, draw);
      if (mutation !== undefined) return { mesh: [...mesh, mutation.added], expected: mutation.expected };
    }
    return undefined;
  };
}

export const misspelt = (name: string, draw: Draw): string => {
  // The first label of a host name.
  const [label = '', ...rest] = name.split('.');
  return [draw.pick([`${label}x`, `x${label}`, `${label}-${label}`]), ...rest].join('.');
};
export const ancestorPath =
  (levels: number) =>
  (path: Path): Path =>
    path.slice(0, -levels);
export const otherNamespace = (namespace: string): string => (namespace === 'shop' ? 'bank' : 'shop');
export const networkingApiVersion = 'networking.istio.io/v1';
export const vs = 'VirtualService';

type Routes = { hosts?: string[]; http: { match?: object[] }[] };
export const routesOf = ({ spec }: MeshObject): Routes => spec as Routes;

/** Paths of all fields, except in maps with user-defined keys. */
export function fieldsOf(value: unknown, path: Path = []): Path[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => fieldsOf(item, [...path, index]));
  if (typeof value !== 'object' || value === null) return [];
  if (['labels', 'matchLabels', 'selector', 'headers', 'portLevelMtls'].includes(String(path.at(-1)))) return [];
  return Object.entries(value).flatMap(([key, item]) => [[...path, key], ...fieldsOf(item, [...path, key])]);
}

export function renamedAt(
  object: MeshObject,
  path: Path,
  draw: Draw,
): { readonly object: MeshObject; readonly name: string } {
  const originalKey = String(path.at(-1));
  const at = draw.int(1, originalKey.length - 1);
  const name = `${originalKey.slice(0, at)}${originalKey[at]}${originalKey.slice(at)}`;
  const rename = (value: unknown, [key, ...rest]: Path): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => (index === key ? rename(item, rest) : item));
    const entries = Object.entries(value as object).map(([field, item]): [string, unknown] => {
      if (field !== key) return [field, item];
      return rest.length === 0 ? [name, item] : [field, rename(item, rest)];
    });
    return Object.fromEntries(entries);
  };
  return { object: rename(object, path) as MeshObject, name };
}
