/** Agents are told over xDS which roots to trust, and a rotation goes on by their word and nobody else's. */

import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { typeUrls } from '../../../test/ads-client.ts';
import { askForCertificate, serverName } from '../../../test/harness/certificate-caller.ts';
import { ControlPlane, sidecar } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { givenAuthority, servingAuthority } from '../../../test/harness/given-authority.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { taintedIn } from '../../agent/xds/discovery-wire.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import { readCertificate, readCertificates } from '../../identity/certificate.ts';
import { makeRequest } from '../../identity/certificate-request.ts';
import { issueLeaf, issueRoot } from '../../identity/issue.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import type { NodeIdentity, NodeResources } from '../xds/resource-source.ts';
import { RootsForAgents } from './roots-for-agents.ts';

const cart = { namespace: 'shop', serviceAccount: 'cart' };
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

const given = givenAuthority();
const serving = (env?: NodeJS.ProcessEnv): Promise<ControlPlane> => servingAuthority(given, env);

const nodeOf = (account: typeof cart, id = 'a'): typeof sidecar => ({
  ...sidecar,
  id: `sidecar~127.0.0.1~${id}.${account.namespace}~${account.namespace}.svc.cluster.local`,
  metadata: { ...sidecar.metadata, NAMESPACE: account.namespace },
});

/** An agent with a certificate, whose xDS is over TLS. */
class Agent {
  readonly node: typeof sidecar;
  readonly #plane: ControlPlane;
  readonly #chains: string[] = [];

  constructor(plane: ControlPlane, id = 'a', account = cart) {
    this.#plane = plane;
    this.node = nodeOf(account, id);
  }

