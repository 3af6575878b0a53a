/**
 * Limits of one object's content. An object beyond a limit is rejected, because its expansion would block the event loop and affect every proxy that
 * can see it.
 */

import type { FieldError } from './violation.ts';

export type LimitError = FieldError & { readonly code: 'LIMIT_EXCEEDED' };

/**
 * Default maximum of list items or map entries: the largest limit of Istio's own definitions (`portLevelSettings`, `jwtRules`); those of the Gateway
 * API are 16 to 128.
 */
export const maxItems = 4_096;

/** Further unknown fields of an object are not reported individually. */
export const maxUnknownFields = 100;

/** @param itemName plural, such as `items` or `clusters (hosts x ports)` */
export function limitError(path: string, count: number | string, max: number, itemName = 'items'): LimitError {
  return {
    path,
    message: `has ${count} ${itemName}, the limit is ${max}: divide the object into several smaller ones (LIMIT_EXCEEDED)`,
    code: 'LIMIT_EXCEEDED',
    expected: `at most ${max} ${itemName}`,
    got: String(count),
  };
}

export function limitErrors(path: string, count: number, max: number, itemName?: string): LimitError[] {
  return count > max ? [limitError(path, count, max, itemName)] : [];
}
