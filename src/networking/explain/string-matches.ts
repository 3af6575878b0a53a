import type { HeaderMatcher, QueryParameterMatcher } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { StringMatcher } from '../../gen/envoy/type/matcher/v3/string_pb.ts';
import { re2Expression } from '../../model/fields/re2.ts';

export function matchesRegex(regex: string, text: string): boolean {
  return re2Expression(regex).matches(text);
}

export function matchesString({ matchPattern, ignoreCase }: StringMatcher, text: string): boolean {
  if (matchPattern.case === 'safeRegex') return matchesRegex(matchPattern.value.regex, text);
  if (matchPattern.case === undefined || matchPattern.case === 'custom') return false;
  const [pattern, value] = ignoreCase
    ? [matchPattern.value.toLowerCase(), text.toLowerCase()]
    : [matchPattern.value, text];
  switch (matchPattern.case) {
    case 'exact':
      return value === pattern;
    case 'prefix':
      return value.startsWith(pattern);
    case 'suffix':
      return value.endsWith(pattern);
    case 'contains':
      return value.includes(pattern);
  }
}

export function matchesHeader(matcher: HeaderMatcher, value: string | undefined): boolean {
  const { headerMatchSpecifier: specifier, invertMatch, treatMissingHeaderAsEmpty } = matcher;
  if (specifier.case === undefined) return (value !== undefined) !== invertMatch;
  if (specifier.case === 'presentMatch') return ((value !== undefined) === specifier.value) !== invertMatch;
  const text = value ?? (treatMissingHeaderAsEmpty ? '' : undefined);
  // A value matcher never matches a missing header, even if inverted.
  if (text === undefined) return false;
  return valueMatches(specifier, text) !== invertMatch;
}

function valueMatches(specifier: HeaderMatcher['headerMatchSpecifier'], text: string): boolean {
  switch (specifier.case) {
    case 'stringMatch':
      return matchesString(specifier.value, text);
    case 'exactMatch':
      return text === specifier.value;
    case 'prefixMatch':
      return text.startsWith(specifier.value);
    case 'suffixMatch':
      return text.endsWith(specifier.value);
    case 'containsMatch':
      return text.includes(specifier.value);
    case 'safeRegexMatch':
      return matchesRegex(specifier.value.regex, text);
    case 'rangeMatch':
      return /^-?\d+$/.test(text) && BigInt(text) >= specifier.value.start && BigInt(text) < specifier.value.end;
    default:
      return false;
  }
}

export function matchesParameter(matcher: QueryParameterMatcher, value: string | undefined): boolean {
  const specifier = matcher.queryParameterMatchSpecifier;
  if (specifier.case === 'presentMatch') return (value !== undefined) === specifier.value;
  if (value === undefined) return false;
  return specifier.case === 'stringMatch' ? matchesString(specifier.value, value) : true;
}
