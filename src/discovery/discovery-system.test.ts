/** Tests the complete control plane in this process, with files as input and gRPC and HTTP as output. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { afterEach, describe, expect, it } from 'vitest';
import { typeUrls } from '../../test/ads-client.ts';
import {
  ControlPlane,
  cartCluster,
  serviceEntry,
  sidecar,
  stopControlPlanes,
} from '../../test/harness/control-plane.ts';
import { eventually } from '../../test/harness/eventually.ts';
import { linesOf } from '../../test/harness/logged-line.ts';
import { msWithoutQueueing } from '../../test/harness/without-queueing.ts';
import { ClusterSchema } from '../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { TraceLine } from '../runtime/trace/trace.ts';

afterEach(stopControlPlanes);

describe('pilot-discovery', () => {
  it('serves the objects of the directory, and a changed service within 1 s', async () => {
    const plane = await ControlPlane.serving();
    const { stream, clusters } = await plane.subscribe();
    expect(clusters).toContain(cartCluster);
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    const spentMs = await msWithoutQueueing([process.pid], () => {
      plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
      return stream.next();
    });
    expect(spentMs).toBeLessThan(1_000);
    expect(stream.responses.at(-1)!.resources.map(({ value }) => fromBinary(ClusterSchema, value).name)).toContain(
      'outbound|81||cart.example.com',
    );
  });

  it('pushes when only the age of an object in a file changes and this decides a conflict', async () => {
    const rule = (name: string, year: number, seconds: number): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: ${name}, namespace: shop, creationTimestamp: "${year}-01-01T00:00:00Z" }
spec: { host: cart.example.com, trafficPolicy: { connectionPool: { tcp: { connectTimeout: ${seconds}s } } } }
---`;
    const rules = (olderYear: number, younger: number): string => rule('one', olderYear, 11) + rule('two', younger, 22);
    const plane = await ControlPlane.serving({}, { 'cart.yaml': serviceEntry(), 'rules.yaml': rules(2024, 2025) });
    const { stream } = await plane.subscribe();
    const timeoutOfCart = (): bigint | undefined =>
      stream.responses
        .at(-1)!
        .resources.map(({ value }) => fromBinary(ClusterSchema, value))
        .find(({ name }) => name === cartCluster)?.connectTimeout?.seconds;
    expect(timeoutOfCart()).toBe(11n);
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    plane.write('rules.yaml', rules(2026, 2025));
    await stream.next();
    expect(timeoutOfCart()).toBe(22n);
  });

  it('pushes only endpoints if no other resource changed', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
    const first = await stream.next();
    stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster], responseNonce: first.nonce });
    plane.write('cart.yaml', serviceEntry(['10.1.1.1', '10.1.1.2']));
    const pushedResponse = await stream.next();
    expect(pushedResponse.typeUrl).toBe(typeUrls.EDS);
    // Envoy's configuration dump contains the replica that sent the configuration.
    expect(JSON.parse(pushedResponse.controlPlane!.identifier)).toMatchObject({ Component: 'istiod', ID: hostname() });
    const assignment = fromBinary(ClusterLoadAssignmentSchema, pushedResponse.resources[0]!.value);
    expect(assignment.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints)).toHaveLength(2);
    expect(await stream.unexpected()).toEqual([]);
  });

  it('does not push changes that affect no proxy', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    const gateway = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: front, namespace: shop}
spec:
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]
`;
    plane.write('gateway.yaml', gateway);
    await eventually(
      'the change was taken up',
      () => linesOf(plane.lines, 'clients.push', { configs: /Gateway\/shop\/front/ }).length > 0,
    );
    expect(await stream.unexpected()).toEqual([]);
  });

  it('keeps the last valid object of an invalid file, reports the location, and applies the corrected file', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    plane.write('cart.yaml', serviceEntry().replace('resolution:', 'resolutoin:'));
    await eventually(
      'the mistake is told',
      () => linesOf(plane.lines, 'object.rejected', { place: /cart\.yaml:\d+/, reason: /resolutoin/ }).length > 0,
    );
    expect(await stream.unexpected()).toEqual([]);
    expect((await plane.subscribe()).clusters).toContain(cartCluster);
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    await stream.next();
    expect((await plane.subscribe()).clusters).toContain('outbound|81||cart.example.com');
  });

  it('updates all proxies when the mesh configuration changes and is valid', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    writeFileSync(join(plane.root, 'mesh'), 'connectTimeout: 3s\n');
    const pushedResponse = await stream.next();
    const cart = pushedResponse.resources
      .map(({ value }) => fromBinary(ClusterSchema, value))
      .find(({ name }) => name === cartCluster);
    expect(cart?.connectTimeout?.seconds).toBe(3n);
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: pushedResponse.nonce });
    writeFileSync(join(plane.root, 'mesh'), 'connectTimeout: soon\n');
    await eventually(
      'the mistake is told',
      () => linesOf(plane.lines, 'object.rejected', { place: /mesh:1/, reason: /connectTimeout/ }).length > 0,
    );
    expect(await stream.unexpected()).toEqual([]);
  });

  it('updates all proxies when the networks change', async () => {
    const plane = await ControlPlane.serving();
    writeFileSync(join(plane.root, 'meshNetworks'), 'networks: {west: {endpoints: [{fromRegistry: Kubernetes}]}}\n');
    await eventually('everything is pushed', () => linesOf(plane.lines, 'clients.push', { configs: '*' }).length > 0);
    expect((await plane.get('/debug/networkz')).json()).toMatchObject({
      networks: { west: { endpoints: [{ fromRegistry: 'Kubernetes' }] } },
    });
  });

  describe('when the mesh configuration contains other sources', () => {
    const moreCluster = 'outbound|80||more.example.com';

    /** Creates a second directory with one service. */
    function directory(plane: ControlPlane, name: string, entry = serviceEntry().replaceAll('cart', name)): string {
      mkdirSync(join(plane.root, name));
      writeFileSync(join(plane.root, name, `${name}.yaml`), entry);
      return join(plane.root, name);
    }

    const use = (plane: ControlPlane, ...paths: string[]): void => {
      const addresses = paths.map((path) => `{address: "fs://${path}"}`).join(', ');
      writeFileSync(join(plane.root, 'mesh'), `configSources: [${addresses}]\n`);
    };

    const isServed = async (plane: ControlPlane, cluster: string): Promise<boolean> =>
      (await plane.subscribe()).clusters.includes(cluster);

    it('opens, watches and closes these sources at run time', async () => {
      const plane = await ControlPlane.serving();
      const extraDirectory = directory(plane, 'more');
      use(plane, extraDirectory);
      await eventually('it is served', () => isServed(plane, moreCluster));
      writeFileSync(join(extraDirectory, 'more.yaml'), serviceEntry(['10.1.1.1'], 81).replaceAll('cart', 'more'));
      await eventually('its change is served', () => isServed(plane, 'outbound|81||more.example.com'));
      const other = directory(plane, 'other');
      use(plane, other);
      await eventually('the other is served', () => isServed(plane, 'outbound|80||other.example.com'));
      await eventually('it is gone', async () => !(await isServed(plane, 'outbound|81||more.example.com')));
      expect((await plane.subscribe()).clusters).toContain(cartCluster);
      expect(plane.deviations()).toEqual([]);
    });

    it('removes no objects before it has read the replacement source', async () => {
      const plane = await ControlPlane.serving();
      use(plane, directory(plane, 'more'));
      await eventually('it is served', () => isServed(plane, moreCluster));
      const { stream } = await plane.subscribe();
      stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
      const [laterDirectory, mistyped] = [join(plane.root, 'later'), 'fs://'];
      use(plane, laterDirectory);
      await eventually(
        'it is told that it is not there',
        () => linesOf(plane.lines, 'object.rejected', { place: laterDirectory }).length > 0,
      );
      expect(await isServed(plane, moreCluster)).toBe(true);
      writeFileSync(join(plane.root, 'mesh'), `rootNamespace: root\nconfigSources: [{address: "${mistyped}"}]\n`);
      await eventually(
        'it is told that it is none',
        () =>
          linesOf(plane.lines, 'object.rejected', { reason: /configSources: fs:\/\/ must have a directory/ }).length >
          0,
      );
      expect((await plane.get('/debug/mesh')).json()).toMatchObject({ rootNamespace: 'root' });
      expect(await isServed(plane, moreCluster)).toBe(true);
      use(plane, laterDirectory);
      directory(plane, 'later');
      await eventually('it is served', () => isServed(plane, 'outbound|80||later.example.com'));
      await eventually('what it replaces is gone', async () => !(await isServed(plane, moreCluster)));
      const sizes = stream.responses.map(({ resources }) => resources.length);
      expect(Math.min(...sizes)).toBeGreaterThanOrEqual(2);
      expect(plane.deviations()).toEqual([]);
    });
  });

  it('reads the directories of the mesh configuration in addition to the directory of the flag', async () => {
    const extraDirectory = mkdtempSync(join(tmpdir(), 'chartpilot-discovery-'));
    writeFileSync(join(extraDirectory, 'more.yaml'), serviceEntry().replaceAll('cart', 'more'));
    const plane = ControlPlane.starting({}, ({ root }) =>
      writeFileSync(join(root, 'mesh'), `configSources: [{address: "fs://${extraDirectory}"}]\n`),
    );
    await plane.ready();
    const { clusters } = await plane.subscribe();
    expect(clusters).toEqual(expect.arrayContaining([cartCluster, 'outbound|80||more.example.com']));
    rmSync(extraDirectory, { recursive: true });
  });

  it('starts with defaults if the mesh configuration is invalid', async () => {
    const root = mkdtempSync(join(tmpdir(), 'chartpilot-discovery-'));
    writeFileSync(join(root, 'mesh'), 'connectTimeout: [');
    const plane = await ControlPlane.serving({ meshConfig: join(root, 'mesh') });
    expect(linesOf(plane.lines, 'object.rejected', { place: /mesh:1/ })).toHaveLength(1);
    rmSync(root, { recursive: true });
  });

  it('closes streams and exits on SIGTERM', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    plane.signal();
    expect(await plane.ended).toEqual({ exitCode: 0, trouble: [] });
    expect((await stream.ended).code).toBeDefined();
  });

  it('serves xDS on the HTTP port if no xDS port is configured', async () => {
    const plane = await ControlPlane.serving({ grpcAddr: '' });
    const { clusters } = await plane.subscribe('http.listening');
    expect(clusters).toContain(cartCluster);
    expect((await plane.get('/ready')).status).toBe(200);
  });

  it('exits with an error if a port is in use', async () => {
    const portHolder = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => portHolder.once('listening', resolve));
    const address = `127.0.0.1:${(portHolder.address() as { port: number }).port}`;
    for (const flag of ['httpAddr', 'grpcAddr'] as const) {
      const { exitCode, trouble } = await new ControlPlane({ [flag]: address }).ended;
      expect(exitCode).toBe(1);
      expect(trouble).toEqual([expect.stringContaining(`port in use: ${address}`)]);
    }
    portHolder.close();
  });

  it('exits with an error if the configuration directory is missing', async () => {
    const { exitCode, trouble } = await new ControlPlane({ configDir: '/nonexistent/mesh' }).ended;
    expect([exitCode, trouble]).toEqual([1, [expect.stringContaining('/nonexistent/mesh')]]);
  });

  it('behaves as the sequence diagrams show', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    await stream.next();
    plane.write('cart.yaml', 'spec: [');
    await eventually('the mistake is told', () => plane.troubles().length > 0);
    await plane.get('/debug/adsz?push=true', { method: 'POST' });
    await stream.unexpected(300);
    plane.signal();
    await plane.ended;
    expect(plane.deviations()).toEqual([]);
  });
});

