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
    ['/a', '/a', true],
    ['/a', '/a/', true],
    ['/a', '/a/b/c', true],
    ['/a', '/ab', false],
    ['/a', '/b/a', false],
    ['/a', '/A', false],
    ['/echo.v1.Echo', '/echo.v1.Echo/Say', true],
    // A dot must not act as a wildcard.
    ['/echo.v1.Echo', '/echoXv1.Echo/Say', false],
    ['/a+(b)[c]{d}$^|*?\\', '/a+(b)[c]{d}$^|*?\\/e', true],
    ['/a*', '/aaa', false],
  ])('prefix %s matches path %s: %s', (prefix, path, expected) => expect(matches(prefix, path)).toBe(expected));

  it('other path conditions are unchanged', () => {
    for (const pathSpecifier of [
      { case: 'prefix', value: '/a' },
      { case: 'path', value: '/a/B' },
    ] as const) {
      expect(grpcMatch(create(RouteMatchSchema, { pathSpecifier }))).toMatchObject({ pathSpecifier });
    }
  });
});
