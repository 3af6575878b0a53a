import {
  type Decoder,
  dictionary,
  type FieldError,
  fieldPath,
  list,
  mapDecoder,
  name,
  refine,
  struct,
  text,
  withDefault,
} from '../fields/decode.ts';
import { withSchemaValidation } from '../fields/description.ts';
import { exportTargetViolation, isCidr, isHostname, isIpAddress } from '../fields/names.ts';
import { exportTargetPattern } from '../fields/patterns.ts';
import * as violation from '../fields/violation.ts';
import type { WorkloadSelector } from './workloads/workload-selector.ts';

/** Envoy rejects a listener with a header value that contains these characters. */
export function lineViolation(value: string): violation.FieldViolation | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters must be rejected
  return /[\u0000\n\r]/.test(value)
    ? violation.disallowedValue('must be a single line without NUL characters')
    : undefined;
}

/** A name with NUL would be truncated to that of another file (POSIX, Pathname). */
export const fileName: Decoder<string> = refine(name, (value, path) =>
  violation.errorsAt(
    path,
    value.includes('\0') ? violation.disallowedValue('must be a file name without NUL characters') : undefined,
  ),
);

export function duplicateErrors<A>(
  items: readonly A[],
  keyOf: (item: A) => string | undefined,
  path: (index: number) => string,
  itemName: string,
): FieldError[] {
  const firstIndexes = new Map<string, number>();
  return items.flatMap((item, index) => {
    const key = keyOf(item);
    if (key === undefined) return [];
    const firstIndex = firstIndexes.get(key);
    if (firstIndex === undefined) firstIndexes.set(key, index);
    return firstIndex === undefined
      ? []
      : [
          violation.fieldError(
            path(index),
            violation.duplicate(`repeats the ${itemName} ${key} of ${path(firstIndex)}`, key, path(firstIndex)),
          ),
        ];
  });
}

/** DNS names are case-insensitive (RFC 4343), and Envoy rejects a configuration with two spellings of one host. */
export function hostText(violationOf: (host: string) => violation.FieldViolation | undefined): Decoder<string> {
  return mapDecoder(
    refine(name, (host, path) => violation.errorsAt(path, violationOf(host))),
    (host) => host.toLowerCase(),
  );
}

export function scopedHostText(violationOf: (text: string) => violation.FieldViolation | undefined): Decoder<string> {
  return mapDecoder(
    refine(name, (text, path) => violation.errorsAt(path, violationOf(text))),
    (text) => `${text.slice(0, text.indexOf('/') + 1)}${text.slice(text.indexOf('/') + 1).toLowerCase()}`,
  );
}

export const uncheckedHost: Decoder<string> = mapDecoder(text, (host) => host.toLowerCase());

export const labels: Decoder<Readonly<Record<string, string>>> = refine(dictionary(text), labelErrors);

export function labelErrors(map: Readonly<Record<string, string>>, path: string): FieldError[] {
  return Object.entries(map).flatMap(([key, value]) =>
    violation.errorsAt(fieldPath(path, key), labelViolation(key, value)),
  );
}

const labelName = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

function labelViolation(key: string, value: string): violation.FieldViolation | undefined {
  const slash = key.lastIndexOf('/');
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  if (!labelName.test(key.slice(slash + 1)) || (prefix !== undefined && !isHostname(prefix))) {
    return violation.mustBe('a label key such as app or example.com/app', key);
  }
  if (value === '' || labelName.test(value)) return undefined;
  return violation.mustBe('a label value (letters, digits, "-", "_" and ".", a letter or digit at both ends)', value);
}

const nonWildcardSchema = withSchemaValidation(text, { pattern: '^[^*]*$' });

export const selectorLabels: Decoder<Readonly<Record<string, string>>> = refine(
  dictionary(nonWildcardSchema),
  (map, path) => {
    return Object.entries(map).flatMap(([key, value]) => {
      const labelPath = fieldPath(path, key);
      if (key === '') return [violation.fieldError(labelPath, violation.emptyValue('a selector label needs a key'))];
      return `${key}${value}`.includes('*')
        ? [violation.fieldError(labelPath, violation.disallowedValue('must not have a wildcard', value))]
        : [];
    });
  },
);

export const workloadSelector: Decoder<WorkloadSelector> = struct<WorkloadSelector>({
  labels: withDefault(selectorLabels, {}),
});

/** Known values without duplicates; `~` must be the only value. */
export const exportTo: Decoder<readonly string[]> = refine(
  list(withSchemaValidation(name, { pattern: exportTargetPattern })),
  (targets, path) => [
    ...targets.flatMap((target, index) => violation.errorsAt(`${path}[${index}]`, exportTargetViolation(target))),
    ...duplicateErrors(
      targets,
      (target) => target,
      (index) => `${path}[${index}]`,
      'namespace',
    ),
    ...(targets.includes('~') && targets.length > 1
      ? [violation.fieldError(path, violation.conflict('"~" (no namespace) must be the only entry'))]
      : []),
    ...(targets.includes('*') && targets.includes('.')
      ? [violation.fieldError(path, violation.conflict('"*" includes ".": use one of them'))]
      : []),
  ],
);

/** Accepts an IP address, `unix:///path`, or `unix://@name` (abstract socket). */
export function bindViolation(bind: string): violation.FieldViolation | undefined {
  if (isIpAddress(bind) || isUnixAddress(bind)) return undefined;
  return violation.mustBe('an IP address or unix:///PATH', bind, { hint: relativeSocketHint(bind) });
}

export function isUnixAddress(address: string): boolean {
  return /^unix:\/\/(?:\/.*[^/]|@.+)$/.test(address);
}

/** Also true for an invalid Unix address, which has its own error. */
export function hasUnixScheme(address: string | undefined): boolean {
  return address?.startsWith('unix:') === true;
}

/** A relative path would depend on Envoy's working directory. */
export function relativeSocketHint(address: string): string | undefined {
  const socketPath = /^unix:(?:\/\/(?!\/))?\/?(.*[^/])$/.exec(address)?.[1];
  if (socketPath === undefined) return undefined;
  return `the path must be absolute; did you mean unix://${socketPath.startsWith('@') ? '' : '/'}${socketPath}?`;
}

export function subnetViolation(subnet: string): violation.FieldViolation | undefined {
  return isIpAddress(subnet) || isCidr(subnet)
    ? undefined
    : violation.mustBe('an IP address or a CIDR such as 10.0.0.0/8', subnet);
}
