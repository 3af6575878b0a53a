/**
 * Limits for the content of one object. An object beyond a limit is rejected, because its expansion would block the event loop and reach
 * every proxy that can see it.
 */

import type { FieldError } from './violation.ts';

export type LimitError = FieldError & { readonly code: 'LIMIT_EXCEEDED' };

/**
 * Default limit for items of a list or entries of a map. Equals the largest limit of Istio's own definitions (`portLevelSettings`,
 * `jwtRules`); those of the Gateway API are 16 to 128.
 */
export const maxItems = 4_096;

/** Unknown fields of one object that are reported separately, with a suggested name. */
export const maxUnknownFields = 100;

/** @param itemName the counted things: `items`, `clusters (hosts x ports)` */
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
