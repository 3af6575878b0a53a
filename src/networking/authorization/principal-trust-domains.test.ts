import { expect, it } from 'vitest';
import { trustDomainsOf } from '../../model/mesh/trust-domains.ts';
import { principalsInAllTrustDomains } from './principal-trust-domains.ts';

const domains = ['td1', 'td2'];

it.each([
  ['the mesh’s own trust domain', 'td1/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['an alias', 'td2/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['cluster.local, which stands for the mesh', 'cluster.local/ns/a/sa/b', ['td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['a foreign trust domain', 'td3/ns/a/sa/b', ['td3/ns/a/sa/b']],
  ['any trust domain', '*/ns/a/sa/b', ['*/ns/a/sa/b']],
  ['a suffix of the mesh’s own trust domain', '*1/ns/a/sa/b', ['*1/ns/a/sa/b', 'td1/ns/a/sa/b', 'td2/ns/a/sa/b']],
  ['a suffix of a foreign trust domain', '*3/ns/a/sa/b', ['*3/ns/a/sa/b']],
  ['no trust domain', '*', ['*']],
  ['a prefix of a principal', 'td1/ns/a/*', ['td1/ns/a/*', 'td2/ns/a/*']],
])(
  "a policy accepts all trust domains of the mesh depending on the principal's trust domain: %s",
  (_, principal, expected) => {
    expect(principalsInAllTrustDomains(principal, domains)).toEqual(expected);
  },
);

it("the mesh's trust domains are its own and its aliases, without duplicates", () => {
  expect(trustDomainsOf({ trustDomain: 'td1', trustDomainAliases: ['td2', 'td1'] } as never)).toEqual(['td1', 'td2']);
});
