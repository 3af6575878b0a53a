import type { FieldError } from '../../fields/decode.ts';
import { literalStarInPath } from '../../fields/literal-star.ts';
import { partialWildcardWarning } from '../../fields/names.ts';
import { re2Expression } from '../../fields/re2.ts';
import * as violation from '../../fields/violation.ts';
import { shadowedMatches } from './shadowed-matches.ts';
import { claimMatches } from './virtual-service.rules.ts';
import type * as V from './virtual-service.ts';

export function virtualServiceWarnings(spec: V.VirtualService): FieldError[] {
  return [
    // Checks across objects report prefix shadowing, with a limit on the number of findings.
    ...shadowedMatches(spec).filter(({ byPrefix }) => byPrefix === undefined),
    ...largeBodyWarnings(spec),
    ...faultPercentageWarnings(spec),
    ...claimsInMesh(spec),
    ...ineffectiveRewriteWarnings(spec),
    ...literalStars(spec),
    ...spec.hosts.flatMap((host, index) => violation.errorsAt(`hosts[${index}]`, partialWildcardWarning(host))),
  ];
}

/** Faults without a percentage apply to no request according to Istio's reference. */
function faultPercentageWarnings({ http = [] }: V.VirtualService): FieldError[] {
  return http.flatMap(({ fault = {} }, index) =>
    (['delay', 'abort'] as const)
      .filter((kind) => fault[kind] !== undefined && fault[kind].percentage === undefined)
      .map((kind) =>
        violation.fieldError(
          `http[${index}].fault.${kind}.percentage`,
          violation.ineffectiveField(
            'without a percentage no request has the fault; set {value: 100} for all requests',
          ),
        ),
      ),
  );
}

function largeBodyWarnings(spec: V.VirtualService): FieldError[] {
  return (spec.http ?? []).flatMap((http, index) => {
    const body = http.directResponse?.body;
    if (body === undefined) return [];
    const size = 'string' in body ? Buffer.byteLength(body.string) : Buffer.byteLength(body.bytes, 'base64');
    return size > 100 * 1024
      ? [
          violation.fieldError(
            `http[${index}].directResponse.body`,
            violation.doubtfulValue(`has ${size} bytes, which every proxy receives`),
          ),
        ]
      : [];
  });
}

/** Sidecars verify only tokens of inbound requests. */
function claimsInMesh(spec: V.VirtualService): FieldError[] {
  if (!spec.gateways?.includes('mesh')) return [];
  return claimMatches(spec).map((path) =>
    violation.fieldError(path, violation.ineffectiveField('token claims match at gateways only, not in the mesh')),
  );
}

/** If the substitution refers to a missing group of the expression, RE2 leaves the path unchanged. */
function ineffectiveRewriteWarnings({ http = [] }: V.VirtualService): FieldError[] {
  return http.flatMap(({ rewrite }, index) => {
    const { match, rewrite: substitution } = rewrite?.uriRegexRewrite ?? {};
    if (match === undefined || substitution === undefined) return [];
    return violation.errorsAt(
      `http[${index}].rewrite.uriRegexRewrite.rewrite`,
      substitutionViolation(match, substitution),
    );
  });
}

function substitutionViolation(match: string, substitution: string): violation.FieldViolation | undefined {
  const escapes = [...substitution.matchAll(/\\(.?)/gs)].map(([, escape]) => escape!);
  const invalidEscape = escapes.find((escape) => !/^[\d\\]$/.test(escape));
  if (invalidEscape !== undefined) {
    const actual = violation.quotedValue(`\\${invalidEscape}`);
    return { ...violation.ineffectiveField(`\\ must be followed by a digit or \\, got ${actual}`), got: actual };
  }
  const maxGroupNumber = Math.max(0, ...escapes.filter((escape) => escape !== '\\').map(Number));
  const { groupCount } = re2Expression(match);
  if (maxGroupNumber <= groupCount) return undefined;
  const groups = groupCount === 1 ? '1 capturing group' : `${groupCount} capturing groups`;
  const actual = violation.quotedValue(`\\${maxGroupNumber}`);
  return {
    ...violation.ineffectiveField(`it refers to group ${maxGroupNumber}, and match has ${groups}`),
    got: actual,
  };
}

/** Request paths rarely contain `*`, and methods and authorities never; header values may. */
function literalStars({ http = [] }: V.VirtualService): FieldError[] {
  return http.flatMap(({ match = [] }, index) =>
    match.flatMap(({ uri = {}, authority = {}, method = {} }, matchIndex) => {
      const path = `http[${index}].match[${matchIndex}]`;
      return [
        ...literalTexts(uri).flatMap(([type, text]) =>
          violation.errorsAt(
            `${path}.uri.${type}`,
            literalStarInPath(text, (suggestedPrefix) => `write prefix: ${suggestedPrefix} for everything below it`),
          ),
        ),
        ...Object.entries({ authority, method }).flatMap(([field, matchValue]) =>
          literalTexts(matchValue)
            .filter(([, text]) => text.includes('*'))
            .map(([type, text]) =>
              violation.fieldError(
                `${path}.${field}.${type}`,
                violation.doubtfulValue(
                  'matches no request, because "*" is no wildcard here: use regex, or remove the match to match all',
                  text,
                ),
              ),
            ),
        ),
      ];
    }),
  );
}

function literalTexts(match: object): (readonly ['exact' | 'prefix', string])[] {
  const { exact, prefix } = match as { readonly exact?: string; readonly prefix?: string };
  return [
    ...(exact === undefined ? [] : [['exact', exact] as const]),
    ...(prefix === undefined ? [] : [['prefix', prefix] as const]),
  ];
}
