import { expect, it } from 'vitest';
import { headerFields, hostFromHeaders } from './headers.ts';

it.each(['set', 'add'])('the host is written anew, and is no header to Envoy: %s', (how) => {
  for (const name of ['host', 'Host', ':authority']) {
    const headers = { request: { [how]: { 'x-a': 'b', [name]: 'other.test' } } };
    expect(hostFromHeaders(headers)).toBe('other.test');
    expect(headerFields(headers).requestHeadersToAdd.map(({ header }) => header!.key)).toEqual(['x-a']);
  }
});

it('of a host that is set and one that is added the first counts', () => {
  expect(hostFromHeaders({ request: { add: { host: 'added.test' }, set: { host: 'set.test' } } })).toBe('set.test');
});

it('the host of an answer is nobody’s', () => {
  expect(hostFromHeaders({ response: { set: { host: 'other.test' } } })).toBeUndefined();
});