  async renew(account = cart): Promise<void> {
    const asked = { csr: makeRequest(key, []), bearer: await given.caller.token(account), node: this.node.id };
    const chain = await askForCertificate(given.caller.client(this.#plane.port('ads.listening')), asked);
    this.#chains.push(chain[0]!);
  }

  /** What its Envoy has, in a request that answers a response. */
  get has(): object {
    return saying(this.#chains.at(-1)!);
  }

  /** What it had before. */
  get had(): object {
    return saying(this.#chains.at(-2)!);
  }

  sotw(node: object = this.node) {
    return subscribed(this.#client().sotw(), node);
  }

  delta() {
    const stream = this.#client().delta();
    stream.send({ node: this.node, typeUrl: proxyConfigType });
    return stream;
  }

  get #own() {
    const chain = this.#chains.at(-1);
    return chain === undefined ? undefined : { chain, key };
  }

  #client() {
    return this.#plane.client(this.#plane.port('ads.listening'), given.caller.channel(this.#own), serverName);
  }
}

const saying = (chain: string): object => ({
  node: { metadata: { CERTIFICATE_SERIAL_NUMBER: readCertificates(chain)[0]!.serialNumber } },
});

function subscribed<Stream extends { send(request: object): void }>(stream: Stream, node: object): Stream {
  stream.send({ node, typeUrl: proxyConfigType });
  return stream;
}

type Stream = ReturnType<Agent['sotw']>;
type Response = Awaited<ReturnType<Stream['next']>>;

const rootsIn = ({ resources }: { resources: { value: Uint8Array }[] }): string[] =>
  resources.flatMap(({ value }) => fromBinary(ProxyConfigSchema, value).caCertificatesPem);

async function next(stream: Stream, roots: number) {
  const response = await stream.next();
  expect(rootsIn(response)).toHaveLength(roots);
  return response;
}

function acknowledge(stream: Stream, { versionInfo, nonce }: { versionInfo: string; nonce: string }, more = {}): void {
  stream.send({ typeUrl: proxyConfigType, versionInfo, responseNonce: nonce, ...more });
}

interface Page {
  readonly stage: string;
  readonly signer: { readonly id: string };
  readonly roots: readonly object[];
  readonly waitsFor?: { readonly missing: number; readonly workloads: readonly string[] };
}
const page = async (plane: ControlPlane): Promise<Page> => (await plane.get('/debug/authorityz')).json();
async function order(plane: ControlPlane, what: 'rotate' | 'taint' | 'revert'): Promise<void> {
  const url = `http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=${what}`;
  expect((await fetch(url, { method: 'POST', headers: plane.operator })).status).toBe(202);
}
const rotate = (plane: ControlPlane) => order(plane, 'rotate');
const stage = (plane: ControlPlane, wanted: string) =>
  eventually(`the stage ${wanted}`, async () => (await page(plane)).stage === wanted);
/** A missing workload is looked at again within this time. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 600));

describe('the roots that agents are told', () => {
  it('are those of the authority, one certificate each, and come again when they change', async () => {
    const plane = await serving();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    const first = await next(stream, 1);
    const [root] = rootsIn(first);
    expect(readCertificates(root!).map(({ subjectKeyId }) => subjectKeyId)).toEqual([(await page(plane)).signer.id]);
    acknowledge(stream, first);
    await rotate(plane);
    expect(rootsIn(await next(stream, 2))).toContain(root);
  });

  it('come with the word which of them is tainted, when there is something better', async () => {
    const plane = await serving();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    const tainted = ({ resources }: { resources: { value: Uint8Array }[] }): string[] => taintedIn(resources[0]!.value);
    const first = await next(stream, 1);
    const [root] = readCertificates(rootsIn(first)[0]!);
    acknowledge(stream, first);
    await order(plane, 'taint');
    const second = await next(stream, 2);
    expect(tainted(second)).toEqual([]);
    acknowledge(stream, second);
    const third = await next(stream, 2);
    expect(tainted(third)).toEqual([root!.sha256]);
    acknowledge(stream, third);
    await agent.renew();
    acknowledge(stream, third, agent.has);
    const fourth = await next(stream, 1);
    expect(tainted(fourth)).toEqual([]);
    acknowledge(stream, fourth);
    await stage(plane, 'steady');
  });

  it('are on their way to somebody: what they said before of others counts no more', async () => {
    const plane = await serving();
    const before = (await page(plane)).signer.id;
    const agents = [new Agent(plane, 'a'), new Agent(plane, 'b')];
    for (const agent of agents) await agent.renew();
    const streams = agents.map((agent) => agent.sotw());
    for (const stream of streams) acknowledge(stream, await next(stream, 1));
    await rotate(plane);
    const both = await Promise.all(streams.map((stream) => next(stream, 2)));
    for (const [i, stream] of streams.entries()) acknowledge(stream, both[i]!);
    await stage(plane, 'signing');
    for (const agent of agents) await agent.renew();
    for (const [i, stream] of streams.entries()) acknowledge(stream, both[i]!, agents[i]!.has);
    // The next root alone: nobody has said yet that they trust it, and they may by now.
    for (const stream of streams) await next(stream, 1);
    await order(plane, 'revert');
    await stage(plane, 'trusting');
    await settled();
    expect(await page(plane)).toMatchObject({ stage: 'trusting', waitsFor: { missing: 2 } });
    for (const stream of streams) acknowledge(stream, await next(stream, 2));
    await stage(plane, 'signing');
    expect((await page(plane)).signer.id).toBe(before);
  });

  it('lead a rotation from stage to stage by the word of every agent', async () => {
    const plane = await serving();
    const agents = [new Agent(plane, 'a'), new Agent(plane, 'b')];
    for (const agent of agents) await agent.renew();
    const [first, second] = agents.map((agent) => agent.sotw()) as [Stream, Stream];
    for (const stream of [first, second]) acknowledge(stream, await next(stream, 1));
    await rotate(plane);
    const early = await next(first, 2);
    acknowledge(first, early);
    const last = await next(second, 2);
    await eventually('one is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect((await page(plane)).waitsFor?.workloads[0]).toContain(agents[1]!.node.id);
    acknowledge(second, last);
    await stage(plane, 'signing');
    for (const agent of agents) await agent.renew();
    // A certificate that was signed has not arrived: its agent may have ended before its Envoy had it.
    acknowledge(first, early, agents[0]!.has);
    await eventually('one is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect(await page(plane)).toMatchObject({
      stage: 'signing',
      waitsFor: {
        workloads: [expect.stringMatching(`${agents[1]!.node.id} .renewed, but the renewal is not confirmed; `)],
      },
    });
    acknowledge(second, last, agents[1]!.has);
    for (const stream of [first, second]) acknowledge(stream, await next(stream, 1));
    await stage(plane, 'steady');
    expect((await page(plane)).roots).toHaveLength(1);
    expect(plane.departures()).toEqual([]);
  });

  it('are acknowledged in delta as well', async () => {
    const plane = await serving();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.delta();
    const first = await stream.next();
    stream.send({ typeUrl: proxyConfigType, responseNonce: first.nonce });
    await rotate(plane);
    const second = await stream.next();
    const [resource] = second.resources;
    expect(fromBinary(ProxyConfigSchema, resource!.resource!.value).caCertificatesPem).toHaveLength(2);
    stream.send({ typeUrl: proxyConfigType, responseNonce: second.nonce });
    await stage(plane, 'signing');
  });

  it('are trusted by an agent that said so before it had its certificate', async () => {
    const plane = await serving();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    await rotate(plane);
    await stage(plane, 'trusting');
    const other = new Agent(plane, 'b');
    await other.renew();
    const early = other.sotw(nodeOf(cart, 'c'));
    acknowledge(early, await early.next());
    const latest = new Agent(plane, 'c');
    await settled();
    await latest.renew();
    await eventually('those that said nothing are missing', async () => (await page(plane)).waitsFor?.missing === 2);
    expect((await page(plane)).waitsFor?.workloads.join()).not.toContain(latest.node.id);
    expect(stream.responses.length).toBeGreaterThan(0);
  });

  it('are sent to nobody who does not ask for them', async () => {
    const plane = await serving();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = plane.client(plane.port('ads.listening', 1)).sotw();
    stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    const response = await stream.next();
    stream.send({ typeUrl: typeUrls.CDS, versionInfo: response.versionInfo, responseNonce: response.nonce });
    await rotate(plane);
    await stage(plane, 'trusting');
    await settled();
    expect(new Set(stream.responses.map(({ typeUrl }) => typeUrl))).toEqual(new Set([typeUrls.CDS]));
  });
});

describe('roots of the mesh configuration', () => {
  const life = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };
  const rootOf = (commonName: string) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const der = issueRoot(privateKey, { organization: 'elsewhere', commonName }, life);
    return { privateKey, certificate: readCertificate(der) };
  };
  const [own, foreign] = [rootOf('own'), rootOf('foreign')];
  const meshOf = (...entries: object[]): string => JSON.stringify({ caCertificates: entries });
  const ours = { pem: own.certificate.pem };
  const theirs = { pem: foreign.certificate.pem, trustDomains: ['other.example'] };
  /** A certificate that says cart of this mesh, signed by whoever. */
  const cartOf = (issuer: typeof own) => {
    const names = { uris: ['spiffe://cluster.local/ns/shop/sa/cart'], dns: [], ips: [] };
    return { chain: readCertificate(issueLeaf(issuer, createPublicKey(key), names, life)).pem, key };
  };
  const asks = (plane: ControlPlane, issuer: typeof own) =>
    askForCertificate(given.caller.client(plane.port('ads.listening'), cartOf(issuer)), { csr: makeRequest(key, []) });

  it('are trusted for the mesh’s own trust domain alone: one of another cannot sign for us', async () => {
    const prepare = ({ root }: { root: string }): void => writeFileSync(join(root, 'mesh'), meshOf(ours, theirs));
    const plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, prepare, {
      SELF_SIGNED_CA_DIR: given.directory,
    });
    await plane.ready();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    const first = await next(stream, 2);
    expect(rootsIn(first)).toContain(own.certificate.pem);
    expect(rootsIn(first)).not.toContain(foreign.certificate.pem);
    await asks(plane, own);
    await expect(asks(plane, foreign)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect(
      linesOf(plane.lines, 'authority.rootIgnored', { reason: /trust domain other\.example is not one of the mesh/ }),
    ).toHaveLength(1);
    // Taken out again while it runs.
    acknowledge(stream, first);
    writeFileSync(join(plane.root, 'mesh'), meshOf());
    await next(stream, 1);
    await expect(asks(plane, own)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  it('do not bend the word that a rotation waits for', async () => {
    const prepare = ({ root }: { root: string }): void => writeFileSync(join(root, 'mesh'), meshOf(ours));
    const plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, prepare, {
      SELF_SIGNED_CA_DIR: given.directory,
    });
    await plane.ready();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    acknowledge(stream, await next(stream, 2));
    await rotate(plane);
    acknowledge(stream, await next(stream, 3));
    await stage(plane, 'signing');
  });
});

describe('no word', () => {
  const liars: [string, (plane: ControlPlane, agent: Agent) => Promise<void>][] = [
    [
      'is a rejection',
      async (_, agent) => {
        const stream = agent.sotw();
        acknowledge(stream, await next(stream, 2), { errorDetail: { code: 13, message: 'no' } });
      },
    ],
    [
      'is an acknowledgement of something else than was sent',
      async (_, agent) => {
        const stream = agent.sotw();
        const { versionInfo, nonce } = await next(stream, 2);
        acknowledge(stream, { versionInfo, nonce: `${nonce}1` });
      },
    ],
    [
      'is a first request that says the version',
      async (_, agent) => {
        const first = agent.sotw();
        const { versionInfo } = await next(first, 2);
        const second = agent.sotw();
        second.send({ node: agent.node, typeUrl: proxyConfigType, versionInfo });
      },
    ],
    [
      'comes over a port without TLS',
      async (plane, agent) => {
        const stream = subscribed(plane.client(plane.port('ads.listening', 1)).sotw(), agent.node);
        acknowledge(stream, await next(stream, 2));
      },
    ],
    [
      'comes from another workload of the namespace, with the ID of this one',
      async (plane, agent) => {
        const hostile = new Agent(plane, 'x', { namespace: 'shop', serviceAccount: 'other' });
        await hostile.renew({ namespace: 'shop', serviceAccount: 'other' });
        const stream = hostile.sotw(agent.node);
        acknowledge(stream, await next(stream, 2));
      },
    ],
    [
      'is that of another node of the workload',
      async (_, agent) => {
        const stream = agent.sotw(nodeOf(cart, 'y'));
        acknowledge(stream, await next(stream, 2));
      },
    ],
  ];
  it.each(liars)('%s', async (_, lie) => {
    const plane = await serving();
    const agent = new Agent(plane);
    await agent.renew();
    await rotate(plane);
    await stage(plane, 'trusting');
    await lie(plane, agent);
    await settled();
    const { waitsFor, stage: now } = await page(plane);
    expect(now).toBe('trusting');
    expect(waitsFor?.workloads.join()).toContain(agent.node.id);
    // The same agent, when it means it.
    const stream = agent.sotw();
    acknowledge(stream, await next(stream, 2));
    await eventually('its word counts', async () => {
      const { waitsFor: left, stage: then } = await page(plane);
      return then !== 'trusting' || left?.workloads.join().includes(agent.node.id) !== true;
    });
  });
});

describe('no word of what has arrived', () => {
  const liars: [
    string,
    (plane: ControlPlane, agent: Agent, stream: Stream, response: Response) => Promise<void> | void,
  ][] = [
    [
      'is a serial number that was not signed for it',
      (_, __, stream, response) => {
        for (const said of ['4A', '', 'A'.repeat(100), '4a', 7, null, ['4A'], { a: 1 }]) {
          acknowledge(stream, response, { node: { metadata: { CERTIFICATE_SERIAL_NUMBER: said } } });
        }
      },
    ],
    ['is that of the certificate before', (_, agent, stream, response) => acknowledge(stream, response, agent.had)],
    [
      'comes in a node that is larger than a few words',
      (_, agent, stream, response) => {
        const { metadata } = (agent.has as { node: { metadata: object } }).node;
        acknowledge(stream, response, { node: { metadata: { ...metadata, more: 'x'.repeat(5_000) } } });
      },
    ],
    [
      'comes over a port without TLS',
      async (plane, agent) => {
        const stream = subscribed(plane.client(plane.port('ads.listening', 1)).sotw(), agent.node);
        acknowledge(stream, await next(stream, 2), agent.has);
      },
    ],
    [
      'comes from another workload of the namespace, with the ID of this one',
      async (plane, agent) => {
        const hostile = new Agent(plane, 'x', { namespace: 'shop', serviceAccount: 'other' });
        await hostile.renew({ namespace: 'shop', serviceAccount: 'other' });
        const stream = hostile.sotw(agent.node);
        acknowledge(stream, await next(stream, 2), agent.has);
      },
    ],
    [
      'is that of another node of the workload',
      async (_, agent) => {
        const stream = agent.sotw(nodeOf(cart, 'y'));
        acknowledge(stream, await next(stream, 2), agent.has);
      },
    ],
  ];
  it.each(liars)('%s', async (_, lie) => {
    const plane = await serving();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    acknowledge(stream, await next(stream, 1));
    await rotate(plane);
    const both = await next(stream, 2);
    acknowledge(stream, both);
    await stage(plane, 'signing');
    await agent.renew();
    await lie(plane, agent, stream, both);
    await settled();
    expect((await page(plane)).stage).toBe('signing');
    expect((await page(plane)).waitsFor?.workloads.join()).toContain(agent.node.id);
    acknowledge(stream, both, agent.has);
    await stage(plane, 'dropping');
  });
});

describe('the word of a workload with two streams', () => {
  const node = nodeOf(cart);
  const identity = 'spiffe://cluster.local/ns/shop/sa/cart';
  const workload = { identity, node: node.id };
  const bundle = (name: string): TrustBundle => {
    const life = { notBefore: new Date(), notAfter: new Date(Date.now() + 3_600_000) };
    return new TrustBundle('cluster.local', [
      readCertificate(issueRoot(key, { organization: 'mesh', commonName: name }, life)),
    ]);
  };
  const given = () => {
    const roots = new RootsForAgents({
      trustDomains: () => ['cluster.local'],
      trusted: () => {},
      arrived: () => {},
      sending: () => {},
      changed: () => {},
    });
    const source = roots.beside({
      open: () => ({ resources: { get: () => undefined, typesToPush: () => [], close() {} } }),
    });
    const open = (): NodeResources => {
      const opened = source.open({ ...node, identities: [identity] } as NodeIdentity);
      if ('error' in opened) throw new Error(opened.error);
      return opened.resources;
    };
    const says = (stream: NodeResources): void =>
      stream.acknowledged?.(proxyConfigType, stream.get(proxyConfigType, [])!.version);
    return { roots, open, says };
  };

  it('outlives the older stream', () => {
    const { roots, open, says } = given();
    const older = open();
    roots.publish(bundle('a'), ['one']);
    says(older);
    const newer = open();
    roots.publish(bundle('b'), ['two']);
    says(newer);
    older.close();
    expect(roots.wordOf(workload)).toEqual(['two']);
    newer.close();
    expect(roots.wordOf(workload)).toBeUndefined();
  });

  it('is the older one’s again when the newer stream ends', () => {
    const { roots, open, says } = given();
    const [older, newer] = [open(), open()];
    roots.publish(bundle('a'), ['one']);
    says(older);
    roots.publish(bundle('b'), ['two']);
    says(newer);
    newer.close();
    expect(roots.wordOf(workload)).toEqual(['one']);
  });
});
