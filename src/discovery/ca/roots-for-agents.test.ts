/** Agents receive trusted roots over xDS. A rotation proceeds only when authenticated agents report them. */

import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { proxyConfigType } from '../../../machines/discovery/xds/ads-types.ts';
import { typeUrls } from '../../../test/ads-client.ts';
import { requestCertificateChain, serverName } from '../../../test/harness/certificate-caller.ts';
import { ControlPlane, sidecar } from '../../../test/harness/control-plane.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { givenAuthority, servingAuthority } from '../../../test/harness/given-authority.ts';
import { linesOf } from '../../../test/harness/logged-line.ts';
import { readTaintedRoots } from '../../agent/xds/discovery-wire.ts';
import { ProxyConfigSchema } from '../../gen/istio/mesh/v1alpha1/proxy_pb.ts';
import { readCertificate, readCertificates } from '../../identity/certificate.ts';
import { createRequest } from '../../identity/certificate-request.ts';
import { issueLeaf, issueRoot } from '../../identity/issue.ts';
import { TrustBundle } from '../../identity/trust-bundle.ts';
import type { NodeIdentity, NodeResources } from '../xds/resource-source.ts';
import { RootsForAgents } from './roots-for-agents.ts';

const cart = { namespace: 'shop', serviceAccount: 'cart' };
const key = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;

const authority = givenAuthority();
const startPlane = (env?: NodeJS.ProcessEnv): Promise<ControlPlane> => servingAuthority(authority, env);

const nodeOf = (account: typeof cart, id = 'a'): typeof sidecar => ({
  ...sidecar,
  id: `sidecar~127.0.0.1~${id}.${account.namespace}~${account.namespace}.svc.cluster.local`,
  metadata: { ...sidecar.metadata, NAMESPACE: account.namespace },
});

/** An agent with a client certificate that uses xDS over TLS. */
class Agent {
  readonly node: typeof sidecar;
  readonly #plane: ControlPlane;
  readonly #chains: string[] = [];

  constructor(plane: ControlPlane, id = 'a', account = cart) {
    this.#plane = plane;
    this.node = nodeOf(account, id);
  }

