import {
  anyValue,
  type Decoder,
  type FieldError,
  fieldPath,
  list,
  name,
  optional,
  port,
  refine,
  required,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { withoutEffect } from '../../fields/effect.ts';
import { limitErrors } from '../../fields/limits.ts';
import { literalStarInPath } from '../../fields/literal-star.ts';
import * as violation from '../../fields/violation.ts';
import { uncheckedHost } from '../field-rules.ts';
import { maxIngressPaths, maxIngressTlsHosts } from '../object-limits.ts';
import { partialStruct } from './lenient.ts';

export interface Ingress {
  readonly spec: IngressSpec;
}

export interface IngressSpec {
  readonly ingressClassName?: string;
  readonly defaultBackend?: IngressBackend;
  readonly tls: readonly IngressTls[];
  readonly rules: readonly IngressRule[];
}

export interface IngressTls {
  /** Empty for all hosts. */
  readonly hosts: readonly string[];
  readonly secretName?: string;
}

export interface IngressRule {
  /** Absent for all hosts. */
  readonly host?: string;
  readonly http?: { readonly paths: readonly IngressPath[] };
}

export interface IngressPath {
  readonly path: string;
  /** `Exact`, `Prefix`, or an implementation-specific value. */
  readonly pathType: string;
  readonly backend: IngressBackend;
}

export interface IngressBackend {
  readonly resource?: unknown;
  readonly service?: { readonly name: string; readonly port: { readonly number?: number; readonly name?: string } };
}

export interface IngressClass {
  readonly spec: { readonly controller: string };
}

const backend = partialStruct<IngressBackend>({
  resource: withoutEffect(optional(anyValue), 'only Services are backends'),
  service: optional(
    partialStruct<NonNullable<IngressBackend['service']>>({
      name: required(name),
      port: withDefault(
        refine(
          partialStruct<{ number?: number; name?: string }>({ number: optional(port), name: optional(name) }),
          (value, path) =>
            value.number !== undefined && value.name !== undefined
              ? [violation.fieldError(path, violation.exclusiveFields(['number', 'name']))]
              : [],
        ),
        {},
      ),
    }),
  ),
});

const path = partialStruct<IngressPath>({
  path: withDefault(text, ''),
  pathType: withDefault(text, 'ImplementationSpecific'),
  backend: required(backend),
});

export const ingress: Decoder<Ingress> = partialStruct<Ingress>(
  {
    spec: required(
      refine(
        partialStruct<IngressSpec>({
          ingressClassName: optional(text),
          defaultBackend: withoutEffect(optional(backend), 'use a rule without a host'),
          tls: withDefault(
            list(
              partialStruct<IngressTls>({ hosts: withDefault(list(uncheckedHost), []), secretName: optional(text) }),
            ),
            [],
          ),
          rules: withDefault(
            list(
              partialStruct<IngressRule>({
                host: optional(uncheckedHost),
                http: optional(partialStruct<{ paths: readonly IngressPath[] }>({ paths: required(list(path)) })),
              }),
            ),
            [],
          ),
        }),
        ingressSizeErrors,
      ),
    ),
  },
  ['status'],
);

function ingressSizeErrors({ rules, tls }: IngressSpec, specPath: string): FieldError[] {
  const paths = rules.reduce((sum, { http }) => sum + (http?.paths.length ?? 0), 0);
  const hosts = tls.reduce((sum, tlsEntry) => sum + tlsEntry.hosts.length, 0);
  return [
    ...limitErrors(fieldPath(specPath, 'rules'), paths, maxIngressPaths, 'paths of all rules'),
    ...limitErrors(fieldPath(specPath, 'tls'), hosts, maxIngressTlsHosts, 'hosts of all tls'),
  ];
}

export const ingressClass: Decoder<IngressClass> = partialStruct<IngressClass>({
  spec: withDefault(partialStruct<{ controller: string }>({ controller: withDefault(text, '') }, ['parameters']), {
    controller: '',
  }),
});

/** Only ImplementationSpecific paths may end in a wildcard. */
export function ingressWarnings({ spec: { rules } }: Ingress): FieldError[] {
  return rules.flatMap(({ http: { paths } = { paths: [] } }, index) =>
    paths.flatMap(({ path: writtenPath, pathType }, pathIndex) =>
      pathType === 'Exact' || pathType === 'Prefix'
        ? violation.errorsAt(
            `spec.rules[${index}].http.paths[${pathIndex}].path`,
            literalStarInPath(
              writtenPath,
              (prefix) => `write pathType: Prefix, path: ${prefix} for everything below it`,
            ),
          )
        : [],
    ),
  );
}
