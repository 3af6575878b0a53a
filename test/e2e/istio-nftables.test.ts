/**
 * The rules of `istio-iptables --generation g4` and `--native-nftables`, checked by where connections arrive: both renderers of one rule list
 * redirect the same connections.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import type { GivenFlags } from '../../src/iptables/flags.ts';
import { requireIptables } from '../harness/iptables.ts';
import {
  application,
  applyIn,
  emptyPodNetwork,
  expectResponses,
  other,
  outsideAddress,
  ownAddress,
  podNetwork,
  proxy,
} from '../harness/redirected-pod.ts';
import { sized } from '../harness/size-of-run.ts';

beforeAll(() => requireIptables());

const nft: GivenFlags = { nativeNftables: true };
const renderers = sized<readonly (readonly [string, GivenFlags])[]>({
  short: [['nftables', nft]],
  full: [
    ['iptables', { generation: 'g4' }],
    ['nftables', nft],
  ],
});

describe.each(renderers)('istio-iptables %s', (_, renderer) => {
  test('redirects all inbound and outbound connections except excluded and local ones and those of the proxy', async () => {
    const { pod, neighbour } = await podNetwork();
    await applyIn(pod, {
      ...renderer,
      ...{ inboundPorts: '*', inboundPortsExclude: '15090,9999', outboundRanges: '*', forceIpv6: 'true' },
      ...{ outboundRangesExclude: '10.88.0.0/16', outboundPortsExclude: '7777' },
    });
    for (const family of ['v4', 'v6'] as const) {
      const podAddress = ownAddress[family];
      const farAddress = other[family];
      await expectResponses(neighbour, application, {
        [`tcp ${podAddress} 8080`]: `15006 for ${podAddress}:8080`,
        [`tcp ${podAddress} 9999`]: `9999 for ${podAddress}:9999`,
        [`tcp ${podAddress} 15008`]: `15008 for ${podAddress}:15008`,
      });
      await expectResponses(pod, application, {
        [`tcp ${farAddress} 80`]: `15001 for ${farAddress}:80`,
        [`tcp ${farAddress} 7777`]: `7777 for ${farAddress}:7777`,
        [`tcp ${podAddress} 8080`]: `8080 for ${podAddress}:8080`,
      });
      await expectResponses(pod, proxy, {
        [`tcp ${farAddress} 80`]: `80 for ${farAddress}:80`,
        [`tcp ${podAddress} 8080`]: `15006 for ${podAddress}:8080`,
        [`tcp ${podAddress} 15008`]: `15008 for ${podAddress}:15008`,
      });
    }
    await expectResponses(pod, application, {
      [`tcp ${outsideAddress} 80`]: `80 for ${outsideAddress}:80`,
      'tcp 127.0.0.1 8080': '8080 for 127.0.0.1:8080',
      'tcp ::1 8080': '8080 for ::1:8080',
    });
  });

  test('redirects only listed connections of included owners, and no IPv6 connections if IPv6 is disabled', async () => {
    const { pod, neighbour } = await podNetwork();
    const lists: GivenFlags = { inboundPorts: '8080', outboundRanges: '10.88.0.0/16', outboundPorts: '443' };
    const env = { ISTIO_OUTBOUND_OWNER_GROUPS: `${application},2000` };
    await applyIn(pod, { ...renderer, ...lists, forceIpv6: 'false' }, env);
    await expectResponses(neighbour, application, {
      [`tcp ${ownAddress.v4} 8080`]: `15006 for ${ownAddress.v4}:8080`,
      [`tcp ${ownAddress.v4} 9999`]: `9999 for ${ownAddress.v4}:9999`,
      [`tcp ${ownAddress.v6} 8080`]: `8080 for ${ownAddress.v6}:8080`,
    });
    await expectResponses(pod, application, {
      [`tcp ${outsideAddress} 80`]: `15001 for ${outsideAddress}:80`,
      [`tcp ${other.v4} 443`]: `15001 for ${other.v4}:443`,
      [`tcp ${other.v6} 443`]: `443 for ${other.v6}:443`,
      [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80`,
    });
    await expectResponses(pod, 3000, { [`tcp ${outsideAddress} 80`]: `80 for ${outsideAddress}:80` });
  });

  test('redirects no connections of an excluded interface', async () => {
    const { pod, neighbour } = await podNetwork();
    await applyIn(pod, { ...renderer, inboundPorts: '*', outboundRanges: '*', excludeInterfaces: 'eth+' });
    await expectResponses(neighbour, application, { [`tcp ${ownAddress.v4} 8080`]: `8080 for ${ownAddress.v4}:8080` });
    await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `80 for ${other.v4}:80` });
  });

  test('redirects DNS over UDP and TCP to the agent, but neither the agent’s queries nor HBONE calls back into Envoy', async () => {
    const { pod } = await podNetwork();
    await applyIn(pod, { ...renderer, outboundRanges: '*', redirectDns: true, forceIpv6: 'true' });
    for (const [family, port] of [
      ['v4', 5555],
      ['v6', 5556],
    ] as const) {
      const server = other[family];
      const podAddress = ownAddress[family];
      await expectResponses(pod, application, {
        [`udp ${server} 53`]: '15053',
        [`tcp ${server} 53`]: `15053 for ${server}:53`,
      });
      await expectResponses(pod, proxy, {
        [`udp ${server} 53`]: '53',
        [`tcp ${server} 53`]: `53 for ${server}:53`,
        [`tcp ${podAddress} 15008`]: `15008 for ${podAddress}:15008`,
        [`tcp ${podAddress} 8080`]: `15006 for ${podAddress}:8080`,
      });
      // Queries of the application and of the agent from one port each get their own response.
      await expectResponses(pod, application, { [`udp ${server} 53 ${port}`]: '15053' });
      await expectResponses(pod, proxy, { [`udp ${server} 53 ${port}`]: '53' });
      await expectResponses(pod, application, { [`udp ${server} 53 ${port}`]: '15053' });
    }
    await expectResponses(pod, application, { [`udp ${outsideAddress} 53`]: '53' });
    await applyIn(pod, {
      ...{ ...renderer, outboundRanges: '*', redirectDns: true, captureAllDns: true, forceIpv6: 'true' },
      ...{ reconcile: true },
    });
    await expectResponses(pod, application, { [`udp ${outsideAddress} 53`]: '15053', [`udp ${other.v4} 53`]: '15053' });
  });

  test('does not redirect port 53 over TCP or UDP if the port is excluded', async () => {
    const { pod } = await podNetwork();
    const flags: GivenFlags = {
      outboundRanges: '*',
      redirectDns: true,
      captureAllDns: true,
      outboundPortsExclude: '53',
    };
    await applyIn(pod, { ...renderer, ...flags });
    await expectResponses(pod, application, {
      [`udp ${other.v4} 53`]: '53',
      [`tcp ${other.v4} 53`]: `53 for ${other.v4}:53`,
    });
  });

  test('preserves the destination and both addresses of inbound connections with TPROXY', async () => {
    const network = await emptyPodNetwork();
    const { pod, neighbour } = network;
    await pod.listen({ ports: ['tproxy 15006', 'tcp 8080', 'tcp 9999'] });
    await pod.listen({ ports: ['tcp 15001'], uid: proxy });
    await neighbour.listen({ ports: ['tcp 80'] });
    const flags: GivenFlags = { mode: 'TPROXY', inboundPorts: '*', inboundPortsExclude: '9999', outboundRanges: '*' };
    await applyIn(pod, { ...renderer, ...flags, forceIpv6: 'true' });
    for (const family of ['v4', 'v6'] as const) {
      const podAddress = ownAddress[family];
      await expectResponses(neighbour, application, {
        [`tcp ${podAddress} 8080`]: `15006 for ${podAddress}:8080`,
        [`tcp ${podAddress} 9999`]: `9999 for ${podAddress}:9999`,
      });
      await expectResponses(pod, application, {
        [`tcp ${other[family]} 80`]: `15001 for ${other[family]}:80`,
        [`tcp ${podAddress} 8080`]: `8080 for ${podAddress}:8080`,
      });
      const loopback = family === 'v4' ? '127.0.0.1' : '::1';
      await expectResponses(pod, proxy, {
        [`tcp ${other[family]} 80`]: `80 for ${other[family]}:80`,
        // REDIRECT rewrites the destination.
        [`tcp ${podAddress} 8080`]: `15006 for ${loopback}:15006`,
      });
    }
  });
});

test.each(['g3', 'g4'])(
  'a wider ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR keeps calls to all of its addresses local (%s)',
  async (generation) => {
    const { pod } = await podNetwork();
    const flags: GivenFlags = { generation, outboundRanges: '127.0.0.0/8,10.0.0.0/8' };
    await applyIn(pod, flags);
    await expectResponses(pod, application, { 'tcp 127.0.0.2 8080': '15001 for 127.0.0.2:8080' });
    await expectResponses(pod, proxy, { 'tcp 127.0.0.2 8080': '15006 for 127.0.0.2:8080' });
    await applyIn(pod, { ...flags, reconcile: true }, { ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR: '127.0.0.0/8' });
    for (const uid of [application, proxy]) {
      await expectResponses(pod, uid, { 'tcp 127.0.0.2 8080': '8080 for 127.0.0.2:8080' });
    }
    await expectResponses(pod, application, { [`tcp ${other.v4} 80`]: `15001 for ${other.v4}:80` });
  },
);

test('istio-iptables with nftables applies either all rules or none', async () => {
  const { pod } = await emptyPodNetwork();
  const wrongName: GivenFlags = { ...nft, outboundRanges: '*', proxyUid: 'no-such-user' };
  await expect(applyIn(pod, wrongName)).rejects.toMatchObject({
    code: 'IPTABLES_FAILED',
    message: expect.stringMatching(/nft -f -: exit code 1: .*no-such-user/s),
  });
  expect(await pod.mustRun('nft', 'list', 'ruleset')).toBe('');
});
