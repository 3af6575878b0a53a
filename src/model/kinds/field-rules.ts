/** Rules that several kinds have in common (§4.5). */
import {
  type Decoder,
  dictionary,
  type FieldError,
  fieldPath,
  list,
  mapped,
  name,
  refine,
  struct,
  text,
  withDefault,
} from '../fields/decode.ts';
import { inSchema } from '../fields/description.ts';
import { exportTargetMistake, isCidr, isHostname, isIpAddress } from '../fields/names.ts';
import { exportTargetPattern } from '../fields/patterns.ts';
import type { WorkloadSelector } from './workload-selector.ts';

/** Envoy refuses a listener with another value of a header. */
export function lineMistake(value: string): string | undefined {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be in it
  return /[\u0000\n\r]/.test(value) ? 'must be one line' : undefined;
}

/** The name of a file: none has a NUL (POSIX, Pathname), and what is before it would be another file's. */
export const fileName: Decoder<string> = refine(name, (value, path) =>
  mistakeAt(path, value.includes('\0') ? 'must be the name of a file, in which there is no NUL character' : undefined),
);

/** One mistake at a field, when there is one. */
export function mistakeAt(path: string, message: string | undefined): FieldError[] {
  return message === undefined ? [] : [{ path, message }];
}

/** Says for each element that came before where it is a repetition. */
export function repetitions<A>(
  items: readonly A[],
  keyOf: (item: A) => string | undefined,
  path: (index: number) => string,
  what: string,
): FieldError[] {
  const first = new Map<string, number>();
  return items.flatMap((item, index) => {
    const key = keyOf(item);
    if (key === undefined) return [];
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, index);
    return earlier === undefined
      ? []
      : [{ path: path(index), message: `repeats the ${what} ${key} of ${path(earlier)}` }];
  });
}

/**
 * A host, as it is compared: names of DNS have no case (RFC 4343), and Envoy refuses a configuration in which one host is there in
 * two spellings.
 */
export function hostText(mistakeOf: (host: string) => string | undefined): Decoder<string> {
  return mapped(
    refine(name, (host, path) => mistakeAt(path, mistakeOf(host))),
    (host) => host.toLowerCase(),
  );
}

/** `[namespace/]host`: namespaces do have a case. */
export function scopedHostText(mistakeOf: (text: string) => string | undefined): Decoder<string> {
  return mapped(
    refine(name, (text, path) => mistakeAt(path, mistakeOf(text))),
    (text) => `${text.slice(0, text.indexOf('/') + 1)}${text.slice(text.indexOf('/') + 1).toLowerCase()}`,
  );
}

/** The same, whatever it is: an API server has looked at it, or nobody looks at more than its case. */
export const uncheckedHost: Decoder<string> = mapped(text, (host) => host.toLowerCase());

/** Labels of workloads, as Kubernetes allows them. */
export const labels: Decoder<Readonly<Record<string, string>>> = refine(dictionary(text), labelErrors);

/** Of labels that are no labels of Kubernetes. */
export function labelErrors(map: Readonly<Record<string, string>>, path: string): FieldError[] {
  return Object.entries(map).flatMap(([key, value]) => mistakeAt(fieldPath(path, key), labelMistake(key, value)));
}

const labelName = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

function labelMistake(key: string, value: string): string | undefined {
  const slash = key.lastIndexOf('/');
  const prefix = slash < 0 ? undefined : key.slice(0, slash);
  if (!labelName.test(key.slice(slash + 1)) || (prefix !== undefined && !isHostname(prefix))) {
    return `must have a label key such as app or example.com/app, not ${JSON.stringify(key)}`;
  }
  if (value === '' || labelName.test(value)) return undefined;
  return `must be a label value (letters, digits, "-", "_" and ".", a letter or digit at both ends), not ${JSON.stringify(value)}`;
}

const withoutWildcard = inSchema(text, { pattern: '^[^*]*$' });

/** Labels of a selector: no empty key, no wildcard (§4.5). */
export const selectorLabels: Decoder<Readonly<Record<string, string>>> = refine(
  dictionary(withoutWildcard),
  (map, path) => {
    return Object.entries(map).flatMap(([key, value]) => {
      const at = fieldPath(path, key);
      if (key === '') return [{ path: at, message: 'a label of a selector must have a key' }];
      return `${key}${value}`.includes('*') ? [{ path: at, message: 'a selector must not have a wildcard' }] : [];
    });
  },
);

export const workloadSelector: Decoder<WorkloadSelector> = struct<WorkloadSelector>({
  labels: withDefault(selectorLabels, {}),
});

/** `exportTo`: known forms, none twice, `~` alone. */
export const exportTo: Decoder<readonly string[]> = refine(
  list(inSchema(name, { pattern: exportTargetPattern })),
  (targets, path) => [
    ...targets.flatMap((target, index) => mistakeAt(`${path}[${index}]`, exportTargetMistake(target))),
    ...repetitions(
      targets,
      (target) => target,
      (index) => `${path}[${index}]`,
      'namespace',
    ),
    ...(targets.includes('~') && targets.length > 1 ? [{ path, message: '"~" (nobody) must stand alone' }] : []),
    ...(targets.includes('*') && targets.includes('.')
      ? [{ path, message: '"*" includes "."; give one of them' }]
      : []),
  ],
);

/** Where a server or listener binds: an IP, `unix:///path`, or `unix://@name` (a socket without a file). */
export function bindMistake(bind: string): string | undefined {
  if (isIpAddress(bind) || isUnixAddress(bind)) return undefined;
  return `must be an IP address or unix:///PATH, not ${JSON.stringify(bind)}${relativeSocketHint(bind)}`;
}

/** A path from the root to a file, or an abstract name. */
export function isUnixAddress(address: string): boolean {
  return /^unix:\/\/(?:\/.*[^/]|@.+)$/.test(address);
}

/** Whether a Unix address is meant. A wrong one is told where it is written, and changes nothing for the fields beside it. */
export function meansUnixAddress(address: string | undefined): boolean {
  return address?.startsWith('unix:') === true;
}

/** A relative path is one of whatever folder Envoy was started in: what was probably meant. */
export function relativeSocketHint(address: string): string {
  const place = /^unix:(?:\/\/(?!\/))?\/?(.*[^/])$/.exec(address)?.[1];
  if (place === undefined) return '';
  return `: a path begins at the root; did you mean unix://${place.startsWith('@') ? '' : '/'}${place}?`;
}

/** An IP or a range of them. */
export function subnetMistake(subnet: string): string | undefined {
  return isIpAddress(subnet) || isCidr(subnet)
    ? undefined
    : `must be an IP address or a range such as 10.0.0.0/8, not ${JSON.stringify(subnet)}`;
}
