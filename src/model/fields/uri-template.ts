/**
 * Templates of paths as Envoy's `uri_template` extensions read them: `/{country}/*`, `/videos/{rest=**}.m3u8`.
 *
 * Envoy 1.40 refuses one that it cannot read in a route; with one in an RBAC policy its process ends. So what is not sure
 * to be read is a mistake here; odd ones that Envoy would take (`/***`, `/a*`) are, too.
 */
import * as violation from './violation.ts';

/** Bytes of the whole field. */
const maxLength = 256;
const maxNames = 5;

const characters = "[\\w.~%!$&'()+,;:@=-]+";
const part = `(?:\\*\\*?|${characters})`;
/** A segment: text, or an operator (`*`, `**`, `{name}`, `{name=pattern}`) with text after it if it is the last one. */
const segmentPattern = new RegExp(
  `^(?:${characters}|(?:(?<wild>\\*\\*?)|\\{(?<name>[A-Za-z]\\w{0,15})(?:=(?<pattern>${part}(?:/${part})*))?\\})(?<after>${characters})?)$`,
);

/** What is wrong with a template to match with; undefined when nothing is. */
export function uriTemplateViolation(template: string): violation.Violation | undefined {
  if (Buffer.byteLength(template) > maxLength)
    return violation.tooLarge(maxLength, Buffer.byteLength(template), 'bytes');
  if (!template.startsWith('/')) return violation.mustBe('a template that begins with /', template);
  const why = reasonAgainst(template);
  return why === undefined
    ? undefined
    : violation.mustBe('a template such as /a/{name}/{rest=**}', template, { hint: why });
}

function reasonAgainst(template: string): string | undefined {
  if (template === '/') return undefined;
  const segments = segmentsOf(template);
  const names = new Set<string>();
  let severals = false;
  for (const [index, segment] of segments.entries()) {
    if (segment === '') {
      // A slash at the end is no segment.
      if (index === segments.length - 1 && index > 0) return undefined;
      return 'empty segment';
    }
    const groups = segmentPattern.exec(segment)?.groups;
    if (groups === undefined) return `invalid segment ${JSON.stringify(segment)}`;
    const { wild, name, pattern, after } = groups;
    const operator = pattern ?? wild ?? (name && '*');
    if (operator === undefined || !(operator.includes('*') || name)) continue;
    if (severals) return `${segment} must not follow **`;
    if (after !== undefined && index < segments.length - 1) return `${segment} must be the last segment`;
    if (/\*\*.*\*/.test(operator)) return '* must not follow **';
    severals = operator.includes('**');
    if (name === undefined) continue;
    if (names.has(name)) return `the name ${name} occurs twice`;
    names.add(name);
  }
  return names.size > maxNames ? `more than ${maxNames} names` : undefined;
}

/** Cut at slashes that are not within braces. */
function segmentsOf(template: string): readonly string[] {
  return template.slice(1).split(/\/(?![^{}]*\})/);
}

/** What is wrong with a template to rewrite with, which has names of the matched path in braces. */
export function uriRewriteViolation(template: string): violation.Violation | undefined {
  if (Buffer.byteLength(template) > maxLength)
    return violation.tooLarge(maxLength, Buffer.byteLength(template), 'bytes');
  const isRead = /^(?:\/(?:[\w.~%!$&'()+,;:@=-]|\{[A-Za-z]\w{0,15}\})*)+$/.test(template);
  return isRead ? undefined : violation.mustBe('a path such as /a/{name}', template);
}
