import { create, type MessageInitShape, toJson } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { RouteMatchSchema } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import { isCatchAll, routeMatch } from './match.ts';

describe('matches on claims of a verified token', () => {
  const key = '@request.auth.claims.realm.roles';
  const path = [{ key: 'payload' }, { key: 'realm' }, { key: 'roles' }];
  const admin = { stringMatch: { exact: 'admin' } };

  it('claims match in the metadata of the jwt_authn filter, as a string or a list item', () => {
    const match = routeMatch({ headers: { [key]: { exact: 'admin' }, 'x-user': { prefix: 'a' } } });
    expect(toJson(RouteMatchSchema, match)).toEqual({
      prefix: '/',
      headers: [{ name: 'x-user', stringMatch: { prefix: 'a' } }],
      dynamicMetadata: [
        {
          filter: 'envoy.filters.http.jwt_authn',
          path,
          value: { orMatch: { valueMatchers: [admin, { listMatch: { oneOf: admin } }] } },
        },
      ],
    });
  });

  it('an excluded claim is an inverted match', () => {
    const { headers, dynamicMetadata } = routeMatch({ withoutHeaders: { [key]: { present: true } } });
    expect(headers).toEqual([]);
    expect(dynamicMetadata).toMatchObject([{ invert: true, value: { matchPattern: { case: 'presentMatch' } } }]);
  });

  it('a route that matches claims is not a catch-all', () => {
    expect(isCatchAll(routeMatch({ headers: { [key]: { present: true } } }))).toBe(false);
    expect(isCatchAll(routeMatch({}))).toBe(true);
  });
});

it.each<[string, MessageInitShape<typeof RouteMatchSchema>]>([
  ['a gRPC condition', { grpc: {} }],
  ['a client certificate condition', { tlsContext: { presented: true } }],
  ['a fraction of the requests', { runtimeFraction: { defaultValue: { numerator: 1 } } }],
])('a match with %s is not a catch-all, even if VirtualServices cannot express it yet', (_, condition) => {
  const pathSpecifier = { case: 'prefix', value: '/' } as const;
  expect(isCatchAll(create(RouteMatchSchema, { pathSpecifier, ...condition }))).toBe(false);
});

it('a prefix of complete segments is translated to a path-separated prefix', () => {
  expect(routeMatch({ uri: { prefix: '/a' }, bySegments: true }).pathSpecifier).toEqual({
    case: 'pathSeparatedPrefix',
    value: '/a',
  });
});
