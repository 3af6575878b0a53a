import { isObject } from '../../../runtime/json-object.ts';
import {
  type Decoded,
  type Decoder,
  type FieldError,
  fail,
  fieldPath,
  integer,
  list,
  mapDecoder,
  name,
  oneOf,
  optional,
  port,
  refine,
  required,
  restrictingField,
  struct,
  text,
} from '../../fields/decode.ts';
import { withDescription, withSchemaValidation } from '../../fields/description.ts';
import { withoutEffect, withoutEffectBeside, withoutEffectWhere } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { duplicateErrors } from '../field-rules.ts';
import { scopeAliases, scopeErrors, scopeFields, scopeRules } from '../policies/policy-target.decode.ts';
import type { WasmMatch, WasmPlugin, WasmVariable } from './wasm-plugin.ts';

const schemes = ['oci', 'file', 'http', 'https'];

const json: Decoder<Readonly<Record<string, unknown>>> = withDescription(
  (value: unknown, path: string): Decoded<Readonly<Record<string, unknown>>> =>
    isObject(value) ? { _tag: 'Right', right: value } : fail(path, violation.wrongType('an object', value)),
  { type: 'any object' },
);

const variable: Decoder<WasmVariable> = refine(
  struct<WasmVariable>({
    name: required(name),
    valueFrom: optional(oneOf(['INLINE', 'HOST'])),
    value: optional(text),
  }),
  ({ valueFrom, value }, path) =>
    violation.errorsAt(
      fieldPath(path, 'value'),
      valueFrom === 'HOST' && value !== undefined && value !== ''
        ? violation.excludedField('with valueFrom HOST')
        : undefined,
    ),
);

export const wasmMatches: Decoder<readonly WasmMatch[]> = list(
  struct<WasmMatch>({
    mode: optional(oneOf(['UNDEFINED', 'CLIENT', 'SERVER', 'CLIENT_AND_SERVER'])),
    ports: optional(list(struct<{ number: number }>({ number: required(port) }))),
  }),
);

export const wasmCodeFields = {
  url: required(refine(name, (url, path) => violation.errorsAt(path, urlViolation(url)))),
  sha256: withoutEffectBeside(
    optional(
      withSchemaValidation(
        refine(text, (hash, path) => violation.errorsAt(path, hash === '' ? undefined : digestViolation(hash))),
        { pattern: '^(?:[0-9a-f]{64})?$' },
      ),
    ),
    'Envoy does not verify a file',
    ({ url }) => isFile(url),
  ),
  imagePullPolicy: withoutEffectBeside(
    optional(oneOf(['UNSPECIFIED_POLICY', 'IfNotPresent', 'Always'])),
    'a module of a file, or with a checksum, is not fetched again',
    ({ url, sha256 }) => isFile(url) || (sha256 !== undefined && sha256 !== ''),
    ['UNSPECIFIED_POLICY'],
  ),
  imagePullSecret: withoutEffectBeside(
    optional(text),
    'only images of a registry are pulled with credentials',
    ({ url }) => typeof url === 'string' && !isImage(url),
  ),
  verificationKey: withoutEffect(optional(text), 'signatures are not verified'),
  pluginConfig: optional(json),
  pluginName: optional(text),
  failStrategy: withoutEffectWhere(
    optional(oneOf(['FAIL_CLOSE', 'FAIL_OPEN', 'FAIL_RELOAD'])),
    'a failed plugin is not reloaded, and FAIL_RELOAD acts as FAIL_CLOSE',
    (value) => value === 'FAIL_RELOAD',
  ),
  type: optional(oneOf(['UNSPECIFIED_PLUGIN_TYPE', 'HTTP', 'NETWORK'])),
  vmConfig: optional(struct<{ env?: readonly WasmVariable[] }>({ env: optional(list(variable)) })),
};

export function environmentErrors({ vmConfig }: Pick<WasmPlugin, 'vmConfig'>, path: string): FieldError[] {
  const pathAt = (index: number): string => `${fieldPath(path, 'vmConfig')}.env[${index}].name`;
  return duplicateErrors(vmConfig?.env ?? [], (item) => item.name, pathAt, 'variable');
}

export const wasmPlugin: Decoder<WasmPlugin> = withSchemaValidation(
  refine(
    mapDecoder(
      struct<WasmPlugin>(
        {
          ...scopeFields,
          ...wasmCodeFields,
          phase: optional(oneOf(['UNSPECIFIED_PHASE', 'AUTHN', 'AUTHZ', 'STATS'])),
          priority: optional(integer(-(2 ** 31), 2 ** 31 - 1)),
          match: restrictingField(optional(wasmMatches)),
        },
        scopeAliases(),
      ),
      // A URL without a scheme is an OCI image.
      (plugin) => (hasScheme(plugin.url) ? plugin : { ...plugin, url: `oci://${plugin.url}` }),
    ),
    (plugin, path) => [...scopeErrors(plugin, path), ...environmentErrors(plugin, path)],
  ),
  { rules: scopeRules },
);

function hasScheme(url: string): boolean {
  return /^[a-z]+:\/\//i.test(url);
}

function isImage(url: string): boolean {
  return !hasScheme(url) || /^oci:/i.test(url);
}

function isFile(url: unknown): boolean {
  return typeof url === 'string' && /^file:/i.test(url);
}

/** Accepts only one spelling, because digests are compared as text. */
function digestViolation(digest: string): violation.FieldViolation | undefined {
  return /^[0-9a-f]{64}$/.test(digest) ? undefined : violation.mustBe('64 hexadecimal digits in lower case', digest);
}

function urlViolation(url: string): violation.FieldViolation | undefined {
  const digest = /@sha256:(.*)$/.exec(url)?.[1];
  const invalidDigest = digest === undefined ? undefined : digestViolation(digest);
  if (invalidDigest !== undefined) return { ...invalidDigest, message: `the digest ${invalidDigest.message}` };
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(url)?.[1];
  if (scheme === undefined) return URL.canParse(`oci://${url}`) ? undefined : violation.mustBe('a URL', url);
  if (!schemes.includes(scheme))
    return violation.mustBe(`a URL with the scheme ${violation.listText(schemes, 'or')}`, url);
  if (!URL.canParse(url)) return violation.mustBe('a URL', url);
  return scheme.toLowerCase() === 'file' ? pathViolation(new URL(url).pathname) : undefined;
}

function pathViolation(pathname: string): violation.FieldViolation | undefined {
  try {
    return decodeURIComponent(pathname).includes('\0')
      ? violation.disallowedValue('must be a file name without NUL characters')
      : undefined;
  } catch {
    return violation.mustBe('the URL of a file', pathname, { hint: 'encode % as %25' });
  }
}
