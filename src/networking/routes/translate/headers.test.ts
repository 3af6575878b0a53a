import { expect, it } from 'vitest';
import { headerFields, hostFromHeaders } from './headers.ts';

it.each(['set', 'add'])('a host header in %s becomes a host rewrite', (operation) => {
  for (const name of ['host', 'Host', ':authority']) {
    const headers = { request: { [operation]: { 'x-a': 'b', [name]: 'other.test' } } };
    expect(hostFromHeaders(headers)).toBe('other.test');
    expect(headerFields(headers).requestHeadersToAdd.map(({ header }) => header!.key)).toEqual(['x-a']);
  }
});

it('a host header in set takes precedence over a host header in add', () => {
  expect(hostFromHeaders({ request: { add: { host: 'added.test' }, set: { host: 'set.test' } } })).toBe('set.test');
});

it('a host header for responses is ignored', () => {
  expect(hostFromHeaders({ response: { set: { host: 'other.test' } } })).toBeUndefined();
});
