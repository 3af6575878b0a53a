/**
 * Validates path templates of Envoy's `uri_template` extensions, such as `/{country}/*` and `/videos/{rest=**}.m3u8`. Envoy 1.40 rejects a route
 * whose template it cannot parse, and crashes if an RBAC policy contains such a template. Doubtful templates are therefore errors, even some that
 * Envoy accepts (`/***`, `/a*`).
 */
import * as violation from './violation.ts';

const maxLength = 256;
const maxNames = 5;

const characters = "[\\w.~%!$&'()+,;:@=-]+";
const segmentPart = `(?:\\*\\*?|${characters})`;
/** Only the last segment may have a text suffix after its operator. */
const segmentPattern = new RegExp(
  `^(?:${characters}|(?:(?<wild>\\*\\*?)|\\{(?<name>[A-Za-z]\\w{0,15})(?:=(?<pattern>${segmentPart}(?:/${segmentPart})*))?\\})(?<after>${characters})?)$`,
);

export function uriTemplateViolation(template: string): violation.FieldViolation | undefined {
  if (Buffer.byteLength(template) > maxLength)
    return violation.tooLarge(maxLength, Buffer.byteLength(template), 'bytes');
  if (!template.startsWith('/')) return violation.mustBe('a template that begins with /', template);
  const reason = rejectionReason(template);
  return reason === undefined
    ? undefined
    : violation.mustBe('a template such as /a/{name}/{rest=**}', template, { hint: reason });
}

function rejectionReason(template: string): string | undefined {
  if (template === '/') return undefined;
  const segments = segmentsOf(template);
  const names = new Set<string>();
  let hasDoubleStar = false;
  for (const [index, segment] of segments.entries()) {
    if (segment === '') {
      if (index === segments.length - 1 && index > 0) return undefined;
      return 'empty segment';
    }
    const groups = segmentPattern.exec(segment)?.groups;
    if (groups === undefined) return `invalid segment ${JSON.stringify(segment)}`;
    const { wild, name, pattern, after } = groups;
    const operator = pattern ?? wild ?? (name && '*');
    if (operator === undefined || !(operator.includes('*') || name)) continue;
    if (hasDoubleStar) return `${segment} must not follow **`;
    if (after !== undefined && index < segments.length - 1) return `${segment} must be the last segment`;
    if (/\*\*.*\*/.test(operator)) return '* must not follow **';
    hasDoubleStar = operator.includes('**');
    if (name === undefined) continue;
    if (names.has(name)) return `the name ${name} occurs twice`;
    names.add(name);
  }
  return names.size > maxNames ? `more than ${maxNames} names` : undefined;
}

function segmentsOf(template: string): readonly string[] {
  return template.slice(1).split(/\/(?![^{}]*\})/);
}

export function uriRewriteViolation(template: string): violation.FieldViolation | undefined {
  if (Buffer.byteLength(template) > maxLength)
    return violation.tooLarge(maxLength, Buffer.byteLength(template), 'bytes');
  const isValid = /^(?:\/(?:[\w.~%!$&'()+,;:@=-]|\{[A-Za-z]\w{0,15}\})*)+$/.test(template);
  return isValid ? undefined : violation.mustBe('a path such as /a/{name}', template);
}
