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
import { withDescription } from '../../fields/description.ts';
import { durationMsOf } from '../../fields/duration.ts';
import { isDnsLabel, isIpAddress, isObjectName } from '../../fields/names.ts';
import * as violation from '../../fields/violation.ts';
import { labels } from '../field-rules.ts';
import type { NamespaceSelector, SecretReference } from './kubernetes-gateway.ts';

export const gatewayApiGroup = 'gateway.networking.k8s.io';

export const objectName: Decoder<string> = refine(name, (value, path) =>
  violation.errorsAt(
    path,
    isObjectName(value) ? undefined : violation.mustBe('a name of lower-case letters, digits, "-" and "."', value),
  ),
);

export const namespace: Decoder<string> = refine(name, (value, path) =>
  violation.errorsAt(
    path,
    isDnsLabel(value) && value === value.toLowerCase() ? undefined : violation.mustBe('the name of a namespace', value),
  ),
);

/** An empty name is the core group. */
export const group: Decoder<string> = refine(text, (value, path) =>
  violation.errorsAt(
    path,
    value === '' || isObjectName(value) ? undefined : violation.mustBe('an API group such as apps, or ""', value),
  ),
);

export const kindName: Decoder<string> = refine(name, (value, path) =>
  violation.errorsAt(
    path,
    /^[a-zA-Z](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$/.test(value) ? undefined : violation.mustBe('the name of a kind', value),
  ),
);

function hostDecoder(pattern: RegExp, expected: string): Decoder<string> {
  return refine(name, (value, path) => {
    if (isIpAddress(value))
      return [
        violation.fieldError(path, violation.mustBe('a host name', value, { hint: 'IP addresses are not allowed' })),
      ];
    const isValid = value.length <= 253 && pattern.test(value);
    return violation.errorsAt(path, isValid ? undefined : violation.mustBe(expected, value));
  });
}

const dnsName = '[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*';

/** `*` alone is invalid, because an absent hostname matches all hosts. */
export const hostname: Decoder<string> = hostDecoder(
  new RegExp(`^(?:\\*\\.)?${dnsName}$`),
  'a host name in lower case, or *. and a host name',
);

export const preciseHostname: Decoder<string> = hostDecoder(
  new RegExp(`^${dnsName}$`),
  'a host name in lower case without *',
);

const durationPattern = '^(?:\\d{1,5}(?:h|m|s|ms)){1,4}$';

/** Decodes a GEP-2257 duration (one to four numbers with units) to milliseconds. */
export const duration: Decoder<number> = withDescription(
  (value: unknown, path: string): Decoded<number> => {
    const isValid = typeof value === 'string' && new RegExp(durationPattern).test(value);
    const ms = isValid ? durationMsOf(value) : undefined;
    if (ms !== undefined) return { _tag: 'Right', right: ms };
    const message = violation.mustBe('a duration such as "500ms", "10s" or "1h30m"', value);
    return { _tag: 'Left', left: [violation.fieldError(path, message)] };
  },
  { type: 'narrowed', decoder: text, validation: { pattern: durationPattern } },
);

export function listOf<A>(item: Decoder<A>, min: number, max: number): Decoder<readonly A[]> {
  return refine(list(item), (items, path): FieldError[] => {
    if (items.length < min) return [violation.fieldError(path, violation.emptyValue())];
    return violation.errorsAt(path, items.length > max ? violation.tooLarge(max, items.length, 'elements') : undefined);
  });
}

export const secretReference: Decoder<SecretReference> = struct<SecretReference>({
  group: withDefault(group, ''),
  kind: withDefault(kindName, 'Secret'),
  name: required(objectName),
  namespace: optional(namespace),
});

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
