import { expect, it } from 'vitest';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import { inAllTrustDomains } from './principal-trust-domains.ts';

const domains = ['td1', 'td2'];

it.each([
  ['the mesh’s own', 'td1/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['an alias', 'td2/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['cluster.local, which stands for the mesh', 'cluster.local/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['a foreign one', 'td3/ns/a/sa/b', ['td3/ns/a/sa/b']],
  ['any', '*/ns/a/sa/b', ['*/ns/a/sa/b']],
  ['the end of an own one', '*1/ns/a/sa/b', ['*1/ns/a/sa/b', 'td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['the end of a foreign one', '*3/ns/a/sa/b', ['*3/ns/a/sa/b']],
  ['no trust domain at all', '*', ['*']],
  ['the beginning of a principal', 'td1/ns/a/*', ['td1/ns/a/*', 'td2/ns/a/*']],
])(
  'policies accept all trust domains of the mesh where the trust domain of a principal is %s',
  (_, principal, expected) => {
    expect(inAllTrustDomains(principal, domains)).toEqual(expected);
  },
);

it('the trust domains of the mesh are its own and its aliases, each once', () => {
  expect(trustDomainsOf({ trustDomain: 'td1', trustDomainAliases: ['td2', 'td1'] } as never)).toEqual(['td1', 'td2']);
});
