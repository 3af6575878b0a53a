/** Reports existing hosts that an object's clients do not see, because they are not exported or the name is incomplete. */
import { describe, expect, it } from 'vitest';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { validateFiles } from '../../config/validation/validate-files.ts';
import { diagnosticsOf } from '../../monitor/diagnostics/push-status.ts';

function object(kind: string, name: string, spec: string, { namespace = 'shop', exportTo = '' } = {}): string {
  const group =
    kind === 'Service' ? 'v1' : `${kind === 'RequestAuthentication' ? 'security' : 'networking'}.istio.io/v1`;
  const annotations = exportTo === '' ? '{}' : `{networking.istio.io/exportTo: "${exportTo}"}`;
  return `apiVersion: ${group}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}, annotations: ${annotations}}\nspec: ${spec}\n---\n`;
}

const service = (name: string, of: { namespace?: string; exportTo?: string } = {}): string =>
  object('Service', name, `{clusterIP: 10.0.0.${name.length}, ports: [{port: 80, name: http}]}`, of);
const routes = (to: string, spec = 'hosts: [web]', namespace = 'shop'): string =>
  object('VirtualService', 'r', `{${spec}, http: [{route: [{destination: {host: ${to}}}]}]}`, { namespace });

/** Reports of the check of files and of a control plane, which must be equal. */
async function reports(yaml: string): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: yaml }]);
  const files = problems
    .filter(({ code = '' }) => code.endsWith('_NOT_FOUND'))
    .map(({ code, field, other }) => [code, field, ...(other ? [other.object] : [])].join(' '));
  const plane = Object.values(diagnosticsOf(givenPlane(yaml).state, []).pilot_config_warnings ?? {});
  expect(plane.map(({ code, field }) => `${code} ${field}`)).toEqual(files.map((one) => one.split(' ', 2).join(' ')));
  return files;
}

describe('a destination that is not exported to the namespace of the routes', () => {
  const hidden = service('web') + service('private', { namespace: 'bank', exportTo: '.' });
  const host = 'private.bank.svc.cluster.local';
  const report = 'HOST_NOT_FOUND spec.http[0].route[0].destination.host Service bank/private';

  it('is reported with its service if the routes apply to a service of their namespace', async () => {
    expect(await reports(hidden + routes(host))).toEqual([report]);
  });

  it('is not reported if it is exported, or if clients of the namespace do not receive the routes', async () => {
    const exportedServices = service('web') + service('private', { namespace: 'bank', exportTo: '.,shop' });
    expect(await reports(exportedServices + routes(host))).toEqual([]);
    expect(await reports(hidden + routes(host, 'hosts: [web], exportTo: [bank]'))).toEqual([]);
    expect(await reports(hidden + routes(host, `hosts: [${host}]`, 'routes'))).toEqual([]);
  });
});

describe('a host with an incomplete name or misspelled domain', () => {
  it.each(['api.shop', 'api.shop.svc', 'api.shop.svc.cluster.lokal', 'api.shop.scv.cluster.local'])(
    'is reported in routes and rules: %s',
    async (name) => {
      const rule = object('DestinationRule', 'd', `{host: ${name}, subsets: [{name: v1, labels: {a: b}}]}`);
      expect(await reports(service('web') + service('api') + routes(name) + rule)).toEqual([
        'HOST_NOT_FOUND spec.http[0].route[0].destination.host',
        'HOST_NOT_FOUND spec.host',
      ]);
    },
  );

  it('is not reported if it is the host of a ServiceEntry', async () => {
    const entry = object('ServiceEntry', 'e', '{hosts: [api.shop], ports: [{number: 80, name: http, protocol: HTTP}]}');
    expect(await reports(service('web') + service('api') + entry + routes('api.shop'))).toEqual([]);
  });
});

describe('the host of jwksUri', () => {
  const tokens = (uri: string): string =>
    service('keys') + object('RequestAuthentication', 't', `{jwtRules: [{issuer: i.test, jwksUri: "${uri}"}]}`);

  it.each([
    ['http://key.shop.svc.cluster.local/jwks', ['HOST_NOT_FOUND spec.jwtRules[0].jwksUri']],
    ['https://keys.shop.svc.cluster.local/jwks', ['PORT_NOT_FOUND spec.jwtRules[0].jwksUri']],
    ['http://keys.shop.svc.cluster.local/jwks', []],
    ['https://keys.example/jwks', []],
  ])('is reported only if its Service or port is missing: %s', async (uri, expectedReports) => {
    expect(await reports(tokens(uri))).toEqual(expectedReports);
  });
});
