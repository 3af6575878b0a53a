/** TLS from gateways to Services (GEP-1897). */

import {
  type Decoder,
  dictionary,
  type FieldError,
  fieldPath,
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
import { withoutEffect } from '../../fields/effect.ts';
import { nearestName } from '../../fields/nearest-name.ts';
import * as violation from '../../fields/violation.ts';
import { group, hostname, kindName, listOf, objectName, preciseHostname } from './fields.ts';

export interface BackendTlsPolicy {
  readonly targetRefs: readonly BackendTlsTarget[];
  readonly validation: BackendTlsValidation;
  readonly options: Readonly<Record<string, string>>;
}

/** An object in the policy's own namespace. */
export interface BackendTlsTarget {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** Port name of the Service. If absent, all ports without another policy. */
  readonly sectionName?: string;
}

/** Stands for each Service of the namespace in a placeholder. Not a valid object name. */
export const everyService = '*';

export interface BackendTlsValidation {
  /** ConfigMaps in the policy's own namespace; other kinds are not supported. */
  readonly caCertificateRefs: readonly { readonly group: string; readonly kind: string; readonly name: string }[];
  readonly wellKnownCACertificates?: string;
  /** SNI, and the certificate name unless `subjectAltNames` is set. */
  readonly hostname: string;
  readonly subjectAltNames: readonly {
    readonly type: 'Hostname' | 'URI';
    readonly hostname?: string;
    readonly uri?: string;
  }[];
}

const alternativeName: Decoder<BackendTlsValidation['subjectAltNames'][number]> = refine(
  struct<BackendTlsValidation['subjectAltNames'][number]>(
    restrictions({
      type: required(oneOf(['Hostname', 'URI'])),
      hostname: optional(hostname),
      uri: optional(name),
    }),
  ),
  ({ type, hostname: sanHostname, uri }, path): FieldError[] => [
    ...violation.errorsAt(
      path,
      (type === 'Hostname') === (sanHostname === undefined)
        ? violation.conflict('hostname must be set with type Hostname, and with no other')
        : undefined,
    ),
    ...violation.errorsAt(
      path,
      (type === 'URI') === (uri === undefined)
        ? violation.conflict('uri must be set with type URI, and with no other')
        : undefined,
    ),
    ...violation.errorsAt(
      fieldPath(path, 'uri'),
      uri !== undefined && !/^[a-z][a-z0-9+.-]*:\/\/[^\s/]+/i.test(uri)
        ? violation.mustBe('an absolute URI such as spiffe://a/b', uri)
        : undefined,
    ),
  ],
);

const validation: Decoder<BackendTlsValidation> = refine(
  struct<BackendTlsValidation>(
    restrictions({
      caCertificateRefs: withDefault(
        listOf(
          struct<BackendTlsValidation['caCertificateRefs'][number]>({
            group: required(group),
            kind: required(kindName),
            name: required(objectName),
          }),
          0,
          8,
        ),
        [],
      ),
      wellKnownCACertificates: optional(name),
      hostname: required(preciseHostname),
      subjectAltNames: withDefault(listOf(alternativeName, 0, 5), []),
    }),
  ),
  ({ caCertificateRefs, wellKnownCACertificates }, path) =>
    violation.errorsAt(
      path,
      caCertificateRefs.length > 0 === (wellKnownCACertificates !== undefined)
        ? violation.choiceViolation(
            ['caCertificateRefs', 'wellKnownCACertificates'],
            caCertificateRefs.length === 0 ? [] : ['caCertificateRefs', 'wellKnownCACertificates'],
          )
        : undefined,
    ),
);

export const backendTlsTarget: Decoder<BackendTlsTarget> = refine(
  struct<BackendTlsTarget>(
    restrictions({
      group: required(group),
      kind: required(kindName),
      name: required(objectName),
      sectionName: optional(objectName),
    }),
  ),
  ({ group: targetGroup, kind }, path) => {
    const isMisspelt = targetGroup === '' && kind !== 'Service' && nearestName(kind, ['Service']) !== undefined;
    return violation.errorsAt(
      fieldPath(path, 'kind'),
      isMisspelt ? violation.unknownValue(['Service'], kind) : undefined,
    );
  },
);

export const maxBackendTlsTargets = 16;

/** Unknown fields are errors, because a field of a newer API version may require checks that are not implemented. */
export const backendTlsPolicy: Decoder<BackendTlsPolicy> = struct<BackendTlsPolicy>({
  targetRefs: required(listOf(backendTlsTarget, 1, maxBackendTlsTargets)),
  validation: required(validation),
  options: withoutEffect(withDefault(dictionary(text), {}), 'options are not supported'),
});

export function backendTlsWarnings({ targetRefs }: BackendTlsPolicy): FieldError[] {
  return [
    ...targetRefs.flatMap(({ group: targetGroup, kind }, index) =>
      violation.errorsAt(
        `targetRefs[${index}]`,
        targetGroup !== '' || kind !== 'Service'
          ? violation.ineffectiveField(`targets of kind ${kind} are not supported, only Service is`)
          : undefined,
      ),
    ),
  ];
}
