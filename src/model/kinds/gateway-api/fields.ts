/** Fields that several kinds of the Gateway API have in common (its CRDs' validation). */
import {
  type Decoded,
  type Decoder,
  type FieldError,
  list,
  name,
  oneOf,
  optional,
  refine,
  required,
  restrictions,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { describedAs } from '../../fields/description.ts';
import { durationMsOf } from '../../fields/duration.ts';
import { isDnsLabel, isIpAddress, isObjectName } from '../../fields/names.ts';
import { labels, mistakeAt } from '../field-rules.ts';
import type { NamespaceSelector, SecretReference } from './kubernetes-gateway.ts';

export const gatewayApiGroup = 'gateway.networking.k8s.io';

/** A name that objects and their parts have: a listener's, a rule's. */
export const objectName: Decoder<string> = refine(name, (value, path) =>
  mistakeAt(
    path,
    isObjectName(value)
      ? undefined
      : `must be a name of lower-case letters, digits, "-" and ".", not ${JSON.stringify(value)}`,
  ),
);

export const namespace: Decoder<string> = refine(name, (value, path) =>
  mistakeAt(
    path,
    isDnsLabel(value) && value === value.toLowerCase()
      ? undefined
      : `must be a namespace, not ${JSON.stringify(value)}`,
  ),
);

/** Empty for the core group. */
export const group: Decoder<string> = refine(text, (value, path) =>
  mistakeAt(
    path,
    value === '' || isObjectName(value)
      ? undefined
      : `must be a group such as apps, or "", not ${JSON.stringify(value)}`,
  ),
);

export const kindName: Decoder<string> = refine(name, (value, path) =>
  mistakeAt(
    path,
    /^[a-zA-Z](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$/.test(value) ? undefined : `must be a kind, not ${JSON.stringify(value)}`,
  ),
);

/** A name, with `*.` before it where a wildcard may be. */
function hostDecoder(pattern: RegExp, what: string): Decoder<string> {
  return refine(name, (value, path) => {
    if (isIpAddress(value)) return [{ path, message: `must be a host name, not the address ${value}` }];
    const fits = value.length <= 253 && pattern.test(value);
    return mistakeAt(path, fits ? undefined : `must be ${what}, not ${JSON.stringify(value)}`);
  });
}

const dnsName = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*';

/** `a.example.com` or `*.example.com`; `*` alone is not said, but left out. */
export const hostname: Decoder<string> = hostDecoder(
  new RegExp(`^(?:\\*\\.)?${dnsName}$`),
  'a host name in lower case, or *. and one',
);

export const preciseHostname: Decoder<string> = hostDecoder(
  new RegExp(`^${dnsName}$`),
  'a host name in lower case without *',
);

const durationPattern = '^(?:\\d{1,5}(?:h|m|s|ms)){1,4}$';

/** GEP-2257: one to four numbers, each with its unit. In milliseconds. */
export const duration: Decoder<number> = describedAs(
  (value: unknown, path: string): Decoded<number> => {
    const fits = typeof value === 'string' && new RegExp(durationPattern).test(value);
    const ms = fits ? durationMsOf(value) : undefined;
    if (ms !== undefined) return { _tag: 'Right', right: ms };
    const message = `must be a duration of whole numbers such as 500ms, 10s or 1h30m, not ${JSON.stringify(value)}`;
    return { _tag: 'Left', left: [{ path, message }] };
  },
  { type: 'narrowed', of: text, by: { pattern: durationPattern } },
);

/** A list of so many elements. */
export function listOf<A>(item: Decoder<A>, least: number, most: number): Decoder<readonly A[]> {
  return refine(list(item), (items, path): FieldError[] => {
    if (items.length < least) return [{ path, message: 'must not be empty' }];
    return mistakeAt(path, items.length > most ? `must have at most ${most} elements, not ${items.length}` : undefined);
  });
}

export const secretReference: Decoder<SecretReference> = struct<SecretReference>({
  group: withDefault(group, ''),
  kind: withDefault(kindName, 'Secret'),
  name: required(objectName),
  namespace: optional(namespace),
});

/** Kubernetes' LabelSelector. */
export const namespaceSelector: Decoder<NamespaceSelector> = struct<NamespaceSelector>(
  restrictions({
    matchLabels: optional(labels),
    matchExpressions: optional(
      list(
        struct<NonNullable<NamespaceSelector['matchExpressions']>[number]>({
          key: required(name),
          operator: required(oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist'])),
          values: optional(list(text)),
        }),
      ),
    ),
  }),
);