describe('the pages of pilot-discovery', () => {
  it('show connected proxies and the resources sent to them', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    const { nonce } = stream.responses[0]!;
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: nonce });
    await eventually('it is acknowledged', async () =>
      (await plane.get('/debug/syncz')).text.includes(`"cluster_acked":"${nonce}"`),
    );
    expect((await plane.get('/debug/adsz')).json()).toMatchObject({
      totalClients: 1,
      clients: [{ connectionId: `${sidecar.id}-1`, labels: { app: 'web' }, watches: { [typeUrls.CDS]: [] } }],
    });
    expect((await plane.get('/debug/syncz')).json()).toMatchObject([
      { proxy: 'web-0.shop', cluster_sent: nonce, cluster_acked: nonce, listener_sent: '' },
    ]);
    expect((await plane.get('/debug/syncz?namespace=other')).json()).toEqual([]);
    expect((await plane.get('/debug/connections')).json()).toMatchObject({ totalClients: 1 });
  });

  it("show the configuration of a proxy in Envoy's format", async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.EDS, resourceNames: [cartCluster] });
    await stream.next();
    const dump = (await plane.get(`/debug/config_dump?proxyID=${sidecar.id}&include_eds`)).json() as {
      configs: { '@type': string; dynamic_active_clusters?: { cluster: { name: string } }[] }[];
    };
    expect(dump.configs.map((config) => config['@type'].split('.').at(-1))).toEqual([
      'BootstrapConfigDump',
      'ClustersConfigDump',
      'EndpointsConfigDump',
      'ListenersConfigDump',
      'ScopedRoutesConfigDump',
      'RoutesConfigDump',
      'SecretsConfigDump',
      'EcdsConfigDump',
    ]);
    expect(dump.configs[1]!.dynamic_active_clusters!.map(({ cluster }) => cluster.name)).toContain(cartCluster);
    expect((await plane.get('/debug/config_dump')).status).toBe(400);
    expect((await plane.get('/debug/config_dump?proxyID=nobody')).status).toBe(404);
    const clusters = (await plane.get(`/debug/config_dump?proxyID=${sidecar.id}&types=cds`)).json() as typeof dump;
    expect(clusters.configs).toHaveLength(1);
  });

  it('trigger a full push', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce });
    expect((await plane.get('/debug/adsz?push=true', { method: 'POST' })).text).toBe('Pushed to 1 servers\n');
    await eventually('it is done', () => linesOf(plane.lines, 'clients.push', { configs: '*' }).length > 0);
  });

  it('show configuration, services, endpoints and settings', async () => {
    const plane = await ControlPlane.serving();
    expect((await plane.get('/debug/configz')).json()).toMatchObject([
      { kind: 'ServiceEntry', metadata: { name: 'cart', namespace: 'shop' }, spec: { hosts: ['cart.example.com'] } },
    ]);
    expect((await plane.get('/debug/registryz')).json()).toMatchObject([{ hostname: 'cart.example.com' }]);
    expect((await plane.get('/debug/endpointz')).json()).toMatchObject({
      'cart.example.com': { shop: { Shards: { 'External/Kubernetes': [{ address: '10.1.1.1' }] } } },
    });
    expect((await plane.get('/debug/mesh')).json()).toMatchObject({ trustDomain: 'cluster.local' });
    const list = (await plane.get('/debug/list')).json() as string[];
    const pages = ['adsz', 'cachez', 'configz', 'connections', 'endpointz', 'instancesz', 'mesh', 'networkz'];
    pages.push('push_status', 'registryz', 'resourcesz', 'syncz');
    expect(list).toEqual(expect.arrayContaining(pages));
    for (const page of pages) expect((await plane.get(`/debug/${page}?pretty`)).status, page).toBe(200);
    expect((await plane.get('/debug')).text).toContain('/debug/syncz');
    expect((await plane.get('/debug/nothing')).status).toBe(404);
    expect((await plane.get('/version')).text).toBe('test');
  });

  it('show metrics that count events', async () => {
    const plane = await ControlPlane.serving();
    const { stream } = await plane.subscribe();
    const nack = { code: 13, message: 'no such filter' };
    stream.send({ typeUrl: typeUrls.CDS, responseNonce: stream.responses[0]!.nonce, errorDetail: nack });
    plane.write('cart.yaml', serviceEntry(['10.1.1.1'], 81));
    await stream.next();
    const { text } = await plane.get('/metrics');
    for (const line of [
      'pilot_info{version="test"} 1',
      'pilot_xds{version="1.30.0"} 1',
      'pilot_xds_pushes{type="cds"} 2',
      'pilot_total_xds_rejects{type="cds"} 1',
      `pilot_xds_cds_reject{node="${sidecar.id}",err="no such filter"} 1`,
      'pilot_services 1',
      'pilot_debounce_time_count 1',
      'pilot_pushcontext_init_seconds_count 2',
      'pilot_push_triggers{type="service"} 2',
      'pilot_inbound_updates{type="svc"} 1',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
  });
});

