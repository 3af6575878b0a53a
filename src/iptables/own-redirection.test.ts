import { describe, expect, test } from 'vitest';
import type { GivenFlags } from './flags.ts';
import { resolveInterception } from './interception-settings.ts';
import { nftText } from './nftables.ts';
import { iptablesRules, nftRules, type OwnRedirection, redirectionOf } from './own-redirection.ts';
import { rulesOfFamily } from './rule.ts';
import { restoreText } from './rule-list.ts';
import { interceptionRules } from './rules.ts';

/** Returns the effect of these flags on the owner's connections, with iptables and with nft. */
function redirections(flags: GivenFlags, [uid, gid]: readonly [number, number], env = {}): OwnRedirection[] {
  const { interception } = resolveInterception({ ...flags, generation: 'g4' }, env, {
    addresses: () => ['10.0.0.1'],
    readFile: () => '',
  });
  const savedRules = restoreText(rulesOfFamily(interceptionRules(interception), 'v4')).replaceAll('* nat', '*nat');
  const sender = { uid, gid };
  return [
    redirectionOf([iptablesRules(savedRules, sender)]),
    redirectionOf([nftRules(/^table inet istio-proxy-nat.*?^}/ms.exec(nftText(interception))![0], sender)]),
  ];
}

const captureAll: GivenFlags = { outboundRanges: '*', inboundPorts: '*', redirectDns: true, captureAllDns: true };

describe('the Envoy of a process', () => {
  test.each<[string, GivenFlags, readonly [number, number], object?]>([
    ['root, if all traffic is redirected', captureAll, [0, 0]],
    ['another user, if all traffic is redirected', captureAll, [1000, 1000]],
    ['root, if one range is redirected', { outboundRanges: '10.0.0.0/8' }, [0, 0]],
    ['root, if one port is redirected', { outboundPorts: '443' }, [0, 0]],
    ['root, if only DNS is redirected', { redirectDns: true, captureAllDns: true }, [0, 0]],
    ['the default user, if others are excluded', { ...captureAll, proxyUid: '1338' }, [1337, 1337]],
    ['an included group', captureAll, [0, 2000], { ISTIO_OUTBOUND_OWNER_GROUPS: '2000,3000' }],
  ])('receives the connections of %s', (_, flags, sender, env) => {
    const uid = flags.proxyUid ?? '1337';
    const loop = { kind: 'loop', excluded: expect.arrayContaining([`uid ${uid}`, `gid ${uid}`]) };
    expect(redirections(flags, sender, env)).toEqual([loop, loop]);
  });
});

describe('the Envoy of an excluded process', () => {
  test.each<[string, GivenFlags, readonly [number, number], object?]>([
    ['the excluded user', captureAll, [1337, 0]],
    ['the excluded group', captureAll, [0, 1337]],
    ['root, if a flag excludes it', { ...captureAll, proxyUid: '0,1337' }, [0, 0]],
    ['an excluded group', captureAll, [0, 2000], { ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: '2000' }],
    ['a group that is not included', captureAll, [0, 0], { ISTIO_OUTBOUND_OWNER_GROUPS: '2000,3000' }],
    ['root, if only inbound traffic is redirected', { inboundPorts: '*' }, [0, 0]],
  ])('does not receive the connections of %s', (_, flags, sender, env) => {
    expect(redirections(flags, sender, env)).toEqual([{ kind: 'none' }, { kind: 'none' }]);
  });

  test('does not receive the connections of root if rules of another program redirect them', () => {
    const savedRules = '*nat\n-A OUTPUT -p tcp -m tcp --dport 80 -j REDIRECT --to-ports 3128\nCOMMIT\n';
    expect(redirectionOf([iptablesRules(savedRules, { uid: 0, gid: 0 })])).toEqual({ kind: 'none' });
  });
});
