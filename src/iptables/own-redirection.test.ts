import { describe, expect, test } from 'vitest';
import type { SaidFlags } from './flags.ts';
import { resolveInterception } from './interception-settings.ts';
import { nftText } from './nftables.ts';
import { iptablesRules, nftRules, type OwnRedirection, redirectionOf } from './own-redirection.ts';
import { ofFamily } from './rule.ts';
import { restoreText } from './rule-list.ts';
import { interceptionRules } from './rules.ts';

/** Effect of these flags' rules on an owner, by iptables and by nft. */
function redirections(flags: SaidFlags, [uid, gid]: readonly [number, number], env = {}): OwnRedirection[] {
  const { interception } = resolveInterception({ ...flags, generation: 'g4' }, env, {
    addresses: () => ['10.0.0.1'],
    readFile: () => '',
  });
  const saved = restoreText(ofFamily(interceptionRules(interception), 'v4')).replaceAll('* nat', '*nat');
  const sender = { uid, gid };
  return [
    redirectionOf([iptablesRules(saved, sender)]),
    redirectionOf([nftRules(/^table inet istio-proxy-nat.*?^}/ms.exec(nftText(interception))![0], sender)]),
  ];
}

const everything: SaidFlags = { outboundRanges: '*', inboundPorts: '*', redirectDns: true, captureAllDns: true };

describe('redirects a process to itself', () => {
  test.each<[string, SaidFlags, readonly [number, number], object?]>([
    ['root, of all traffic', everything, [0, 0]],
    ['another user', everything, [1000, 1000]],
    ['root, of one range', { outboundRanges: '10.0.0.0/8' }, [0, 0]],
    ['root, of one port', { outboundPorts: '443' }, [0, 0]],
    ['root, of DNS alone', { redirectDns: true, captureAllDns: true }, [0, 0]],
    ['the default user, if others are excluded', { ...everything, proxyUid: '1338' }, [1337, 1337]],
    ['an included group', everything, [0, 2000], { ISTIO_OUTBOUND_OWNER_GROUPS: '2000,3000' }],
  ])('%s', (_, flags, sender, env) => {
    const uid = flags.proxyUid ?? '1337';
    const loop = { kind: 'loop', excluded: expect.arrayContaining([`uid ${uid}`, `gid ${uid}`]) };
    expect(redirections(flags, sender, env)).toEqual([loop, loop]);
  });
});

describe('leaves a process alone', () => {
  test.each<[string, SaidFlags, readonly [number, number], object?]>([
    ['the excluded user', everything, [1337, 0]],
    ['the excluded group', everything, [0, 1337]],
    ['root that is excluded by a flag', { ...everything, proxyUid: '0,1337' }, [0, 0]],
    ['an excluded group', everything, [0, 2000], { ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: '2000' }],
    ['a group that is not included', everything, [0, 0], { ISTIO_OUTBOUND_OWNER_GROUPS: '2000,3000' }],
    ['root, if inbound traffic alone is redirected', { inboundPorts: '*' }, [0, 0]],
  ])('%s', (_, flags, sender, env) => {
    expect(redirections(flags, sender, env)).toEqual([{ kind: 'none' }, { kind: 'none' }]);
  });

  test('root, if another program redirects', () => {
    const saved = '*nat\n-A OUTPUT -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 3128\nCOMMIT\n';
    expect(redirectionOf([iptablesRules(saved, { uid: 0, gid: 0 })])).toEqual({ kind: 'none' });
  });
});