describe('the trace of pilot-discovery', () => {
  const traceLines = (text: string): TraceLine[] =>
    text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceLine);

  it('is served on the HTTP ports to clients with the token', async () => {
    const plane = await ControlPlane.serving();
    expect((await plane.get('/debug/trace', { headers: {} })).status).toBe(401);
    const response = await plane.watch('?follow=false');
    expect(response.headers.get('content-type')).toBe('application/x-ndjson');
    const [first, ...records] = traceLines(await response.text());
    expect(first).toMatchObject({ kind: 'header', program: 'pilot-discovery' });
    expect(records).toContainEqual(expect.objectContaining({ kind: 'spawn', actor: 'discovery' }));
  });

  it('is sent completely before the control plane exits, without delaying the exit', async () => {
    const plane = await ControlPlane.serving();
    const watched = (await plane.watch()).text();
    const spentMs = await msWithoutQueueing([process.pid], async () => {
      plane.signal();
      expect(await plane.ended).toMatchObject({ exitCode: 0 });
      await plane.trace.end();
    });
    // The exit is faster than --shutdownDuration (2 s), for which it would wait for a running request.
    expect(spentMs).toBeLessThan(1_000);
    expect(traceLines(await watched).at(-1)).toMatchObject({ kind: 'stop', actor: 'discovery', status: 'done' });
  });
});
