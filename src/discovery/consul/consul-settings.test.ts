import { expect, it } from 'vitest';
import { Environment } from '../environment.ts';
import { type ConsulFlags, consulSettingsOf } from './consul-settings.ts';

const settings = (flags: ConsulFlags, env: NodeJS.ProcessEnv = {}) =>
  consulSettingsOf(flags, new Environment(env, () => {}));

it('the Consul address is read from the flag (either spelling), then the environment variable, then defaults to the local agent', () => {
  const env = { CONSUL_HTTP_ADDR: 'consul.example:8500' };
  expect(settings({ consulServerURL: 'http://a:1' }, env).server.href).toBe('http://a:1/');
  expect(settings({ consulserverURL: 'http://b:1' }, env).server.href).toBe('http://b:1/');
  expect(settings({}, env).server.href).toBe('http://consul.example:8500/');
  expect(settings({}, { ...env, CONSUL_HTTP_SSL: 'true' }).server.href).toBe('https://consul.example:8500/');
  expect(settings({}).server.href).toBe('http://127.0.0.1:8500/');
  expect(settings({ consulServerURL: 'http://[::1]:8500/below' }).server.pathname).toBe('/below');
});

it("the Consul token, certificates and datacenters are read from flags and the environment variables of Consul's client", () => {
  const env = {
    ...{ CONSUL_HTTP_TOKEN: 'secret', CONSUL_HTTP_TOKEN_FILE: '/token', CONSUL_CACERT: '/ca' },
    ...{ CONSUL_CLIENT_CERT: '/cert', CONSUL_CLIENT_KEY: '/key', CONSUL_TLS_SERVER_NAME: 'server.dc1.consul' },
    CONSUL_HTTP_SSL_VERIFY: 'false',
  };
  expect(settings({ consulDatacenters: 'a, b,a' }, env)).toMatchObject({
    ...{ token: 'secret', tokenFile: '/token', caFile: '/ca', certificateFile: '/cert', keyFile: '/key' },
    ...{ serverName: 'server.dc1.consul', verifiesCertificate: false, datacenters: ['a', 'b'] },
  });
  expect(settings({ consulTokenFile: '/other' }, env).tokenFile).toBe('/other');
  expect(settings({}).datacenters).toEqual(['']);
});

it.each<[ConsulFlags, NodeJS.ProcessEnv, RegExp]>([
  [{ consulServerURL: 'unix:///run/consul.sock' }, {}, /--consulServerURL: must be an http:\/\/ or https:\/\/ URL/],
  [{ consulServerURL: 'http://user:secret@a' }, {}, /must be an http/],
  [{}, { CONSUL_HTTP_ADDR: '::' }, /CONSUL_HTTP_ADDR: must be an http/],
  [{}, { CONSUL_CLIENT_CERT: '/cert' }, /CONSUL_CLIENT_CERT and CONSUL_CLIENT_KEY: set both, or neither/],
  [{}, { CONSUL_CAPATH: '/ca' }, /CONSUL_CAPATH is not supported/],
  [{ consulDatacenters: Array.from({ length: 101 }, (_, at) => `d${at}`).join() }, {}, /at most 100 names, got 101/],
])('the Consul settings %o with environment %o are rejected', (flags, env, message) => {
  expect(() => settings(flags, env)).toThrow(message);
  expect(() => settings(flags, env)).not.toThrow(/secret/);
});
