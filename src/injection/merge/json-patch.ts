import { isDeepStrictEqual } from 'node:util';
import { escapedPointer, isObject } from '../../runtime/json-object.ts';

export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string };

/** The patch (RFC 6902) replaces a changed list completely. */
export function jsonPatchOf(from: unknown, to: unknown, path = ''): PatchOperation[] {
  if (isDeepStrictEqual(from, to)) return [];
  if (!isObject(from) || !isObject(to)) return [{ op: 'replace', path, value: to }];
  const removedKeys = Object.keys(from).filter((key) => !Object.hasOwn(to, key));
  return [
    ...removedKeys.map((key): PatchOperation => ({ op: 'remove', path: `${path}/${escapedPointer(key)}` })),
    ...Object.entries(to).flatMap(([key, value]): PatchOperation[] => {
      const pointer = `${path}/${escapedPointer(key)}`;
      return Object.hasOwn(from, key) ? jsonPatchOf(from[key], value, pointer) : [{ op: 'add', path: pointer, value }];
    }),
  ];
}
