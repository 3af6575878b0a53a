/** A real Consul that accepts only clients with a certificate: HTTP/2, and certificate files that are replaced while the program runs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it, onTestFinished } from 'vitest';
import { createAuthority } from '../certs/authority.ts';
import { replaceFiles } from '../certs/certificate-directory.ts';
import { stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { ConsulPlane, healthOf, hostOf } from './consul-plane.ts';
import { ConsulServer, stopConsulServers } from './consul-server.ts';

afterAll(stopConsulServers);
afterEach(stopControlPlanes);

/** Files of a client and a server, which are replaced together with their authority. */
class TlsFiles {
  readonly folder = mkdtempSync(join(tmpdir(), 'cp-consul-tls-'));

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  write(side: 'client' | 'server', authority: ReturnType<typeof createAuthority>): void {
    const { certificate, privateKey } = authority.issue([side === 'server' ? 'server.dc1.consul' : 'chartpilot']);
    replaceFiles(this.folder, {
      [`${side}-ca.pem`]: authority.certificate,
      [`${side}.pem`]: certificate,
      [`${side}-key.pem`]: privateKey,
    });
  }
}

it('services of Consul are watched over HTTP/2 with a client certificate, and replaced certificate files apply without a restart', async () => {
  const files = new TlsFiles();
  const [first, second] = [createAuthority('first'), createAuthority('second')];
  files.write('server', first);
  files.write('client', first);
  const server = await ConsulServer.start({
    tls: {
      ...{ caFile: files.file('server-ca.pem'), certificateFile: files.file('server.pem') },
      keyFile: files.file('server-key.pem'),
    },
  });
  await server.register({ service: 'web' });
  await server.register({ service: 'api' });
  const plane = new ConsulPlane(
    { url: server.url.replace(/^https:\/\//, '') },
    {},
    {
      ...{ CONSUL_HTTP_SSL: 'true', CONSUL_CACERT: files.file('client-ca.pem') },
      ...{ CONSUL_CLIENT_CERT: files.file('client.pem'), CONSUL_CLIENT_KEY: files.file('client-key.pem') },
      // The certificate does not contain the address.
      CONSUL_TLS_SERVER_NAME: 'server.dc1.consul',
    },
  );
  await plane.plane.ready();
  expect([...(await plane.services()).keys()].toSorted()).toEqual(['api', 'web'].map(hostOf));
  expect(await plane.view()).toMatchObject({ condition: 'synced', transport: 'HTTP/2', strategy: 'services' });
  await server.register({ service: 'web', status: 'critical' });
  await eventually('a flip of health arrives', async () => (await healthOf(plane, 'web')).endsWith('unhealthy'));
  await server.register({ service: 'new' });
  await eventually('a new service arrives', async () => (await plane.services()).has(hostOf('new')));
  await server.deregister('n1', 'new-1');
  await eventually('a removed service is gone', async () => !(await plane.services()).has(hostOf('new')));
  // The server accepts only clients of the second authority, and presents its certificate.
  await server.kill();
  files.write('server', second);
  await server.start();
  await server.register({ service: 'web', address: '127.0.0.7' });
  await eventually('the certificate is rejected', async () => /certificate/.test((await plane.view()).reason));
  expect((await plane.plane.get('/ready')).text).toMatch(/not responding, serving the last known services/);
  expect((await plane.services()).size).toBe(2);
  const startedAt = performance.now();
  files.write('client', second);
  await eventually('the new files are used', async () => (await healthOf(plane, 'web')).startsWith('127.0.0.7'));
  expect(performance.now() - startedAt).toBeLessThan(30_000);
  expect(await plane.view()).toMatchObject({ condition: 'synced', transport: 'HTTP/2' });
});

it('a Consul server with a certificate of another authority or for another name is never read', async () => {
  const files = new TlsFiles();
  const [ownAuthority, other] = [createAuthority('own'), createAuthority('other')];
  files.write('server', ownAuthority);
  files.write('client', ownAuthority);
  const server = await ConsulServer.start({
    tls: {
      ...{ caFile: files.file('server-ca.pem'), certificateFile: files.file('server.pem') },
      keyFile: files.file('server-key.pem'),
    },
  });
  await server.register({ service: 'web' });
  const env = {
    CONSUL_CACERT: files.file('client-ca.pem'),
    ...{ CONSUL_CLIENT_CERT: files.file('client.pem'), CONSUL_CLIENT_KEY: files.file('client-key.pem') },
  };
  const wrongName = new ConsulPlane(server, {}, { ...env, CONSUL_TLS_SERVER_NAME: 'server.dc2.consul' });
  const planeWithoutCertificate = new ConsulPlane(
    server,
    {},
    { CONSUL_CACERT: files.file('client-ca.pem'), CONSUL_TLS_SERVER_NAME: 'server.dc1.consul' },
  );
  replaceFiles(files.folder, { 'other-ca.pem': other.certificate });
  const wrongAuthority = new ConsulPlane(
    server,
    {},
    { ...env, CONSUL_CACERT: files.file('other-ca.pem'), CONSUL_TLS_SERVER_NAME: 'server.dc1.consul' },
  );
  for (const [plane, reason] of [
    [wrongName, /server\.dc2\.consul\. is not in the cert's altnames/],
    [planeWithoutCertificate, /alert certificate required/],
    [wrongAuthority, /unable to verify the first certificate/],
  ] as const) {
    await eventually('it is reported', async () => (await plane.view()).condition === 'failing');
    expect((await plane.view()).reason).toMatch(reason);
    expect((await plane.plane.get('/ready')).text).toMatch(
      /registry Consul\/local: not responding, no services known yet/,
    );
    expect(plane.plane.lines.join('\n')).not.toContain('Consul catalog synced');
  }
});
