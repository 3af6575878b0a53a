import { describe, expect, it } from 'vitest';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { validateFiles } from '../../config/validation/validate-files.ts';
import { diagnosticsOf } from '../../monitor/diagnostics/push-status.ts';

function object(kind: string, name: string, spec: string, namespace = 'shop'): string {
  const apiVersion = kind === 'Service' ? 'v1' : 'networking.istio.io/v1';
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n---\n`;
}

const service = (name: string, namespace: string, extraSpec = ''): string =>
  object('Service', name, `{clusterIP: 10.0.0.${name.length}, ${extraSpec}ports: [{port: 80, name: http}]}`, namespace);
const entry = (host: string, namespace: string, exportTo = '["*"]'): string =>
  object(
    'ServiceEntry',
    host.split('.')[0]!,
    `{hosts: [${host}], exportTo: ${exportTo}, location: MESH_EXTERNAL, resolution: DNS, ports: [{number: 443, name: tls, protocol: TLS}]}`,
    namespace,
  );
const mesh =
  service('web', 'shop') + service('cart', 'bank') + entry('api.test', 'shop') + entry('private.test', 'bank', '["."]');
const importing = (hosts: string, namespace = 'shop', port = ''): string =>
  object('Sidecar', 's', `{egress: [{${port}hosts: [${hosts}]}]}`, namespace);

async function reports(yaml: string): Promise<{ readonly files: string[]; readonly plane: string[] }> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: yaml }]);
  const plane = diagnosticsOf(givenPlane(yaml).state, []).pilot_config_warnings ?? {};
  return {
    files: problems.filter(({ object: of }) => of?.startsWith('Sidecar')).map(({ code, field }) => `${code} ${field}`),
    plane: Object.values(plane).map(({ code, field }) => `${code} ${field}`),
  };
}

const host = 'HOST_NOT_FOUND spec.egress[0].hosts[0]';

describe('an egress host of a Sidecar', () => {
  it.each([
    ['without a Service in its namespace', './nope.shop.svc.cluster.local'],
    ['without a ServiceEntry', '"*/nope.test"'],
    ['whose ServiceEntry is in another namespace', 'bank/api.test'],
    ['whose Service is in another namespace', 'shop/cart.bank.svc.cluster.local'],
    ['whose service is not exported', 'bank/private.test'],
    ['that is a short name', './web'],
    ['that is a wildcard without matching services', 'shop/*.bank.svc.cluster.local'],
  ])('is reported as not found if it is a host %s', async (_, writtenHost) => {
    expect(await reports(mesh + importing(writtenHost))).toEqual({ files: [host], plane: [host] });
  });

  it.each([
    ['everything', '*/*'],
    ['its own namespace', './*'],
    ['a namespace without services', 'empty/*'],
    ['nothing of a namespace', '~/*'],
    ['nothing, because it excludes a host', '~bank/nope.test'],
    ['a Service', './web.shop.svc.cluster.local'],
    ['a Service of another namespace', 'bank/cart.bank.svc.cluster.local'],
    ['a ServiceEntry of any namespace', '*/api.test'],
    ['hosts by a wildcard', './*.test'],
    ['hosts by a wildcard of the cluster', '*/*.bank.svc.cluster.local'],
    ['Services by a wildcard', 'bank/*.local'],
  ])('is not reported if it selects %s', async (_, writtenHost) => {
    expect(await reports(mesh + importing(`"${writtenHost}"`))).toEqual({ files: [], plane: [] });
  });

  it('is not reported in the root namespace, because it can be private to some clients', async () => {
    expect(
      await reports(mesh + importing('"./private.test", "*/cart.bank.svc.cluster.local"', 'istio-system')),
    ).toEqual({ files: [], plane: [] });
  });

  it('is not reported in files if it can exist in the cluster', async () => {
    const partialSidecar = importing(
      'other/a.other.svc.cluster.local, "*/x.test", "*/*.other.svc.cluster.local", other/y.test',
    );
    expect((await reports(service('web', 'shop') + partialSidecar)).files).toEqual([]);
  });
});

describe('an egress listener of a Sidecar', () => {
  const port = (number: number, protocol = 'HTTP'): string =>
    `port: {number: ${number}, name: p, protocol: ${protocol}}, `;
  const ownHost = './web.shop.svc.cluster.local';

  it('is reported if no service of its hosts has its port', async () => {
    const expectedErrors = ['PORT_NOT_FOUND spec.egress[0].port.number'];
    expect(await reports(mesh + importing(ownHost, 'shop', port(81)))).toEqual({
      files: expectedErrors,
      plane: expectedErrors,
    });
  });

  it.each([
    ['that one of its services has', port(443), `${ownHost}, ./api.test`],
    ['of an HTTP proxy', `${port(8888, 'HTTP_PROXY')}bind: 127.0.0.1, `, ownHost],
    ['with a wildcard', port(81), `${ownHost}, "./*.test"`],
  ])('is not reported if it has a port %s', async (_, of, hosts) => {
    expect(await reports(mesh + importing(hosts, 'shop', of))).toEqual({ files: [], plane: [] });
  });
});
