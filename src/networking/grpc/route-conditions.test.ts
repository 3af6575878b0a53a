import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { RouteMatchSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { grpcMatch } from './route-conditions.ts';

/** Returns the converted condition of a prefix of path segments. */
function conditionOf(value: string) {
  const match = grpcMatch(create(RouteMatchSchema, { pathSpecifier: { case: 'pathSeparatedPrefix', value } }));
  if (typeof match === 'string') throw new Error(match);
  return match.pathSpecifier;
}

function matches(prefix: string, path: string): boolean {
  const condition = conditionOf(prefix);
  if (condition.case !== 'safeRegex') throw new Error(`must be safeRegex, got ${condition.case}`);
  return new RegExp(`^(?:${condition.value.regex})$`).test(path);
}

describe('path prefix of complete segments, as a regular expression for gRPC', () => {
  it.each([
    ['/a', '/a', 'matches'],
    ['/a', '/a/', 'matches'],
    ['/a', '/a/b/c', 'matches'],
    ['/a', '/ab', 'does not match'],
    ['/a', '/b/a', 'does not match'],
    ['/a', '/A', 'does not match'],
    ['/echo.v1.Echo', '/echo.v1.Echo/Say', 'matches'],
    // A dot must not act as a wildcard.
    ['/echo.v1.Echo', '/echoXv1.Echo/Say', 'does not match'],
    ['/a+(b)[c]{d}$^|*?\\', '/a+(b)[c]{d}$^|*?\\/e', 'matches'],
    ['/a*', '/aaa', 'does not match'],
  ])('prefix $0 $2 path $1', (prefix, path, verb) => expect(matches(prefix, path)).toBe(verb === 'matches'));

  it('other path conditions are unchanged', () => {
    for (const pathSpecifier of [
      { case: 'prefix', value: '/a' },
      { case: 'path', value: '/a/B' },
    ] as const) {
      expect(grpcMatch(create(RouteMatchSchema, { pathSpecifier }))).toMatchObject({ pathSpecifier });
    }
  });
});