  async renew(account = cart): Promise<void> {
    const certificateRequest = {
      csr: createRequest(key, []),
      bearer: await authority.caller.token(account),
      node: this.node.id,
    };
    const chain = await requestCertificateChain(
      authority.caller.client(this.#plane.port('ads.listening')),
      certificateRequest,
    );
    this.#chains.push(chain[0]!);
  }

  /** Node metadata that contains the agent's newest certificate. */
  get currentReport(): object {
    return withSerialNumber(this.#chains.at(-1)!);
  }

  /** Node metadata that contains the agent's previous certificate. */
  get previousReport(): object {
    return withSerialNumber(this.#chains.at(-2)!);
  }

  sotw(node: object = this.node) {
    return subscribe(this.#client().sotw(), node);
  }

  delta() {
    const stream = this.#client().delta();
    stream.send({ node: this.node, typeUrl: proxyConfigType });
    return stream;
  }

  get #credentials() {
    const chain = this.#chains.at(-1);
    return chain === undefined ? undefined : { chain, key };
  }

  #client() {
    return this.#plane.client(
      this.#plane.port('ads.listening'),
      authority.caller.channel(this.#credentials),
      serverName,
    );
  }
}

const withSerialNumber = (chain: string): object => ({
  node: { metadata: { CERTIFICATE_SERIAL_NUMBER: readCertificates(chain)[0]!.serialNumber } },
});

function subscribe<Stream extends { send(request: object): void }>(stream: Stream, node: object): Stream {
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

function acknowledge(
  stream: Stream,
  { versionInfo, nonce }: { versionInfo: string; nonce: string },
  extraFields = {},
): void {
  stream.send({ typeUrl: proxyConfigType, versionInfo, responseNonce: nonce, ...extraFields });
}

interface Page {
  readonly stage: string;
  readonly signer: { readonly id: string };
  readonly roots: readonly object[];
  readonly waitsFor?: { readonly missing: number; readonly workloads: readonly string[] };
}
const page = async (plane: ControlPlane): Promise<Page> => (await plane.get('/debug/authorityz')).json();
async function order(plane: ControlPlane, action: 'rotate' | 'taint' | 'revert'): Promise<void> {
  const url = `http://127.0.0.1:${plane.port('http.listening')}/debug/authorityz?order=${action}`;
  expect((await fetch(url, { method: 'POST', headers: plane.operator })).status).toBe(202);
}
const rotate = (plane: ControlPlane) => order(plane, 'rotate');
const stage = (plane: ControlPlane, expected: string) =>
  eventually(`the stage ${expected}`, async () => (await page(plane)).stage === expected);
/** Exceeds the interval at which the control plane checks again which workloads are missing. */
const waitForCheck = () => new Promise((resolve) => setTimeout(resolve, 600));

describe('the distributed roots', () => {
  it('contain each root of the authority once, and are pushed when they change', async () => {
    const plane = await startPlane();
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

  it('contain the hash of a tainted root when another root can replace it', async () => {
    const plane = await startPlane();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    const taintedRootsIn = ({ resources }: { resources: { value: Uint8Array }[] }): string[] =>
      readTaintedRoots(resources[0]!.value);
    const first = await next(stream, 1);
    const [root] = readCertificates(rootsIn(first)[0]!);
    acknowledge(stream, first);
    await order(plane, 'taint');
    const secondResponse = await next(stream, 2);
    expect(taintedRootsIn(secondResponse)).toEqual([]);
    acknowledge(stream, secondResponse);
    const third = await next(stream, 2);
    expect(taintedRootsIn(third)).toEqual([root!.sha256]);
    acknowledge(stream, third);
    await agent.renew();
    acknowledge(stream, third, agent.currentReport);
    const fourth = await next(stream, 1);
    expect(taintedRootsIn(fourth)).toEqual([]);
    acknowledge(stream, fourth);
    await stage(plane, 'steady');
  });

  it("invalidate a workload's earlier report about other roots when they are sent", async () => {
    const plane = await startPlane();
    const previousSigner = (await page(plane)).signer.id;
    const agents = [new Agent(plane, 'a'), new Agent(plane, 'b')];
    for (const agent of agents) await agent.renew();
    const streams = agents.map((agent) => agent.sotw());
    for (const stream of streams) acknowledge(stream, await next(stream, 1));
    await rotate(plane);
    const bothResponses = await Promise.all(streams.map((stream) => next(stream, 2)));
    for (const [i, stream] of streams.entries()) acknowledge(stream, bothResponses[i]!);
    await stage(plane, 'signing');
    for (const agent of agents) await agent.renew();
    for (const [i, stream] of streams.entries()) acknowledge(stream, bothResponses[i]!, agents[i]!.currentReport);
    // These roots are not acknowledged by any agent.
    for (const stream of streams) await next(stream, 1);
    await order(plane, 'revert');
    await stage(plane, 'trusting');
    await waitForCheck();
    expect(await page(plane)).toMatchObject({ stage: 'trusting', waitsFor: { missing: 2 } });
    for (const stream of streams) acknowledge(stream, await next(stream, 2));
    await stage(plane, 'signing');
    expect((await page(plane)).signer.id).toBe(previousSigner);
  });

  it('complete a rotation step when an agent acknowledges roots that it rejected before', async () => {
    const plane = await startPlane();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    acknowledge(stream, await next(stream, 1));
    await rotate(plane);
    const bothRoots = await next(stream, 2);
    acknowledge(stream, bothRoots, {
      errorDetail: { code: 13, message: 'Envoy did not acknowledge the trust bundle' },
    });
    await waitForCheck();
    expect((await page(plane)).stage).toBe('trusting');
    acknowledge(stream, bothRoots);
    await stage(plane, 'signing');
  });

  it('complete a rotation step when every agent has acknowledged them', async () => {
    const plane = await startPlane();
    const agents = [new Agent(plane, 'a'), new Agent(plane, 'b')];
    for (const agent of agents) await agent.renew();
    const [first, secondStream] = agents.map((agent) => agent.sotw()) as [Stream, Stream];
    for (const stream of [first, secondStream]) acknowledge(stream, await next(stream, 1));
    await rotate(plane);
    const earlyResponse = await next(first, 2);
    acknowledge(first, earlyResponse);
    const last = await next(secondStream, 2);
    await eventually('one is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect((await page(plane)).waitsFor?.workloads[0]).toContain(agents[1]!.node.id);
    acknowledge(secondStream, last);
    await stage(plane, 'signing');
    for (const agent of agents) await agent.renew();
    // A signed certificate may not have arrived, because the agent can exit before Envoy receives it.
    acknowledge(first, earlyResponse, agents[0]!.currentReport);
    await eventually('one is missing', async () => (await page(plane)).waitsFor?.missing === 1);
    expect(await page(plane)).toMatchObject({
      stage: 'signing',
      waitsFor: {
        workloads: [expect.stringMatching(`${agents[1]!.node.id} .renewed, but the renewal is not confirmed; `)],
      },
    });
    acknowledge(secondStream, last, agents[1]!.currentReport);
    for (const stream of [first, secondStream]) acknowledge(stream, await next(stream, 1));
    await stage(plane, 'steady');
    expect((await page(plane)).roots).toHaveLength(1);
    expect(plane.deviations()).toEqual([]);
  });

  it('can be acknowledged over delta xDS', async () => {
    const plane = await startPlane();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.delta();
    const first = await stream.next();
    stream.send({ typeUrl: proxyConfigType, responseNonce: first.nonce });
    await rotate(plane);
    const secondResponse = await stream.next();
    const [resource] = secondResponse.resources;
    expect(fromBinary(ProxyConfigSchema, resource!.resource!.value).caCertificatesPem).toHaveLength(2);
    stream.send({ typeUrl: proxyConfigType, responseNonce: secondResponse.nonce });
    await stage(plane, 'signing');
  });

  it('count as trusted by an agent that acknowledges them before it receives its certificate', async () => {
    const plane = await startPlane();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    await rotate(plane);
    await stage(plane, 'trusting');
    const other = new Agent(plane, 'b');
    await other.renew();
    const earlyStream = other.sotw(nodeOf(cart, 'c'));
    acknowledge(earlyStream, await earlyStream.next());
    const latest = new Agent(plane, 'c');
    await waitForCheck();
    await latest.renew();
    await eventually('those that said nothing are missing', async () => (await page(plane)).waitsFor?.missing === 2);
    expect((await page(plane)).waitsFor?.workloads.join()).not.toContain(latest.node.id);
    expect(stream.responses.length).toBeGreaterThan(0);
  });

  it('are sent only to subscribed clients', async () => {
    const plane = await startPlane();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = plane.client(plane.port('ads.listening', 1)).sotw();
    stream.send({ node: sidecar, typeUrl: typeUrls.CDS });
    const response = await stream.next();
    stream.send({ typeUrl: typeUrls.CDS, versionInfo: response.versionInfo, responseNonce: response.nonce });
    await rotate(plane);
    await stage(plane, 'trusting');
    await waitForCheck();
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
  const [meshRoot, foreignRoot] = [rootOf('own'), rootOf('foreign')];
  const meshOf = (...entries: object[]): string => JSON.stringify({ caCertificates: entries });
  const ownBundle = { pem: meshRoot.certificate.pem };
  const foreignBundle = { pem: foreignRoot.certificate.pem, trustDomains: ['other.example'] };
  /** A certificate with the SPIFFE ID of `cart`. */
  const cartOf = (issuer: typeof meshRoot) => {
    const names = { uris: ['spiffe://cluster.local/ns/shop/sa/cart'], dns: [], ips: [] };
    return { chain: readCertificate(issueLeaf(issuer, createPublicKey(key), names, life)).pem, key };
  };
  const openAs = (plane: ControlPlane, issuer: typeof meshRoot) =>
    requestCertificateChain(authority.caller.client(plane.port('ads.listening'), cartOf(issuer)), {
      csr: createRequest(key, []),
    });

  it('verify only their own trust domain, so that roots of other domains cannot sign for the mesh', async () => {
    const prepare = ({ root }: { root: string }): void =>
      writeFileSync(join(root, 'mesh'), meshOf(ownBundle, foreignBundle));
    const plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, prepare, {
      SELF_SIGNED_CA_DIR: authority.directory,
    });
    await plane.ready();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    const first = await next(stream, 2);
    expect(rootsIn(first)).toContain(meshRoot.certificate.pem);
    expect(rootsIn(first)).not.toContain(foreignRoot.certificate.pem);
    await openAs(plane, meshRoot);
    await expect(openAs(plane, foreignRoot)).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect(
      linesOf(plane.lines, 'authority.rootIgnored', { reason: /trust domain other\.example is not one of the mesh/ }),
    ).toHaveLength(1);
    // Removes the roots at run time.
    acknowledge(stream, first);
    writeFileSync(join(plane.root, 'mesh'), meshOf());
    await next(stream, 1);
    await expect(openAs(plane, meshRoot)).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  it("do not affect reports about the authority's roots", async () => {
    const prepare = ({ root }: { root: string }): void => writeFileSync(join(root, 'mesh'), meshOf(ownBundle));
    const plane = ControlPlane.starting({ secureGRPCAddr: '127.0.0.1:0' }, prepare, {
      SELF_SIGNED_CA_DIR: authority.directory,
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

describe('a trust report', () => {
  const liars: [string, (plane: ControlPlane, agent: Agent) => Promise<void>][] = [
    [
      'for a NACK',
      async (_, agent) => {
        const stream = agent.sotw();
        acknowledge(stream, await next(stream, 2), { errorDetail: { code: 13, message: 'no' } });
      },
    ],
    [
      'for an ACK of a version that was not sent',
      async (_, agent) => {
        const stream = agent.sotw();
        const { versionInfo, nonce } = await next(stream, 2);
        acknowledge(stream, { versionInfo, nonce: `${nonce}1` });
      },
    ],
    [
      'for an initial request that contains the version',
      async (_, agent) => {
        const first = agent.sotw();
        const { versionInfo } = await next(first, 2);
        const secondStream = agent.sotw();
        secondStream.send({ node: agent.node, typeUrl: proxyConfigType, versionInfo });
      },
    ],
    [
      'if it is sent over a port without TLS',
      async (plane, agent) => {
        const stream = subscribe(plane.client(plane.port('ads.listening', 1)).sotw(), agent.node);
        acknowledge(stream, await next(stream, 2));
      },
    ],
    [
      'if another workload of the namespace sends it with the ID of this one',
      async (plane, agent) => {
        const hostile = new Agent(plane, 'x', { namespace: 'shop', serviceAccount: 'other' });
        await hostile.renew({ namespace: 'shop', serviceAccount: 'other' });
        const stream = hostile.sotw(agent.node);
        acknowledge(stream, await next(stream, 2));
      },
    ],
    [
      'from another node of the workload',
      async (_, agent) => {
        const stream = agent.sotw(nodeOf(cart, 'y'));
        acknowledge(stream, await next(stream, 2));
      },
    ],
  ];
  it.each(liars)('is not recorded %s', async (_, lie) => {
    const plane = await startPlane();
    const agent = new Agent(plane);
    await agent.renew();
    await rotate(plane);
    await stage(plane, 'trusting');
    await lie(plane, agent);
    await waitForCheck();
    const { waitsFor, stage: now } = await page(plane);
    expect(now).toBe('trusting');
    expect(waitsFor?.workloads.join()).toContain(agent.node.id);
    // The same agent now sends a valid report.
    const stream = agent.sotw();
    acknowledge(stream, await next(stream, 2));
    await eventually('its word counts', async () => {
      const { waitsFor: remainingWait, stage: nextStage } = await page(plane);
      return nextStage !== 'trusting' || remainingWait?.workloads.join().includes(agent.node.id) !== true;
    });
  });
});

describe('an arrival report', () => {
  const liars: [
    string,
    (plane: ControlPlane, agent: Agent, stream: Stream, response: Response) => Promise<void> | void,
  ][] = [
    [
      'for a serial number that was not issued to the workload',
      (_, __, stream, response) => {
        for (const invalidSerial of ['4A', '', 'A'.repeat(100), '4a', 7, null, ['4A'], { a: 1 }]) {
          acknowledge(stream, response, { node: { metadata: { CERTIFICATE_SERIAL_NUMBER: invalidSerial } } });
        }
      },
    ],
    [
      'for the previous certificate',
      (_, agent, stream, response) => acknowledge(stream, response, agent.previousReport),
    ],
    [
      'if the node is too large',
      (_, agent, stream, response) => {
        const { metadata } = (agent.currentReport as { node: { metadata: object } }).node;
        acknowledge(stream, response, { node: { metadata: { ...metadata, more: 'x'.repeat(5_000) } } });
      },
    ],
    [
      'if it is sent over a port without TLS',
      async (plane, agent) => {
        const stream = subscribe(plane.client(plane.port('ads.listening', 1)).sotw(), agent.node);
        acknowledge(stream, await next(stream, 2), agent.currentReport);
      },
    ],
    [
      'if another workload of the namespace sends it with the ID of this one',
      async (plane, agent) => {
        const hostile = new Agent(plane, 'x', { namespace: 'shop', serviceAccount: 'other' });
        await hostile.renew({ namespace: 'shop', serviceAccount: 'other' });
        const stream = hostile.sotw(agent.node);
        acknowledge(stream, await next(stream, 2), agent.currentReport);
      },
    ],
    [
      'from another node of the workload',
      async (_, agent) => {
        const stream = agent.sotw(nodeOf(cart, 'y'));
        acknowledge(stream, await next(stream, 2), agent.currentReport);
      },
    ],
  ];
  it.each(liars)('is not recorded %s', async (_, lie) => {
    const plane = await startPlane();
    const agent = new Agent(plane);
    await agent.renew();
    const stream = agent.sotw();
    acknowledge(stream, await next(stream, 1));
    await rotate(plane);
    const bothRoots = await next(stream, 2);
    acknowledge(stream, bothRoots);
    await stage(plane, 'signing');
    await agent.renew();
    await lie(plane, agent, stream, bothRoots);
    await waitForCheck();
    expect((await page(plane)).stage).toBe('signing');
    expect((await page(plane)).waitsFor?.workloads.join()).toContain(agent.node.id);
    acknowledge(stream, bothRoots, agent.currentReport);
    await stage(plane, 'dropping');
  });
});

describe('reports of a workload with two streams', () => {
  const node = nodeOf(cart);
  const identity = 'spiffe://cluster.local/ns/shop/sa/cart';
  const workload = { identity, node: node.id };
  const bundle = (name: string): TrustBundle => {
    const life = { notBefore: new Date(), notAfter: new Date(Date.now() + 3_600_000) };
    return new TrustBundle('cluster.local', [
      readCertificate(issueRoot(key, { organization: 'mesh', commonName: name }, life)),
    ]);
  };
  const createRoots = () => {
    const roots = new RootsForAgents({
      trustDomains: () => ['cluster.local'],
      onTrusted: () => {},
      onArrived: () => {},
      onSending: () => {},
      onChanged: () => {},
    });
    const source = roots.addRootsTo({
      openNode: () => ({ resources: { get: () => undefined, typesToPush: () => [], close() {} } }),
    });
    const openResources = (): NodeResources => {
      const openedNode = source.openNode({ ...node, identities: [identity] } as NodeIdentity);
      if ('error' in openedNode) throw new Error(openedNode.error);
      return openedNode.resources;
    };
    const reportTrust = (stream: NodeResources): void =>
      stream.acknowledged?.(proxyConfigType, stream.get(proxyConfigType, [])!.version);
    return { roots, open: openResources, reportTrust };
  };

  it('contain the certificate of the last report of a stream that is still open', () => {
    const { roots, open } = createRoots();
    const reportCertificate = (stream: NodeResources, serial: string): void =>
      stream.nodeUpdated?.(proxyConfigType, { CERTIFICATE_SERIAL_NUMBER: serial });
    const [older, newer] = [open(), open()];
    expect(roots.certificateOf(workload)).toBeUndefined();
    reportCertificate(older, '0A');
    reportCertificate(newer, '0B');
    expect(roots.certificateOf(workload)).toBe('0B');
    newer.close();
    expect(roots.certificateOf(workload)).toBe('0A');
    older.close();
    expect(roots.certificateOf(workload)).toBeUndefined();
  });

  it('remain after the older stream ends', () => {
    const { roots, open, reportTrust } = createRoots();
    const olderNode = open();
    roots.publish(bundle('a'), ['one']);
    reportTrust(olderNode);
    const newer = open();
    roots.publish(bundle('b'), ['two']);
    reportTrust(newer);
    olderNode.close();
    expect(roots.reportOf(workload)).toEqual(['two']);
    newer.close();
    expect(roots.reportOf(workload)).toBeUndefined();
  });

  it('revert to those of the older stream when the newer one ends', () => {
    const { roots, open, reportTrust } = createRoots();
    const [olderNode, newer] = [open(), open()];
    roots.publish(bundle('a'), ['one']);
    reportTrust(olderNode);
    roots.publish(bundle('b'), ['two']);
    reportTrust(newer);
    newer.close();
    expect(roots.reportOf(workload)).toEqual(['one']);
  });
});
